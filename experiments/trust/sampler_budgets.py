"""Budgets from 1e-300 to 1e300 for every kind of counter: exactly what was asked for, or refused by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from trilift.counters.statement import weakness
from trilift.experiments.trust.kinds import KINDS, Kind
from trilift.lift.errors import ParameterError
from trilift.stream.chain_noise import ChainNoise

__all__ = ["BUDGETS", "REFUSED", "budget_cases"]

BUDGETS: tuple[Any, ...] = (
    *(5e-324, 1e-300, 1e-200, 1e-150, 1e-145, 1e-140, 1e-100, 1e-50, 1e-20, 1e-10, 1e-7, 1e-6, 1e-3, 0.1),
    *(1, 1.0, 20, 21, 1e3, 1e6, 1e7, 1e10, 1e20, 1e50, 1e100, 1e140, 1e145, 1e150, 1e200, 1e300),
    *(Fraction(1, 10**300), Fraction(10) ** 300, Fraction(1, 3**100), Fraction(3**90, 2**91), Fraction(1, 3)),
    *(Fraction(10) ** 700, Fraction(1, 10**700), np.float32(0.1), np.float64(1e-320), 2**1023, 10**400),
)
"""Some are accepted by all kinds, some by few, some by none: what must hold is that it is one or other."""

REFUSED: tuple[Any, ...] = (0, 0.0, -0.0, -1, -1e-300, float("nan"), float("inf"), True, "1", None, 1j, [1.0])
"""Budgets that no counter takes."""


def budget_cases(
    budgets: Iterable[Any], *, kinds: Iterable[Kind] = KINDS, seed: int = 1
) -> Iterator[tuple[Kind, Any, bool, str]]:
    """Yield kind, budget, whether it is as it should be, and "made", "refused" or what is wrong."""
    for kind, budget in product(kinds, list(budgets)):
        trouble, outcome = _tried(kind, budget, seed)
        yield kind, budget, trouble is None, trouble or outcome


def _tried(kind: Kind, budget: Any, seed: int) -> tuple[str | None, str]:
    try:
        counter = kind.make(budget, seed)
    except ParameterError as error:
        text = str(error)
        named = kind.budget in text or "mu" in text or (budget is None and "epsilon" in text)
        return (None if named and "\n" not in text else f"refused without its name: {text}"), "refused"
    except Exception as error:
        return f"failed: {error!r}", "failed"
    if any(budget is bad for bad in REFUSED):
        return "accepted", "made"
    released = kind.feed(counter)
    return _trouble(kind, budget, counter, released), "made"


def _trouble(kind: Kind, budget: Any, counter: Any, released: list[Any]) -> str | None:
    """Return what is wrong with a counter that was made, or None."""
    asked = Fraction(budget.item() if isinstance(budget, np.generic) else budget)
    own = getattr(counter, "epsilon", None)
    if own is not None and own != asked:
        return f"made for {own}"
    if _spent(counter) > asked:
        return "spends more than was asked"
    weak = bool(weakness(asked, name=kind.budget))
    if ("WEAK" in counter.privacy_statement()) != weak:
        return "does not say that noise may vanish" if weak else "says that noise may vanish"
    noises = [noise for noise in getattr(counter, "_noises", []) if isinstance(noise, ChainNoise)]
    for noise in noises:
        for step in (0, 1, 7, 30):
            if int(noise.at([step])[0]) != noise._evaluator.round_exact(step, places=noise.places):
                return "noise is not the exact one"
    flat = np.array(released, dtype=object).ravel().tolist() if not kind.events else []
    sums = np.cumsum(np.array(kind.numbers(len(released)), dtype=object), axis=0).ravel().tolist()
    if noises and not weak and flat == sums:
        return "no noise"
    if kind.events and not all(-np.inf < reading.estimate < np.inf for reading in released):
        return "a reading that is no number"
    return None


def _spent(counter: Any) -> Fraction:
    """Return what a counter proves that it spends."""
    ledger = getattr(counter, "ledger", None)
    for owner, name in ((counter, "spent"), (ledger, "spent"), (ledger, "spent_epsilon")):
        spent = getattr(owner, name, None)
        if isinstance(spent, Fraction):
            return spent
    return Fraction(0)  # Gaussian noise: it spends delta, which is proved when the setup is made
