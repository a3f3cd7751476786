"""Events of the form "the statistic is at least (or below) a threshold", and the choice of a good one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from trilift.experiments.audit.bounds import delta_at_least, epsilon_at_least, wilson

__all__ = ["Event", "Goal", "best_event"]

Floats = np.ndarray[Any, np.dtype[Any]]

_TAILS = 24
_DOUBT = 0.25  # half of a deviation, squared: of the bound's four deviations two are for the choice
_FEWEST = 8  # runs in the tail that a threshold leaves at least


@dataclass(frozen=True)
class Goal:
    """What an event is to show: an epsilon at a given delta, or a delta at a given epsilon.

    Attributes:
        kind: "epsilon" or "delta".
        epsilon: claimed.
        delta: claimed.
    """

    kind: str
    epsilon: float
    delta: float

    def bound(self, more: Any, less: Any, *, trials: float, failure: float) -> Floats:
        """Return lower bounds from counts under the likelier neighbour and the other one."""
        if self.kind == "epsilon":
            return epsilon_at_least(more, less, trials=trials, delta=self.delta, failure=failure)
        return delta_at_least(more, less, trials=trials, epsilon=self.epsilon, failure=failure)

    def promise(self, more: Any, less: Any, *, trials: float, failure: float) -> Floats:
        """Return about the same, quickly: for choices, which need not be exact."""
        p, _ = wilson(more, trials=trials, failure=failure / 2)
        _, q = wilson(less, trials=trials, failure=failure / 2)
        if self.kind == "epsilon":
            return np.asarray(np.maximum(np.log(np.maximum(p - self.delta, 1e-300) / q), 0.0))
        return np.asarray(np.maximum(p - np.exp(min(self.epsilon, 700.0)) * q, 0.0))


@dataclass(frozen=True)
class Event:
    """A set of outputs.

    Attributes:
        statistic: name of the statistic.
        threshold: number that it is compared with.
        upwards: the event is "at least the threshold", likelier under the second stream of the pair;
            otherwise "below it", likelier under the first.
        promise: the bound that is hoped for.
    """

    statistic: str
    threshold: float
    upwards: bool
    promise: float

    def count(self, scores: Floats) -> int:
        """Return in how many runs it happened."""
        inside = scores >= self.threshold
        return int(np.count_nonzero(inside if self.upwards else ~inside))

    @property
    def text(self) -> str:
        """The event in words."""
        return f"{self.statistic} {'>=' if self.upwards else '<'} {self.threshold:.6g}"


def best_event(
    statistic: str, first: Floats, second: Floats, *, goal: Goal, trials: int, failure: float
) -> Event:
    """Choose the threshold that promises most for ``trials`` further runs of each stream.

    Args:
        statistic: its name.
        first: scores under the first stream, shape (m,).
        second: scores under the second, shape (m,).
        goal: what is to be shown.
        trials: runs of each stream that will judge the event.
        failure: what the bound may fail with.
    """
    a, b = np.sort(first), np.sort(second)
    size = a.size
    cuts = _thresholds(a, b)
    below_a, below_b = np.searchsorted(a, cuts), np.searchsorted(b, cuts)
    # what was counted here errs too: as if fewer runs would judge, so that lucky tails are not preferred
    known = 1.0 / (_DOUBT / size + 1.0 / trials)
    scale = known / size
    found = [
        goal.promise((size - below_b) * scale, (size - below_a) * scale, trials=known, failure=failure),
        goal.promise(below_a * scale, below_b * scale, trials=known, failure=failure),
    ]
    upwards = bool(found[0].max() >= found[1].max())
    chosen = found[0 if upwards else 1]
    at = int(np.argmax(chosen))
    return Event(statistic, float(cuts[at]), upwards, float(chosen[at]))


def _thresholds(a: Floats, b: Floats) -> Floats:
    """Return thresholds at tails of both samples, near the ends (where atoms lie) and between values."""
    size = a.size
    least = min(_FEWEST / size, 0.25)
    tails = np.geomspace(least, 0.5, _TAILS)
    levels = np.concatenate([tails, 1 - tails])
    at = np.unique((levels * (size - 1)).astype(np.int64))
    values = np.unique(np.concatenate([a[at], b[at]])).astype(np.float64)
    spread = float(values[-1] - values[0])
    between = (values[1:] + values[:-1]) / 2
    slack = 1e-4 * spread  # a likelihood ratio that is bounded lies at its bounds up to rounding
    return np.unique(np.concatenate([values, between, values - slack, values + slack]))
