"""The file of a budget: what was spent and by whom, one JSON object with a checksum, for its owner only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from trilift.counters.accounting.guarantee import NEIGHBOURS
from trilift.counters.state_file import (
    check_checksum,
    exact_number,
    headed_record,
    whole,
    write_record,
)
from trilift.lift.checks import fail, rational, show
from trilift.lift.errors import ArtifactFormatError, ParameterError

__all__ = [
    "Entry",
    "Limits",
    "check_written",
    "in_words",
    "limits_of",
    "read_budget",
    "read_checked",
    "spent_of",
    "write_budget",
]

FORMAT = "trilift budget"
VERSION = 1
_MAX_BYTES = 16 << 20
AMOUNTS = ("epsilon", "delta", "rho", "mu_sq")


@dataclass(frozen=True)
class Limits:
    """What may be spent, and on which neighbours.

    Attributes:
        kind: "pure", "approximate", "zcdp" or "gdp".
        amounts: the limits in the unit of the kind, by their names in :data:`AMOUNTS`; they add up.
        max_contributions: rows (or edits) of one person.
        neighbours: "rows", "edit", "extended edit", or None until the first counter decides.
    """

    kind: str
    amounts: dict[str, Fraction]
    max_contributions: int
    neighbours: str | None


@dataclass(frozen=True)
class Entry:
    """One release that was paid for.

    Attributes:
        by: who or what spent it, as it was said.
        what: the counters, in words.
        amounts: what it cost, in the unit of the budget.
        counters: public identities of the counters (hexadecimal digits), so that none is charged twice.
    """

    by: str
    what: str
    amounts: dict[str, Fraction]
    counters: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """Return the entry for JSON, exact numbers as strings."""
        return {
            "by": self.by,
            "what": self.what,
            "amounts": {name: str(value) for name, value in self.amounts.items()},
            "counters": list(self.counters),
        }

    @classmethod
    def from_record(cls, record: Any) -> Self:
        """Restore an entry.

        Raises:
            KeyError, TypeError, ValueError: it is damaged.
        """
        texts = [record["by"], record["what"], *record["counters"]]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError
        return cls(record["by"], record["what"], _amounts(record["amounts"]), tuple(record["counters"]))


def _amounts(record: Any) -> dict[str, Fraction]:
    amounts = {str(name): exact_number(text) for name, text in record.items()}
    if not set(amounts) <= set(AMOUNTS) or min(amounts.values()) < 0:
        raise ValueError
    return amounts


def write_budget(path: Path, limits: Limits, entries: tuple[Entry, ...]) -> None:
    """Write a budget; the file is readable by its owner only, and appears whole or not at all.

    Raises:
        OSError: it cannot be written; what was there before is unchanged.
        StateError: it would be larger than what is read again; likewise.
    """
    write_record(
        path,
        max_bytes=_MAX_BYTES,
        record={
            "format": FORMAT,
            "version": VERSION,
            "kind": limits.kind,
            "limits": {name: str(value) for name, value in limits.amounts.items()},
            "max_contributions": limits.max_contributions,
            "neighbours": limits.neighbours,
            "entries": [entry.record() for entry in entries],
        },
    )


def read_budget(path: Path) -> tuple[Limits, tuple[Entry, ...]]:
    """Read what :func:`write_budget` wrote.

    Raises:
        ArtifactFormatError: missing, damaged, or not a budget.
    """
    record = headed_record(path, form=FORMAT, version=VERSION, what="a budget", max_bytes=_MAX_BYTES)
    try:
        check_checksum(record)
        limits = Limits(
            str(record["kind"]),
            _amounts(record["limits"]),
            whole(record["max_contributions"]),
            None if record["neighbours"] is None else str(record["neighbours"]),
        )
        entries = tuple(Entry.from_record(entry) for entry in record["entries"])
        if any(set(entry.amounts) != set(limits.amounts) for entry in entries):
            raise ValueError
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError):
        raise ArtifactFormatError(f"{path}: a damaged budget") from None
    return limits, entries


def limits_of(epsilon: Any, *, delta: Any, rho: Any, mu: Any) -> tuple[str, dict[str, Fraction]]:
    """Return the kind of a budget, and its limits.

    Raises:
        ParameterError: another combination, or numbers that are none.
    """
    kind, amounts = _limits_of(epsilon, delta=delta, rho=rho, mu=mu)
    check_written(amounts)
    return kind, amounts


def check_written(amounts: Mapping[str, Fraction]) -> None:
    """Check that a record can hold amounts: a reader takes so many digits, and no more.

    Raises:
        ParameterError: one is a fraction of longer numbers.
    """
    for name, value in amounts.items():
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MOST_BITS:
            raise ParameterError(f"{name} must be a fraction of numbers of at most {_MOST_BITS} bits")


_MOST_BITS = 6600  # 1987 digits, and exact_number reads 2000


def _limits_of(epsilon: Any, *, delta: Any, rho: Any, mu: Any) -> tuple[str, dict[str, Fraction]]:
    given = [epsilon is not None, rho is not None, mu is not None]
    if sum(given) != 1 or (delta is not None and epsilon is None):
        raise ParameterError("give epsilon, or epsilon and delta, or rho, or mu")
    if rho is not None:
        return "zcdp", {"rho": rational("rho", rho, above=0)}
    if mu is not None:
        return "gdp", {"mu_sq": rational("mu", mu, above=0) ** 2}
    exact = rational("epsilon", epsilon, above=0)
    if delta is None:
        return "pure", {"epsilon": exact}
    allowed = rational("delta", delta, above=0)
    if allowed >= 1:
        raise fail("delta", "a number between 0 and 1", delta)
    return "approximate", {"epsilon": exact, "delta": allowed}


_UNITS = {"pure": ["epsilon"], "approximate": ["epsilon", "delta"], "zcdp": ["rho"], "gdp": ["mu_sq"]}


def spent_of(limits: Limits, entries: tuple[Entry, ...]) -> dict[str, Fraction]:
    """Return what all entries cost together."""
    return {name: sum((entry.amounts[name] for entry in entries), Fraction(0)) for name in limits.amounts}


def read_checked(path: Path) -> tuple[Limits, tuple[Entry, ...]]:
    """Read a budget and prove its sum.

    Raises:
        ArtifactFormatError: as :func:`read_budget`; more spent than there was.
    """
    limits, entries = read_budget(path)
    fits = (
        list(limits.amounts) == _UNITS.get(limits.kind)
        and limits.max_contributions >= 1
        and (limits.neighbours is None or limits.neighbours in NEIGHBOURS)
    )
    if not fits or any(spent > limits.amounts[name] for name, spent in spent_of(limits, entries).items()):
        raise ArtifactFormatError(f"{path}: a damaged budget")
    return limits, entries


def in_words(amounts: Mapping[str, Fraction]) -> str:
    """Return amounts as text, exact where that is short."""
    return ", ".join(f"{name} {_in_words(value)}" for name, value in amounts.items())


def _in_words(value: Fraction) -> str:
    text = show(value)
    if len(text) <= _EXACT_SHOWN:
        return text
    try:
        return f"{float(value):.12g}"
    except OverflowError:
        return text


_EXACT_SHOWN = 24
