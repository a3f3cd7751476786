"""What noise counters really carry: covariance over keys and counters, equivariance, empty levels that pass.

Every check is a function that says whether noise is as it should be; controls (off, halved, doubled, shared
between counters, drawn afresh for every read) must fail it.
"""

from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from trilift.artifacts import load_stage_l2
from trilift.counters.turnstile import DistinctCounter
from trilift.counters.turnstile.internals import linear, noisy, replace_bank
from trilift.counters.turnstile.simulation import ToeplitzBase, toeplitz_rows, unit_noise
from trilift.lift import Chain
from trilift.lift.budget import horizon_scales
from trilift.lift.dense import materialise
from trilift.lift.rows import row_covariance
from trilift.stream.bank import NoiseBank
from trilift.stream.gaussian_ledger import make_gaussian_ledger
from trilift.stream.keys import simulation_key

TICKS = 24
READS = [3, 8, 9, 20]
KEYS = 10
COPIES = 151
LAWS: dict[str, dict[str, Any]] = {
    "chain": {"rho": 0.05},
    "tree": {"rho": 0.05, "base": "tree"},
    "pure": {"epsilon": 0.5},
}
FAULTS = ["off", "halved", "doubled", "shared", "fresh"]


class Faulty:
    """A bank with a fault."""

    def __init__(self, bank: Any, fault: str, others: list[Any]) -> None:
        self._bank, self._fault, self._others = bank, fault, others

    def at(self, steps: Any) -> Any:
        noise = self._bank.at(steps)
        if self._fault == "off":
            return np.zeros_like(noise)
        if self._fault == "halved":
            return noise // 2
        if self._fault == "doubled":
            return noise * 2
        if self._fault == "shared":
            return np.repeat(noise[:, :1], noise.shape[1], axis=1)
        fresh = [self._others[k % len(self._others)].at(steps)[k] for k in range(len(steps))]
        return np.array(fresh)


def counter_of(law: str, seed: int, **options: Any) -> DistinctCounter:
    shared: dict[str, Any] = {"horizon": TICKS, "universe": 2, "copies": COPIES}
    return DistinctCounter(**{**shared, **LAWS[law], **options, "simulation_seed": seed})


def noise_of(law: str, fault: str | None) -> np.ndarray:
    """Return what stands in the noisy counters of an empty stream: (reads, counters, keys)."""
    parts = []
    for seed in range(KEYS):
        counter = counter_of(law, seed)
        if fault is not None:
            keys = range(1000 + seed * TICKS, 1000 + (seed + 1) * TICKS) if fault == "fresh" else ()
            others = [linear(counter_of(law, key)).bank for key in keys]
            replace_bank(counter, Faulty(linear(counter).bank, fault, others))
        values = noisy(counter, ["a"] * TICKS, [0] * TICKS)
        parts.append(values[READS].astype(float))
    return np.stack(parts, axis=2)


@cache
def wanted(law: str) -> np.ndarray:
    """L S^2 L^T from single rows of L: other code than the bank's."""
    base: Any = linear(counter_of(law, 1)).base
    scales = [float(scale) for scale in base.ledger.scales]
    factor = 2.0 if law == "pure" else 1.0
    chain = base.chain.to_float()
    return np.array([[factor * row_covariance(chain, s, t, scales=scales) for t in READS] for s in READS])


def covariance_holds(draws: np.ndarray, law: str) -> bool:
    """Covariances within counters, between neighbouring counters, between keys; 5.5 sd each (1e-6 in all)."""
    target = wanted(law)
    sd = np.sqrt(np.diag(target))
    spread = 5.5 * np.sqrt(5.0) * np.outer(sd, sd)  # fourth moments of Laplace sums are at most 6 var^2
    width = draws.shape[1]

    def product(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, int]:
        pairs = left[0].size
        return left.reshape(len(READS), -1) @ right.reshape(len(READS), -1).T / pairs, pairs

    same, count = product(draws, draws)
    counters, pairs = product(draws[:, : width - 1 : 2], draws[:, 1::2])
    keys, others = product(draws[:, :, ::2], draws[:, :, 1::2])
    return bool(
        np.all(np.abs(same - target) < spread / np.sqrt(count) + 1 / 12)
        and np.all(np.abs(counters) < spread / np.sqrt(pairs))
        and np.all(np.abs(keys) < spread / np.sqrt(others))
    )


@pytest.mark.parametrize("law", LAWS)
def test_covariance_over_keys_and_counters(law: str) -> None:
    assert covariance_holds(noise_of(law, None), law)


@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_noise_has_another_covariance(fault: str) -> None:
    assert not covariance_holds(noise_of("tree", fault), "tree")


@pytest.mark.parametrize("law", LAWS)
def test_variances_are_those_of_the_law(law: str) -> None:
    base = linear(counter_of(law, 1)).base
    found = base.variance(np.array(READS))
    assert np.allclose(found, np.diag(wanted(law)), rtol=1e-9)


class Shifted:
    """Draws z + R d in place of z."""

    def __init__(self, source: Any, shifts: list[np.ndarray]) -> None:
        self._source, self._shifts = source, shifts

    def draws(self, level: int, blocks: Any) -> Any:
        drawn = self._source.draws(level, blocks)
        shift = self._shifts[level][np.asarray(blocks, dtype=np.int64)]

        class Moved:
            float_error = drawn.float_error

            def to_float(self) -> Any:
                return drawn.to_float() + shift.reshape(len(shift), -1)

        return Moved()


def test_noise_is_equivariant() -> None:
    """noise(z + R d) = noise(z) + T d in all counters: the noise is L z for the R that was charged."""
    width, horizon = 3, 72
    chain = Chain(load_stage_l2("direct-l2-max-8"), [load_stage_l2("stage-l2-max-9")])
    scales = horizon_scales(chain, horizon, objective="max", norm="l2")
    ledger = make_gaussian_ledger(chain, 1, scales=scales, change=2)
    bank: Any = NoiseBank(
        chain,
        ledger,
        width=width,
        horizon=horizon,
        key=simulation_key(2),
        stream_id=bytes(16),
        purpose="equivariance",
    )
    steps = np.arange(horizon)
    before, _ = bank.floats(steps)
    change = np.random.default_rng(3).integers(-2, 3, size=(horizon, width))
    dense = materialise(chain.to_float(), horizon)
    moved = dense.R @ change  # (coordinates, width), level by level, block by block
    shifts = []
    for index, level in enumerate(bank._levels):
        part = moved[dense.level == index]
        inner = bank._counts[index]
        blocks = part.reshape(-1, inner, width)
        units = np.broadcast_to(level.units, (inner,))[None, :, None]
        shifts.append(blocks / units)
    bank._source = Shifted(bank._source, shifts)
    after, _ = bank.floats(steps)
    assert np.allclose(after - before, np.cumsum(change, axis=0), atol=1e-9)
    wrong = [shift * 1.01 for shift in shifts]
    bank._source = Shifted(bank._source._source, wrong)
    worse, _ = bank.floats(steps)
    assert not np.allclose(worse - before, np.cumsum(change, axis=0), atol=1e-3)


# -- empty levels ------------------------------------------------------------------------------------


def passing_rate(law: str, fault: str | None) -> tuple[float, float, int]:
    """Return how often a group without items detects something, how often it should, and of how many."""
    found = total = 0
    rates = []
    for seed in range(8):
        counter = counter_of(law, seed, universe=1 << 12, horizon=1 << 12, every=1 << 10, copies=301)
        run = linear(counter)
        if fault is not None:
            replace_bank(counter, Faulty(run.bank, fault, [run.bank]))
        sketch: Any = run.sketch
        values = noisy(counter, ["a"] * (1 << 12), [0] * (1 << 12))
        tables = sketch.tables(np.arange(4))
        passed = sketch.detected(values, tables).any(axis=2)
        found, total = found + int(passed[-1].sum()), total + passed.shape[1]
        rates.append(run.base.variance(np.array([3]))[0])
        limit = tables[-1, 1] + 0.5
    single = 1.0 - NormalDist().cdf(limit / np.sqrt(rates[-1]))
    return found / total, 1.0 - (1.0 - single) ** sketch.levels, total


@pytest.mark.parametrize("fault", [None, "off", "halved", "doubled"])
def test_empty_groups_pass_as_often_as_they_should(fault: str | None) -> None:
    """Two-sided, 5 sd (false alarm below 1e-6), so that too little noise fails as well as too much."""
    found, expected, total = passing_rate("tree", fault)
    margin = 5.0 * np.sqrt(expected * (1 - expected) / total)
    assert 0.02 < expected <= 0.05
    assert (abs(found - expected) < margin) == (fault is None)


# -- simulation ----------------------------------------------------------------------------------------


def test_simulated_toeplitz_noise_has_the_law_of_the_root() -> None:
    ticks, width = 64, 4000
    noise = unit_noise(ticks, width=width, rng=np.random.default_rng(1)).astype(float)
    root = np.cumprod(np.concatenate([[1.0], 1.0 - 0.5 / np.arange(1, ticks)]))
    dense = np.array([[root[t - s] if s <= t else 0.0 for s in range(ticks)] for t in range(ticks)])
    assert np.allclose(dense @ dense, np.tril(np.ones((ticks, ticks))))
    target = dense @ dense.T
    sd = np.sqrt(np.diag(target))
    bound = 6.0 * np.sqrt(2.0) * np.outer(sd, sd) / np.sqrt(width)  # 64^2 entries: false alarm below 1e-5
    assert np.all(np.abs(noise @ noise.T / width - target) < bound)
    assert np.allclose(np.diag(target), toeplitz_rows(ticks))
    assert [round(float(toeplitz_rows(t)[-1]), 2) for t in (10**4, 10**5)] == [4.00, 4.73]


def test_simulated_base_is_calibrated() -> None:
    """Delta^T Sigma^-1 Delta = 2 rho at the first step, and no later one costs more."""
    from trilift.counters.turnstile.budget import make_budget

    ticks = 40
    base = ToeplitzBase.make(make_budget(rho=3), ticks=ticks, seed=1)
    root = np.cumprod(np.concatenate([[1.0], 1.0 - 0.5 / np.arange(1, ticks)]))
    dense = np.array([[root[t - s] if s <= t else 0.0 for s in range(ticks)] for t in range(ticks)])
    inverse = np.linalg.inv(base.sigma**2 * dense @ dense.T)
    costs = []
    for step in range(ticks):
        after = 2.0 * (np.arange(ticks) >= step)
        costs.append(float(after @ inverse @ after))
    assert np.isclose(costs[0], 6.0)
    assert max(costs) <= costs[0] * (1 + 1e-9)
    bank = base.bank(300, key=simulation_key(4), stream_id=bytes(16), purpose="test")
    values = bank.at(np.arange(ticks))
    assert np.allclose(values.std(axis=1), np.sqrt(base.variance(np.arange(ticks)) + 1 / 12), rtol=0.25)
