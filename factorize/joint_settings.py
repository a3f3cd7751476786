"""Everything that determines a joint search, as plain checked data, and what it returns."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from trilift.factorize.estimate import CostEstimate
from trilift.factorize.result import SearchStatus
from trilift.factorize.schedule import Schedule
from trilift.factorize.support import Support
from trilift.lift.checks import choice, fail, finite, flag, integer
from trilift.lift.errors import ParameterError
from trilift.lift.stage import FloatArray, Stage

__all__ = ["JointResult", "JointSettings", "estimate_joint_cost", "gentle", "make_joint_settings"]

JointKind = Literal["stage", "direct"]

LARGEST_SIZE = 4096

# One core of a current server processor, single-threaded BLAS: seconds per step are about c3 m^3 for the
# inverse and the product, c2 r m for what is done entry by entry. Good to a factor of about 2 there.
_PER_CUBE, _PER_ENTRY = 1.2e-10, 1.5e-8
_LIVE_MATRICES = 10  # m x m arrays that live at once, and the product with B


def gentle(*, largest: bool) -> Schedule:
    """The default schedule of a joint search: small steps, since the start is good already."""
    return Schedule(
        rate=0.002,
        smoothing=(0.03, 3e-5),
        exponent=(20.0, 2e4) if largest else (1.0, 1.0),
        settled=0.9,
    )


@dataclass(frozen=True)
class JointSettings:
    """A joint search up to the numbers of its start; equal ones with equal starts do the same work.

    Attributes:
        size: m, the size of the stage, or n of a plain factorisation of T_n.
        inner: r, the rows of B.
        entries: size of the support.
        kind: "stage" or "direct".
        objective: "max" or "mean" of the squared row norms.
        interior: whether they are those that a level sees through its own weights.
        weight_range: (least, largest) w.
        seed: of the perturbation of the start.
        steps: Adam steps.
        spread: size of that perturbation, in units of the mean absolute entry.
        dilation: neighbours by which the start's support was widened.
        threshold: below which fraction of a row's largest entry the start's entries were dropped.
        schedule: annealing.
        weight_bits: None, or the binary places that v was rounded to, and is kept at.
        start: SHA-256 of the start's B, v and w.
    """

    size: int
    inner: int
    entries: int
    kind: JointKind
    objective: str
    interior: bool
    weight_range: tuple[float, float]
    seed: int
    steps: int
    spread: float
    dilation: int
    threshold: float
    schedule: Schedule
    weight_bits: int | None
    start: str

    @property
    def largest(self) -> bool:
        """Whether the largest squared row norm counts, rather than the mean."""
        return self.objective == "max"

    def as_json(self) -> str:
        """Return the settings as canonical JSON, for checkpoints and provenance."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True)
class JointResult:
    """The best stage a joint search has seen, and how it was found.

    Attributes:
        status: how the search ended.
        stage: the best stage seen, with a rectangular B, in floats; None only if none was finite.
        cost: its kappa without smoothing, the interior one if that was searched; infinite without a stage.
        start_cost: the same of the start, on its support and with columns scaled to l1 norm 1.
        steps: Adam steps done.
        history: (step, best cost so far) after every chunk.
        settings: everything that determined the search.
        versions: of the packages that did the arithmetic.
        seconds: time spent, over all resumed parts.
    """

    status: SearchStatus
    stage: Stage | None
    cost: float
    start_cost: float
    steps: int
    history: list[tuple[int, float]]
    settings: JointSettings
    versions: dict[str, str]
    seconds: float

    @property
    def seed(self) -> int:
        """Seed of the perturbation."""
        return self.settings.seed

    def summary(self) -> str:
        """One line for people."""
        s = self.settings
        what = f"{s.kind} {s.objective} {s.size}" + (" interior" if s.interior else "")
        return (
            f"{what}: kappa {self.cost:.6f} from {self.start_cost:.6f}, {self.status.value} "
            f"at step {self.steps}"
        )


def joint_step_seconds(size: int, inner: int) -> float:
    """Rough seconds of one step on one core."""
    return _PER_CUBE * size**3 + _PER_ENTRY * size * inner


def estimate_joint_cost(size: int, *, inner: int, entries: int, steps: int) -> CostEstimate:
    """Estimate memory and one-core time of a joint search.

    Args:
        size: m.
        inner: r, rows of B.
        entries: of the support.
        steps: Adam steps.

    Raises:
        ParameterError: an argument is not a positive integer.

    >>> estimate_joint_cost(1024, inner=1100, entries=30000, steps=100).memory_bytes // 2**20
    93
    """
    size = integer("size", size, minimum=2)
    inner = integer("inner", inner, minimum=1)
    entries = integer("entries", entries, minimum=1)
    steps = integer("steps", steps, minimum=1)
    memory = 8 * (_LIVE_MATRICES * size**2 + size * inner + 20 * entries)
    return CostEstimate(memory_bytes=memory, seconds=steps * joint_step_seconds(size, inner))


def fingerprint(B: FloatArray, v: FloatArray, w: FloatArray) -> str:
    """Return the SHA-256 of a start."""
    digest = hashlib.sha256()
    for part in (B, v, w):
        digest.update(np.ascontiguousarray(part, dtype="<f8").tobytes())
    return digest.hexdigest()


def make_joint_settings(
    support: Support,
    *,
    kind: JointKind,
    objective: Any,
    interior: Any,
    weight_range: Any,
    seed: Any,
    steps: int,
    spread: Any,
    dilation: Any,
    threshold: Any,
    schedule: Any,
    weight_bits: Any,
    start: str,
) -> JointSettings:
    """Check every argument of a joint search and put them together.

    Raises:
        ParameterError: an argument is of the wrong type or range, or two of them do not go together.
    """
    objective = choice("objective", objective, ("max", "mean"))
    if kind == "direct":
        interior = False
    elif interior is None:
        interior = objective == "mean"
    else:
        flag("interior", interior)
    if not isinstance(weight_range, (tuple, list)) or len(weight_range) != 2:
        raise fail("weight_range", "a pair (least, largest)", weight_range)
    lo, hi = (finite("weight_range", end, minimum=0, maximum=1) for end in weight_range)
    if lo >= hi:
        raise fail("weight_range", "a pair (least, largest) in this order", weight_range)
    if (lo, hi) != (0.0, 1.0) and not interior:
        raise ParameterError("weight_range needs the interior cost: for the plain one w is always the best")
    if weight_bits is not None:
        weight_bits = integer("weight_bits", weight_bits, minimum=1, maximum=40)
    if schedule is None:
        schedule = gentle(largest=objective == "max")
    elif not isinstance(schedule, Schedule):
        raise fail("schedule", "a Schedule or None", schedule)
    return JointSettings(
        size=integer("size", support.shape[1], minimum=2, maximum=LARGEST_SIZE),
        inner=support.shape[0],
        entries=support.entries,
        kind=kind,
        objective=objective,
        interior=bool(interior),
        weight_range=(lo, hi),
        seed=integer("seed", seed, minimum=0),
        steps=integer("steps", steps, minimum=1, maximum=10**8),
        spread=finite("spread", spread, minimum=0),
        dilation=dilation,
        threshold=threshold,
        schedule=schedule,
        weight_bits=weight_bits,
        start=start,
    )
