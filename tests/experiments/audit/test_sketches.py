"""A wide sketch is the shipped one many times over, and its score is the likelihood ratio."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from trilift.experiments.audit.engine import audit
from trilift.experiments.audit.shipped import make_subject
from trilift.experiments.audit.sketches import Copies
from trilift.stream.keys import simulation_key

SKETCHES = ("distinct-minhash", "distinct-general-maps", "moment-bucketed")


def subject(name: str) -> Any:
    return make_subject(name, epsilon=Fraction(1))


@pytest.mark.parametrize("name", SKETCHES)
def test_every_copy_is_read_as_the_shipped_sketch_reads_it(name: str) -> None:
    audited = subject(name)
    pair = audited.pairs()[0]
    sketch, base, ticks = audited._sketch, audited._base, np.arange(audited._ticks)
    first, second = audited.release([pair.first, pair.second], seed=3)
    again = audited.release([pair.first], seed=3)[0]
    assert (first == again).all()
    bank = base.bank(
        sketch.width * audited.batch, key=simulation_key(3), stream_id=bytes(16), purpose="audit/sketch"
    )
    noise = bank.at(ticks).reshape(len(ticks), audited.batch, -1)
    signs = np.array([sign for _, sign in pair.first], dtype=np.int8)
    prints = audited._counter._prints.many([item for item, _ in pair.first])
    sums = sketch.increments(prints, signs, np.array([0, 0, 1, 1]), count=2).cumsum(axis=0)
    for run in (0, 1, audited.batch - 1):
        values = sums + noise[:, run]
        read = sketch.read(values, sketch.tables(ticks), steps=np.array([2, 4]))
        expected = np.stack([read.estimate, read.low, read.high], axis=1).ravel()
        assert (first[run] == [*expected, *values[:, audited._cells].ravel()]).all()
    moved = (second - first)[:, 6:].reshape(audited.batch, 2, -1)  # the same noise: what the streams add
    gap = (audited._added(pair.second) - audited._added(pair.first)).cumsum(axis=0)
    assert (moved == gap).all()
    assert np.abs(gap).sum() > 0


def test_copies_touch_counters_of_their_own() -> None:
    audited = subject("distinct-minhash")
    sketch = audited._sketch
    copies, prints = Copies(sketch, 3), audited._counter._prints.many(["a", "z"])
    where, change = copies.touched(prints)
    assert where.shape == change.shape == (2, 3 * sketch.banks)
    assert all(len(set(row)) == len(row) for row in where.tolist())
    own = sketch.increments(prints, np.array([1, -1]), np.array([0, 0]), count=1)
    by_touch = np.zeros(copies.width)
    np.add.at(by_touch, where, change * np.array([[1], [-1]]))
    assert (by_touch == np.tile(own, 3)[0]).all()


@pytest.mark.parametrize("name", SKETCHES)
def test_a_changed_event_can_spend_all_of_the_claim_and_no_more(name: str) -> None:
    audited = subject(name)
    losses = [audited.largest_loss(pair) for pair in audited.pairs()]
    assert 0.99 < max(losses) <= 1 + 1e-9
    values = audited.release([audited.pairs()[0].first], seed=1)[0]
    scores = audited.statistics(audited.pairs()[0], values)["likelihood ratio"]
    assert np.abs(scores).max() <= 1 + 1e-6


@pytest.mark.parametrize("name", SKETCHES)
def test_audits_of_sketches_see_most_of_the_claim(name: str) -> None:
    result = audit(subject(name), runs=40_000, seed=5)
    assert 0.4 < result.epsilon_lower_bound <= 1
