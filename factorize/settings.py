"""Everything that determines a search, as plain checked data."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from trilift.factorize.objective import Kind
from trilift.factorize.schedule import Schedule, cold, warm
from trilift.lift.checks import choice, fail, finite, integer
from trilift.lift.errors import ParameterError
from trilift.lift.stage import Stage

__all__ = ["Settings", "make_settings"]

_LARGEST_SIZE = 4096  # beyond it one step alone takes minutes and gigabytes


@dataclass(frozen=True)
class Settings:
    """A search up to the numbers of its starting point; two equal ones with equal starts do the same work.

    Attributes:
        size: m, the size of the stage, or k of a plain factorisation.
        kind: "two-sided", "one-sided" or "direct".
        objective: "max" or "mean" of the squared row norms.
        seed: of the random starts.
        steps: Adam steps of every start.
        starts: number of starts, all moved together.
        spread: (least, largest) size sigma of the Gaussian added to the starts, evenly spaced over them.
        schedule: annealing.
        weight_bits: None, or the number of binary places that v is rounded to, and then kept at.
        initial: SHA-256 of the stage the starts surround, or "" for the identity.
    """

    size: int
    kind: Kind
    objective: str
    seed: int
    steps: int
    starts: int
    spread: tuple[float, float]
    schedule: Schedule
    weight_bits: int | None
    initial: str

    @property
    def largest(self) -> bool:
        """Whether the largest squared row norm counts, rather than the mean."""
        return self.objective == "max"

    def as_json(self) -> str:
        """Return the settings as canonical JSON, for checkpoints and provenance."""
        return json.dumps(asdict(self), sort_keys=True)


def _fingerprint(initial: Stage) -> str:
    digest = hashlib.sha256()
    for part in (initial.B, initial.g):
        digest.update(np.ascontiguousarray(part, dtype="<f8").tobytes())
    return digest.hexdigest()


def _check_spread(spread: Any, *, default: tuple[float, float]) -> tuple[float, float]:
    if spread is None:
        return default
    if not isinstance(spread, (tuple, list)) or len(spread) != 2:
        raise fail("spread", "a pair (least, largest)", spread)
    least, largest = (finite("spread", value, minimum=0) for value in spread)
    if least > largest:
        raise fail("spread", "a pair (least, largest) in this order", spread)
    return (least, largest)


def make_settings(
    size: Any,
    *,
    kind: Kind,
    objective: Any,
    seed: Any,
    steps: Any,
    starts: Any,
    initial: Any,
    spread: Any,
    schedule: Any,
    weight_bits: Any = None,
) -> Settings:
    """Check every argument of a search and put them together.

    Raises:
        ParameterError: an argument is of the wrong type or range, or ``initial`` does not fit.
    """
    size = integer("size", size, minimum=2, maximum=_LARGEST_SIZE)
    objective = choice("objective", objective, ("max", "mean"))
    if initial is not None:
        if not isinstance(initial, Stage):
            raise fail("initial", "a Stage or None", initial)
        initial = initial.to_float()
        if (initial.size, initial.inner) != (size, size):
            raise ParameterError(f"initial must have B of shape ({size}, {size}), got {initial.B.shape}")
    if weight_bits is not None:
        weight_bits = integer("weight_bits", weight_bits, minimum=1, maximum=40)
        if initial is None or kind != "two-sided":
            raise ParameterError("weight_bits needs a two-sided search around an initial stage")
    if schedule is None:
        schedule = (cold if initial is None else warm)(largest=objective == "max")
    elif not isinstance(schedule, Schedule):
        raise fail("schedule", "a Schedule or None", schedule)
    return Settings(
        size=size,
        kind=kind,
        objective=objective,
        seed=integer("seed", seed, minimum=0),
        steps=integer("steps", steps, minimum=1, maximum=10**8),
        starts=integer("starts", starts, minimum=1, maximum=10**5),
        spread=_check_spread(spread, default=(0.2, 1.0) if initial is None else (0.0, 0.3)),
        schedule=schedule,
        weight_bits=weight_bits,
        initial="" if initial is None else _fingerprint(initial),
    )
