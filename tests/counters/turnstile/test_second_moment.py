"""The counter of second moments: its intervals, budgets, options, states."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trilift.counters.turnstile import SecondMoment
from trilift.counters.turnstile.internals import linear, replace_bank
from trilift.lift.errors import HorizonError, ParameterError, ReplayError
from trilift.stream.keys import simulation_key

T, EVERY, RUNS = 600, 60, 40
SMALL: dict[str, Any] = {"horizon": 60, "rho": 1, "simulation_seed": 9, "rows": 3, "buckets": 8}

Stream = tuple[list[int], list[int]]


def one_item() -> Stream:
    return [7] * T, [1] * T


def unit() -> Stream:
    return list(range(T // 2)) * 2, [1] * (T // 2) + [-1] * (T // 2)


def random_signs() -> Stream:
    rng = np.random.default_rng(8)
    return rng.integers(0, 40, T).tolist(), rng.choice([-1, 1], T).tolist()


def below_zero() -> Stream:
    return [k % 5 for k in range(T)], [-1] * T


STREAMS = {"one item": one_item, "unit": unit, "random signs": random_signs, "below zero": below_zero}


def truth(stream: Stream) -> Any:
    counts: dict[int, int] = {}
    total, values = 0, []
    for step, (item, sign) in enumerate(zip(*stream, strict=True), 1):
        before = counts.get(item, 0)
        counts[item] = before + sign
        total += (before + sign) ** 2 - before**2
        if step % EVERY == 0:
            values.append(total)
    return np.array(values, dtype=float)


class Scaled:
    """Noise that is too large."""

    def __init__(self, bank: Any, factor: int) -> None:
        self._bank, self._factor = bank, factor
        self.digest = bank.digest

    def at(self, steps: Any) -> Any:
        return self._factor * self._bank.at(steps)


def misses(*, factor: int = 1, runs: int = RUNS, **options: Any) -> dict[str, int]:
    """Return in how many runs some interval misses, for every stream; a run's streams share its key."""
    count = dict.fromkeys(STREAMS, 0)
    streams = {name: make() for name, make in STREAMS.items()}
    wanted = {name: truth(stream) for name, stream in streams.items()}
    counter = SecondMoment(horizon=T, every=EVERY, simulation_seed=0, **options)
    for seed in range(runs):
        counter._start(counter._blueprint, simulation_key(seed), bytes(16), seed, None)
        run = linear(counter)
        if factor != 1:
            replace_bank(counter, Scaled(run.bank, factor))
        for name, (items, signs) in streams.items():
            prints = counter._prints.many(items)
            _, seen = run.advanced(run.start(), prints, np.array(signs, dtype=np.int8), step=0)
            count[name] += not bool(((seen.low <= wanted[name]) & (wanted[name] <= seen.high)).all())
    return count


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"rho": 1}, {"rho": 1, "method": "rows"}, {"epsilon": 3}, {"epsilon": 30, "method": "rows"}]
)
def test_intervals_cover(options: dict[str, Any]) -> None:
    """failure 0.01: at most 4 of 40 runs miss somewhere (false alarm 4.9e-5 a stream)."""
    assert max(misses(**options).values()) <= 4


@pytest.mark.slow
@pytest.mark.parametrize("method", ["bucketed", "rows"])
def test_intervals_notice_other_noise(method: str) -> None:
    """Three times the noise puts nine times its second moment where one was subtracted: all runs miss."""
    assert misses(method=method, rho=Fraction(1, 10), factor=3, runs=5)["unit"] == 5


def test_interval_is_not_vacuous() -> None:
    """One item at rho = 1: the interval's ends are within factors 2.5 of F2 = T^2, and low > 0."""
    counter = SecondMoment(rho=1, horizon=T, every=EVERY, simulation_seed=2)
    seen = counter.extend(*one_item())
    assert seen.estimate[-1] == pytest.approx(T * T, rel=0.05)
    assert seen.low[-1] > T * T / 2.5
    assert seen.high[-1] == T * T  # never more than t^2


@pytest.mark.parametrize(
    "budget",
    [
        {"rho": Fraction(1, 3)},
        {"rho": None, "epsilon": Fraction(2, 7)},
        {"rho": None, "epsilon": 1, "delta": 1e-6},
        {"base": "tree"},
    ],
)
@pytest.mark.parametrize("method", ["bucketed", "rows"])
def test_ledgers(method: str, budget: dict[str, Any]) -> None:
    options = SMALL | {"method": method} | budget
    if method == "rows":
        options |= {"rows": None, "buckets": None}
    counter = SecondMoment(**options)
    assert isinstance(counter.ledger.spent, Fraction)
    assert 0.99 * counter.budget.amount < counter.ledger.spent <= counter.budget.amount
    (part,) = counter.ledger.parts
    assert (part.change.l1, part.change.l2_sq) == (2 * part.banks, 4 * part.banks)
    if "delta" in budget:
        assert counter.ledger.ln_delta(1)[1] <= np.log(1e-6) * (1 - 1e-12)
    text = counter.privacy_statement()
    assert "differ in one event" in text
    assert "rows" in text


@pytest.mark.parametrize("method", ["bucketed", "rows"])
@pytest.mark.parametrize("budget", [{}, {"rho": None, "epsilon": 1}, {"base": "toeplitz"}])
def test_states_go_on(method: str, budget: dict[str, Any], tmp_path: Path) -> None:
    options = SMALL | {"method": method} | budget
    if method == "rows":
        options |= {"rows": None, "buckets": None, "accuracy": 0.9}
    items, signs = [f"{k % 9}" for k in range(60)], [(-1) ** (k % 3) for k in range(60)]
    whole = list(SecondMoment(**options).extend(items, signs))
    first = SecondMoment(**options)
    seen = list(first.extend(items[:25], signs[:25]))
    first.save(tmp_path / "moment")
    again = SecondMoment.load(tmp_path / "moment")
    assert seen + list(again.extend(items[25:], signs[25:])) == whole
    assert again.update(items[-1], signs[-1], step=60) == whole[-1]
    with pytest.raises(ReplayError):
        again.update("another", 1, step=60)
    with pytest.raises(HorizonError):
        again.update("more", 1)


def test_no_exception_tells_of_strictness() -> None:
    counter = SecondMoment(**SMALL)
    assert counter.update("absent", -1) is not None
    assert counter.step == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": 4}, "odd"),
        ({"buckets": 12}, "power of two"),
        ({"accuracy": 1}, "accuracy"),
        ({"accuracy": float("nan")}, "accuracy"),
        ({"method": "rows", "buckets": 8, "rows": None}, "bucketed"),
        ({"method": "rows", "buckets": None, "rows": 20}, "rows must be more"),
        ({"method": "columns"}, "method"),
        ({"epsilon": 1}, "give epsilon"),
        ({"rows": 8191, "buckets": 1 << 20}, "2\\^22"),
        ({"base": "toeplitz", "simulation_seed": None}, "simulation"),
    ],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        SecondMoment(**(SMALL | options))


def test_small_tables_that_prove_nothing_say_so() -> None:
    """Three rows of two buckets: with a >= 1 Chebyshev's inequality bounds nothing from above."""
    counter = SecondMoment(**(SMALL | {"buckets": 2}))
    seen = counter.extend(["x"] * 60, [1] * 60)
    assert (seen.high == seen.step.astype(float) ** 2).all()
    assert (seen.low <= seen.step.astype(float) ** 2).all()


def test_nothing_secret_shows() -> None:
    counter = SecondMoment(rho=1, horizon=50, rows=3, buckets=8)
    counter.extend(["tail N14228"] * 50, [1] * 50)
    assert "N14228" not in repr(counter) + counter.privacy_statement()
    assert repr(counter) == "SecondMoment('bucketed', horizon=50, step=50)"
