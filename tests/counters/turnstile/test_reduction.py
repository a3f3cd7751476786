"""The conditional reduction around an oracle: exact counts of a domain, with an error injected."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from trilift.counters.turnstile import make_budget
from trilift.counters.turnstile.blueprint import Common
from trilift.counters.turnstile.moment_bounds import median_failure
from trilift.counters.turnstile.reading import Readings
from trilift.counters.turnstile.reduction import LOST_RATE, Reduction, reduction_plan
from trilift.lift.errors import ParameterError
from trilift.stream.keys import simulation_key

T = 240
COMMON = Common(T, 1, None, Fraction(1, 100))


class Oracle:
    """Counts exactly, then errs by a fixed amount. No mechanism: it has no noise."""

    def __init__(self, *, error: float, slack: float, factor: float = 1.0) -> None:
        self.error, self.slack, self.factor = error, slack, factor
        self.digest = bytes(32)
        self.seen: set[int] = set()

    def start(self) -> dict[int, int]:
        return {}

    def advanced(self, held: dict[int, int], prints: Any, signs: Any, *, step: int) -> Any:
        now, counts = dict(held), []
        for item, sign in zip(prints[:, 0].tolist(), signs.tolist(), strict=True):
            self.seen.add(item)
            now[item] = now.get(item, 0) + sign
            counts.append(sum(1 for value in now.values() if value))
        exact = np.array(counts, dtype=float)
        steps = np.arange(step + 1, step + len(counts) + 1)
        return now, Readings(steps, exact + self.error, exact - self.slack, self.factor * exact + self.slack)

    def record(self, held: dict[int, int]) -> Any:
        return sorted(held.items())

    def restored(self, record: Any) -> dict[int, int]:
        return dict(record)


def make(
    *,
    exponent: float | None,
    seed: int = 1,
    universe: int = 1 << 14,
    eta: Any = Fraction(1, 2),
    factor: float = 2.0,
) -> tuple[Reduction, list[tuple[int, Any]]]:
    """Make a reduction of oracles that err by domain^exponent, and the list of what was made."""
    plan = reduction_plan(make_budget(rho=1), universe=universe, eta=eta, common=COMMON)
    made: list[tuple[int, Any]] = []

    def additive(domain: int, budget: Any, purpose: str) -> Oracle:
        error = 0.0 if exponent is None else domain**exponent
        made.append((domain, budget))
        return Oracle(error=error if len(made) % 2 else -error, slack=error)

    bound = Oracle(error=0.0, slack=0.0, factor=factor)
    return Reduction(plan, additive, bound=bound, key=simulation_key(seed), stream_id=bytes(16)), made


def stream() -> tuple[Any, Any, Any]:
    """60 items in, most out again, in again: prints, signs and the number present."""
    rng = np.random.default_rng(2)
    words = rng.integers(0, 2**63, (60, 2)).astype(np.uint64)
    order = np.concatenate([np.arange(60), np.arange(55), np.arange(60)[::-1], np.arange(60), np.arange(5)])[
        :T
    ]
    signs = np.concatenate([np.ones(60), -np.ones(55), np.ones(60), -np.ones(60), np.ones(5)])[:T].astype(int)
    counts = np.zeros(60, dtype=int)
    present = []
    for item, sign in zip(order, signs, strict=True):
        counts[item] += sign
        assert counts[item] >= 0
        present.append(np.count_nonzero(counts))
    return words[order], signs, np.array(present, dtype=float)


def test_budgets_add_up() -> None:
    plan = reduction_plan(make_budget(Fraction(3, 7)), universe=1000, eta=0.25, common=COMMON)
    assert plan.maps == 10 * plan.copies + 1
    assert plan.share.amount * plan.maps + plan.bound.amount == Fraction(3, 7)
    gaussian = reduction_plan(make_budget(rho=2), universe=1000, eta=0.25, common=COMMON)
    assert gaussian.share.amount * gaussian.maps + gaussian.bound.amount == 2
    assert plan.failure == T * median_failure(plan.copies, LOST_RATE) <= 0.01
    assert T * median_failure(plan.copies - 2, LOST_RATE) > 0.01


def test_every_map_has_its_share_and_its_domain() -> None:
    reduction, made = make(exponent=None)
    plan = reduction.plan
    assert [domain for domain, _ in made] == [
        *(1 << i for i in range(plan.levels) for _ in range(plan.copies)),
        plan.universe,
    ]
    assert all(budget == plan.share for _, budget in made)
    prints, signs, _ = stream()
    reduction.advanced(reduction.start(), prints, signs, step=0)
    for (domain, _), part in zip(made, reduction._parts, strict=True):
        assert len(part.seen) <= 60
        if domain < plan.universe:
            assert max(part.seen) < domain
    assert reduction._parts[-1].seen == set(prints[:, 0].tolist())


def test_with_an_exact_oracle_it_is_right_up_to_eta() -> None:
    """5 keys, all steps (failure 0.01 each: all within, false alarm far below 0.05, as bounds are crude)."""
    prints, signs, present = stream()
    for seed in range(5):
        reduction, _ = make(exponent=None, seed=seed)
        _, seen = reduction.advanced(reduction.start(), prints, signs, step=0)
        assert (seen.estimate <= present).all()
        assert (seen.estimate >= 0.75 * present).all()
        assert (seen.low <= present).all()
        assert (present <= seen.high).all()
        assert (reduction.domains(2 * present) < reduction.plan.levels).all()  # not the identity


def test_injected_error_is_that_of_the_domain() -> None:
    """Errors of m^(1/3): the answer is within eta/2 D + m'^(1/3), and the identity's n^(1/3) is not used."""
    prints, signs, present = stream()
    reduction, _ = make(exponent=1 / 3)
    _, seen = reduction.advanced(reduction.start(), prints, signs, step=0)
    sizes = 2.0 ** reduction.domains(2 * present)
    assert (np.abs(seen.estimate - present) <= 0.25 * present + sizes ** (1 / 3) + 1e-9).all()
    assert (seen.low <= present).all()
    assert (present <= seen.high).all()


def test_too_small_domains_fail() -> None:
    """A bound that is 40 times too small (negative control): maps lose most of the items."""
    prints, signs, present = stream()
    reduction, _ = make(exponent=None, factor=1 / 40)
    _, seen = reduction.advanced(reduction.start(), prints, signs, step=0)
    assert seen.estimate[59] < 0.75 * present[59]


def test_small_universes_use_the_identity() -> None:
    reduction, _ = make(exponent=None, universe=64)
    prints, signs, present = stream()
    _, seen = reduction.advanced(reduction.start(), prints, signs, step=0)
    many = 16 * 2 * present / 0.5 > 32
    assert (reduction.domains(2 * present)[many] == reduction.plan.levels).all()
    assert (seen.estimate[many] == present[many]).all()


def test_domains_by_hand() -> None:
    reduction, _ = make(exponent=None)  # eta = 1/2: m' >= 32 D
    assert reduction.domains(np.array([0.0, 1 / 32, 1.0, 1.1, 2.0, 511.0, 513.0])).tolist() == [
        0,
        0,
        5,
        6,
        6,
        14,
        14,
    ]


def test_batches_and_records() -> None:
    prints, signs, _ = stream()
    reduction, _ = make(exponent=0.25)
    whole, seen = reduction.advanced(reduction.start(), prints, signs, step=0)
    half, first = reduction.advanced(reduction.start(), prints[:100], signs[:100], step=0)
    half = reduction.restored(reduction.record(half))
    again, second = reduction.advanced(half, prints[100:], signs[100:], step=100)
    assert again == whole
    assert list(Readings.joined([first, second])) == list(seen)
    with pytest.raises(ValueError, match="not the states"):
        reduction.restored([])


@pytest.mark.parametrize(
    ("options", "message"),
    [({"eta": 1}, "eta"), ({"eta": 0}, "eta"), ({"copies": 2}, "odd"), ({"universe": 0}, "universe")],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        reduction_plan(make_budget(1), **({"universe": 100, "eta": 0.5, "common": COMMON} | options))
