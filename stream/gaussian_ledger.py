"""The ledger of Gaussian noise: noise scales for a chain, and the rational proof that they spend at most mu.

Every row of level l of R gets Gaussian noise of the same standard deviation s_l, a rational (written, as in
:mod:`trilift.stream.ledger`, as an integer on the lattice that the row's values lie on). An input that
changes by at most chi changes Rx by a vector whose part on level l has l2 norm at most chi b_l, so in units
of the noise its squared norm is at most

    chi^2 * sum_l b_l^2 / s_l^2 <= mu^2,        b_l = largest l2 norm of a column as level l meets it,

because rows of different levels are different coordinates. Then Rx plus the noise is mu-GDP, and so is every
function of it: (epsilon, delta)-private for all of the curve of :func:`trilift.stream.gdp.ln_delta_bounds` at
once. The sum is checked in rationals when a ledger is made, and holds at every horizon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trilift.lift.chain import Chain
from trilift.lift.checks import integer, rational
from trilift.lift.errors import ParameterError
from trilift.stream.levels import (
    MAX_PLACES,
    LevelLedger,
    check_levels,
    levels_text,
    restore_levels,
    split_budget,
)

__all__ = ["GaussianLedger", "check_gaussian_ledger", "make_gaussian_ledger", "restore_gaussian_ledger"]


@dataclass(frozen=True)
class GaussianLedger:
    """An exact split of mu^2 over the levels of a chain.

    Attributes:
        mu: what was asked for.
        change: chi, the largest change of one input between neighbours.
        input_places: gamma; inputs lie on the lattice 2^-gamma.
        levels: one entry a level, finest first; ``sensitivity`` is b_l^2 and ``spent`` a share of mu^2.
    """

    mu: Fraction
    change: Fraction
    input_places: int
    levels: tuple[LevelLedger, ...]

    @property
    def spent_sq(self) -> Fraction:
        """What the levels spend together, at most ``mu`` squared."""
        return sum((level.spent for level in self.levels), Fraction(0))

    @property
    def scales(self) -> tuple[Fraction, ...]:
        """Standard deviations s_l, finest first of the Gaussians."""
        return tuple(level.scale for level in self.levels)

    def as_text(self) -> str:
        """Return the ledger as a small table."""
        spent = f"spent {float(self.spent_sq) ** 0.5:.12g} (at most the ask, proved in rationals)"
        title = f"mu asked {float(self.mu):.12g}, {spent}; below: squares of sensitivities and of mu"
        return "\n".join([title, *levels_text(self.levels)])


def check_gaussian_ledger(chain: Chain, ledger: GaussianLedger) -> None:
    """Prove in rationals that a ledger is about this chain and that it spends at most its mu.

    Checked are every stage's factorisation and weights, every row's lattice, and the sum of what the levels
    spend, from the chain's own numbers.

    Raises:
        ParameterError: which of these fails.
    """
    spent = check_levels(chain, ledger, norm="l2")
    if spent > ledger.mu**2:
        raise ParameterError(
            f"the ledger spends {float(spent) ** 0.5:.6g}, more than mu {float(ledger.mu):.6g}"
        )


def make_gaussian_ledger(
    chain: Chain, mu: Any, *, scales: Sequence[float] | Any, change: Any = 1, input_places: int = 0
) -> GaussianLedger:
    """Split mu^2 over the levels of an exact chain in integers, never spending more than asked.

    Args:
        chain: an exact chain.
        mu: > 0, any finite real number, taken as the rational that it is
            (of epsilon and delta: :func:`trilift.stream.gdp.mu_for`).
        scales: wanted level scales up to a common factor (floats, as :func:`trilift.lift.horizon_scales`
            gives under norm "l2"); only their proportions matter.
        change: chi, the most by which one input differs between neighbours, > 0.
        input_places: gamma, inputs are integers over 2^gamma.

    Raises:
        ParameterError: arguments out of range, a chain that is no exact factorisation, or noise scales
            beyond 2^480 or below 2^-480.

    >>> from trilift.lift import Dyadic, Stage
    >>> top = Stage.plain(Dyadic([[1, 0], [1, 1]]), Dyadic([[1, 0], [0, 1]]))
    >>> ledger = make_gaussian_ledger(Chain(top), 0.5, scales=[1.0])
    >>> float(ledger.scales[0]), ledger.spent_sq <= Fraction(1, 4)
    (2.001953125, True)
    """
    asked = rational("mu", mu, above=0)
    chi = rational("change", change, above=0)
    gamma = integer("input_places", input_places, minimum=0, maximum=MAX_PLACES)
    levels = split_budget(
        chain, asked, scales=scales, change=chi, input_places=gamma, norm="l2", budget_text="mu"
    )
    ledger = GaussianLedger(asked, chi, gamma, levels)
    check_gaussian_ledger(chain, ledger)
    return ledger


def restore_gaussian_ledger(
    chain: Chain,
    mu: Fraction,
    *,
    scales: Sequence[tuple[int, int]],
    change: Fraction = Fraction(1),
    input_places: int = 0,
) -> GaussianLedger:
    """Make the ledger again that has these integer scales: no float takes part, nothing is chosen anew.

    Args:
        chain: the exact chain.
        mu: as asked for.
        scales: (scale_int, coarsest) of every level, finest first, as in a ledger of
            :func:`make_gaussian_ledger`.
        change: chi.
        input_places: gamma.

    Raises:
        ParameterError: scales that are none of this chain's, or that spend more than mu
            (:func:`check_gaussian_ledger`).
    """
    levels = restore_levels(chain, scales, change=change, input_places=input_places, norm="l2")
    ledger = GaussianLedger(mu, change, input_places, levels)
    check_gaussian_ledger(chain, ledger)
    return ledger
