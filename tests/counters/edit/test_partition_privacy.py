"""The partitions of edit neighbours, all of them, with exact probabilities: what the rules say they cost.

Partitions P of x go to partitions of x' as in the coupling: with i in bucket p and j in bucket q,
checkpoints p+1 .. q-2 move by one step, earlier from the insertion x to x', later back. For every pair of
neighbours the sum over P of max(0, Pr[P | x] - e^cost Pr[P' | x']), where there is no P' of all of Pr[P | x],
is at most the failure that the rule claims.
"""

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from trilift.counters.edit.rules import PartRule, SimPartRule
from trilift.counters.edit.svt import SVTRule, ceil_log

Cuts = tuple[int, ...]  # checkpoints, steps from 1


def partitions(length: int) -> list[Cuts]:
    return [c for k in range(length + 1) for c in itertools.combinations(range(1, length + 1), k)]


def moved(cuts: Cuts, i: int, j: int, *, by: int) -> Cuts | None:
    """Return the partner of a partition, or None if a bucket would vanish."""
    p = sum(cut < i for cut in cuts) + 1
    q = sum(cut < j for cut in cuts) + 1
    other = [cut + by * (p + 1 <= l <= q - 2) for l, cut in enumerate(cuts, start=1)]
    ends = [0, *other]
    return tuple(other) if all(a < b for a, b in itertools.pairwise(ends)) else None


def excess(
    here: dict[Cuts, float], there: dict[Cuts, float], i: int, j: int, *, by: int, cost: float
) -> float:
    total = 0.0
    for cuts, p in here.items():
        partner = moved(cuts, i, j, by=by)
        q = 0.0 if partner is None else there[partner]
        total += max(0.0, p - math.exp(cost) * q * (1 + 1e-9))
    return total


def test_the_map_is_one_to_one() -> None:
    for i, j in itertools.combinations(range(1, 9), 2):
        for by in (-1, 1):
            partners = [moved(cuts, i, j, by=by) for cuts in partitions(7)]
            defined = [cuts for cuts in partners if cuts is not None]
            assert len(set(defined)) == len(defined)


# -- lengths that read no data ----------------------------------------------------------------------------


def length_law(rule: SimPartRule, bucket: int) -> np.ndarray:
    u = math.exp(-1 / rule.scale)
    reach, nominal = int(40 * rule.scale) + 1, int(rule.nominal(bucket, bucket + 1)[0])
    out = np.zeros(2 * reach + nominal + 2)
    for z in range(-reach, reach + 1):
        raw = nominal + z
        out[raw if raw >= 1 else 1 - raw if rule.folded else 1] += (1 - u) / (1 + u) * u ** abs(z)
    return out


def simpart_law(rule: SimPartRule, length: int) -> dict[Cuts, float]:
    laws = [length_law(rule, bucket) for bucket in range(length + 1)]
    out = {}
    for cuts in partitions(length):
        gaps = np.diff([0, *cuts]).tolist()
        p = math.prod(float(laws[l][gap]) for l, gap in enumerate(gaps))
        rest = length - (cuts[-1] if cuts else 0)
        out[cuts] = p * float(laws[len(gaps)][rest + 1 :].sum())
    return out


@pytest.mark.parametrize(
    "rule",
    [
        SimPartRule(Fraction(1), 3, folded=True),
        SimPartRule(Fraction(1), 1, folded=True),
        SimPartRule(Fraction(3), 2, folded=True),
        SimPartRule(Fraction(5), 2, folded=True),
        SimPartRule(Fraction(1, 2), 4, folded=True),
        SimPartRule(Fraction(3), 3, Fraction(4, 3)),
        SimPartRule(Fraction(2), 4, Fraction(2)),
    ],
)
def test_simpart_costs_what_its_rule_says(rule) -> None:
    length, worst = 9, 0.0
    law = simpart_law(rule, length)
    assert sum(law.values()) == pytest.approx(1, abs=1e-9)
    for i in range(1, length + 1):
        for j in range(i, length + 2):
            for by in (-1, 1):
                worst = max(worst, excess(law, law, i, j, by=by, cost=float(rule.cost)))
    assert worst <= math.exp(rule.ln_failure) * (1 + 1e-9)
    assert worst >= math.exp(rule.ln_failure) / (3 if rule.folded else 200)  # the bound is not idle


def test_a_smaller_cost_would_be_seen() -> None:
    rule = SimPartRule(Fraction(3), 2, folded=True)
    law = simpart_law(rule, 9)
    pairs = [(i, j) for i in range(1, 10) for j in range(i, 11)]
    assert max(excess(law, law, i, j, by=1, cost=0.8 * 3) for i, j in pairs) > math.exp(rule.ln_failure)


# -- buckets by events -------------------------------------------------------------------------------------


def below(k: np.ndarray, scale: int) -> np.ndarray:
    u = math.exp(-1 / scale)
    k = k.astype(np.float64)
    return np.where(k <= 0, u ** np.maximum(1 - k, 0), 1 + u - u ** np.maximum(k, 0)) / (1 + u)


@cache
def run_law(rule: SVTRule, threshold: int, inputs: tuple[int, ...]) -> tuple[np.ndarray, float]:
    """(Pr[TOP at t] for t = 1 .. k, Pr[no TOP]) of a run over inputs of 0 or 1."""
    z0 = np.arange(-40 * rule.origin_scale, 40 * rule.origin_scale + 1)
    u = math.exp(-1 / rule.origin_scale)
    alive = (1 - u) / (1 + u) * u ** np.abs(z0).astype(np.float64)
    tops = []
    for t, v in enumerate(itertools.accumulate(inputs), start=1):
        gap = threshold + int(rule.drift(t)) + z0 - v * rule.unit
        tops.append(float(np.sum(alive * below(1 - gap, rule.step_scale))))
        alive = alive * below(gap, rule.step_scale)
    return np.array(tops), float(alive.sum())


def part_law(rule: SVTRule, starts: list[int], inputs: tuple[int, ...]) -> dict[Cuts, float]:
    n = len(inputs)
    out = {}
    for cuts in partitions(n):
        p, begin = 1.0, 0
        for l, cut in enumerate(cuts):
            p *= run_law(rule, starts[l], inputs[begin:])[0][cut - begin - 1]
            begin = cut
        out[cuts] = p * run_law(rule, starts[len(cuts)], inputs[begin:])[1]
    return out


def inserted(stream: tuple[int | None, ...], i: int, value: int) -> tuple[tuple[int | None, ...], int]:
    """Return (x, j): insert before step i, up to the first BOT at or after it."""
    n = len(stream)
    j = next((t for t in range(i, n + 1) if stream[t - 1] is None), n + 1)
    kept = list(stream)
    return (*kept[: i - 1], value, *kept[i - 1 : min(j, n) - 1], *kept[j:]), j


def worst_excess(rule: SVTRule, starts: list[int], cost: float, length: int) -> float:
    worst = 0.0
    for stream in itertools.product((0, 1, None), repeat=length):
        law = part_law(rule, starts, tuple(x or 0 for x in stream))
        for i in range(1, length + 1):
            for value in (0, 1):
                x, j = inserted(stream, i, value)
                assert len(x) == length
                law_x = part_law(rule, starts, tuple(a or 0 for a in x))
                worst = max(worst, excess(law_x, law, i, j, by=-1, cost=cost))
                worst = max(worst, excess(law, law_x, i, j, by=1, cost=cost))
    return worst


RULES = [
    PartRule(Fraction(2), Fraction(1, 4), Fraction(7, 24)),
    PartRule(Fraction(3, 2), Fraction(1, 8), Fraction(1, 4)),
    PartRule(Fraction(2), Fraction(1, 2), Fraction(1)),
    PartRule(Fraction(3, 2), Fraction(1, 6), Fraction(1, 3)),
    PartRule(Fraction(5, 2), Fraction(1, 4), Fraction(1, 2), Fraction(2), Fraction(2, 3), 1),  # with drifts
]


@pytest.mark.parametrize("part", RULES)
def test_part_costs_what_its_rule_says(part) -> None:
    """All streams of 5 steps over {0, 1, BOT}, all insertions, both directions, on a lattice of 24 points."""
    rule = SVTRule.of_scales(
        part.scale0, scale_t=part.scale_t, factor=part.clock_drift, offset=part.shift, lattice_places=3
    )
    assert rule.origin_scale == part.scale0 * rule.unit
    assert rule.step_scale == part.scale_t * rule.unit
    drifts = [int(ceil_log(part.bucket_drift * rule.unit, l)) for l in range(1, 7)]
    starts = [math.ceil(rule.unit * part.tau) + drift + 2 for drift in drifts]
    worst = worst_excess(rule, starts, float(part.cost), 5)
    assert worst <= math.exp(part.ln_failure)
    if not part.bucket_drift:  # the union over all buckets is idle in so short a stream
        assert worst >= math.exp(part.ln_failure) / 20
