"""Running counters under audit: many independent counters of one setup as the coordinates of a wide one.

A batch is one object of the shipped class whose setup is that of the audited counter with ``width``
coordinates: same chain, same ledger, same scales, one purpose a coordinate, as the class itself makes them
for vectors. All values come from ``extend``. The noise of a batch is drawn once and serves every stream of
the batch: what is compared are the laws of outputs of different streams, and runs of one stream stay
independent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from math import isqrt
from typing import Any

import numpy as np
from trilift.counters.biased_setup import BiasedSetup
from trilift.counters.gaussian_setup import GaussianSetup
from trilift.counters.position import Position
from trilift.counters.running import RunningCounter
from trilift.counters.setup import Setup
from trilift.counters.unbounded import UnboundedSetup
from trilift.experiments.audit.noise_matrices import Matrices, matrices
from trilift.experiments.audit.ratios import Ratios, masked
from trilift.experiments.audit.subject import Pair, Stream, Subject

__all__ = ["RunningSubject", "widened"]

Array = np.ndarray[Any, np.dtype[Any]]

WIDTH = 1024  # a square, so that l2 changes of so many coordinates are rational
_SEARCHED = 3


def widened(setup: Any, width: int) -> Any:
    """Return the setup of ``width`` independent counters, each with exactly the noise of the given one.

    A setup that derives its noise from the change of *all* its coordinates gets as much more budget as their
    number (l1) or its root (l2) asks for, so that a coordinate's scales stay what they were.

    Args:
        setup: of a counter of one coordinate, or of a vector of d (only with a horizon).
        width: a square number.
    """
    most = (setup.dimension or 1) * width
    if isinstance(setup, BiasedSetup):
        return replace(setup, dimension=most, beneath=widened(setup.beneath, width))
    if isinstance(setup, UnboundedSetup):
        return replace(setup, dimension=most, norm_bound=None, epsilon=setup.epsilon * width)
    if isinstance(setup, GaussianSetup):
        return replace(setup, dimension=most, norm_bound=None, mu=setup.mu * isqrt(width))
    if isinstance(setup, Setup):
        return replace(setup, dimension=most, norm_bound=None)
    raise TypeError(f"no way is known to widen a {type(setup).__name__}")


class RunningSubject(Subject):
    """A Counter, GaussianCounter or BiasedCounter under audit.

    Args:
        name: on the command line.
        counter: the counter whose setup is audited; it releases nothing itself.
        steps: length of the streams.
        delta: the claim (0 for pure counters).
        inputs: numbers that impulses reach from 0 (or from ``level``), as multiples of the resolution;
            the largest are those that the claim is for.
        level: what the streams hold besides the impulse.
        changed: for vectors, pairs of vectors that one step may hold instead of impulses.
        width: counters in a batch, a square.
    """

    def __init__(
        self,
        name: str,
        counter: RunningCounter,
        *,
        steps: int,
        delta: Fraction = Fraction(0),
        inputs: Sequence[Any] = (1,),
        level: Any = 0,
        changed: Sequence[tuple[Any, Any]] = (),
        width: int = WIDTH,
    ) -> None:
        self.name, self.batch, self.delta = name, width, delta
        self.epsilon = counter.setup.epsilon
        self.neighbours = "one input is another one within the bounds"
        self._kind, self._setup, self._steps = type(counter), counter.setup, steps
        self._inputs, self._level, self._changed = tuple(inputs), level, tuple(changed)
        self._dimension: int = counter.setup.dimension or 1
        self._wide = widened(counter.setup, width)
        self._process: Any = counter._noises[0]
        self._sizes = _sizes(self._process)

    # -- pairs ----------------------------------------------------------------------------------

    def pairs(self) -> Sequence[Pair]:
        """Impulses beside every block boundary of every level, the costliest columns, and blocks of them."""
        base = (self._level,) * self._steps
        found = []
        for step in self._places():
            if self._changed:
                for one, other in self._changed:
                    first, second = (self._level_with(step, x) for x in (one, other))
                    found.append(Pair(f"step {step + 1}: {one} or {other}", first, second))
                continue
            for size in self._inputs:
                other = self._level_with(step, size)
                found += [
                    Pair(f"step {step + 1}: {self._level} or {size}", base, other),
                    Pair(f"step {step + 1}: {size} or {self._level}", other, base),
                ]
        return found

    def _level_with(self, step: int, value: Any) -> Stream:
        level = (self._level,) * self._dimension if self._dimension > 1 else self._level
        return (level,) * step + (value,) + (level,) * (self._steps - step - 1)

    def _places(self) -> list[int]:
        """Return 0-based steps: before, at and after every boundary, the ends, and the costliest of all."""
        ends = {0, self._steps - 1}
        for size in self._sizes:
            for at in range(size, self._steps, size):
                ends |= {at - 1, at, at + 1}
        change = np.eye(self._steps)
        losses = [self._ratios.loss(row) for row in change]
        ends |= set(np.argsort(losses)[::-1][:_SEARCHED].tolist())
        return sorted(end for end in ends if 0 <= end < self._steps)

    @cached_property
    def _ratios(self) -> Ratios:
        return Ratios(self.known, step=float(self._output_step))

    @cached_property
    def known(self) -> Matrices:
        """The public matrices of one coordinate's noise."""
        return matrices(self._process, self._steps)

    @property
    def _output_step(self) -> Fraction:
        return Fraction(1, 1 << self._setup.output_places)

    @property
    def largest_loss(self) -> float:
        """The log-likelihood ratio that the costliest pair can reach (Laplace): the spent epsilon at most."""
        return max(self._loss(pair) for pair in self.pairs())

    def _loss(self, pair: Pair) -> float:
        gaps = self._numbers(pair.second) - self._numbers(pair.first)
        losses = [self._ratios.loss(gap) for gap in gaps.T]
        return float(np.sum(losses))

    # -- runs -----------------------------------------------------------------------------------

    def release(self, streams: Sequence[Stream], *, seed: int) -> Sequence[Array]:
        """Release the streams with the noise of one wide counter: arrays (batch, steps * dimension)."""
        counter: Any = self._kind.__new__(self._kind)
        counter._begin(self._wide, seed, None)
        page = (0, counter._stacked(0, self._steps))
        found = []
        for stream in streams:
            counter._now, counter._page = Position.start(self._wide.width), page
            inputs = np.tile(np.array(stream).reshape(self._steps, -1), (1, self.batch))
            found.append(self._shaped(self._asked(counter, inputs)))
        return found

    def _asked(self, counter: Any, inputs: Array) -> Array:
        """Return what the counter releases, (steps, width)."""
        return np.asarray(counter.extend(inputs))

    def _shaped(self, released: Array) -> Array:
        rows = released.reshape(len(released), self.batch, self._dimension).transpose(1, 0, 2)
        return np.ascontiguousarray(rows.reshape(self.batch, -1))

    # -- scores ---------------------------------------------------------------------------------

    def statistics(self, pair: Pair, values: Array) -> Mapping[str, Array]:
        """Likelihood ratios, also on parts of the output lattice."""
        first, second = self._numbers(pair.first), self._numbers(pair.second)
        runs = len(values)
        numbers = np.asarray(values, dtype=np.float64).reshape(runs, -1, self._dimension)
        found: dict[str, Array] = {}
        for k in range(self._dimension):
            own = self._ratios.statistics(first[:, k], second[:, k], self._seen(numbers[:, :, k]))
            for name, score in own.items():
                found[name] = found[name] + score if name in found else score
        if self._dimension == 1:
            changed = int(np.flatnonzero(first[:, 0] != second[:, 0])[0])
            lattice = self._lattice(values)
            ratio = found["likelihood ratio"]
            unit = self._setup.output_places - self._setup.rule.places
            found |= masked(ratio, lattice, steps=sorted({changed, self._steps - 1}), unit=unit)
        return found

    def _seen(self, values: Array) -> Array:
        """Return outputs with what is public taken off: biases."""
        return values - self._bias

    @cached_property
    def _bias(self) -> Array:
        if not isinstance(self._setup, BiasedSetup):
            return np.zeros(self._steps)
        counter: Any = self._kind.__new__(self._kind)
        counter._begin(self._setup, 0, None)
        return np.array([float(counter.bias(t)) for t in range(1, self._steps + 1)])

    def _lattice(self, values: Array) -> Array:
        """Return released values in units of the output lattice."""
        scale = 1 << self._setup.output_places
        if values.dtype == object:
            return np.array([int(v * scale) for v in values.ravel()], dtype=np.int64).reshape(values.shape)
        return np.asarray(np.ldexp(values.astype(np.float64), self._setup.output_places).astype(np.int64))

    def _numbers(self, stream: Stream) -> Array:
        """Return a stream as floats (steps, dimension)."""
        return np.array(stream, dtype=np.float64).reshape(self._steps, self._dimension)


def _sizes(process: Any) -> list[int]:
    """Return the lengths of blocks of every level in steps; epochs end where they end."""
    chain = getattr(process, "chain", None)
    if chain is None:
        layout = getattr(process, "layout", None)
        return [] if layout is None else [layout.length(0), layout.start(2)]
    sizes = np.cumprod([stage.size for stage in chain.levels])
    return [int(size) for size in sizes]
