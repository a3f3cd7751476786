"""Correlated noise from chosen draws: equivariance, rounding, and the two ways to the same integers."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from functools import partial
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.artifacts import load_stage
from trilift.lift.chain import Chain
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import ParameterError
from trilift.lift.stage import Stage
from trilift.stream.evaluate import Evaluator
from trilift.stream.ledger import make_ledger

EPSILONS = (Fraction(1), Fraction(22, 7), Fraction(1, 1000), Fraction(10**6))
KINDS = ("zero", "noise", "half", "huge")


def shipped(*names: str) -> Chain:
    *stages, top = [load_stage(name) for name in names]
    return Chain(top, stages)


def equivariance_failures(lab, chain, ledger, source, *, d, places, rounding) -> list[int]:
    """Steps at which rounding(source + R d) differs from rounding(source) + T d (in units of h)."""
    before = rounding(source)
    after = rounding(source.plus(lab.measured(chain, ledger, d)))
    shift = lab.sums(d, places)
    return [t for t in range(len(d)) if int(after[t]) - int(before[t]) != shift[t]]


def by_evaluator(chain, ledger, n, places, inflate):
    return lambda source: Evaluator(chain, ledger, source).rounded(
        np.arange(n), places=places, inflate=inflate
    )


def random_inputs(seed: int, n: int, size: int, places: int) -> list[Fraction]:
    random = Random(seed)
    return [Fraction(random.randint(-(1 << size), 1 << size), 1 << places) for _ in range(n)]


def check_equivariance(lab, *, seed, epsilon, gamma, finer, kind, size, forced, ties, part) -> None:
    chain, ledger = lab.case(seed, epsilon, gamma, ties)
    n = max(1, round(part * chain.capacity))
    source = lab.random_draws(ledger, lab.blocks(chain), seed, kind)
    d = random_inputs(seed, n, size, gamma)
    rounding = by_evaluator(chain, ledger, n, gamma + finer, 1.0 if forced else 0.0)
    assert (
        equivariance_failures(lab, chain, ledger, source, d=d, places=gamma + finer, rounding=rounding) == []
    )


choices = {
    "seed": st.integers(0, 150),
    "epsilon": st.sampled_from(EPSILONS),
    "gamma": st.sampled_from((0, 0, 1, 5)),
    "finer": st.sampled_from((0, 0, 1, 8)),
    "kind": st.sampled_from(KINDS),
    "size": st.sampled_from((0, 3, 40, 80)),
    "ties": st.booleans(),
    "part": st.sampled_from((1.0, 1.0, 0.6, 0.3)),
}


@settings(max_examples=700, deadline=None)
@given(**choices)
def test_noise_moves_with_the_inputs(lab, **choice) -> None:
    """noise(z + R d) = noise(z) + T d at every step, for every integer d: what makes releases private.

    ``measured`` also asserts that R d lies on each row's own lattice.
    """
    check_equivariance(lab, forced=False, **choice)


@settings(max_examples=400, deadline=None)
@given(**choices)
def test_noise_moves_with_the_inputs_by_the_integer_path(lab, **choice) -> None:
    """The same with every step decided by integers."""
    check_equivariance(lab, forced=True, **choice)


def half_even(x: Fraction) -> int:
    return round(x)


def truncated(x: Fraction) -> int:
    return int(x + Fraction(1, 2)) if x >= 0 else -int(-x + Fraction(1, 2))


def half_toward_zero(x: Fraction) -> int:
    return math.trunc(x + Fraction(1, 2))


def floor_rule(x: Fraction) -> int:
    return math.floor(x + Fraction(1, 2))


def tied_cases(lab, count: int = 60):
    for seed in range(count):
        chain, ledger = lab.case(seed, Fraction(1), 0, True)
        source = lab.random_draws(ledger, lab.blocks(chain), seed, "half")
        yield chain, ledger, source, random_inputs(seed, chain.capacity, 3, 0)


def test_exact_ties_are_met_and_kept(lab) -> None:
    """Hundreds of exact ties of both signs, and the same check passes at every step."""
    ties = [0, 0]
    for chain, ledger, source, d in tied_cases(lab):
        exact = [lab.noise(chain, ledger, source, t) for t in range(len(d))]
        for value in exact:
            ties[value < 0] += (value + Fraction(1, 2)).denominator == 1
        for inflate in (0.0, 1.0):
            rounding = by_evaluator(chain, ledger, len(d), 0, inflate)
            assert rounding(source).tolist() == [floor_rule(value) for value in exact]
            assert equivariance_failures(lab, chain, ledger, source, d=d, places=0, rounding=rounding) == []
    assert min(ties) > 100


@pytest.mark.parametrize("rule", [half_even, truncated, half_toward_zero])
def test_other_roundings_do_not_move_with_the_inputs(lab, rule) -> None:
    """Negative control: the check fails for the roundings that leak, and passes for the right one."""

    def failures(rounding_rule) -> int:
        total = 0
        for chain, ledger, source, d in tied_cases(lab, 20):
            rounding = partial(lab.rounded_by, rounding_rule, chain, ledger, steps=len(d))
            total += len(equivariance_failures(lab, chain, ledger, source, d=d, places=0, rounding=rounding))
        return total

    assert failures(floor_rule) == 0
    assert failures(rule) > 10


@pytest.mark.parametrize("inflate", [0.0, 1.0])
@pytest.mark.parametrize("z", [-5, -3, -1, 1, 3, 5, -4, 4, 0])
def test_ties_of_a_single_step_go_up(lab, z, inflate) -> None:
    """T_1 with N = z / 2: floor(z / 2 + 1 / 2), also below zero."""
    one = Dyadic([[1]])
    chain = Chain(Stage.plain(one, one))
    ledger = lab.ledger(chain)
    places = ledger.levels[0].places[0]
    source = lab.Chosen([1], {(0, 0): [z << (places - 1)]})
    rounded = Evaluator(chain, ledger, source).rounded(np.arange(1), places=0, inflate=inflate)
    assert rounded.tolist() == [(z + 1) // 2]


@pytest.mark.parametrize(
    "names",
    [
        ("stage-mean-9", "direct-mean-4"),
        ("stage-max-9", "stage-mean-9", "direct-max-4"),
        ("stage-mean-17", "stage-max-9", "direct-mean-4"),
    ],
)
def test_shipped_chains_move_with_the_inputs(lab, names) -> None:
    """Equivariance on certified artifacts, their 40-bit lattices included, at truncated horizons."""
    chain = shipped(*names)
    for seed, (gamma, finer, kind) in enumerate([(0, 0, "noise"), (3, 6, "noise"), (0, 0, "half")]):
        ledger = lab.ledger(chain, EPSILONS[seed], input_places=gamma)
        n = min(chain.capacity - seed, 150)
        source = lab.random_draws(ledger, [n // 9 + 3] * len(names), seed, kind)
        d = random_inputs(seed, n, 20, gamma)
        rounding = by_evaluator(chain, ledger, n, gamma + finer, float(seed == 2))
        assert (
            equivariance_failures(lab, chain, ledger, source, d=d, places=gamma + finer, rounding=rounding)
            == []
        )


# -- the definition, and the two paths ----------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_exact_noise_is_the_definition(lab, seed) -> None:
    chain, ledger = lab.case(seed, Fraction(1), 0, seed % 2 == 0)
    source = lab.random_draws(ledger, lab.blocks(chain), seed, "noise")
    evaluator = Evaluator(chain, ledger, source)
    for t in range(chain.capacity):
        num, places = evaluator.exact(t)
        assert Fraction(num, 1 << places) == lab.noise(chain, ledger, source, t)


def worst_error(evaluator: Evaluator, steps) -> tuple[Fraction, Fraction]:
    """Largest true error of the floats, and the bound they come with."""
    values, bound = evaluator.floats(steps)
    exact = [evaluator.exact(int(t)) for t in steps]
    errors = [abs(Fraction(x) - Fraction(num, 1 << own)) for x, (num, own) in zip(values, exact, strict=True)]
    return max(errors), Fraction(bound)


@pytest.mark.parametrize("seed", range(80))
def test_error_bound_holds_where_everything_cancels(lab, seed) -> None:
    """Draws z = R d with alternating huge d: N = T d is small while all terms are huge.

    An input at the first step alone keeps N = 1 against terms of 2^200.
    """
    chain, ledger = lab.case(seed, Fraction(1), 0, seed % 2 == 0)
    big = (1 << (3 * seed)) + seed
    d = [Fraction((-1) ** t * big if t + 1 < chain.capacity or t % 2 else 1) for t in range(chain.capacity)]
    counts = [len(entry.measured) for entry in ledger.levels]
    source = lab.Chosen(counts, lab.measured(chain, ledger, d))
    evaluator = Evaluator(chain, ledger, source)
    steps = np.arange(chain.capacity)
    error, bound = worst_error(evaluator, steps)
    assert error <= bound
    assert evaluator.rounded(steps, places=0).tolist() == lab.sums(d, 0)


def ill_conditioned(lab, rng, levels: int) -> Chain:
    stages = [lab.integral(rng, 4, moves=25) for _ in range(levels - 1)]
    return Chain(lab.integral(rng, 4, plain=True, moves=25), stages)


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_error_bound_is_neither_loose_nor_vacuous(lab, levels) -> None:
    """Ill-conditioned integer stages: true errors come within 2^8 of the bound, and never past it."""
    closest = Fraction(0)
    for seed in range(30):
        chain = ill_conditioned(lab, np.random.default_rng(seed), levels)
        ledger = lab.ledger(chain, Fraction(1, 3))
        source = lab.random_draws(ledger, lab.blocks(chain), seed, "huge")
        error, bound = worst_error(Evaluator(chain, ledger, source), np.arange(chain.capacity))
        assert error <= bound
        closest = max(closest, error / bound)
    assert closest > Fraction(1, 1 << 8)


def test_error_bound_carries_the_error_of_the_level_above(lab) -> None:
    """Only the top has draws, and they cancel: its noise is small, its error large.

    The level beneath it learns of that from nothing but the bound of the level above.
    """
    largest = Fraction(0)
    for seed in range(30):
        chain = ill_conditioned(lab, np.random.default_rng(seed), 2)
        ledger = lab.ledger(chain, Fraction(1, 3))
        d = random_inputs(seed, 4, 75, 0)
        top = dataclasses.replace(ledger, levels=ledger.levels[1:])
        image = lab.measured(Chain(chain.top), top, d)[0, 0]
        shift = ledger.levels[1].coarsest - top.levels[0].coarsest
        counts = [len(entry.measured) for entry in ledger.levels]
        source = lab.Chosen(counts, {(1, 0): [x << shift for x in image]})
        evaluator, steps = Evaluator(chain, ledger, source), np.arange(chain.capacity)
        error, bound = worst_error(evaluator, steps)
        assert error <= bound
        values, _ = evaluator.floats(steps)
        largest = max(largest, error / Fraction(np.abs(values).max()))
    assert largest > Fraction(64, 1 << 53)  # 64 units of rounding of the result: it did cancel


LONG = ("stage-mean-17", "stage-max-9", "direct-mean-16")


@pytest.mark.parametrize(("epsilon", "input_places", "places"), [(1, 0, 0), (1e-3, 0, 0), (10, 4, 12)])
def test_both_paths_agree_on_shipped_chains(lab, epsilon, input_places, places) -> None:
    """2448 steps by floats and by integers; the floats are good to 2^-35 standard deviations."""
    chain = shipped(*LONG)
    ledger = lab.ledger(chain, epsilon, input_places=input_places)
    keyed, rows = lab.Keyed(ledger, 1), {}
    for level, count in enumerate((chain.capacity // 17 + 1, 17, 1)):
        batch = keyed.draws(level, np.arange(count))
        rows |= {(level, block): batch.block(block) for block in range(count)}
    source = lab.Chosen([len(entry.measured) for entry in ledger.levels], rows)
    steps = np.arange(chain.capacity)
    keyed_values, keyed_bound = Evaluator(chain, ledger, keyed).floats(steps)
    values, bound = Evaluator(chain, ledger, source).floats(steps)
    assert np.abs(keyed_values - values).max() <= keyed_bound + bound
    assert bound < 2.0**-35 * values.std()
    fast = Evaluator(chain, ledger, keyed).rounded(steps, places=places)
    forced = Evaluator(chain, ledger, source).rounded(steps, places=places, inflate=1.0)
    assert fast.dtype == np.int64
    assert fast.tolist() == forced.tolist()


@pytest.mark.parametrize("inflate", [1e-3, 0.1, 0.4999, 1e30])
def test_a_partly_forced_path_gives_the_same(lab, inflate) -> None:
    chain, ledger = lab.case(7, Fraction(1), 0, False)
    source = lab.random_draws(ledger, lab.blocks(chain), 7, "noise")
    evaluator, steps = Evaluator(chain, ledger, source), np.arange(chain.capacity)
    plain = evaluator.rounded(steps, places=3)
    assert evaluator.rounded(steps, places=3, inflate=inflate).tolist() == plain.tolist()


class Counting(Evaluator):
    """Counts the steps that integers decide."""

    def __init__(self, *args) -> None:
        super().__init__(*args)
        self.asked = 0

    def exact(self, step):
        self.asked += 1
        return super().exact(step)


def test_integers_decide_only_where_floats_cannot(lab) -> None:
    chain = shipped("stage-mean-9", "direct-mean-4")
    ledger = lab.ledger(chain)
    evaluator, steps = Counting(chain, ledger, lab.Keyed(ledger, 2)), np.arange(chain.capacity)
    evaluator.rounded(steps, places=0)
    assert evaluator.asked == 0
    evaluator.rounded(steps, places=0, inflate=1.0)
    assert evaluator.asked == chain.capacity


@pytest.mark.parametrize("shift", [61, 62, 63, 64, 300])
@pytest.mark.parametrize("sign", [-1, 1])
def test_values_past_int64_are_python_integers(lab, shift, sign) -> None:
    """One step is huge, the others small; nothing wraps and nothing loses a digit."""
    one = Dyadic(np.eye(2, dtype=np.int64))
    chain = Chain(Stage.plain(Dyadic([[1, 0], [1, 1]]), one))
    ledger = lab.ledger(chain)
    places = ledger.levels[0].places[0]
    big = sign * ((1 << shift) - 1)
    source = lab.Chosen([2], {(0, 0): [3 << places, big << places]})
    result = Evaluator(chain, ledger, source).rounded(np.arange(2), places=0)
    assert result.tolist() == [3, big + 3]
    assert result.dtype == (object if abs(big + 3) >= 1 << 62 else np.int64)


def test_scattered_steps_equal_a_range(lab) -> None:
    """A range uses one product for whole blocks, scattered steps a row each."""
    chain = shipped("stage-mean-9", "stage-max-9", "direct-mean-8")
    ledger = lab.ledger(chain)
    evaluator = Evaluator(chain, ledger, lab.Keyed(ledger, 3))
    whole = evaluator.rounded(np.arange(chain.capacity), places=10)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        some = np.sort(rng.choice(chain.capacity, size=1 + 20 * seed, replace=False))
        assert evaluator.rounded(some, places=10).tolist() == whole[some].tolist()


def test_noise_past_the_range_of_floats_is_refused(lab) -> None:
    one = Dyadic([[1]])
    chain = Chain(Stage.plain(one, one))
    ledger = lab.ledger(chain)
    source = lab.Chosen([1], {(0, 0): [1 << 1000]})
    with pytest.raises(ParameterError, match="range of floats"), np.errstate(over="ignore"):
        Evaluator(chain, ledger, source).rounded(np.arange(1), places=200)


def test_a_ledger_of_another_depth_is_refused(lab) -> None:
    chain = shipped("stage-mean-9", "direct-mean-4")
    ledger = make_ledger(chain, 1, scales=[1, 1])
    with pytest.raises(ParameterError, match="another chain"):
        Evaluator(Chain(chain.top), ledger, lab.Keyed(ledger, 1))
