"""Job files: a whole search, written down in TOML and checked before anything is computed.

docs/search.md is the reference. A job is a list of phases, done one after another; each goes on from the best
stage so far.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from trilift.factorize.estimate import CostEstimate, estimate_cost
from trilift.factorize.joint_settings import LARGEST_SIZE, estimate_joint_cost, gentle
from trilift.factorize.objective import Kind
from trilift.factorize.schedule import Schedule, cold, warm
from trilift.lift.checks import choice, fail, finite, flag, integer
from trilift.lift.errors import ParameterError

__all__ = ["METHODS", "Job", "Phase", "estimate_job", "parse_job", "read_job"]

_LARGEST_FILE = 1 << 20

_SEARCHED = ("objective", "size", "starts", "steps", "rounds", "spread", "schedule")
METHODS: dict[str, tuple[str, ...]] = {
    "search": _SEARCHED,
    "refine": ("objective", "starts", "steps", "spread", "schedule", "weight_bits"),
    "escape": ("objective", "starts", "steps", "rounds", "spread", "schedule"),
    "polish": ("objective", "iterations", "exponent"),
    "composite": ("objective", "size", "parts"),
    "joint": (
        "objective",
        "interior",
        "steps",
        "rounds",
        "spread",
        "schedule",
        "dilation",
        "weight_bits",
        "weight_range",
    ),
}
"""The methods of a phase, and the keys that each takes besides ``method``."""

Part = str | int


@dataclass(frozen=True)
class Phase:
    """One phase of a job. What a method does not use has its default, and is not looked at.

    Attributes:
        method: one of METHODS.
        objective: "max" or "mean".
        size: m of the stage it ends with.
        starts: starts moved together.
        steps: Adam steps of every start.
        rounds: how often, each time with other random numbers.
        spread: (least, largest) Gaussian of the starts; a joint search uses the largest.
        schedule: annealing.
        iterations: of L-BFGS.
        exponent: of the power mean that stands for the maximum while polishing.
        parts: of a composite, finest first: sources of stages, or numbers of earlier phases.
        interior: whether a joint search is about the interior cost.
        dilation: by how many neighbours a joint search widens the support.
        weight_bits: None, or the binary places that v is rounded to and kept at.
        weight_range: where a joint search about the interior cost holds w.
    """

    method: str
    objective: str
    size: int
    starts: int
    steps: int
    rounds: int
    spread: tuple[float, float]
    schedule: Schedule
    iterations: int
    exponent: float
    parts: tuple[Part, ...]
    interior: bool
    dilation: int
    weight_bits: int | None
    weight_range: tuple[float, float]


@dataclass(frozen=True)
class Job:
    """A checked job.

    Attributes:
        kind: "two-sided", "one-sided" or "direct".
        size: m or k of the result.
        objective: "max" or "mean": by what the result is judged.
        interior: whether by the interior cost.
        seed: every random number follows from it.
        seconds: time budget, or None.
        warm_start: where the first phase begins: the source of a stage, or None.
        devices: how many local devices share the starts, or None for all.
        checkpoint_seconds: time between checkpoints.
        phases: what is done.
    """

    kind: Kind
    size: int
    objective: str
    interior: bool
    seed: int
    seconds: float | None
    warm_start: str | None
    devices: int | None
    checkpoint_seconds: float
    phases: tuple[Phase, ...]

    def same_work(self, other: Job) -> bool:
        """Whether two jobs differ at most in how long they may take and how often they are saved."""
        free = ("seconds", "checkpoint_seconds", "devices")
        names = [field.name for field in fields(self) if field.name not in free]
        return all(getattr(self, name) == getattr(other, name) for name in names)


def read_job(path: str | Path) -> tuple[Job, str]:
    """Read and check a job file; return the job and the text it was read from.

    Raises:
        ParameterError: not readable, not TOML, an unknown or missing key, or a value that no search takes.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise ParameterError(f"job file {path} cannot be read: {error.strerror or error}") from None
    if len(data) > _LARGEST_FILE:
        raise ParameterError(f"job file {path} is larger than a megabyte")
    try:
        text = data.decode("utf-8")
        table = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ParameterError(f"job file {path} is not TOML: {error}") from None
    try:
        return parse_job(table), text
    except ParameterError as error:
        raise ParameterError(f"job file {path}: {error}") from None


def parse_job(table: Any) -> Job:
    """Check the contents of a job file, as ``tomllib`` returns them.

    Raises:
        ParameterError: an unknown or missing key, or a value that no search takes.

    >>> job = parse_job({"size": 9, "objective": "mean"})
    >>> [phase.method for phase in job.phases]
    ['search', 'escape', 'polish']
    """
    if not isinstance(table, dict):
        raise fail("job", "a table", table)
    known = [field.name for field in fields(Job) if field.name != "phases"]
    _refuse_others("job", table, (*known, "phase"))
    for name in ("size", "objective"):
        if name not in table:
            raise ParameterError(f"the key {name!r} is missing")
    kind: Any = choice("kind", table.get("kind", "two-sided"), ("two-sided", "one-sided", "direct"))
    size = _size("size", table["size"])
    objective = choice("objective", table["objective"], ("max", "mean"))
    interior = flag("interior", table.get("interior", False))
    if interior and kind == "direct":
        raise ParameterError("interior is about stages, not plain factorisations")
    phases = table.get("phase")
    if phases is None:
        phases = _default_phases(kind, objective)
    if not isinstance(phases, list) or not phases or not all(isinstance(phase, dict) for phase in phases):
        raise ParameterError("phase must be one or more tables, each headed [[phase]]")
    job = Job(
        kind=kind,
        size=size,
        objective=objective,
        interior=interior,
        seed=integer("seed", table.get("seed", 0), minimum=0),
        seconds=None if "seconds" not in table else finite("seconds", table["seconds"], above=0),
        warm_start=None if "warm_start" not in table else _source("warm_start", table["warm_start"]),
        devices=None if "devices" not in table else integer("devices", table["devices"], minimum=1),
        checkpoint_seconds=finite("checkpoint_seconds", table.get("checkpoint_seconds", 3.0), minimum=0),
        phases=tuple(_phase(number, phase, table) for number, phase in enumerate(phases, start=1)),
    )
    _check_order(job)
    return job


def _default_phases(kind: str, objective: str) -> list[dict[str, Any]]:
    """Mean before max; and at a maximum's kink, B adapted to the coarse v that a certificate stores."""
    phases: list[dict[str, Any]] = [{"method": "search", "objective": "mean"}]
    if objective == "max":
        phases.append({"method": "refine"})
    phases += [{"method": "escape"}, {"method": "polish"}]
    if objective == "max" and kind == "two-sided":
        phases.append({"method": "refine", "weight_bits": 10, "starts": 1, "steps": 1500})
    return phases


def _refuse_others(where: str, table: dict[str, Any], known: tuple[str, ...]) -> None:
    others = sorted(str(name) for name in set(table) - set(known))
    if others:
        raise ParameterError(f"{where}: unknown key {others[0]!r}; there are {', '.join(known)}")


def _size(name: str, value: Any) -> int:
    return integer(name, value, minimum=2, maximum=LARGEST_SIZE)


def _source(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise fail(name, "the name of an artifact or a path", value)
    return value


def _spread(name: str, value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise fail(name, "a pair [least, largest]", value)
    least, largest = (finite(name, end, minimum=0) for end in value)
    if least > largest:
        raise fail(name, "a pair [least, largest] in this order", value)
    return (least, largest)


def _schedule(name: str, value: Any, *, largest: bool) -> Schedule:
    named = {"cold": cold, "warm": warm, "gentle": gentle}
    if isinstance(value, str):
        return named[choice(name, value, named)](largest=largest)
    wanted = [field.name for field in fields(Schedule)]
    if not isinstance(value, dict):
        raise fail(name, '"cold", "warm", "gentle" or a table', value)
    _refuse_others(name, value, tuple(wanted))
    if len(value) != len(wanted):
        raise ParameterError(f"{name} must have all of {', '.join(wanted)}")
    return Schedule(**value)


def _parts(name: str, value: Any) -> tuple[Part, ...]:
    if not isinstance(value, list) or len(value) < 2:
        raise fail(name, "a list of at least two stages, finest first", value)
    return tuple(part if type(part) is int else _source(name, part) for part in value)


@dataclass(frozen=True)
class _Defaults:
    """What a phase does when its keys do not say, by method."""

    starts: int = 8
    steps: int = 4000
    rounds: int = 1
    spread: tuple[float, float] = (0.0, 0.3)
    schedule: str = "warm"


_DEFAULTS = {
    "search": _Defaults(spread=(0.2, 1.0), schedule="cold"),
    "refine": _Defaults(),
    "escape": _Defaults(steps=1500, rounds=4, spread=(0.05, 0.5)),
    "joint": _Defaults(starts=1, steps=1000, spread=(0.0, 0.0), schedule="gentle"),
}


def _phase(number: int, table: dict[str, Any], job: dict[str, Any]) -> Phase:
    where = f"phase {number}"
    if "method" not in table:
        raise ParameterError(f"{where}: the key 'method' is missing")
    method = choice(f"{where}: method", table["method"], METHODS)
    _refuse_others(f"{where} ({method})", table, ("method", *METHODS[method]))
    usual = _DEFAULTS.get(method, _Defaults())

    def get(name: str, default: Any, check: Callable[[str, Any], Any]) -> Any:
        return check(f"{where}: {name}", table[name]) if name in table else default

    def count(most: int) -> Callable[[str, Any], int]:
        return lambda name, value: integer(name, value, minimum=1, maximum=most)

    objective = choice(f"{where}: objective", table.get("objective", job["objective"]), ("max", "mean"))
    largest = objective == "max"
    try:
        schedule = _schedule("schedule", table.get("schedule", usual.schedule), largest=largest)
    except ParameterError as error:
        raise ParameterError(f"{where}: {error}") from None
    interior = get("interior", bool(job.get("interior", False)), flag)
    if interior and job.get("kind") == "direct":
        raise ParameterError(f"{where}: interior is about stages, not plain factorisations")
    if method == "composite" and "parts" not in table:
        raise ParameterError(f"{where}: the key 'parts' is missing")
    return Phase(
        method=method,
        objective=objective,
        size=get("size", job["size"], _size),
        starts=get("starts", usual.starts, count(10**5)),
        steps=get("steps", usual.steps, count(10**8)),
        rounds=get("rounds", usual.rounds, count(10**6)),
        spread=get("spread", usual.spread, _spread),
        schedule=schedule,
        iterations=get("iterations", 300, count(10**6)),
        exponent=get("exponent", 1e4, lambda name, value: finite(name, value, minimum=1)),
        parts=get("parts", (), _parts),
        interior=interior,
        dilation=get("dilation", 0, lambda name, value: integer(name, value, minimum=0, maximum=64)),
        weight_bits=get("weight_bits", None, count(40)),
        weight_range=get("weight_range", (0.0, 1.0), _spread),
    )


def _check_order(job: Job) -> None:
    """Refuse what could only fail later: phases with nothing to go on from, or of sizes that do not meet."""
    size = None if job.warm_start is None else job.size
    square = True
    for number, phase in enumerate(job.phases, start=1):
        where = f"phase {number} ({phase.method})"
        if phase.method in ("search", "composite"):
            size, square = phase.size, phase.method == "search"
        elif size is None:
            raise ParameterError(f"{where} has nothing to go on from: begin with a search or a warm_start")
        if phase.method == "joint":
            square = False
        if phase.method in ("refine", "escape", "polish"):
            if not square:
                raise ParameterError(f"{where} needs a square B, which no composite or joint search leaves")
            if size != job.size:
                raise ParameterError(f"{where} would go on from size {size}, the job is about {job.size}")
        if phase.method in ("composite", "joint") and job.kind == "one-sided":
            raise ParameterError(f"{where} makes two-sided stages or plain factorisations, not one-sided")
        if phase.weight_bits is not None and job.kind != "two-sided":
            raise ParameterError(f"{where}: weight_bits is about two-sided stages")
        for part in phase.parts:
            if type(part) is int and not 1 <= part < number:
                raise ParameterError(f"{where}: part {part} is not the number of an earlier phase")
    if size != job.size:
        raise ParameterError(f"the last phase ends with size {size}, the job is about {job.size}")


_JOINT_ROWS = 1.3  # rows of B per column that a composite of two levels has, roughly


def estimate_job(job: Job) -> CostEstimate:
    """Estimate memory and one-core time of a job.

    >>> estimate_job(parse_job({"size": 129, "objective": "max"})).memory_bytes
    22898016
    """
    memory, seconds = 0, 0.0
    size = job.size
    for phase in job.phases:
        if phase.method in ("search", "composite"):
            size = phase.size
        if phase.method == "joint":
            rows = int(_JOINT_ROWS * size)
            cost = estimate_joint_cost(size, inner=rows, entries=40 * size, steps=phase.steps)
        elif phase.method in ("polish", "composite"):
            steps = 2 * phase.iterations if phase.method == "polish" else 1
            cost = estimate_cost(size, steps=steps, starts=1)
        else:
            cost = estimate_cost(size, steps=phase.steps, starts=phase.starts)
        memory = max(memory, cost.memory_bytes)
        seconds += phase.rounds * cost.seconds
    return CostEstimate(memory, seconds if job.seconds is None else min(seconds, job.seconds))
