"""Everything public about one edit-private mechanism, made before it sees data."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from trilift.counters.edit.base import BaseSpec
from trilift.counters.edit.base_tails import octave_ends
from trilift.counters.edit.inputs import BotRule
from trilift.counters.edit.ledger import EditLedger
from trilift.counters.edit.predict import (
    Prediction,
    checked_horizon,
    checked_rate,
    lengths_of,
    predict,
)
from trilift.counters.edit.rules import PartRule, SimPartRule
from trilift.counters.state_file import exact_number
from trilift.lift.checks import choice, flag, integer
from trilift.lift.errors import HorizonError, ParameterError

__all__ = ["DISPLAYS", "MECHANISMS", "Design", "make_design"]

MECHANISMS = ("simecc", "ecc")
DISPLAYS = ("latest", "extrapolated")
TAILS = ("exact", "paper")
_MOST_DELAYS = 1 << 21

IntArray = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Design:
    """A mechanism: partition, noise of the counts, noise and delays of the release times, ledger.

    Attributes:
        mechanism: "simecc" or "ecc".
        accounting: which proof its ledger rests on (:mod:`trilift.counters.edit.variants`).
        epsilon: asked for, exact.
        delta: asked for, exact.
        horizon: number of steps known in advance, or None.
        rate: events a step that free parameters were chosen for.
        rule: what an input may be.
        capacity: most buckets that are ever released (after them updates stop), or None.
        part: lengths of buckets (simecc) or thresholds (ecc).
        values: noise of the running count; ``change`` is the largest input.
        times: noise of the release times, for integer times.
        ln_delays: ln of eta, what all delays together may fail with, a bound from below.
        tails: "exact" (one-sided quantiles) or "paper" (sigma sqrt(2 ln(2/beta))).
        display: "latest" (the paper's) or "extrapolated" (ours; what is done with released pairs alone).
        ledger: the budget.
        delays: alpha of buckets 0..capacity-1, if the base is bounded.
    """

    mechanism: str
    accounting: str
    epsilon: Fraction
    delta: Fraction
    horizon: int | None
    rate: float
    rule: BotRule
    capacity: int | None
    part: SimPartRule | PartRule
    values: BaseSpec
    times: BaseSpec
    ln_delays: Fraction
    tails: str
    display: str
    ledger: EditLedger
    delays: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        choice("mechanism", self.mechanism, MECHANISMS)
        choice("display", self.display, DISPLAYS)
        choice("tails", self.tails, TAILS)
        if isinstance(self.part, SimPartRule) != (self.mechanism == "simecc"):
            raise ParameterError("the partition and the mechanism of a design do not fit")
        if self.times.capacity is not None and not self.delays:
            object.__setattr__(self, "delays", tuple(self._delays(0, self.times.capacity).tolist()))

    def alphas(self, start: int, stop: int) -> IntArray:
        """Return alpha_l of buckets start..stop-1 in whole steps: that_l = t_l + max(0, alpha_l + N2_l).

        N2_l is the released integer of :attr:`times` at index l. Over all buckets Pr[some alpha_l + N2_l <=
        0] is at most eta: each fails with at most eta / K (K the capacity), or eta / (l (l+1)), l = 1, 2,
        ..., whose sum is 1 (the paper: 6 eta / (pi^2 l^2)).

        Raises:
            ParameterError: not integers with 0 <= start <= stop.
            HorizonError: buckets past the capacity.
        """
        start = integer("start", start, minimum=0)
        stop = integer("stop", stop, minimum=start)
        if self.capacity is not None and stop > self.capacity:
            raise HorizonError(f"this mechanism releases {self.capacity} buckets at most")
        if self.times.capacity is None:
            return self._delays(start, stop)
        return np.array(self.delays[start:stop], dtype=np.int64)

    def _ln_failures(self, start: int, stop: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        low = math.nextafter(float(self.ln_delays), -math.inf) - 1e-12
        if self.tails == "paper":
            l = np.arange(start + 1, stop + 1, dtype=np.float64)
            return low + math.log(6.0 / math.pi**2) - 2.0 * np.log(l)
        if self.times.capacity is not None:
            return np.full(stop - start, low - math.log(self.times.capacity) - 1e-12)
        ends = np.arange(start + 1, stop + 1) if self.times.gaussian else octave_ends(start, stop)
        l = ends.astype(np.float64)
        return np.asarray(low - np.log(l) - np.log(l + 1.0) - 1e-12)

    def _delays(self, start: int, stop: int) -> IntArray:
        ln_failures = self._ln_failures(start, stop)
        if self.tails == "paper":  # sigma sqrt(2 ln(2/beta)), and 1/2 for the rounding of the noise
            sd = self.times.sd(np.arange(start, stop))
            return np.ceil(sd * np.sqrt(2.0 * (math.log(2.0) - ln_failures)) * (1 + 1e-9) + 0.5).astype(
                np.int64
            )
        return self.times.delays(start, stop, ln_failures)

    def predict(self, *, horizon: int | None = None, rate: float | None = None) -> Prediction:
        """Return the predicted error over the steps 1..horizon at a constant rate of events of size 1 high.

        Args:
            horizon: T; the design's own when left out.
            rate: events a step in (0, 1]; the design's own when left out.

        Raises:
            ParameterError: no horizon at all.
        """
        T = checked_horizon(self.horizon if horizon is None else horizon)
        r = checked_rate(self.rate if rate is None else rate)
        last = (self.capacity or 1 << 62) - 1
        largest = float(self.values.change)
        rounded = 4.0**-self.rule.places / 12.0  # variance of rounding released values to the lattice
        made = predict(
            lengths_of(self.part, horizon=T, rate=r),
            values_sd=lambda index: np.sqrt(self.values.sd(np.minimum(index, last)) ** 2 + rounded) / largest,
            times_sd=lambda index: np.sqrt(self.times.sd(np.minimum(index, last)) ** 2 + 1.0 / 12.0),
            alphas=lambda index: self._some_alphas(np.minimum(index, last)),
            horizon=T,
            rate=r,
            display=self.display,
            capacity=self.capacity,
        )
        return replace(made, rmse=made.rmse * largest)

    @property
    def predicted_rmse(self) -> float | None:
        """The predicted error at the design's own horizon and rate; None without a horizon."""
        return None if self.horizon is None else self.predict().rmse

    def _some_alphas(self, index: Any) -> Any:
        if self.delays:
            return np.array(self.delays, dtype=np.float64)[index]
        return np.concatenate([self._delays(int(i), int(i) + 1) for i in index]).astype(np.float64)

    @property
    def digest(self) -> bytes:
        """32 bytes: SHA-256 of :meth:`record`."""
        text = json.dumps(self.record(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).digest()

    def record(self) -> dict[str, Any]:
        """Return all of it for JSON, exact numbers as strings; :meth:`from_record` restores it."""
        return {
            "mechanism": self.mechanism,
            "accounting": self.accounting,
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "horizon": self.horizon,
            "rate": float(self.rate).hex(),
            "high": self.rule.high,
            "places": self.rule.places,
            "clip": self.rule.clip,
            "capacity": self.capacity,
            "part": _part_record(self.part),
            "values": self.values.record(),
            "times": self.times.record(),
            "ln_delays": str(self.ln_delays),
            "tails": self.tails,
            "display": self.display,
            "ledger": self.ledger.exact_record(),
            "delays": _runs(self.delays),
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """Restore a design: nothing is chosen anew, and the ledger's sum is proved again.

        Raises:
            ParameterError: parts that do not fit, or spend too much.
        """
        return cls(
            mechanism=record["mechanism"],
            accounting=record["accounting"],
            epsilon=exact_number(record["epsilon"]),
            delta=exact_number(record["delta"]),
            horizon=_whole_or_none("horizon", record["horizon"]),
            rate=float.fromhex(record["rate"]),
            rule=BotRule.from_record(record),
            capacity=_whole_or_none("capacity", record["capacity"]),
            part=_part_from(record["part"]),
            values=BaseSpec.from_record(record["values"]),
            times=BaseSpec.from_record(record["times"]),
            ln_delays=exact_number(record["ln_delays"]),
            tails=record["tails"],
            display=record["display"],
            ledger=EditLedger.from_record(record["ledger"]),
            delays=_unrolled(record["delays"]),
        )


def _runs(values: tuple[int, ...]) -> list[list[int]]:
    """Run lengths: delays are constant over long stretches."""
    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][0] == value:
            runs[-1][1] += 1
        else:
            runs.append([value, 1])
    return runs


def _unrolled(runs: Any) -> tuple[int, ...]:
    pairs = [(integer("delays", value), integer("delays", count, minimum=0)) for value, count in runs]
    if sum(count for _, count in pairs) > _MOST_DELAYS:
        raise ParameterError("a design has at most 2^21 delays")
    return tuple(value for value, count in pairs for _ in range(count))


def _whole_or_none(name: str, value: Any) -> int | None:
    return None if value is None else integer(name, value, minimum=1)


def _part_record(part: SimPartRule | PartRule) -> dict[str, Any]:
    if isinstance(part, SimPartRule):
        return {
            "epsilon": str(part.epsilon),
            "base": part.base,
            "drift": str(part.drift),
            "folded": part.folded,
        }
    names = ("tau", "scale0", "scale_t", "bucket_drift", "clock_drift")
    return {**{name: str(getattr(part, name)) for name in names}, "shift": part.shift}


def _part_from(record: dict[str, Any]) -> SimPartRule | PartRule:
    if "base" in record:
        return SimPartRule(
            exact_number(record["epsilon"]),
            integer("base", record["base"]),
            exact_number(record["drift"]),
            flag("folded", record["folded"]),
        )
    names = ("tau", "scale0", "scale_t", "bucket_drift", "clock_drift")
    tau, scale0, scale_t, bucket_drift, clock_drift = (exact_number(record[name]) for name in names)
    return PartRule(tau, scale0, scale_t, bucket_drift, clock_drift, integer("shift", record["shift"]))


def make_design(
    epsilon: Any,
    *,
    delta: Any,
    mechanism: str = "simecc",
    accounting: str = "sharp",
    base: str = "auto",
    horizon: int | None = None,
    rate: float | None = None,
    high: Any = 1,
    resolution: Any = 1,
    clip: bool = False,
    display: str = "latest",
) -> Design:
    """Make the design of an edit-private counter.

    Neighbours: streams of the numbers [0, high] and BOT that are insertion neighbours of one another.
    Guarantee: (epsilon, delta), proved part by part in the ledger; the theorem of each accounting is in
    :mod:`trilift.counters.edit.variants`.

    Args:
        epsilon: > 0, exact.
        delta: between 0 and 1, exact.
        mechanism: "simecc" (buckets read no data) or "ecc" (buckets end by noisy thresholds).
        accounting: "sharp" (ours), or the paper's "paper", "paper-9", "paper-42", "paper-4/105", the notes'
            "joint-40-51", "joint-40-9", "joint".
        base: a kind of :class:`~trilift.counters.edit.base.BaseSpec`, or "auto"; the paper's are "cc".
        horizon: number of steps, or None for an unbounded mechanism.
        rate: events a step expected, to choose free parameters by; 1/2 when left out.
        high: largest input, resolution: lattice of inputs, clip: see
            :class:`~trilift.counters.edit.inputs.BotRule`.
        resolution: see high.
        clip: see high.
        display: "latest" or "extrapolated".

    Raises:
        ParameterError: an argument that is not acceptable, or a combination that does not exist.

    >>> design = make_design(10, delta=1e-5, horizon=10_000)
    >>> design.ledger.spent_epsilon <= 10, design.ledger.spent_delta <= design.delta
    (True, True)
    """
    from trilift.counters.edit.variants import build  # variants make designs

    return build(
        epsilon,
        delta=delta,
        mechanism=mechanism,
        accounting=accounting,
        base=base,
        horizon=horizon,
        rate=rate,
        rule=BotRule.make(high=high, resolution=resolution, clip=clip),
        display=display,
    )
