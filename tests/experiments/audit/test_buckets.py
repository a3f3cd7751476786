"""Counters by buckets under audit: their values are the shipped ones, their scores say what was inserted."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from trilift.counters.edit import ECC, PartitionCC, SimECC
from trilift.experiments.audit.buckets import BucketSubject
from trilift.experiments.audit.plans import shared_plans
from trilift.experiments.audit.shipped import make_subject
from trilift.experiments.audit.single import bucket_pairs, swap_pairs
from trilift.stream.gdp import ln_of, mu_for
from trilift.stream.keys import simulation_key
from trilift.stream.keystream import Keystream
from trilift.stream.laplace import LaplaceRows

SMALL: dict[str, Any] = {
    "simecc": lambda: SimECC(5, Fraction(1, 20), horizon=200, rate=0.1, simulation_seed=0),
    "endless": lambda: SimECC(5, Fraction(1, 20), simulation_seed=0),
    "ecc": lambda: ECC(20, Fraction(1, 20), horizon=200, rate=0.9, simulation_seed=0),
    "partition": lambda: PartitionCC(1, Fraction(1, 20), horizon=60, simulation_seed=0),
}


def small(name: str) -> BucketSubject:
    prototype = SMALL[name]()
    pairs = swap_pairs(60) if name == "partition" else bucket_pairs(200, apart=10)
    return BucketSubject(name, "any", prototype, pairs=pairs, changes=3, batch=4)


@pytest.mark.parametrize("name", SMALL)
def test_what_is_looked_at_is_what_the_shipped_counter_shows(name: str) -> None:
    audited = small(name)
    streams = list(dict.fromkeys(x for pair in audited.pairs() for x in (pair.first, pair.second)))
    found = audited.release(streams, seed=2)
    changed = 0
    for run in range(audited.batch):
        for rows, stream in zip(found, streams, strict=True):
            counter = audited._kind.of(audited._design, simulation_seed=(2 << 10) + run)
            shown = [0.0, *np.asarray(counter.extend(list(stream)), dtype=float)]
            steps = [t for t in range(1, len(shown)) if shown[t] != shown[t - 1]]
            changed += len(steps)
            times = [*steps, *[len(shown)] * 3][:3]
            values = [shown[t] for t in steps] + [shown[-1]] * 3
            assert rows[run].tolist() == [len(steps), *times, *values[:3]]
    assert changed > audited.batch


def test_plans_are_shared_within_the_block_alone() -> None:
    from trilift.counters.edit import simpart

    before = simpart.LaplaceRows
    with shared_plans():
        one, other = simpart.LaplaceRows([3, 3, 5]), simpart.LaplaceRows([3, 3, 5])
        assert one is other
        assert one is not simpart.LaplaceRows([3, 5, 5])
    assert simpart.LaplaceRows is before is LaplaceRows
    source = Keystream(simulation_key(1))
    expected = LaplaceRows([3, 3, 5]).sample(source, 0, [4]).to_int64()
    assert (one.sample(source, 0, [4]).to_int64() == expected).all()


def test_scores_of_values_have_the_means_and_the_variance_of_a_likelihood_ratio() -> None:
    audited = BucketSubject(
        "simecc",
        "any",
        SimECC(5, Fraction(1, 20), horizon=400, rate=0.01, simulation_seed=0),
        pairs=bucket_pairs(400, apart=100),
        batch=256,
    )
    pair = audited.pairs()[0]
    one, other = (
        audited.statistics(pair, values)["likelihood ratio"]
        for values in audited.release([pair.first, pair.second], seed=4)
    )
    spent = float(other.mean() - one.mean())  # the same noise: nearly exact
    variance = (one.var() + other.var()) / 2
    assert 0.3 < spent <= float(audited._design.values.mu) ** 2
    assert 0.6 * spent < variance < 1.6 * spent


@pytest.mark.parametrize(("name", "most"), [("simecc", 0.59), ("simecc-endless", 0.33)])
def test_an_insertion_into_a_quiet_stream_spends_what_the_page_says(name: str, most: float) -> None:
    """Buckets read no data, and one bucket's sum changes by one: mu-GDP with the mu of the counts."""
    audited: Any = make_subject(name, epsilon=Fraction(1))
    ln_delta = ln_of(audited.delta)[0]
    mu = audited._design.values.mu
    assert mu_for(Fraction(most) - Fraction(1, 100), ln_delta=ln_delta) < mu
    assert mu <= mu_for(Fraction(most) + Fraction(1, 100), ln_delta=ln_delta)
