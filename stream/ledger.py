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
from functools import lru_cache
from typing import Any

import numpy as np
from trilift.lift.chain import Chain
from trilift.lift.checks import integer, rational
from trilift.lift.costs import scales_array
from trilift.lift.dyadic import Dyadic, binary_places
from trilift.lift.errors import ParameterError
from trilift.lift.stage import Stage

__all__ = ["MAX_PLACES", "Ledger", "LevelLedger", "check_ledger", "make_ledger", "restore_ledger"]

MIN_SCALE = 1 << 10
"""Smaller scales are put on a finer lattice, so that rounding them up wastes less than 0.1 % of epsilon."""

MAX_PLACES = 256
"""Most binary places of an input or an output lattice."""

_RANGE = 480  # level scales stay within 2^-480 .. 2^480, so that their squares fit floats
_MAX_ROW_PLACES = 540  # finer row lattices could underflow in the float path; draws that overflow are refused


@dataclass(frozen=True)
class LevelLedger:
    """What one level spends and how its noise is drawn.

    Attributes:
        size: steps in a block.
        sensitivity: b_l, exact.
        places: lambda_i for every row of B, in order (a zero row has none and is not measured: -1).
        coarsest: least lambda_i over the measured rows, plus the refinement of small scales.
        scale_int: sigma_l, the integer scale on the lattice 2^-coarsest.
        spent: chi b_l / s_l, exact.
    """

    size: int
    sensitivity: Fraction
    places: tuple[int, ...]
    coarsest: int
    scale_int: int
    spent: Fraction

    @property
    def scale(self) -> Fraction:
        """s_l, the scale of the level's noise in units of the count, exact."""
        return Fraction(self.scale_int, 1 << self.coarsest)

    @property
    def measured(self) -> tuple[int, ...]:
        """Indices of the rows of B that are measured: all but identically zero ones."""
        return tuple(i for i, places in enumerate(self.places) if places >= 0)

    @property
    def row_scales(self) -> tuple[int, ...]:
        """sigma_i of the measured rows, on each row's own lattice."""
        return tuple(self.scale_int << (self.places[i] - self.coarsest) for i in self.measured)


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
        lines = [f"epsilon asked {self.epsilon}, {spent}"]
        for index, level in enumerate(self.levels):
            lines.append(
                f"  level {index}: size {level.size}, sensitivity {float(level.sensitivity):.6g}, "
                f"noise scale {float(level.scale):.6g}, spends {float(level.spent):.6g}"
            )
        return "\n".join(lines)


def _row_places(stage: Stage, below: int) -> tuple[int, ...]:
    """Return each row's lambda, -1 for identically zero rows."""
    places = binary_places(stage.B).max(axis=1) + below
    zero = ~np.any(stage.B.num != 0, axis=1)
    return tuple(int(p) for p in np.where(zero, -1, places))


def _weight_places(stage: Stage) -> int:
    v: Dyadic = stage.v
    return int(binary_places(v).max(initial=0))


@lru_cache(maxsize=64)
def _weight_range(stage: Stage) -> bool:
    """Tell whether w and v lie in [0, 1], as the bounds on blended columns and on float errors assume."""
    return all(x.min() >= 0 and x.max() <= 1 for x in (stage.w, stage.v))


@lru_cache(maxsize=64)
def _holds(stage: Stage) -> bool:
    """Tell whether T_m = A B + w (1 - v)^T exactly (stages are immutable and compared by identity)."""
    return stage.residual() == 0


def check_ledger(chain: Chain, ledger: Ledger) -> None:
    """Prove in rationals that a ledger is about this chain and that it spends at most its epsilon.

    Checked are every stage's factorisation and weights, every row's lattice, and the sum of what the levels
    spend, from the chain's own numbers.

    Raises:
        ParameterError: which of these fails.
    """
    if not chain.is_exact:
        raise ParameterError("noise needs an exact chain: load a certified artifact or complete the factors")
    if len(chain.levels) != len(ledger.levels):
        raise ParameterError(f"a chain of {len(chain.levels)} levels, but a ledger of {len(ledger.levels)}")
    spent, below = Fraction(0), ledger.input_places
    sensitivities = chain.level_sensitivities()
    for index, (stage, entry) in enumerate(zip(chain.levels, ledger.levels, strict=True)):
        _check_stage(index, stage)
        places = _row_places(stage, below)
        extra = entry.coarsest - _coarsest(places)
        if extra < 0 or entry.size != stage.size or entry.places != _refined(places, extra):
            raise ParameterError(f"the ledger belongs to another chain: level {index} has other rows")
        if max(entry.places) > _MAX_ROW_PLACES:
            raise ParameterError(
                f"level {index} needs a lattice of 2^-{max(entry.places)}, and 2^-{_MAX_ROW_PLACES} is the"
                " finest: use inputs or weights v with fewer binary places"
            )
        spent += ledger.change * sensitivities[index] / entry.scale
        below += _weight_places(stage)
    if spent > ledger.epsilon:
        raise ParameterError(f"the ledger spends {float(spent):.6g}, more than epsilon {ledger.epsilon}")


def _check_stage(index: int, stage: Stage) -> None:
    if not _weight_range(stage):
        raise ParameterError(f"weights w and v must lie in [0, 1], but those of level {index} do not")
    if not _holds(stage):
        raise ParameterError(
            f"level {index} is no exact factorisation: T - A B - w (1 - v)^T has an entry of "
            f"{float(stage.residual()):.3g}; load a certified artifact or complete the factors"
        )


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
    asked = rational("epsilon", epsilon, above=0)
    chi = rational("change", change, above=0)
    gamma = integer("input_places", input_places, minimum=0, maximum=MAX_PLACES)
    if not chain.is_exact:
        raise ParameterError("noise needs an exact chain: load a certified artifact or complete the factors")
    for index, stage in enumerate(chain.levels):
        _check_stage(index, stage)
    sensitivities = [Fraction(b) for b in chain.level_sensitivities()]
    wanted = [Fraction(s) for s in scales_array(chain, scales).tolist()]
    total = sum((b / s for b, s in zip(sensitivities, wanted, strict=True)), Fraction(0))
    levels, below = [], gamma
    for stage, b, scale in zip(chain.levels, sensitivities, wanted, strict=True):
        least = chi * scale * total / asked  # the smallest scale that keeps to the level's share
        if not Fraction(1, 1 << _RANGE) <= least <= 1 << _RANGE:
            raise ParameterError("change / epsilon must give noise scales between 2^-480 and 2^480")
        levels.append(_level(stage, b, least, chi, below))
        below += _weight_places(stage)
    ledger = Ledger(asked, chi, gamma, tuple(levels))
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
    if not chain.is_exact or len(scales) != len(chain.levels):
        raise ParameterError(f"{len(scales)} noise scales for a chain of {len(chain.levels)} levels")
    levels, below = [], input_places
    sensitivities = chain.level_sensitivities()
    for index, (stage, b, (scale, coarsest)) in enumerate(
        zip(chain.levels, sensitivities, scales, strict=True)
    ):
        places = _row_places(stage, below)
        extra = coarsest - _coarsest(places)
        # checked before any power is taken: refinements only serve scales down to 2^-480
        fits = extra >= 0 and (extra == 0 or coarsest <= _RANGE + MIN_SCALE.bit_length())
        if not fits or not 1 <= scale <= 1 << (_RANGE + coarsest):
            raise ParameterError(f"the noise scale of level {index} is not one of this chain")
        spent = change * Fraction(b) * (1 << coarsest) / scale
        levels.append(LevelLedger(stage.size, Fraction(b), _refined(places, extra), coarsest, scale, spent))
        below += _weight_places(stage)
    ledger = Ledger(epsilon, change, input_places, tuple(levels))
    check_ledger(chain, ledger)
    return ledger


def _coarsest(places: tuple[int, ...]) -> int:
    return min(p for p in places if p >= 0)  # an exact factorisation has a row that is not zero


def _refined(places: tuple[int, ...], extra: int) -> tuple[int, ...]:
    return tuple(p + extra if p >= 0 else -1 for p in places)


def _level(stage: Stage, b: Fraction, least: Fraction, chi: Fraction, below: int) -> LevelLedger:
    places = _row_places(stage, below)
    coarsest = _coarsest(places)
    extra = 0
    while -(-least * (1 << (coarsest + extra)) // 1) < MIN_SCALE:
        extra += 1
    coarsest += extra
    scale_int = int(-(-least * (1 << coarsest) // 1))  # rounded up
    return LevelLedger(
        stage.size, b, _refined(places, extra), coarsest, scale_int, chi * b * (1 << coarsest) / scale_int
    )
