"""The audit itself: pairs are screened, events are chosen, and further runs judge them.

1. *Screening*: a few runs of every pair, every statistic; the pairs that promise most go on.
2. *Choice*: more runs of those pairs; for every pair and goal one event (statistic, side, threshold).
3. *Test*: all other runs, more than half of them; each event is counted under both neighbours.

Runs of the three stages have keys of their own, so that the events are fixed before the runs that judge them:
a Bonferroni bound over the events that are judged (a few pairs, times two goals where a delta is claimed) is
all that is needed, however many pairs, statistics and thresholds were looked at before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from trilift.experiments.audit.events import Event, Goal, best_event
from trilift.experiments.audit.fitted import Fit, fitted
from trilift.experiments.audit.subject import Pair, Subject
from trilift.lift.checks import integer
from trilift.lift.errors import ParameterError

__all__ = ["CONFIDENCE", "LEAST_RUNS", "AuditResult", "audit"]

Array = np.ndarray[Any, np.dtype[Any]]
Report = Callable[[int, int], None]

CONFIDENCE = 0.999
"""Of each bound: how surely the mechanism spends at least as much."""

LEAST_RUNS = 40
_SCREENED, _CHOSEN = 8192, 1 << 17  # most runs of the first two stages
_SCREENING, _CHOOSING = 8, 4  # they have one in so many runs each, if no batch is larger
_KEPT, _STATISTICS, _JUDGED = 8, 3, 3  # pairs that are looked at closely, statistics each, pairs judged


@dataclass(frozen=True)
class AuditResult:
    """What an audit found.

    Attributes:
        mechanism: its name.
        neighbours: the relation.
        claimed_epsilon: claim.
        claimed_delta: claim, 0 for pure mechanisms.
        epsilon_lower_bound: the mechanism spends at least this epsilon at the claimed delta.
        delta_lower_bound: it spends at least this delta at the claimed epsilon.
        confidence: of both bounds together.
        pair: the neighbours that showed the epsilon.
        event: the event that did.
        runs: runs of each stream in all.
        tested: those that judged.
        pairs: pairs that were looked at.
    """

    mechanism: str
    neighbours: str
    claimed_epsilon: float
    claimed_delta: float
    epsilon_lower_bound: float
    delta_lower_bound: float
    confidence: float
    pair: str
    event: str
    runs: int
    tested: int
    pairs: int

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted."""
        return self.epsilon_lower_bound > self.claimed_epsilon or self.delta_lower_bound > self.claimed_delta

    def to_json(self) -> dict[str, Any]:
        """Return all of it, and the verdict."""
        return {**self.__dict__, "verdict": "violated" if self.violated else "consistent"}


def audit(
    subject: Subject,
    *,
    runs: int,
    seed: int,
    confidence: float = CONFIDENCE,
    progress: Report | None = None,
) -> AuditResult:
    """Audit a mechanism.

    Args:
        subject: the mechanism with its claim.
        runs: runs of each stream in all stages together; the last batch of a stage may add some.
        seed: decides all keys.
        confidence: in (0, 1): the bounds hold together with this probability at least.
        progress: called with (batches done, batches in all).

    Raises:
        ParameterError: too few runs, or a confidence outside (0, 1).
    """
    count = integer("runs", runs, minimum=LEAST_RUNS)
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence must be a number between 0 and 1, got {confidence!r}")
    pairs = list(subject.pairs())
    screen, choose, test = _stages(count, subject.batch)
    runner = _Runner(subject, seed, screen + choose + test, progress or (lambda done, steps: None))
    goals = [Goal("epsilon", float(subject.epsilon), float(subject.delta))]
    if subject.delta > 0:
        goals.append(Goal("delta", float(subject.epsilon), float(subject.delta)))
    failure = (1 - confidence) / (_JUDGED * len(goals))
    terms: dict[str, Any] = {"trials": test * subject.batch, "failure": failure}

    seen = runner.gathered("screen", pairs, screen)
    fits = {pair: fitted(seen[pair.first], seen[pair.second]) if subject.learns else None for pair in pairs}
    ranked = []
    for pair in pairs:
        events = _events(subject, pair, fits[pair], seen, goals, **terms)
        best = max(_worth(event, goal) for goal, found in events.items() for event in found)
        ranked.append((best, pair, [e.statistic for found in events.values() for e in found[:_STATISTICS]]))
    ranked.sort(key=lambda entry: -entry[0])
    kept = ranked[:_KEPT]

    seen = runner.gathered("choose", [pair for _, pair, _ in kept], choose)
    chosen: list[tuple[float, Pair, dict[Goal, Event]]] = []
    for _, pair, names in kept:
        events = _events(subject, pair, fits[pair], seen, goals, only=set(names), **terms)
        best = max(_worth(found[0], goal) for goal, found in events.items())
        chosen.append((best, pair, {goal: found[0] for goal, found in events.items()}))
    chosen.sort(key=lambda entry: -entry[0])
    judged = [(pair, events) for _, pair, events in chosen[:_JUDGED]]
    chances = {"confidence": confidence, "failure": failure}
    return _judged(subject, judged, fits=fits, runner=runner, batches=test, goals=goals, **chances)


def _stages(runs: int, batch: int) -> tuple[int, int, int]:
    """Return the numbers of batches of the three stages."""
    screen = max(1, min(runs // _SCREENING, _SCREENED) // batch)
    choose = max(1, min(runs // _CHOOSING, _CHOSEN) // batch)
    return screen, choose, max(1, -(-runs // batch) - screen - choose)


def _worth(event: Event, goal: Goal) -> float:
    """Return what an event promises beside its claim, so that goals can be compared."""
    claim = goal.epsilon if goal.kind == "epsilon" else goal.delta
    return event.promise / claim


class _Runner:
    """Runs batches under seeds that are bound to subject, stage and number."""

    def __init__(self, subject: Subject, seed: int, batches: int, report: Report) -> None:
        self._subject, self._seed, self.batches_all, self._report = subject, seed, batches, report
        self._done = 0
        report(0, batches)

    def batch(self, stage: str, index: int, streams: Sequence[Any]) -> Mapping[Any, Array]:
        """Return the released values of one batch, by stream."""
        text = f"audit/{self._subject.name}/{self._seed}/{stage}/{index}".encode()
        seed = int.from_bytes(hashlib.sha256(text).digest()[:7], "big")
        released = dict(zip(streams, self._subject.release(streams, seed=seed), strict=True))
        self._done += 1
        self._report(self._done, self.batches_all)
        return released

    def gathered(self, stage: str, pairs: Sequence[Pair], batches: int) -> dict[Any, Array]:
        """Return all values of a stage, by stream."""
        streams = _streams(pairs)
        parts = [self.batch(stage, index, streams) for index in range(batches)]
        return {stream: np.concatenate([part[stream] for part in parts]) for stream in streams}


def _streams(pairs: Sequence[Pair]) -> list[Any]:
    return list(dict.fromkeys(stream for pair in pairs for stream in (pair.first, pair.second)))


def _scores(subject: Subject, pair: Pair, fit: Fit | None, values: Array) -> dict[str, Array]:
    found = dict(subject.statistics(pair, values))
    if fit is not None:
        found |= fit.statistics(values)
    return {name: np.asarray(score, dtype=np.float32) for name, score in found.items()}


def _events(
    subject: Subject,
    pair: Pair,
    fit: Fit | None,
    seen: Mapping[Any, Array],
    goals: Sequence[Goal],
    *,
    only: set[str] | None = None,
    trials: int,
    failure: float,
) -> dict[Goal, list[Event]]:
    """Return for every goal the best events of the pair, one a statistic, the best first."""
    first = _scores(subject, pair, fit, seen[pair.first])
    second = _scores(subject, pair, fit, seen[pair.second])
    terms: dict[str, Any] = {"trials": trials, "failure": failure}
    found = {}
    for goal in goals:
        events = [
            best_event(name, first[name], second[name], goal=goal, **terms)
            for name in first
            if only is None or name in only
        ]
        found[goal] = sorted(events, key=lambda event: -event.promise)
    return found


def _judged(
    subject: Subject,
    judged: Sequence[tuple[Pair, Mapping[Goal, Event]]],
    *,
    fits: Mapping[Pair, Fit | None],
    runner: _Runner,
    batches: int,
    goals: Sequence[Goal],
    confidence: float,
    failure: float,
) -> AuditResult:
    counts = np.zeros((len(judged), len(goals), 2), dtype=np.int64)
    streams = _streams([pair for pair, _ in judged])
    for index in range(batches):
        values = runner.batch("test", index, streams)
        for i, (pair, events) in enumerate(judged):
            sides = [_scores(subject, pair, fits[pair], values[s]) for s in (pair.first, pair.second)]
            for j, goal in enumerate(goals):
                event = events[goal]
                hits = [event.count(side[event.statistic]) for side in sides]
                counts[i, j] += hits[::-1] if event.upwards else hits
    trials = batches * subject.batch
    bounds = [
        goal.bound(counts[:, j, 0], counts[:, j, 1], trials=trials, failure=failure)
        for j, goal in enumerate(goals)
    ]
    best = int(np.argmax(bounds[0]))
    pair, events = judged[best]
    return AuditResult(
        mechanism=subject.name,
        neighbours=subject.neighbours,
        claimed_epsilon=float(subject.epsilon),
        claimed_delta=float(subject.delta),
        epsilon_lower_bound=float(bounds[0][best]),
        delta_lower_bound=float(bounds[-1].max()) if len(goals) > 1 else 0.0,
        confidence=confidence,
        pair=pair.label,
        event=events[goals[0]].text,
        runs=runner.batches_all * subject.batch,
        tested=trials,
        pairs=len(fits),
    )
