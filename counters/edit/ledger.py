"""Where the budget of an edit mechanism goes, part by part, and the proof of the sum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from trilift.counters.state_file import exact_number
from trilift.lift.errors import ParameterError
from trilift.stream.gdp import delta_upper, ln_of

__all__ = ["EditLedger", "LedgerPart", "float_above"]


def float_above(value: Fraction) -> float:
    """Return a float that is at least this rational, the least one or the next."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


@dataclass(frozen=True)
class LedgerPart:
    """One part of a budget.

    Attributes:
        name: for example "partition".
        epsilon: what it spends, exact.
        ln_delta: an upper bound on ln of the delta that it spends, exact; None for no delta at all.
        reason: why, in one sentence.
    """

    name: str
    epsilon: Fraction
    ln_delta: Fraction | None
    reason: str

    @property
    def delta(self) -> Fraction:
        """A rational that is at least the delta spent."""
        return Fraction(0) if self.ln_delta is None else delta_upper(self.ln_delta)

    def record(self) -> dict[str, Any]:
        """Return the part for JSON: ln_delta is rounded up to a float, and null where no delta is spent."""
        ln_delta = None if self.ln_delta is None else float_above(self.ln_delta)
        epsilon = f"{self.epsilon.numerator}/{self.epsilon.denominator}"
        return {"part": self.name, "epsilon": epsilon, "ln_delta": ln_delta}


@dataclass(frozen=True)
class EditLedger:
    """All parts of a mechanism and what was asked for.

    Making one proves the sum: epsilons are added as rationals, deltas as rational upper bounds.

    Attributes:
        epsilon: asked for, exact.
        delta: asked for, exact.
        parts: what the mechanism is made of. Their deltas already hold the factors that composition puts
            on them (e^epsilon of other parts, where a proof does not avoid it), so that they add up.

    Raises:
        ParameterError: parts that spend more than what was asked for.

    >>> part = LedgerPart("all", Fraction(1), Fraction(-20), "an example")
    >>> EditLedger(Fraction(1), Fraction(1, 10**6), (part,)).record()
    [{'part': 'all', 'epsilon': '1/1', 'ln_delta': -20.0}]
    """

    epsilon: Fraction
    delta: Fraction
    parts: tuple[LedgerPart, ...]

    def __post_init__(self) -> None:
        if self.spent_epsilon > self.epsilon:
            raise ParameterError(
                f"the parts spend epsilon {float(self.spent_epsilon):.9g}, more than {self.epsilon}"
            )
        if self.spent_delta > self.delta:
            raise ParameterError(
                f"the parts spend delta {float(self.spent_delta):.9g}, more than {self.delta}"
            )

    @property
    def spent_epsilon(self) -> Fraction:
        """Sum of the parts' epsilons, exact."""
        return sum((part.epsilon for part in self.parts), Fraction(0))

    @property
    def spent_delta(self) -> Fraction:
        """Sum of the parts' deltas: an exact upper bound."""
        return sum((part.delta for part in self.parts), Fraction(0))

    @property
    def spent_ln_delta(self) -> float:
        """Logarithm of :attr:`spent_delta`, rounded up; -inf for 0."""
        spent = self.spent_delta
        return float_above(ln_of(spent)[1]) if spent else -math.inf

    def as_text(self) -> str:
        """Return the ledger as a small table, one part a line, then the sum."""
        lines = [f"asked: epsilon {float(self.epsilon):.6g}, delta {float(self.delta):.6g}"]
        width = max(len(part.name) for part in self.parts)
        for part in self.parts:
            delta = "none" if part.ln_delta is None else f"e^{float_above(part.ln_delta):.6g}"
            lines.append(
                f"  {part.name:<{width}}  epsilon {float(part.epsilon):.6g}, delta {delta}: {part.reason}"
            )
        lines.append(
            f"spent: epsilon {float(self.spent_epsilon):.9g} ({self.spent_epsilon}), "
            f"ln delta {self.spent_ln_delta:.9g}; at most what was asked, proved in rationals"
        )
        return "\n".join(lines)

    def record(self) -> list[dict[str, Any]]:
        """Return one JSON object a part: {"part", "epsilon": "p/q", "ln_delta": float or null}."""
        return [part.record() for part in self.parts]

    def exact_record(self) -> dict[str, Any]:
        """Return everything as JSON with exact numbers as strings: :meth:`from_record` restores it."""
        return {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "parts": [
                {
                    "name": part.name,
                    "epsilon": str(part.epsilon),
                    "ln_delta": None if part.ln_delta is None else str(part.ln_delta),
                    "reason": part.reason,
                }
                for part in self.parts
            ],
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """Restore a ledger, proving its sum again.

        Raises:
            ParameterError: parts that spend too much.
        """
        parts = tuple(
            LedgerPart(
                part["name"],
                exact_number(part["epsilon"]),
                None if part["ln_delta"] is None else exact_number(part["ln_delta"]),
                part["reason"],
            )
            for part in record["parts"]
        )
        return cls(exact_number(record["epsilon"]), exact_number(record["delta"]), parts)
