"""Everything public about a turnstile counter, and how its mechanism is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from trilift.counters.state_file import exact_number
from trilift.counters.turnstile.bases import Base
from trilift.counters.turnstile.budget import Budget, TurnstileLedger, make_budget
from trilift.counters.turnstile.reading import Readings
from trilift.lift.checks import integer, written
from trilift.lift.errors import ParameterError
from trilift.stream.keys import derive_key
from trilift.stream.keystream import Keystream

__all__ = [
    "MOST_STEPS",
    "Blueprint",
    "Common",
    "Mechanism",
    "check_common",
    "hash_words",
    "restored_terms",
]

Integers = np.ndarray[Any, np.dtype[Any]]
Words = np.ndarray[Any, np.dtype[np.uint64]]

MOST_STEPS = 1 << 40


class Mechanism(Protocol):
    """Keeps exact sketches and releases readings; everything that it holds is secret but for its digest."""

    digest: bytes

    def start(self) -> Any:
        """Return the exact state of the empty stream."""
        ...

    def advanced(self, held: Any, prints: Words, signs: Integers, *, step: int) -> tuple[Any, Readings]:
        """Return the exact state after k more events, and what is released meanwhile; changes nothing."""
        ...

    def record(self, held: Any) -> Any:
        """Return an exact state for JSON."""
        ...

    def restored(self, record: Any) -> Any:
        """Return the exact state of a record, or raise ValueError, TypeError or KeyError."""
        ...


@dataclass(frozen=True)
class Common:
    """What all turnstile counters have.

    Attributes:
        horizon: number of events.
        every: a value is released after every so many events.
        universe: how many different items there can be, or None.
        failure: bound on the probability that some released interval is wrong.
    """

    horizon: int
    every: int
    universe: int | None
    failure: Fraction

    @property
    def ticks(self) -> int:
        """Number of released values."""
        return self.horizon // self.every

    @property
    def most(self) -> int:
        """Most distinct items that there can be."""
        return self.horizon if self.universe is None else min(self.horizon, self.universe)


def check_common(*, horizon: Any, every: Any, universe: Any, failure: Any) -> Common:
    """Check what all turnstile counters have.

    Raises:
        ParameterError: arguments out of range.
    """
    n = integer("horizon", horizon, minimum=1, maximum=MOST_STEPS)
    k = integer("every", every, minimum=1)
    if k > n:
        raise ParameterError(f"every must be at most the horizon {n}, or nothing is released")
    size = None if universe is None else integer("universe", universe, minimum=1)
    beta = written("failure", failure, above=0)
    if not Fraction(1, 10**9) <= beta <= Fraction(1, 2):
        raise ParameterError("failure must be between 1e-9 and 1/2")
    return Common(n, k, size, beta)


@dataclass(frozen=True)
class Blueprint:
    """A turnstile counter without its secrets.

    Attributes:
        quantity: name of the counter's class.
        method: its estimator.
        budget: what all released values spend together.
        common: horizon, every, universe, failure.
        options: of the method, values that JSON knows.
        bases: noise laws, one a part of the ledger.
        ledger: where the budget goes.
        lines: what the statement says of the method.
    """

    quantity: str
    method: str
    budget: Budget
    common: Common
    options: Mapping[str, Any]
    bases: tuple[Base, ...]
    ledger: TurnstileLedger
    lines: tuple[str, ...]

    @property
    def simulated(self) -> bool:
        """Whether some noise is floating point."""
        return any(base.simulated for base in self.bases)

    def record(self) -> dict[str, Any]:
        """Return what makes the counter again."""
        common = self.common
        return {
            "method": self.method,
            "budget": self.budget.record(),
            "horizon": common.horizon,
            "every": common.every,
            "universe": common.universe,
            "failure": str(common.failure),
            "options": dict(self.options),
            "bases": [base.record() for base in self.bases],
        }


def restored_terms(record: dict[str, Any]) -> tuple[Budget, Common]:
    """Return the budget and the common terms that :meth:`Blueprint.record` wrote.

    Raises:
        KeyError, TypeError, ValueError, ParameterError: the record is damaged.
    """
    texts = record["budget"].items()
    budget = make_budget(**{name: None if text is None else exact_number(text) for name, text in texts})
    common = check_common(
        horizon=record["horizon"],
        every=record["every"],
        universe=record["universe"],
        failure=exact_number(record["failure"]),
    )
    return budget, common


def hash_words(key: bytes, *, stream_id: bytes, purpose: str, shape: tuple[int, int]) -> Words:
    """Return uniform 64-bit words for hash functions, from a key of their own (never that of noise).

    Args:
        key, stream_id: of the counter.
        purpose: path that is unique per key.
        shape: of the result.
    """
    derived = derive_key(key, stream_id=stream_id, purpose=purpose, digest=bytes(32))
    words = Keystream(derived).words(0, [0], 2 * shape[0] * shape[1])
    pairs = words.reshape(-1, 2).astype(np.uint64)
    return np.asarray(pairs[:, 0] | pairs[:, 1] << np.uint64(32)).reshape(shape)
