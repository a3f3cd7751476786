"""ECC and SimECC as engines: equal to the word-by-word transcription however a stream is cut."""

import copy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.counters.edit.design import make_design
from trilift.counters.edit.inputs import BotRule
from trilift.counters.edit.internals import position, trace
from trilift.counters.edit.mechanism import ECC, SimECC, class_of
from trilift.counters.edit.part import Part, part_rule
from trilift.counters.edit.rules import PartRule, SimPartRule
from trilift.counters.edit.simpart import SimPart
from trilift.counters.edit.svt import SVT
from trilift.lift.errors import HorizonError, ParameterError, ReplayError, StateError
from trilift.stream.keys import DigestBuilder, derive_key, simulation_key
from trilift.stream.keystream import Keystream
from trilift.stream.laplace import LaplaceRows

NO_STREAM = bytes(16)


class Independent:
    """Independent discrete Laplace noise: a process of the simplest kind."""

    def __init__(
        self, scale: int, *, key: bytes, stream_id: bytes, purpose: str, places: int, horizon: Any
    ) -> None:
        self.horizon, self.places = horizon, places
        self.digest = DigestBuilder("test noise").add("scale", scale).add("places", places).digest()
        self._stream = Keystream(derive_key(key, stream_id=stream_id, purpose=purpose, digest=self.digest))
        self._rows = LaplaceRows([scale << places])

    def range(self, start: int, stop: int) -> np.ndarray:
        if self.horizon is not None and stop > self.horizon:
            raise HorizonError("past the horizon")
        return self._rows.sample(self._stream, 0, np.arange(start, stop)).to_int64()[:, 0]


@dataclass(frozen=True)
class Base:
    """Stands for a BaseSpec."""

    scale: int
    capacity: int | None = None
    kind: str = "test"

    def build(
        self, *, key: bytes, stream_id: bytes, purpose: str, places: int = 0, input_places: int = 0
    ) -> Independent:
        options = {"key": key, "stream_id": stream_id, "purpose": purpose}
        return Independent(self.scale, places=places, horizon=self.capacity, **options)


DRIFTING = SimPartRule(Fraction(1), 4, Fraction(4))


@dataclass(frozen=True)
class Small:
    """Stands for a Design: short buckets, little noise, no proof."""

    mechanism: str = "simecc"
    part: Any = DRIFTING
    values: Base = Base(2)
    times: Base = Base(3)
    alpha: int = 4
    horizon: int | None = None
    capacity: int | None = None
    display: str = "latest"
    rule: BotRule = field(default_factory=BotRule.make)
    accounting: str = "none"
    epsilon: Fraction = Fraction(1)
    delta: Fraction = Fraction(1, 1000)
    digest: bytes = bytes(32)
    ledger: Any = None
    predicted_rmse: float | None = None

    def alphas(self, start: int, stop: int) -> np.ndarray:
        return self.alpha + np.arange(start, stop) % 3


QUICK = PartRule(Fraction(4), Fraction(1, 4), Fraction(1, 2), Fraction(2), Fraction(1), 12)
"""Thresholds of a few events."""


@dataclass
class Literal:
    """Run step by step; shown[t] is what the dictionary schedule displays after step t+1."""

    design: Any
    seed: int
    shown: list[Any] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def run(self, values: list[Any]) -> list[int]:
        """Return the values shown, in lattice steps (display "latest")."""
        design, key = self.design, simulation_key(self.seed)
        options = {"key": key, "stream_id": NO_STREAM}
        places = design.rule.places
        counts = design.values.build(purpose="edit/values", places=places, input_places=places, **options)
        times = design.times.build(purpose="edit/times", **options)
        top = self._partition(design, options)
        waiting: dict[int, tuple[int, int]] = {}
        y, l, total, interval = 0, 1, 0, 0
        for t, x in enumerate(values, start=1):
            number = 0 if x is None else design.rule.one(x)[0]
            total += number
            interval += number
            if (design.capacity is None or l <= design.capacity) and top(l, interval):
                vhat = total + int(counts.range(l - 1, l)[0])
                delay = int(design.alphas(l - 1, l)[0]) + int(times.range(l - 1, l)[0])
                that = max(t, t + delay)
                if that not in waiting or waiting[that][0] < l:
                    waiting[that] = (l, vhat)
                self.ends.append(t)
                l, interval = l + 1, 0
            if t in waiting:
                y = waiting.pop(t)[1]
            self.shown.append(y)
        return self.shown

    @staticmethod
    def _partition(design: Any, options: dict[str, bytes]) -> Any:
        if design.mechanism == "simecc":
            lengths = SimPart(design.part, purpose="edit/part", **options)
            clock = 0

            def counted(l: int, interval: int) -> bool:
                nonlocal clock
                clock += 1
                if clock < int(lengths.lengths(l - 1, l)[0]):
                    return False
                clock = 0
                return True

            return counted
        high = design.rule.high
        part = Part(design.part, high=high, purpose="edit/part", **options)
        runs: dict[int, SVT] = {}

        def passed(l: int, interval: int) -> bool:
            if l not in runs:
                rule = part_rule(design.part, high=high)
                runs[l] = SVT(rule, noise=part._noise, threshold=part.start(l - 1), bucket=l)
            return runs[l].step(interval)

        return passed


SIM = Small()
FOLDED = Small(part=SimPartRule(Fraction(1, 2), 3, folded=True), capacity=6)
FINE = Small(rule=BotRule.make(high=2, resolution=0.25), alpha=-1)
BY_EVENTS = Small(mechanism="ecc", part=QUICK)
FINE_EVENTS = Small(mechanism="ecc", part=QUICK, rule=BotRule.make(high=2, resolution=0.25), capacity=3)
DESIGNS = [SIM, FOLDED, FINE, BY_EVENTS, FINE_EVENTS]


def random_stream(seed: int, length: int, *, design: Small = SIM) -> list[float | int | None]:
    generator = np.random.default_rng(seed)
    unit = 2.0**-design.rule.places
    kinds = generator.integers(0, 3, size=length)
    sizes = generator.integers(0, design.rule.high + 1, size=length) * unit
    numbers = [int(size) if design.rule.places == 0 else float(size) for size in sizes]
    return [None if kind == 0 else number for kind, number in zip(kinds, numbers, strict=True)]


def make(design: Small, seed: int = 1):
    return class_of(design).of(design, simulation_seed=seed)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_literal_extend_and_update_agree_bit_for_bit(design, seed) -> None:
    values = random_stream(seed, 300, design=design)
    unit = 2.0**-design.rule.places
    wanted = [value * unit for value in Literal(design, seed).run(values)]
    assert len(set(wanted)) > 3  # something happens
    assert make(design, seed).extend(values).tolist() == wanted
    single = make(design, seed)
    assert [single.update(x) for x in values] == wanted


REAL = [
    ("simecc", {"horizon": 300, "base": "toeplitz"}),
    ("simecc", {"horizon": 300, "base": "chain", "high": 2, "resolution": 0.5}),
    ("simecc", {"base": "relay"}),
    ("ecc", {"horizon": 300, "base": "toeplitz"}),
    ("ecc", {"accounting": "paper", "horizon": 300}),
]


@pytest.mark.parametrize(("mechanism", "options"), REAL)
def test_so_they_do_for_real_designs(mechanism, options) -> None:
    design = make_design(300, delta=1e-3, mechanism=mechanism, rate=0.5, **options)
    values = random_stream(8, 300, design=design)
    unit = 2.0**-design.rule.places
    wanted = [value * unit for value in Literal(design, 2).run(values)]
    assert len(set(wanted)) > 3
    assert make(design, 2).extend(values).tolist() == wanted
    single = make(design, 2)
    assert [single.update(x) for x in values] == wanted


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(DESIGNS), st.integers(0, 50), st.lists(st.integers(0, 40), max_size=8))
def test_however_a_stream_is_cut(design, seed, lengths) -> None:
    values = random_stream(seed, sum(lengths), design=design)
    counter, got, begin = make(design, seed), [], 0
    for k in lengths:
        got += counter.extend(values[begin : begin + k]).tolist()
        begin += k
    assert got == make(design, seed).extend(values).tolist()
    assert counter.step == len(values)


@pytest.mark.parametrize("design", DESIGNS)
def test_the_trace_is_what_happens(design) -> None:
    values = random_stream(4, 200, design=design)
    literal = Literal(design, 4)
    shown = literal.run(values)
    seen = trace(make(design, 4), values)
    assert seen.ends.tolist() == literal.ends
    exact = np.cumsum([design.rule.one(x)[0] for x in values])
    assert seen.sums.tolist() == exact[seen.ends - 1].tolist()
    assert (seen.times >= seen.ends).all()
    for t, y in enumerate(shown, start=1):
        due = [(time, l) for l, time in enumerate(seen.times.tolist()) if time <= t]
        assert y == (int(seen.values[max(due)[1]]) if due else 0)


def test_long_extends_are_cut_into_chunks_unseen(monkeypatch) -> None:
    values = random_stream(5, 500)
    wanted = make(SIM).extend(values).tolist()
    monkeypatch.setattr("trilift.counters.edit.counter._CHUNK", 7)
    assert make(SIM).extend(values).tolist() == wanted


@pytest.mark.parametrize("zero", [None, 0])
def test_a_quiet_stream_ends_no_bucket_of_ecc(zero) -> None:
    """Threshold 40 against noise of scale at most 1/2: false alarm below 10^5 e^-60."""
    design = replace(BY_EVENTS, part=replace(QUICK, tau=Fraction(40)))
    counter = make(design)
    assert counter.extend([zero] * 100_000).tolist() == [0] * 100_000
    assert position(counter).bucket == 0
    assert position(counter).clock == 100_000


def test_bots_and_zeros_are_counted_alike() -> None:
    """What distinguishes them is the neighbour relation alone."""
    values = random_stream(6, 200)
    zeros = [0 if x is None else x for x in values]
    for design in (SIM, BY_EVENTS):
        assert make(design).extend(values).tolist() == make(design).extend(zeros).tolist()


def test_simpart_reads_no_input() -> None:
    one, other = trace(make(SIM), [0] * 300), trace(make(SIM), [1] * 300)
    assert one.ends.tolist() == other.ends.tolist()
    assert one.times.tolist() == other.times.tolist()
    assert (other.values - other.sums).tolist() == one.values.tolist()


@pytest.mark.parametrize(("capacity", "counts", "times"), [(3, 3, 3), (3, None, None), (None, 5, 3)])
def test_after_the_last_bucket_nothing_changes(capacity, counts, times) -> None:
    """A base that ends is no reason for an error: that would show how many buckets there were."""
    design = replace(SIM, capacity=capacity, values=Base(2, counts), times=Base(3, times))
    counter = make(design)
    shown = counter.extend([1] * 400)
    assert position(counter).bucket == 3
    assert len(set(shown[100:].tolist())) == 1
    assert counter.update(1) == shown[-1]


def test_the_horizon_is_kept() -> None:
    counter = make(replace(SIM, horizon=10))
    counter.extend([1] * 9)
    with pytest.raises(HorizonError, match="step 11 is past the horizon 10; nothing was changed"):
        counter.extend([1, 1])
    assert counter.step == 9
    counter.update(1)
    with pytest.raises(HorizonError):
        counter.update(1)


@pytest.mark.parametrize("bad", [float("nan"), 2, -1, True, "1", [1]])
def test_what_is_refused_changes_nothing(bad) -> None:
    counter, twin = make(SIM), make(SIM)
    for one in (counter, twin):
        one.extend([1] * 20)
    with pytest.raises(ParameterError):
        counter.update(bad)
    with pytest.raises(ParameterError):
        counter.extend([1, None, bad])
    assert counter.extend([1] * 50).tolist() == twin.extend([1] * 50).tolist()


def test_steps_can_be_named_and_repeated() -> None:
    counter = make(SIM)
    first = counter.update(1, step=1)
    second = counter.update(None, step=2)
    assert counter.update(1, step=1) == first
    assert counter.update(None, step=2) == second
    assert counter.step == 2
    with pytest.raises(ReplayError):
        counter.update(0, step=2)  # BOT is not 0
    with pytest.raises(ReplayError):
        counter.update(0, step=1)
    with pytest.raises(StateError, match="the next step is 3"):
        counter.update(1, step=4)
    counter.extend([1] * 2000)
    with pytest.raises(ReplayError, match="no longer remembered"):
        counter.update(1, step=1)


def test_extrapolation_is_a_function_of_the_due_pairs() -> None:
    values = random_stream(7, 400)
    plain, carried = make(SIM), make(replace(SIM, display="extrapolated"))
    seen = trace(plain, values)
    shown = carried.extend(values)
    single = make(replace(SIM, display="extrapolated"))
    assert [single.update(x) for x in values] == shown.tolist()
    for t, y in enumerate(shown.tolist(), start=1):
        due = [(time, l) for l, time in enumerate(seen.times.tolist()) if time <= t]
        if not due:
            assert y == 0
            continue
        time, l = max(due)
        value, end = int(seen.values[l]), time - (4 + l % 3)
        rate = Fraction(min(max(value, 0), end), end) if end >= 1 else Fraction(0)
        assert y == (value + rate * (t - end) + Fraction(1, 2)) // 1


@pytest.mark.parametrize("design", [SIM, BY_EVENTS])
def test_nothing_secret_is_shown(design) -> None:
    counter = make(design)
    counter.extend([1] * 100)
    public = {name for name in dir(counter) if not name.startswith("_")}
    assert public == {
        *("close", "delta", "describe", "design", "epsilon", "extend", "horizon", "ledger", "load"),
        *("mechanism", "of", "privacy_statement", "rule", "save", "step", "update"),
    }
    assert repr(counter) == f"{type(counter).__name__}(epsilon=1, horizon=None, step=100, SIMULATION)"
    for hidden in (counter._now, counter._now.schedule, counter._now.schedule.pending, counter._now.log):
        assert " object at 0x" in repr(hidden)
    assert "secret" in repr(counter._part)


def test_internals_are_of_simulated_counters_only() -> None:
    counter = SimECC.of(SIM)
    for look in (position, lambda one: trace(one, [1])):
        with pytest.raises(StateError, match="simulated"):
            look(counter)


def test_real_counters_differ() -> None:
    values = [1] * 400
    assert SimECC.of(SIM).extend(values).tolist() != SimECC.of(SIM).extend(values).tolist()


def test_a_design_makes_its_own_class_only() -> None:
    with pytest.raises(ParameterError, match="makes no ECC"):
        ECC.of(SIM)
    assert class_of(BY_EVENTS) is ECC
    with pytest.raises(ParameterError, match="no counter has"):
        class_of(replace(SIM, mechanism="other"))


def test_counters_are_not_copied() -> None:
    with pytest.raises(StateError, match="not copied"):
        copy.copy(make(SIM))


def test_noise_of_the_components_is_independent_of_each_other() -> None:
    """Different purposes, different keys: the same process at the same indices gives other numbers."""
    counter = make(replace(SIM, values=Base(1 << 30), times=Base(1 << 30)))
    assert counter._values.range(0, 8).tolist() != counter._times.range(0, 8).tolist()
