"""Levels of a ledger: row lattices, integer scales on them, and what they charge, for either norm.

Shared by the ledgers of Laplace noise (norm "l1", :mod:`trilift.stream.ledger`) and of Gaussian noise (norm
"l2", :mod:`trilift.stream.gaussian_ledger`); the theorems are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any, Protocol

import numpy as np
from trilift.lift.chain import Chain
from trilift.lift.costs import scales_array
from trilift.lift.dyadic import Dyadic, binary_places
from trilift.lift.errors import ParameterError
from trilift.lift.stage import Stage

__all__ = [
    "MAX_PLACES",
    "MIN_SCALE",
    "ChainLedger",
    "LevelLedger",
    "check_levels",
    "levels_text",
    "restore_levels",
    "split_budget",
]

MIN_SCALE = 1 << 10
"""Smaller scales go on a finer lattice, so that rounding them up costs less than 0.1 % of the budget."""

MAX_PLACES = 256
"""Most binary places of an input or an output lattice."""

_RANGE = 480  # level scales stay within 2^-480 .. 2^480, so that their squares fit floats
_MAX_ROW_PLACES = 540  # finer row lattices could underflow in the float path; draws that overflow are refused
_ROOT_BITS = 64


@dataclass(frozen=True)
class LevelLedger:
    """What one level spends and how its noise is drawn.

    Attributes:
        size: steps in a block.
        sensitivity: what the level charges, exact: b_l, and under the l2 norm its square.
        places: lambda_i for every row of B, in order (a zero row has none and is not measured: -1).
        coarsest: least lambda_i over the measured rows, plus the refinement of small scales.
        scale_int: sigma_l, the integer scale on the lattice 2^-coarsest.
        spent: chi b_l / s_l, exact; under the l2 norm chi^2 b_l^2 / s_l^2.
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


def levels_text(levels: Sequence[LevelLedger]) -> list[str]:
    """Return one line a level, for the table of a ledger."""
    return [
        f"  level {index}: size {level.size}, sensitivity {float(level.sensitivity):.6g}, "
        f"noise scale {float(level.scale):.6g}, spends {float(level.spent):.6g}"
        for index, level in enumerate(levels)
    ]


class ChainLedger(Protocol):
    """What a ledger of any norm offers to the noise of a chain."""

    @property
    def change(self) -> Fraction:
        """chi, the largest change of one input between neighbours."""
        ...

    @property
    def input_places(self) -> int:
        """gamma; inputs lie on the lattice 2^-gamma."""
        ...

    @property
    def levels(self) -> tuple[LevelLedger, ...]:
        """One entry a level, finest first."""
        ...

    @property
    def scales(self) -> tuple[Fraction, ...]:
        """Noise scales s_l, finest first."""
        ...


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


def _charge(norm: str, change: Fraction, sensitivity: Fraction, scale: Fraction) -> Fraction:
    ratio = change / scale
    return sensitivity * (ratio if norm == "l1" else ratio * ratio)


def check_levels(chain: Chain, ledger: ChainLedger, *, norm: str) -> Fraction:
    """Prove that a ledger's levels are about this chain, and return what they spend together, exactly.

    Checked are every stage's factorisation and weights and every row's lattice; the sum is taken from the
    chain's own numbers.

    Raises:
        ParameterError: which of these fails.
    """
    if not chain.is_exact:
        raise ParameterError("noise needs an exact chain: load a certified artifact or complete the factors")
    if len(chain.levels) != len(ledger.levels):
        raise ParameterError(f"a chain of {len(chain.levels)} levels, but a ledger of {len(ledger.levels)}")
    spent, below = Fraction(0), ledger.input_places
    charges = chain.level_charges(norm=norm)
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
        spent += _charge(norm, ledger.change, Fraction(charges[index]), entry.scale)
        below += _weight_places(stage)
    return spent


def _check_stage(index: int, stage: Stage) -> None:
    if not _weight_range(stage):
        raise ParameterError(f"weights w and v must lie in [0, 1], but those of level {index} do not")
    if not _holds(stage):
        raise ParameterError(
            f"level {index} is no exact factorisation: T - A B - w (1 - v)^T has an entry of "
            f"{float(stage.residual()):.3g}; load a certified artifact or complete the factors"
        )


def split_budget(
    chain: Chain,
    budget: Fraction,
    *,
    scales: Any,
    change: Fraction,
    input_places: int,
    norm: str,
    budget_text: str,
) -> tuple[LevelLedger, ...]:
    """Return the levels whose scales have the wanted proportions and spend the budget, rounded up.

    Args:
        chain: an exact chain.
        budget: epsilon under the l1 norm, mu under the l2 norm.
        scales: wanted level scales up to a common factor, floats.
        change: chi.
        input_places: gamma.
        norm: "l1" or "l2".
        budget_text: what the budget is called in an error.

    Raises:
        ParameterError: a chain that is no exact factorisation, or noise scales beyond 2^480 or below 2^-480.
    """
    if not chain.is_exact:
        raise ParameterError("noise needs an exact chain: load a certified artifact or complete the factors")
    for index, stage in enumerate(chain.levels):
        _check_stage(index, stage)
    charges = [Fraction(b) for b in chain.level_charges(norm=norm)]
    wanted = [Fraction(s) for s in scales_array(chain, scales).tolist()]
    power = 1 if norm == "l1" else 2
    total = sum((b / s**power for b, s in zip(charges, wanted, strict=True)), Fraction(0))
    stretch = change * (total if norm == "l1" else _root_up(total)) / budget
    levels, below = [], input_places
    for stage, b, scale in zip(chain.levels, charges, wanted, strict=True):
        least = scale * stretch  # the smallest scale that keeps to the level's share
        if not Fraction(1, 1 << _RANGE) <= least <= 1 << _RANGE:
            raise ParameterError(f"change / {budget_text} must give noise scales between 2^-480 and 2^480")
        levels.append(_level(stage, b, least, change=change, below=below, norm=norm))
        below += _weight_places(stage)
    return tuple(levels)


def restore_levels(
    chain: Chain, scales: Sequence[tuple[int, int]], *, change: Fraction, input_places: int, norm: str
) -> tuple[LevelLedger, ...]:
    """Make the levels again that have these (scale_int, coarsest): no float takes part, nothing is chosen.

    Raises:
        ParameterError: scales that are none of this chain's.
    """
    if not chain.is_exact or len(scales) != len(chain.levels):
        raise ParameterError(f"{len(scales)} noise scales for a chain of {len(chain.levels)} levels")
    levels, below = [], input_places
    charges = chain.level_charges(norm=norm)
    for index, (stage, b, (scale, coarsest)) in enumerate(zip(chain.levels, charges, scales, strict=True)):
        places = _row_places(stage, below)
        extra = coarsest - _coarsest(places)
        # checked before any power is taken: refinements only serve scales down to 2^-480
        fits = extra >= 0 and (extra == 0 or coarsest <= _RANGE + MIN_SCALE.bit_length())
        if not fits or not 1 <= scale <= 1 << (_RANGE + coarsest):
            raise ParameterError(f"the noise scale of level {index} is not one of this chain")
        spent = _charge(norm, change, Fraction(b), Fraction(scale, 1 << coarsest))
        levels.append(LevelLedger(stage.size, Fraction(b), _refined(places, extra), coarsest, scale, spent))
        below += _weight_places(stage)
    return tuple(levels)


def _root_up(value: Fraction) -> Fraction:
    """Return a rational at least the square root, within relative 2^-60 of it."""
    shift = max(0, _ROOT_BITS + (value.denominator.bit_length() - value.numerator.bit_length()) // 2)
    return Fraction(isqrt(-(-(value.numerator << (2 * shift)) // value.denominator)) + 1, 1 << shift)


def _coarsest(places: tuple[int, ...]) -> int:
    return min(p for p in places if p >= 0)  # an exact factorisation has a row that is not zero


def _refined(places: tuple[int, ...], extra: int) -> tuple[int, ...]:
    return tuple(p + extra if p >= 0 else -1 for p in places)


def _level(
    stage: Stage, b: Fraction, least: Fraction, *, change: Fraction, below: int, norm: str
) -> LevelLedger:
    places = _row_places(stage, below)
    coarsest = _coarsest(places)
    extra = 0
    while -(-least * (1 << (coarsest + extra)) // 1) < MIN_SCALE:
        extra += 1
    coarsest += extra
    scale_int = int(-(-least * (1 << coarsest) // 1))  # rounded up
    spent = _charge(norm, change, b, Fraction(scale_int, 1 << coarsest))
    return LevelLedger(stage.size, b, _refined(places, extra), coarsest, scale_int, spent)
