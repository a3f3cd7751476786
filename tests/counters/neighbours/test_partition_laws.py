"""Partitions under the coupling: what coupled ones cost, what is not coupled, and the counters' suprema."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from trilift.counters.edit.coupling import toeplitz_factors
from trilift.counters.edit.rules import SCALE_RATIO, PartRule, SimPartRule
from trilift.counters.neighbours import absorbing_step, all_streams, couple, insert
from trilift.lift.errors import ParameterError
from trilift.stream.toeplitz_factor import toeplitz_root

STEPS = 8
REACH = 400


class Law:
    """Probabilities of the partitions of so many steps, from the law of the discrete Laplace draws."""

    def __init__(self, rule: SimPartRule) -> None:
        u = math.exp(-1 / float(rule.scale))
        z = np.arange(-REACH, REACH + 1)
        pmf = (1 - u) / (1 + u) * u ** np.abs(z)
        self._lengths = []
        for bucket in range(STEPS + 1):
            # one bucket at a time, since the draws of one call are those of consecutive buckets
            lengths = np.array([int(rule.lengths(bucket, [draw])[0]) for draw in z.tolist()])
            self._lengths.append(np.bincount(lengths, weights=pmf))

    def __call__(self, ends: tuple[int, ...]) -> float:
        """Pr[these are the checkpoints up to the last step]."""
        chance, start = 1.0, 0
        for bucket, end in enumerate(ends):
            chance *= self._lengths[bucket][end - start]
            start = end
        return float(chance * self._lengths[len(ends)][STEPS - start + 1 :].sum())


def partitions() -> Iterator[tuple[int, ...]]:
    for count in range(STEPS + 1):
        yield from combinations(range(1, STEPS + 1), count)


@pytest.mark.parametrize(
    "rule",
    [
        SimPartRule(Fraction(1), 2, folded=True),
        SimPartRule(Fraction(3), 3, folded=True),
        SimPartRule(Fraction(1, 3), 4, folded=True),
        SimPartRule(Fraction(3), 2, drift=Fraction(4, 3)),
        SimPartRule(Fraction(8), 2, drift=Fraction(1, 2)),
    ],
    ids=str,
)
def test_cost_and_failure_of_lengths(rule: SimPartRule) -> None:
    """For every place of an insertion and of the absorbing step, both ways, over all partitions of 8 steps.

    With a drift the event is that all raw lengths are 2 or more: only partitions with such buckets count.
    """
    law = Law(rule)
    chances = {ends: law(ends) for ends in partitions()}
    assert sum(chances.values()) == pytest.approx(1)
    failure, cost = math.exp(rule.ln_failure), math.exp(rule.cost)
    worst = ratio = 0.0
    for inserted in range(1, STEPS + 1):
        for absorbed in range(inserted, STEPS + 2):
            for to in ("base", "insertion"):
                lost = 0.0
                for ends, chance in chances.items():
                    try:
                        other = couple(ends, inserted=inserted, absorbed=absorbed, to=to)
                    except ParameterError:
                        lost += chance
                        continue
                    short = 1 in np.diff((0, *ends)) or 1 in np.diff((0, *other.checkpoints))
                    if rule.folded or not short:
                        ratio = max(ratio, chance / chances[other.checkpoints])
                worst = max(worst, lost)
    assert 0 < worst <= failure * (1 + 1e-12)
    assert 1 < ratio <= cost * (1 + 1e-9)


class ThresholdLaw:
    """Probabilities of a bucket's end for constant thresholds and Laplace noise, by quadrature over Z_0."""

    def __init__(self, rule: PartRule) -> None:
        b0, self._b1 = float(rule.scale0), float(rule.scale_t)
        self._level = float(rule.tau) + (grid := np.linspace(-30 * b0, 30 * b0, 6001))
        weights = np.exp(-np.abs(grid) / b0)
        self._weights = weights / weights.sum()
        self._known: dict[tuple[float, ...], tuple[float, float]] = {}

    def __call__(self, items: tuple[float, ...]) -> tuple[float, float]:
        """Pr[a bucket of these items ends with the last one], Pr[it has not ended by then]."""
        if items not in self._known:
            alive = self._weights
            before = alive
            for total in np.cumsum(items):
                y = (self._level - total) / self._b1
                tail = np.exp(-np.abs(y)) / 2
                before, alive = alive, alive * np.where(y >= 0, 1 - tail, tail)  # Pr[Z < y]
            self._known[items] = float((before - alive).sum()), float(alive.sum())
        return self._known[items]

    def chance(self, stream: tuple[float, ...], ends: tuple[int, ...]) -> float:
        cuts = (0, *ends)
        chance = math.prod(self(stream[a:b])[0] for a, b in pairwise(cuts))
        return chance * self(stream[cuts[-1] :])[1]


@pytest.mark.slow
@pytest.mark.parametrize(("b1", "tau"), [(0.6, 2.0), (0.4, 1.5)])
def test_cost_and_failure_of_constant_thresholds(b1: float, tau: float) -> None:
    """All edit neighbours over {0, 1, BOT} of 5 steps, both ways: sum over P of (Pr[P|x] - e^c Pr[P'|x'])+,
    with all of Pr[P|x] where P has no partner, is at most the stated failure.

    Where q <= p + 2, c is 1/b_0 + 1/b_1 for each bucket p .. q, and 1/b_0 for the unfinished one.
    """
    scale_t = Fraction(b1)
    rule = PartRule(Fraction(tau), SCALE_RATIO * scale_t, scale_t)
    law, failure = ThresholdLaw(rule), math.exp(rule.ln_failure)
    start, last = 1 / float(rule.scale0), 1 / b1
    cuts = [ends for count in range(6) for ends in combinations(range(1, 6), count)]
    worst = free = 0.0
    for base in all_streams(5):
        for at, value in product(range(5), (0, 1)):
            new = insert(base, at=at, value=value)
            pair = [tuple(float(item or 0) for item in stream) for stream in (new, base)]
            absorbed = absorbing_step(base, at=at) + 1
            for to, (here, there) in (("base", pair), ("insertion", pair[::-1])):
                excess = without = 0.0
                for ends in cuts:
                    chance = law.chance(here, ends)
                    try:
                        other = couple(ends, inserted=at + 1, absorbed=absorbed, to=to)
                    except ParameterError:
                        excess, without = excess + chance, without + chance
                        continue
                    partner = law.chance(there, other.checkpoints)
                    changed = other.last - other.first + 1
                    finished = changed - (other.last == len(ends) + 1)
                    cost = start * changed + last * finished if changed <= 3 else float(rule.cost)
                    excess += max(0.0, chance - math.exp(cost) * partner)
                    without += max(0.0, chance - partner)
                worst, free = max(worst, excess), max(free, without)
    assert 0 < worst <= failure < 1
    assert free > failure  # without the cost it would not hold


@pytest.mark.parametrize("size", [1, 2, 3, 5, 15, 16, 17, 33, 64])
def test_suprema_of_the_square_root(size: int) -> None:
    """All buckets p <= q and all corners of X, a, b for the dyadic square root, by its matrix."""
    c = toeplitz_root(size).astype(np.float64)
    c /= c[0]
    R = np.zeros((size, size + 1))  # what follows the last column is never released
    for column in range(size):
        R[column:, column] = c[: size - column]
    unit, counts, times = float(c @ c), 0.0, 0.0
    for p in range(size):
        for q in range(p, size + 1):
            for X in (0, 1):
                for a in (0, 1):
                    for b in (0, 1):
                        moved = X * R[:, p]
                        if q > p:
                            moved = moved + a * (R[:, p + 1] - R[:, p])
                        if q > p + 1:
                            moved = moved + b * (R[:, q] - R[:, q - 1])
                        counts = max(counts, float(moved @ moved))
            if q >= p + 3:
                gap = R[:, p + 1] - R[:, q - 1]
                times = max(times, float(gap @ gap))
    factors = toeplitz_factors(size)
    assert counts / unit <= float(factors.counts) * (1 + 1e-12)
    assert times / unit <= float(factors.times) * (1 + 1e-12)
    if size >= 5:  # and they are no coarse bounds
        assert float(factors.counts) < 1.35 * counts / unit
        assert float(factors.times) < 1.5 * times / unit
