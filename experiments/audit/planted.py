"""Faults that an audit must find: each replaces one piece of the shipped code for as long as a block lasts.

Nothing here is a switch of the shipped code: pieces are replaced from outside, as somebody's bad patch would.

Two of the faults need the right mechanism to be faults of privacy at all. *Rounding half to even* instead of
floor(u + 1/2) is harmless where it is applied to T x + L z (post-processing), and nearly so where ties hardly
ever happen. Here noise is rounded by itself, and added to exact sums: y = T x + round(L z) shows the parity
of T x as often as L z is a tie. Ties need noise on few binary places, hence a chain of halves and wide
bounds. *A lattice one bit too coarse* shows likewise only where scales are not refined beyond the lattice of
R x.

How large a fault must be to show depends on how much of the claim neighbours really spend. A scale that is
halved doubles that, which is beyond the claim for most mechanisms; the neighbours of SimECC that can be tried
spend about half of its claim, so that its noise is quartered here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
from trilift.counters.running import RunningCounter
from trilift.lift.dense import materialise
from trilift.lift.integers import add, shift_left
from trilift.stream.chain_noise import ChainNoise
from trilift.stream.evaluate import Evaluator
from trilift.stream.gaussian import GaussianRows
from trilift.stream.independent_noise import IndependentNoise
from trilift.stream.keys import derive_key
from trilift.stream.laplace import LaplaceRows
from trilift.stream.levels import LevelLedger, split_budget
from trilift.stream.noise import Noise

__all__ = ["FAULTS", "Fault"]

Array = np.ndarray[Any, np.dtype[Any]]
Injection = Callable[[], Any]

_OVER = Fraction(5, 4)


@dataclass(frozen=True)
class Fault:
    """A fault, and where it is looked for.

    Attributes:
        what: the fault in words.
        mechanism: name of the mechanism that is audited under it.
        runs: runs of each stream that show it with room to spare.
        planted: makes the context manager under which the shipped code has the fault.
    """

    what: str
    mechanism: str
    runs: int
    planted: Injection


@contextmanager
def _halved_scale() -> Iterator[None]:
    """Draws have half of the scale that the ledger charges for."""

    def row_scales(entry: LevelLedger) -> tuple[int, ...]:
        return tuple((entry.scale_int << (entry.places[i] - entry.coarsest)) // 2 for i in entry.measured)

    with patch.object(LevelLedger, "row_scales", property(row_scales)):
        yield


@contextmanager
def _split_over() -> Iterator[None]:
    """The levels get a quarter more than there is, and nobody checks."""

    def split(chain: Any, budget: Fraction, **terms: Any) -> Any:
        return split_budget(chain, budget * _OVER, **terms)

    with ExitStack() as stack:
        stack.enter_context(patch("trilift.stream.ledger.split_budget", split))
        for module in ("ledger", "noise", "bank"):
            stack.enter_context(patch(f"trilift.stream.{module}.check_ledger", lambda chain, ledger: None))
        yield


@contextmanager
def _half_even() -> Iterator[None]:
    """Noise is rounded half to even."""

    def rounded(self: Evaluator, steps: Array, *, places: int, inflate: float = 0.0) -> Array:
        values, _ = self.floats(steps)  # few binary places: exact
        return np.asarray(np.rint(np.ldexp(values, places)).astype(np.int64))

    with patch.object(Evaluator, "rounded", rounded):
        yield


@contextmanager
def _fresh_on_replay() -> Iterator[None]:
    """A step that is asked for again gets new noise."""
    shipped, asked = RunningCounter.update, iter(range(1 << 40))

    def update(self: Any, x: Any, *, step: int | None = None) -> Any:
        if step is None or step > self.step:
            return shipped(self, x, step=step)
        kind: Any = type(self)
        fresh = kind.__new__(kind)
        fresh._begin(self._setup, next(asked), None)
        sums = shift_left(np.array([self._now.counts]), self._setup.output_places - self._setup.rule.places)
        return self._shown(add(sums, fresh._stacked(step - 1, step))[0])

    with patch.object(RunningCounter, "update", update):
        yield


@contextmanager
def _float_laplace() -> Iterator[None]:
    """Laplace noise by the logarithm of a float, as textbooks have it (Mironov 2012)."""
    source = np.random.default_rng(0)

    def rounded(self: Any, steps: Array) -> Array:
        dense = materialise(self.chain, self.horizon)
        scales = np.array([float(scale) for scale in self.ledger.scales])[dense.level]
        signs = source.choice([-1.0, 1.0], size=scales.size)
        z = signs * scales * np.log1p(-source.random(scales.size))
        return np.asarray(np.rint(np.ldexp(dense.L.to_float()[steps] @ z, self.places)).astype(np.int64))

    with patch.object(ChainNoise, "_rounded", rounded):
        yield


@contextmanager
def _coarse_lattice() -> Iterator[None]:
    """Every row's noise is drawn on a lattice one bit coarser than that of the row: R x shows through."""

    def coarser(ledger: Any) -> Any:
        levels = [
            replace(
                entry,
                places=tuple(p - 1 if p >= 0 else p for p in entry.places),
                coarsest=entry.coarsest - 1,
                scale_int=entry.scale_int // 2,
            )
            for entry in ledger.levels
        ]
        return replace(ledger, levels=tuple(levels))

    def plans(self: Any) -> list[LaplaceRows]:
        return [LaplaceRows(entry.row_scales) for entry in coarser(self.ledger).levels]

    def make_evaluator(self: Any, source: Any) -> Evaluator:
        return Evaluator(self.chain, coarser(self.ledger), source)

    with patch.object(Noise, "_plans", plans), patch.object(ChainNoise, "_make_evaluator", make_evaluator):
        yield


@contextmanager
def _no_offset() -> Iterator[None]:
    """The end of the stream is padded by max(0, Z) steps instead of max(0, m + Z)."""
    with patch("trilift.counters.edit.padding.padding_offset", lambda epsilon, *, delta: 0):
        yield


@contextmanager
def _halved_deviation() -> Iterator[None]:
    """Independent Gaussian noise has half of the deviation that its law states."""
    shipped = IndependentNoise._deviations
    with patch.object(IndependentNoise, "_deviations", lambda self, steps: shipped(self, steps) / 2):
        yield


@contextmanager
def _quartered_root() -> Iterator[None]:
    """Toeplitz noise is drawn with a quarter of its deviation."""
    with patch(
        "trilift.stream.toeplitz_noise.GaussianRows",
        lambda scales: GaussianRows([scale / 4 for scale in scales]),
    ):
        yield


@contextmanager
def _one_keystream() -> Iterator[None]:
    """The three coordinates of a vector draw from one keystream."""

    def derived(key: bytes, *, purpose: str, **more: Any) -> Any:
        path, _, number = purpose.rpartition("/")
        return derive_key(key, purpose=f"{path}/{int(number) // 3}", **more)

    with patch("trilift.stream.chain_noise.derive_key", derived):
        yield


FAULTS: Mapping[str, Fault] = {
    "scale-halved": Fault("the noise has half of its scale", "counter-mean", 4096, _halved_scale),
    "split-25-over": Fault(
        "the levels share 25 % more than the budget", "noise-bank-levels", 80_000, _split_over
    ),
    "half-even": Fault("noise is rounded half to even", "counter-coarse", 4096, _half_even),
    "fresh-on-replay": Fault("a repeated step gets fresh noise", "counter-replayed", 4096, _fresh_on_replay),
    "float-laplace": Fault("Laplace noise is a float's logarithm", "counter-fine", 4096, _float_laplace),
    "coarse-lattice": Fault("noise on a lattice one bit too coarse", "counter-halves", 4096, _coarse_lattice),
    "no-offset": Fault("padding of the end without its offset", "ending", 500, _no_offset),
    "one-keystream": Fault("coordinates share a keystream", "counter-vectors", 4096, _one_keystream),
    "sketch-scale-halved": Fault(
        "a sketch's counters have half of their noise", "distinct-minhash", 60_000, _halved_scale
    ),
    "edit-scale-halved": Fault(
        "an edit counter's noise has half of its deviation", "horizon-gaussian", 4000, _halved_deviation
    ),
    "buckets-scale-quartered": Fault(
        "the noise of buckets has a quarter of its deviation", "simecc", 4000, _quartered_root
    ),
}
"""All faults, by name."""
