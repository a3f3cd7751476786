"""PartitionCC: a running count for swap neighbours that changes when enough has happened.

This is no edit-private mechanism. It stands here because it is built of the same parts, and because it is
what edit-private mechanisms are compared with: the time of a change is shown as it is, so a stream in which
everything after an insertion moves by one step shows its changes a step later.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from trilift.counters.edit.base import BaseSpec
from trilift.counters.edit.counter import EditCounter
from trilift.counters.edit.inputs import BotRule
from trilift.counters.edit.ledger import EditLedger, LedgerPart
from trilift.counters.edit.reference import root_down, served
from trilift.counters.edit.svt import MOST_STEPS, ceil_log
from trilift.counters.edit.words import CONDITIONS, guarantee, simulation_lines
from trilift.counters.state_file import exact_number
from trilift.counters.statement import number
from trilift.lift.checks import fail, integer, rational, show, written
from trilift.lift.errors import ParameterError
from trilift.stream.gdp import ln_of, mu_for
from trilift.stream.keys import DigestBuilder
from trilift.stream.process import NoiseProcess

__all__ = ["PartitionCC", "PartitionDesign", "SwapThresholds"]

_GRID = 1 << 20
_MARGIN = Fraction(1, 1 << 40)  # so that ln delta, rounded up again, still fits


@dataclass(frozen=True)
class SwapThresholds:
    """Thresholds that do not move, and noise of one scale.

    Cost (the notes' bound): the sum of a bucket that changes in one input changes by a constant a from that
    step on. Where it grows by a in [0, 1], Z0 + a makes every comparison the same; where it falls, no
    comparison before TOP gets harder to fail, and the last noise moves by a. So one bucket costs
    max(1/b0, 1/b1), here 1/b0 = eps/2; later buckets begin anew from equal inputs.

    Attributes:
        tau: threshold in largest inputs.
        scale0: b0 = b1, scale of all noise.
    """

    tau: Fraction
    scale0: Fraction
    bucket_drift: Fraction = Fraction(0)
    clock_drift: Fraction = Fraction(0)
    shift: int = 1

    @property
    def scale_t(self) -> Fraction:
        """b1."""
        return self.scale0


class _NoDelay:
    """Values are shown at once."""

    def build(
        self, *, key: bytes, stream_id: bytes, purpose: str, places: int = 0, input_places: int = 0
    ) -> NoiseProcess:
        return _Zeros()


class _Zeros:
    """No noise at all."""

    horizon: int | None = None
    places = 0
    digest = DigestBuilder("trilift/edit/no delay/1").digest()

    def range(self, start: int, stop: int) -> np.ndarray[Any, np.dtype[Any]]:
        return np.zeros(stop - start, dtype=np.int64)

    def at(self, steps: Any) -> np.ndarray[Any, np.dtype[Any]]:
        return np.zeros(np.shape(steps), dtype=np.int64)

    def variance(self, steps: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.zeros(np.shape(steps))


@dataclass(frozen=True)
class PartitionDesign:
    """Everything public about a PartitionCC.

    Attributes:
        epsilon: asked for, exact.
        delta: asked for, exact.
        horizon: T, number of steps.
        rule: what an input may be.
        mu: each half of the counter of segments is mu-GDP, that is (epsilon/4, delta/2)-private.
        tau: threshold in largest inputs.
    """

    epsilon: Fraction
    delta: Fraction
    horizon: int
    rule: BotRule
    mu: Fraction
    tau: Fraction
    mechanism: ClassVar[str] = "partition-cc"
    capacity: ClassVar[int | None] = served("cc")  # segments that end; their counter has no more
    display: ClassVar[str] = "latest"
    times: ClassVar[_NoDelay] = _NoDelay()

    @classmethod
    def make(
        cls, epsilon: Any, *, delta: Any, horizon: int, high: Any = 1, resolution: Any = 1, clip: bool = False
    ) -> PartitionDesign:
        """Check the arguments and calibrate: mu for (epsilon/4, delta/2), tau = 6 ln(T)/epsilon.

        Raises:
            ParameterError: an argument that is not acceptable.
        """
        eps, failure = written("epsilon", epsilon, above=0), written("delta", delta, above=0)
        if not Fraction(4, 10**7) <= eps <= 4 * 10**7:  # a quarter of it is calibrated
            raise fail("epsilon", "between 4e-7 and 4e7", epsilon)
        if failure >= 1:
            raise ParameterError(f"delta must be below 1, got {show(delta)}")
        n = integer("horizon", horizon, minimum=1, maximum=MOST_STEPS)
        rule = BotRule.make(high=high, resolution=resolution, clip=clip)
        mu = mu_for(eps / 4, ln_delta=_half(failure))
        tau = Fraction(int(ceil_log(6 * _GRID / eps, n)), _GRID)
        return cls(eps, failure, n, rule, mu, tau)

    @property
    def part(self) -> SwapThresholds:
        """Thresholds and noise of segments."""
        return SwapThresholds(self.tau, 2 / self.epsilon)

    @property
    def values(self) -> BaseSpec:
        """Noise of the count: the two halves of "cc" get mu/sqrt(2) each of what is given here."""
        return BaseSpec("cc", None, mu=root_down(2 * self.mu**2), change=self.rule.largest)

    @cached_property
    def ledger(self) -> EditLedger:
        """epsilon/2 for the partition, (epsilon/4, delta/2) for each half of the counter of segments."""
        half = _half(self.delta)
        within = "one segment's sum changes by one input; Gaussian mechanism inside epochs"
        totals = "likewise for the totals of epochs"
        changed = "one bucket's running sum moves by a constant: max(1/b0, 1/b1)"
        parts = (
            LedgerPart("partition", self.epsilon / 2, None, changed),
            LedgerPart("counts in epochs", self.epsilon / 4, half, within),
            LedgerPart("totals of epochs", self.epsilon / 4, half, totals),
        )
        return EditLedger(self.epsilon, self.delta, parts)

    @property
    def digest(self) -> bytes:
        """32 bytes, a hash of all of it."""
        digest = DigestBuilder("trilift/edit/partition-cc/1").add("epsilon", self.epsilon)
        digest.add("delta", self.delta).add("horizon", self.horizon).add("mu", self.mu).add("tau", self.tau)
        digest.add("high", self.rule.high).add("places", self.rule.places).add("clip", int(self.rule.clip))
        return digest.digest()

    def alphas(self, start: int, stop: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return zeros: nothing is delayed."""
        return np.zeros(stop - start, dtype=np.int64)

    def record(self) -> dict[str, Any]:
        """Return all of it for JSON, exact numbers as strings."""
        exact = {name: str(getattr(self, name)) for name in ("epsilon", "delta", "mu", "tau")}
        rule = {"high": self.rule.high, "places": self.rule.places, "clip": self.rule.clip}
        return {**exact, "horizon": self.horizon, "rule": rule}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> PartitionDesign:
        """Restore a design: nothing is chosen anew."""
        numbers = [exact_number(record[name]) for name in ("epsilon", "delta", "mu", "tau")]
        epsilon, delta, mu, tau = (rational("design", number, minimum=0) for number in numbers)
        if not epsilon or not delta or not mu:
            raise ParameterError("the budget of a design is above 0")
        horizon = integer("horizon", record["horizon"], minimum=1, maximum=MOST_STEPS)
        return cls(epsilon, delta, horizon, BotRule.from_record(record["rule"]), mu, tau)


def _half(delta: Fraction) -> Fraction:
    """Return a rational a little below ln(delta/2)."""
    return ln_of(delta / 2)[0] - _MARGIN


class PartitionCC(EditCounter):
    """Shows a running count that changes at the end of segments, private for swap neighbours only.

    Neighbours: swap. Two streams of the same length that differ in one input (BOT counts as 0), fixed in
    advance. It gives no guarantee for edit neighbours. Guarantee: all values shown together are (epsilon,
    delta)-differentially private. Mechanism: a segment ends when its running sum plus Laplace noise of scale
    2/epsilon passes 6 ln(T)/epsilon plus Laplace noise of the same scale, drawn for the segment; its sum goes
    into an unbounded counter with (epsilon/2, delta), and the counter's value is shown at once. Composition:
    the segments cost epsilon/2 (:class:`SwapThresholds`); for equal segments one input of the counter
    changes, which costs (epsilon/2, delta). Theorem: sparse vectors with a constant change (new; the
    mechanism is PartitionCC of Andersson, Chaturvedi, Henzinger, Safavi, with constants reconstructed from
    their figures); the Gaussian mechanism (Balle, Wang) in a doubling scheme. Noise is exact: discrete
    Laplace on a lattice, rounded Gaussians.

    Args:
        epsilon: > 0, exact.
        delta: in (0, 1), exact.
        horizon: number of steps T.
        high: largest input; the smallest is 0.
        resolution: 1, or 2^-k: inputs are rounded to multiples of it; so is the output.
        clip: move numbers outside [0, high] to the nearest bound.
        simulation_seed: noise that anybody can reproduce: no privacy.
        state: a new file that always holds the state.

    Raises:
        ParameterError: an argument that is not acceptable.
        StateError: the state file exists already, or is in use.

    >>> counter = PartitionCC(1, 1e-5, horizon=1000, simulation_seed=1)
    >>> counter.update(1)
    0
    """

    mechanism: ClassVar[str] = "partition-cc"
    _design: PartitionDesign

    def __init__(
        self,
        epsilon: Any,
        delta: Any,
        *,
        horizon: int,
        high: Any = 1,
        resolution: Any = 1,
        clip: bool = False,
        simulation_seed: int | None = None,
        state: str | os.PathLike[str] | None = None,
    ) -> None:
        design = PartitionDesign.make(
            epsilon, delta=delta, horizon=horizon, high=high, resolution=resolution, clip=clip
        )
        self._begin(design, simulation_seed, state)

    @classmethod
    def of(
        cls,
        design: PartitionDesign,
        *,
        simulation_seed: int | None = None,
        state: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Make the counter of a design."""
        counter = cls.__new__(cls)
        counter._begin(design, simulation_seed, state)
        return counter

    @classmethod
    def _restored(cls, record: dict[str, Any]) -> PartitionDesign:
        return PartitionDesign.from_record(record)

    @property
    def design(self) -> PartitionDesign:
        """Everything public about the mechanism."""
        return self._design

    def privacy_statement(self) -> str:
        """Return what is guaranteed, to whom, and what it rests on, as plain text."""
        lines = [
            *simulation_lines(simulated=self._simulated),
            f"Neighbours: swap: two streams of {self._design.horizon} steps that differ in one input within"
            f" [0, {number(self.rule.largest)}]. NOT for edit neighbours. Streams are fixed in advance.",
            guarantee(self.epsilon, delta=self.delta),
            CONDITIONS,
            self.ledger.as_text(),
        ]
        return "\n".join(lines)

    def describe(self) -> str:
        """Return in words what the mechanism will do."""
        events = float(self._design.tau)
        return (
            f"Shows a new count after about every {events:.4g} events (of size"
            f" {number(self.rule.largest)}), at once. Private for swap neighbours only."
        )
