"""The ledger: integer noise scales for a chain, and the exact rational proof that they spend at most epsilon.

Inputs lie on the lattice 2^-gamma. Row i of level l of R then takes values on the lattice 2^-lambda_i with
lambda_i = (binary places of the row) + gamma + (binary places of the v of every level below), because each
level beneath blends inputs with weights v and 1 - v. Every row gets discrete Laplace noise of an integer
scale sigma_i on its own lattice, and sigma_i 2^-lambda_i = s_l is the same for all rows of a level. An input
that changes by at most chi changes row i by at most chi |R_it|, so that row costs at most chi |R_it| / s_l,
and over all rows and levels

    chi * sum_l b_l / s_l <= epsilon,        b_l = largest l1 norm of a column as level l meets it.

This is checked in rationals when a ledger is made. The sum over levels of per-level maxima does not depend
on the horizon; on shipped artifacts it exceeds the exact maximum over columns by well under one percent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trilift.lift.chain import Chain
from trilift.lift.checks import integer, rational, written
from trilift.lift.errors import ParameterError
from trilift.stream.levels import (
    MAX_PLACES,
    MIN_SCALE,
    LevelLedger,
    check_levels,
    levels_text,
    restore_levels,
    split_budget,
)

__all__ = [
    "MAX_PLACES",
    "MIN_SCALE",
    "Ledger",
    "LevelLedger",
    "check_ledger",
    "make_ledger",
    "restore_ledger",
]


@dataclass(frozen=True)
class Ledger:
    """An exact split of epsilon over the levels of a chain.

    Attributes:
        epsilon: what was asked for.
        change: chi, the largest change of one input between neighbours.
        input_places: gamma; inputs lie on the lattice 2^-gamma.
        levels: one entry a level, finest first.
    """

    epsilon: Fraction
    change: Fraction
    input_places: int
    levels: tuple[LevelLedger, ...]

    @property
    def spent(self) -> Fraction:
        """What the levels spend together, at most ``epsilon``."""
        return sum((level.spent for level in self.levels), Fraction(0))

    @property
    def scales(self) -> tuple[Fraction, ...]:
        """Noise scales s_l, finest first."""
        return tuple(level.scale for level in self.levels)

    def as_text(self) -> str:
        """Return the ledger as a small table."""
        spent = f"spent {float(self.spent):.12g} (at most the ask, proved in rationals)"
        return "\n".join([f"epsilon asked {self.epsilon}, {spent}", *levels_text(self.levels)])


def check_ledger(chain: Chain, ledger: Ledger) -> None:
    """Prove in rationals that a ledger is about this chain and that it spends at most its epsilon.

    Checked are every stage's factorisation and weights, every row's lattice, and the sum of what the levels
    spend, from the chain's own numbers.

    Raises:
        ParameterError: which of these fails.
    """
    spent = check_levels(chain, ledger, norm="l1")
    if spent > ledger.epsilon:
        raise ParameterError(f"the ledger spends {float(spent):.6g}, more than epsilon {ledger.epsilon}")


def make_ledger(
    chain: Chain, epsilon: Any, *, scales: Sequence[float] | Any, change: Any = 1, input_places: int = 0
) -> Ledger:
    """Split epsilon over the levels of an exact chain in integers, never spending more than asked.

    Args:
        chain: an exact chain.
        epsilon: > 0, any finite real number, taken as the rational that it is.
        scales: wanted level scales up to a common factor (floats, as :func:`trilift.lift.chain_cost`
            gives); only their proportions matter.
        change: chi, the most by which one input differs between neighbours, > 0.
        input_places: gamma, inputs are integers over 2^gamma.

    Raises:
        ParameterError: arguments out of range, a chain that is no exact factorisation, or noise scales
            beyond 2^480 or below 2^-480.

    >>> from trilift.lift import Dyadic, Stage
    >>> top = Stage.plain(Dyadic([[1, 0], [1, 1]]), Dyadic([[1, 0], [0, 1]]))
    >>> ledger = make_ledger(Chain(top), 0.5, scales=[1.0])
    >>> ledger.scales, ledger.spent
    ((Fraction(2, 1),), Fraction(1, 2))
    """
    asked = written("epsilon", epsilon, above=0)
    chi = rational("change", change, above=0)
    gamma = integer("input_places", input_places, minimum=0, maximum=MAX_PLACES)
    levels = split_budget(
        chain, asked, scales=scales, change=chi, input_places=gamma, norm="l1", budget_text="epsilon"
    )
    ledger = Ledger(asked, chi, gamma, levels)
    check_ledger(chain, ledger)
    return ledger


def restore_ledger(
    chain: Chain,
    epsilon: Fraction,
    *,
    scales: Sequence[tuple[int, int]],
    change: Fraction = Fraction(1),
    input_places: int = 0,
) -> Ledger:
    """Make the ledger again that has these integer scales: no float takes part, nothing is chosen anew.

    Args:
        chain: the exact chain.
        epsilon: as asked for.
        scales: (scale_int, coarsest) of every level, finest first, as in a ledger of :func:`make_ledger`.
        change: chi.
        input_places: gamma.

    Raises:
        ParameterError: scales that are none of this chain's, or that spend more than epsilon
            (:func:`check_ledger`).
    """
    levels = restore_levels(chain, scales, change=change, input_places=input_places, norm="l1")
    ledger = Ledger(epsilon, change, input_places, levels)
    check_ledger(chain, ledger)
    return ledger
