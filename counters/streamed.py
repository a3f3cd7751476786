"""What counters of every kind share and is public: inputs, neighbours, lattices, post-processing."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
from trilift.counters.inputs import InputRule, lattice_places
from trilift.lift.checks import choice, fail, integer, written
from trilift.lift.errors import ParameterError

__all__ = ["POSTPROCESSING", "StreamSetup", "checked_epsilon", "make_stream"]

Integers = np.ndarray[Any, np.dtype[Any]]

POSTPROCESSING = ("nonnegative", "monotone")

_MAX_DIMENSION = 1 << 20
_MOST_CONTRIBUTIONS = 1 << 62


@dataclass(frozen=True, kw_only=True)
class StreamSetup:
    """The inputs of a counter, what one person can change, and what is done with released values.

    Attributes:
        horizon: number of steps; None for a counter without end.
        rule: what an input may be.
        output_places: released values are multiples of 2^-output_places.
        dimension: number of independent counts, or None for a single one.
        max_contributions: inputs that one person may contribute.
        norm_bound: bound on the l1 norm of (input - low) of one vector input, in lattice steps, or None.
        postprocess: None, "nonnegative" or "monotone".
    """

    horizon: int | None
    rule: InputRule
    output_places: int
    dimension: int | None
    max_contributions: int
    norm_bound: int | None
    postprocess: str | None

    @property
    def change(self) -> Fraction:
        """By how much (l1, over all steps and coordinates) the data of one person can change."""
        return _change(self.rule, self.dimension, self.norm_bound, self.max_contributions)

    def statement_lines(self) -> list[str]:
        """Return guarantee, mechanism, composition and theorem, where the setup says them itself."""
        return []

    @property
    def change_l2(self) -> Fraction:
        """The same where coordinates add up in squares, as under Gaussian noise.

        One vector input changes by at most w = high - low in each of d coordinates, so by sqrt(d) w; within
        norm_bound its change has l1 norm at most 2 norm_bound, so l2 norm at most sqrt(2 norm_bound w).
        Inputs at several steps add up as numbers. Roots are rounded up.
        """
        one_sq = self.rule.width**2 * self.width
        if self.norm_bound is not None:
            one_sq = min(one_sq, self.rule.width * Fraction(2 * self.norm_bound, 1 << self.rule.places))
        return self.max_contributions * _root_up(one_sq)

    @property
    def width(self) -> int:
        """Number of counts: 1 for a scalar counter."""
        return 1 if self.dimension is None else self.dimension

    def one(self, x: Any) -> Integers:
        """Return one checked input in lattice steps, shape (width,).

        Raises:
            ParameterError: an input that is not acceptable.
        """
        if self.dimension is None:
            return np.array([self.rule.one(x)], dtype=object)
        vector: Integers = self._vectors(self.rule.many(x, ndim=1)[None, :])[0]
        return vector

    def many(self, values: Any) -> Integers:
        """Return k checked inputs in lattice steps, shape (k, width).

        Raises:
            ParameterError: an input that is not acceptable.
        """
        if self.dimension is None:
            return self.rule.many(values, ndim=1)[:, None]
        inputs = self.rule.many(values, ndim=2)
        if inputs.shape == (0, 0):
            inputs = inputs.reshape(0, self.width)
        return self._vectors(inputs)

    def check_zeros(self) -> None:
        """Check that zeros are inputs, which is what steps without an input count as.

        Raises:
            ParameterError: they are not. Clipping does not help: it would count something else.
        """
        if not self.rule.low <= 0 <= self.rule.high:
            raise ParameterError("skip counts zeros, and 0 is not within the bounds")
        if not self._within_norm(np.zeros((1, self.width), dtype=np.int64)):
            raise ParameterError("skip counts zeros, and they are not within norm_bound of the low corner")

    def _vectors(self, inputs: Integers) -> Integers:
        if inputs.shape[1] != self.width:
            raise ParameterError(f"inputs must have {self.width} coordinates, got {inputs.shape[1]}")
        if not self._within_norm(inputs):
            raise ParameterError("inputs must lie within norm_bound of the low corner, and a vector does not")
        return inputs

    def _within_norm(self, inputs: Integers) -> bool:
        if self.norm_bound is None or len(inputs) == 0:
            return True
        low, high = self.rule.low, self.rule.high
        fits = inputs.dtype != object and max(-low, high, (high - low) * self.width) < 1 << 62
        norms = ((inputs if fits else inputs.astype(object)) - low).sum(axis=1)
        return bool(norms.max() <= self.norm_bound)


def _change(rule: InputRule, dimension: int | None, norm_bound: int | None, contributions: int) -> Fraction:
    """Return chi: by how much (l1, over all steps and coordinates) the data of one person can change."""
    one = rule.width * (1 if dimension is None else dimension)
    if norm_bound is not None:  # both vectors lie within norm_bound of the low corner
        one = min(one, Fraction(2 * norm_bound, 1 << rule.places))
    return one * contributions


def _root_up(square: Fraction) -> Fraction:
    """Return the root where it is rational, else a rational a relative 2^-40 above it at most."""
    top, bottom = square.numerator * square.denominator, square.denominator
    root = isqrt(top)
    if root * root == top:
        return Fraction(root, bottom)
    scale = 1 << 41
    return Fraction(isqrt(top * scale * scale) + 1, bottom * scale)


def checked_epsilon(epsilon: Any) -> Fraction:
    """Return a budget as the rational that it is.

    Raises:
        ParameterError: not a finite number > 0, or one of too many digits.
    """
    return written("epsilon", epsilon, above=0)


def make_stream(
    *,
    horizon: Any,
    bounds: Any,
    max_contributions: Any,
    clip: Any,
    resolution: Any,
    output_resolution: Any,
    dimension: Any,
    norm_bound: Any,
    postprocess: Any,
) -> dict[str, Any]:
    """Check the arguments that all counters share: the fields of a :class:`StreamSetup`.

    Raises:
        ParameterError: an argument that is not acceptable.
    """
    n = None if horizon is None else integer("horizon", horizon, minimum=1)
    rule = InputRule.make(bounds=bounds, resolution=resolution, clip=clip)
    places = (
        rule.places if output_resolution is None else lattice_places("output_resolution", output_resolution)
    )
    if places < rule.places:
        raise ParameterError("output_resolution must not be coarser than resolution")
    d = None if dimension is None else integer("dimension", dimension, minimum=1, maximum=_MAX_DIMENSION)
    radius = _norm_bound(norm_bound, d, rule)
    most = _MOST_CONTRIBUTIONS if n is None else n
    contributions = integer("max_contributions", max_contributions, minimum=1, maximum=most)
    if postprocess is not None:
        choice("postprocess", postprocess, POSTPROCESSING)
        if rule.low < 0:
            raise ParameterError(f"postprocess={postprocess!r} needs inputs that cannot be negative")
    return {
        "horizon": n,
        "rule": rule,
        "output_places": places,
        "dimension": d,
        "max_contributions": contributions,
        "norm_bound": radius,
        "postprocess": postprocess,
    }


def _norm_bound(norm_bound: Any, dimension: int | None, rule: InputRule) -> int | None:
    if norm_bound is None:
        return None
    if dimension is None:
        raise ParameterError("norm_bound needs a dimension: it bounds the l1 norm of a vector input")
    exact = written("norm_bound", norm_bound, above=0) * (1 << rule.places)
    if exact.denominator != 1:
        raise fail("norm_bound", "a multiple of the resolution", norm_bound)
    return int(exact)
