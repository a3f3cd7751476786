"""The public parameters of a counter, and the mechanism they make: chain, ledger, lattices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.counters.defaults import chain_of, default_names
from trilift.counters.inputs import InputRule, lattice_places
from trilift.counters.levels import SavedLevel, restored_chain
from trilift.lift import Chain
from trilift.lift.budget import OBJECTIVES, horizon_scales
from trilift.lift.checks import choice, fail, integer, rational
from trilift.lift.errors import ParameterError
from trilift.stream.ledger import Ledger, make_ledger, restore_ledger

__all__ = ["POSTPROCESSING", "Setup", "make_setup"]

Integers = np.ndarray[Any, np.dtype[Any]]

POSTPROCESSING = ("nonnegative", "monotone")

_EPSILON_BITS = 2048
_MAX_DIMENSION = 1 << 20


@dataclass(frozen=True)
class Setup:
    """Everything about a counter that is public and fixed.

    Attributes:
        epsilon: the budget, exact.
        horizon: number of steps.
        objective: "max" or "mean".
        names: artifact names of the chain, finest first, or None for a chain given as an object.
        chain: the chain.
        ledger: the exact budget split; its ``change`` is what one neighbour can change in l1 norm.
        rule: what an input may be.
        output_places: released values are multiples of 2^-output_places.
        dimension: number of independent counts, or None for a single one.
        max_contributions: inputs that one person may contribute.
        norm_bound: bound on the l1 norm of (input - low) of one vector input, in lattice steps, or None.
        postprocess: None, "nonnegative" or "monotone".
    """

    epsilon: Fraction
    horizon: int
    objective: str
    names: tuple[str, ...] | None
    chain: Chain
    ledger: Ledger
    rule: InputRule
    output_places: int
    dimension: int | None
    max_contributions: int
    norm_bound: int | None
    postprocess: str | None

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


def _chain(chain: Any, horizon: int, objective: str) -> tuple[tuple[str, ...] | None, Chain]:
    if isinstance(chain, Chain):
        if not chain.is_exact:
            raise ParameterError("chain must be exact: complete and certify the factors first")
        return None, chain
    if chain is None:
        names = default_names(horizon, objective=objective)
    elif isinstance(chain, Sequence) and not isinstance(chain, str):
        names = tuple(chain)
    else:
        raise fail("chain", "a Chain, a sequence of artifact names, or None", chain)
    return names, chain_of(names)


def _change(rule: InputRule, dimension: int | None, norm_bound: int | None, contributions: int) -> Fraction:
    """Return chi: by how much (l1, over all steps and coordinates) the data of one person can change."""
    one = rule.width * (1 if dimension is None else dimension)
    if norm_bound is not None:  # both vectors lie within norm_bound of the low corner
        one = min(one, Fraction(2 * norm_bound, 1 << rule.places))
    return one * contributions


def make_setup(
    epsilon: Any,
    *,
    horizon: Any,
    objective: Any,
    chain: Any,
    bounds: Any,
    max_contributions: Any,
    clip: Any,
    resolution: Any,
    output_resolution: Any,
    dimension: Any,
    norm_bound: Any,
    postprocess: Any,
    levels: Sequence[SavedLevel] | None = None,
) -> Setup:
    """Check the arguments of a counter and build its mechanism: see :class:`trilift.counters.Counter`.

    With the saved levels of a counter it is their mechanism: nothing is chosen or computed by floats again.
    """
    asked = rational("epsilon", epsilon, above=0)
    if max(asked.numerator.bit_length(), asked.denominator.bit_length()) > _EPSILON_BITS:
        raise ParameterError(f"epsilon must be a fraction of numbers of at most {_EPSILON_BITS} bits")
    n = integer("horizon", horizon, minimum=1)
    choice("objective", objective, OBJECTIVES)
    rule = InputRule.make(bounds=bounds, resolution=resolution, clip=clip)
    places = (
        rule.places if output_resolution is None else lattice_places("output_resolution", output_resolution)
    )
    if places < rule.places:
        raise ParameterError("output_resolution must not be coarser than resolution")
    d = None if dimension is None else integer("dimension", dimension, minimum=1, maximum=_MAX_DIMENSION)
    radius = _norm_bound(norm_bound, d, rule)
    contributions = integer("max_contributions", max_contributions, minimum=1, maximum=n)
    if postprocess is not None:
        choice("postprocess", postprocess, POSTPROCESSING)
        if rule.low < 0:
            raise ParameterError(f"postprocess={postprocess!r} needs inputs that cannot be negative")
    change = _change(rule, d, radius, contributions)
    if levels is None:
        names, built = _chain(chain, n, objective)
        built.check_horizon(n)
        scales = horizon_scales(built, n, objective=objective)
        ledger = make_ledger(built, asked, scales=scales, change=change, input_places=rule.places)
    else:
        names, built = restored_chain(chain, levels)
        built.check_horizon(n)
        pairs = [(level.scale, level.places) for level in levels]
        ledger = restore_ledger(built, asked, scales=pairs, change=change, input_places=rule.places)
    return Setup(
        epsilon=asked,
        horizon=n,
        objective=objective,
        names=names,
        chain=built,
        ledger=ledger,
        rule=rule,
        output_places=places,
        dimension=d,
        max_contributions=contributions,
        norm_bound=radius,
        postprocess=postprocess,
    )


def _norm_bound(norm_bound: Any, dimension: int | None, rule: InputRule) -> int | None:
    if norm_bound is None:
        return None
    if dimension is None:
        raise ParameterError("norm_bound needs a dimension: it bounds the l1 norm of a vector input")
    exact = rational("norm_bound", norm_bound, above=0) * (1 << rule.places)
    if exact.denominator != 1:
        raise fail("norm_bound", "a multiple of the resolution", norm_bound)
    return int(exact)
