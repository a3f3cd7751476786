"""Measuring everything at one horizon: run after run, finished ones kept in a folder."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from trilift.counters.turnstile.budget import make_budget
from trilift.experiments.edit.kept import Kept
from trilift.experiments.turnstile.distinct_runs import DISTINCT, PURE, distinct_run
from trilift.experiments.turnstile.maps_runs import maps_run
from trilift.experiments.turnstile.moment_runs import MOMENT, moment_run
from trilift.experiments.turnstile.streams import STREAMS, Stream, make_stream
from trilift.experiments.turnstile.whole_runs import COUNTERS, default_run, rate, tables_run
from trilift.lift.checks import choice, integer
from trilift.lift.errors import ParameterError

__all__ = ["FAILURE", "Settings", "check_settings", "kept_file", "measure", "points_of"]

FAILURE = Fraction(1, 100)
"""beta: bound on the probability that some interval of a run misses."""

_READS = 1000  # released values of whole counters
_MOST_RUNS = {"maps": 2, "tables": 3}
_TABLE_STREAMS = ("unit", "heavy element", "flippancy", "random ±1")
"""Parts that take long: how many runs are enough for them, and the streams of A4s."""


@dataclass(frozen=True)
class Settings:
    """What is measured.

    Attributes:
        steps: T.
        law: "rho" or "epsilon".
        amounts: budgets, each on its own.
        base: "toeplitz" (simulated) or "chain" (exact noise).
        runs: number of runs.
        seed: decides everything but the speeds.
        parts: of :data:`PARTS`.
    """

    steps: int
    law: str
    amounts: tuple[Fraction, ...]
    base: str
    runs: int
    seed: int
    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of its files."""
        return f"turnstile-{self.base}-{self.law}-{self.steps}"


PARTS = ("distinct", "moment", "maps", "tables", "default", "speed")


def check_settings(
    *,
    steps: Any,
    rho: Sequence[Fraction] = (),
    epsilon: Sequence[Fraction] = (),
    base: str | None = None,
    runs: Any = 5,
    seed: Any = 0,
    parts: Sequence[str] = PARTS,
) -> Settings:
    """Return settings; without a budget rho = 1/10, 1, 10.

    Args:
        steps: T, 100..2^20.
        rho, epsilon: budgets of one kind.
        base: "toeplitz" or "chain"; None for the one that suits.
        runs, seed: integers.
        parts: what to do. "maps" is done over the Toeplitz root only.

    Raises:
        ParameterError: budgets of both kinds, a base that does not go with them, numbers out of range.
    """
    if rho and epsilon:
        raise ParameterError("give rho or epsilon, not both")
    law = "epsilon" if epsilon else "rho"
    amounts = tuple(epsilon or rho or (Fraction(1, 10), Fraction(1), Fraction(10)))
    for amount in amounts:
        make_budget(**{law: amount})
    chosen = (
        ("chain" if epsilon else "toeplitz") if base is None else choice("base", base, ("toeplitz", "chain"))
    )
    if law == "epsilon" and chosen == "toeplitz":
        raise ParameterError("base='toeplitz' is for Gaussian noise: give rho")
    return Settings(
        integer("T", steps, minimum=100, maximum=1 << 20),
        law,
        amounts,
        chosen,
        integer("runs", runs, minimum=1, maximum=10**4),
        integer("seed", seed, minimum=0, maximum=1 << 32),
        tuple(choice("parts", part, PARTS) for part in dict.fromkeys(parts)),
    )


def kept_file(settings: Settings, *, folder: Path) -> Path:
    """Return the file of finished runs in a folder."""
    return folder / f"{settings.name}.runs.json"


def _clean(value: Any) -> Any:
    """Return JSON data: no infinities, seven significant digits."""
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _clean(item) for key, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list) else value


def _streams(settings: Settings, run: int) -> list[Stream]:
    rng = np.random.default_rng([settings.seed, run, 0])
    return [make_stream(name, steps=settings.steps, rng=rng) for name in STREAMS]


def _seed_of(settings: Settings, run: int) -> int:
    return settings.seed * 10**6 + run


def measure(
    settings: Settings,
    *,
    folder: Path | None = None,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Do all runs that the folder does not have, and return the points.

    Args:
        settings: what to measure.
        folder: an existing one for the file of finished runs, or None.
        report: told (permille done, 1000).

    Returns:
        "points" (see :func:`points_of`), "speeds", and what they are of.

    Raises:
        ParameterError: a folder with runs of other settings.
        OSError: the file cannot be written.
    """
    path = None if folder is None else kept_file(settings, folder=folder)
    same = {
        "experiment": "turnstile",
        "T": settings.steps,
        "base": settings.base,
        settings.law: [str(amount) for amount in settings.amounts],
        "seed": settings.seed,
    }
    kept = Kept(path, settings=same)
    jobs = _jobs(settings)
    for number, (key, job) in enumerate(jobs):

        def tell(share: float, number: int = number) -> None:
            report(int(1000 * (number + share) / len(jobs)), 1000)

        if key not in kept.points:
            kept.add(key, _clean({"records": job(tell)}))
        tell(1.0)
    done = {key: kept.points[key]["records"] for key, _ in jobs}
    return result_of(settings, done)


Job = Callable[[Callable[[float], None]], list[dict[str, Any]]]


def _jobs(settings: Settings) -> list[tuple[str, Job]]:
    """Return what is to be done, by the keys under which it is kept."""
    budgets = [make_budget(**{settings.law: amount}) for amount in settings.amounts]
    shared: dict[str, Any] = {"budgets": budgets, "failure": FAILURE}

    def distinct(run: int) -> Job:
        names = DISTINCT if settings.law == "rho" else PURE
        return lambda tell: distinct_run(
            _streams(settings, run),
            base=settings.base,
            seed=_seed_of(settings, run),
            names=names,
            report=tell,
            **shared,
        )

    def moment(run: int) -> Job:
        return lambda tell: moment_run(
            _streams(settings, run), base=settings.base, seed=_seed_of(settings, run), report=tell, **shared
        )

    def maps(run: int) -> Job:
        chosen = [s for s in _streams(settings, run) if s.name in ("unit", "frequent")]
        eighths = [settings.steps * k // 8 for k in (1, 4, 8)]
        return lambda tell: maps_run(chosen, seed=_seed_of(settings, run), steps=eighths, **shared)

    every = max(1, settings.steps // _READS)

    def tables(run: int) -> Job:
        return lambda tell: [
            {"budget": k}
            | tables_run(
                stream,
                amount={settings.law: amount},
                every=every,
                seed=_seed_of(settings, run),
                base=settings.base,
            )
            for k, amount in enumerate(settings.amounts)
            for stream in _streams(settings, run)
            if stream.name in _TABLE_STREAMS
        ]

    def default(run: int) -> Job:
        return lambda tell: [
            {"budget": k}
            | default_run(
                stream,
                amount={settings.law: amount},
                every=every,
                seed=_seed_of(settings, run),
                base=settings.base,
            )
            for k, amount in enumerate(settings.amounts)
            for stream in _streams(settings, run)
            if stream.strict
        ]

    def speed() -> Job:
        stream = _streams(settings, 0)[0]
        amount = {settings.law: settings.amounts[len(settings.amounts) // 2]}
        return lambda tell: [
            rate(name, stream, every=every, amount=amount, limit_s=20.0) for name in COUNTERS
        ]

    jobs: list[tuple[str, Job]] = []
    makers = {"distinct": distinct, "moment": moment, "maps": maps, "tables": tables, "default": default}
    for run in range(settings.runs):
        for part, maker in makers.items():
            if part not in settings.parts or run >= _MOST_RUNS.get(part, settings.runs):
                continue
            if part == "maps" and settings.base != "toeplitz":
                continue
            jobs.append((f"{part} {run}", maker(run)))
    if "speed" in settings.parts:
        jobs.append(("speed", speed()))
    return jobs


def result_of(settings: Settings, done: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return the JSON of what is done, records by the keys of the jobs."""
    speeds = done.get("speed", [])
    records = [r for key, some in done.items() if key != "speed" for r in some]
    return {
        "experiment": "turnstile",
        "T": settings.steps,
        "base": settings.base,
        "noise": "floating point, simulated" if settings.base == "toeplitz" else "exact",
        "seed": settings.seed,
        "beta": float(FAILURE),
        "points": points_of(settings, records, speeds=speeds),
        "speeds": speeds,
    }


def points_of(
    settings: Settings, records: Sequence[dict[str, Any]], *, speeds: Sequence[dict[str, Any]] = ()
) -> list[dict[str, Any]]:
    """Return a point for every estimator, stream and budget.

    "factor", "ratio_95", "largest_error" and for F2 "additive" are medians over runs; "factor_range" and
    "additive_range" are the least and the largest. For distinct items "additive" is the beta beside which the
    factor holds; for F2 the factor is fixed, and it is the error that is left. "coverage_misses" counts the
    runs in which some interval missed, None where no interval is claimed. "updates_per_s" is of a whole
    counter with exact noise that is read 1000 times.
    """
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault((record["estimator"], record["stream"], record["budget"]), []).append(record)
    order = {name: number for number, name in enumerate((*DISTINCT, "default", "A3", *MOMENT, "A4s"))}
    rates = {row["estimator"]: row["updates_per_s"] for row in speeds}
    points = []
    for (name, stream, budget), some in sorted(
        groups.items(), key=lambda pair: (order[pair[0][0]], STREAMS.index(pair[0][1]), pair[0][2])
    ):
        misses = [r["missed"] for r in some]
        points.append(
            {
                "estimator": name,
                "base": settings.base,
                "stream": stream,
                "T": settings.steps,
                settings.law: float(settings.amounts[budget]),
                "factor": _middle(some, "factor"),
                "additive": _middle(some, "additive"),
                "coverage_misses": None if misses[0] is None else sum(misses),
                "runs": len(some),
                "words": some[0]["words"],
                "updates_per_s": rates.get(name.split(" ")[0]),
                "factor_range": _range(some, "factor"),
                "additive_range": _range(some, "additive"),
                "ratio_95": _middle(some, "ratio_95"),
                "largest_error": _middle(some, "largest_error"),
                **({"every": some[0]["every"]} if "every" in some[0] else {}),
                **(
                    {"sketch_error": _most(some, "sketch_error")}
                    if some[0].get("sketch_error") is not None
                    else {}
                ),
            }
        )
    return [_clean(point) for point in points]


def _values(some: Sequence[dict[str, Any]], key: str) -> list[float]:
    return [math.inf if r[key] is None else float(r[key]) for r in some]


def _middle(some: Sequence[dict[str, Any]], key: str) -> float | None:
    value = statistics.median(_values(some, key))
    return value if math.isfinite(value) else None


def _range(some: Sequence[dict[str, Any]], key: str) -> list[float | None]:
    values = _values(some, key)
    return [value if math.isfinite(value) else None for value in (min(values), max(values))]


def _most(some: Sequence[dict[str, Any]], key: str) -> float | None:
    value = max(_values(some, key))
    return value if math.isfinite(value) else None
