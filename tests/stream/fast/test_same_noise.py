"""Noise and counters are the same with the kernels and without, in any mixture, by any number of threads."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trilift.artifacts import load_stage
from trilift.counters import Counter
from trilift.lift.chain import Chain
from trilift.lift.errors import ParameterError
from trilift.stream import stepwise
from trilift.stream.bank import NoiseBank
from trilift.stream.fast import parallel, switch
from trilift.stream.keys import simulation_key
from trilift.stream.ledger import make_ledger
from trilift.stream.noise import Noise

quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def shipped(*names: str) -> Chain:
    *stages, top = [load_stage(name) for name in names]
    return Chain(top, stages)


def make(lab, chain, epsilon=1, *, places=None, horizon=None, gamma=0) -> Noise:
    return Noise(
        chain,
        lab.ledger(chain, epsilon, input_places=gamma),
        horizon=chain.capacity if horizon is None else horizon,
        key=simulation_key(3),
        stream_id=bytes(16),
        purpose="counter",
        places=places,
    )


@quick
@given(
    st.integers(0, 60),
    st.sampled_from((Fraction(1), Fraction(22, 7), Fraction(1, 1000), Fraction(10**6), Fraction(1, 10**30))),
    st.sampled_from((0, 3, 60)),
    st.data(),
)
def test_noise_is_the_same_for_any_steps(both, lab, seed, epsilon, places, data) -> None:
    """Small chains of all kinds, all scales (the least epsilon needs Python integers), any steps."""
    noise = make(lab, lab.chain(seed), epsilon, places=places)
    start = data.draw(st.integers(0, noise.horizon))
    stop = data.draw(st.integers(start, noise.horizon))
    steps = data.draw(st.lists(st.integers(0, noise.horizon - 1), max_size=6))
    plain, fast = both(lambda: (noise.range(start, stop).tolist(), noise.at(steps).tolist()))
    assert plain == fast
    assert plain[1] == [noise._evaluator.round_exact(t, places=places) for t in steps]
    assert plain[0] == [noise._evaluator.round_exact(t, places=places) for t in range(start, stop)]


@pytest.mark.parametrize("epsilon", [1, Fraction(1, 10**25)])
def test_pages_and_block_boundaries_do_not_matter(both, lab, monkeypatch, epsilon) -> None:
    """A shipped chain of three levels: one range, pages of one, 37 and 2049 steps, chunks of 1000."""
    chain = shipped("stage-max-9", "stage-max-17", "direct-max-16")
    noise = make(lab, chain, epsilon, horizon=chain.capacity if epsilon == 1 else 150)
    whole = noise.range(0, noise.horizon)
    switch.disable()
    assert whole.tolist() == noise.range(0, noise.horizon).tolist()
    monkeypatch.setattr(stepwise, "_CHUNK", 1000)

    def pages() -> list[list[int]]:
        found = []
        for size in (1, 37, 2049):
            edges = range(0, 40 if size == 1 else noise.horizon, size)
            found.append([x for a in edges for x in noise.range(a, min(a + size, noise.horizon)).tolist()])
        return found

    plain, fast = both(pages)
    assert plain == fast
    for found in fast:
        assert found == whole.tolist()[: len(found)]


def test_banks_are_the_same(both, lab) -> None:
    chain = shipped("stage-max-9", "direct-max-16")
    ledger = make_ledger(chain, 1, scales=[1.0, 1.0])
    bank = NoiseBank(
        chain, ledger, width=5, horizon=140, key=simulation_key(4), stream_id=bytes(16), purpose="bank"
    )
    plain, fast = both(lambda: (bank.range(0, 140).tolist(), bank.at(np.array([3, 50, 139])).tolist()))
    assert plain == fast


def test_a_counter_changes_over_in_its_middle(both, tmp_path) -> None:
    """A state saved by one path is continued by the other; statements, repr and digests say nothing of it."""
    values = np.arange(700) % 2

    def run(first: bool, second: bool) -> tuple[list[int], str, str]:
        (switch.enable if first else switch.disable)()
        counter = Counter(1, horizon=1000, simulation_seed=11)
        released = counter.extend(values[:300]).tolist()
        counter.save(tmp_path / f"{first}{second}")
        (switch.enable if second else switch.disable)()
        again = Counter.load(tmp_path / f"{first}{second}")
        released += again.extend(values[300:]).tolist()
        return released, again.privacy_statement(), repr(again)

    both(lambda: None)
    runs = [run(first, second) for first in (False, True) for second in (False, True)]
    assert runs[1:] == runs[:-1]
    assert (tmp_path / "FalseFalse").read_bytes() == (tmp_path / "TrueTrue").read_bytes()


def test_threads_do_not_matter(both, lab, monkeypatch) -> None:
    """Chunks by 1, 2 and 5 threads, and many callers at once."""
    noise = make(lab, shipped("stage-max-9", "stage-max-17", "direct-max-16"))
    monkeypatch.setattr(stepwise, "_CHUNK", 200)
    switch.disable()
    expected = noise.range(0, noise.horizon).tolist()
    both(lambda: None)
    for number in ("1", "2", "5"):
        monkeypatch.setenv(parallel.VARIABLE, number)
        assert noise.range(0, noise.horizon).tolist() == expected
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: noise.range(0, noise.horizon).tolist(), range(16)):
            assert found == expected


def test_errors_come_through_threads(both, monkeypatch) -> None:
    both(lambda: None)
    monkeypatch.setenv(parallel.VARIABLE, "3")

    def work(item: int) -> int:
        if item == 2:
            raise ParameterError("two")
        return item

    with pytest.raises(ParameterError, match="two"):
        parallel.in_order(work, range(5))
    assert parallel.in_order(work, [4, 3]) == [4, 3]


@pytest.mark.parametrize("text", ["0", "65", "-1", "two", "1.5", "²", "100000"])
def test_numbers_of_threads_are_checked(monkeypatch, text) -> None:
    monkeypatch.setenv(parallel.VARIABLE, text)
    with pytest.raises(ParameterError, match="TRILIFT_THREADS must be an integer from 1 to 64"):
        parallel.threads()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_children_draw_the_same(both, lab, monkeypatch) -> None:
    """Also when a thread held the switch while the process was forked, and with threads in the child."""
    noise = make(lab, shipped("stage-max-9", "direct-max-16"))
    monkeypatch.setattr(stepwise, "_CHUNK", 20)
    monkeypatch.setenv(parallel.VARIABLE, "2")
    both(lambda: None)
    expected = noise.range(0, noise.horizon).tolist()
    with switch._switch.lock:
        child = os.fork()
        if child == 0:
            try:
                switch.enable()
                os._exit(0 if noise.range(0, noise.horizon).tolist() == expected else 1)
            finally:
                os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
