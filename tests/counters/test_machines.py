"""State machines that drive counters of every kind in any order of operations.

Whatever happens on the way (saving, loading, crashing without a saved state, retries, hostile input), what a
counter releases is what an undisturbed counter of the same key releases for the same inputs.

``TRILIFT_LONG=1 pytest tests/counters/test_machines.py`` runs them for minutes.
"""

import gc
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from trilift.counters import Counter, GaussianCounter
from trilift.counters.durable import DurableCounter
from trilift.counters.edit import SimECC
from trilift.counters.turnstile import DistinctCounter
from trilift.lift.errors import HorizonError, ParameterError, ReplayError, StateError

LONG = os.environ.get("TRILIFT_LONG") == "1"
HORIZON = 36
REMEMBERED = 1024
CHAIN = ("stage-max-9", "direct-max-4")


def length(examples: int) -> settings:
    return settings(
        max_examples=150 if LONG else examples,
        stateful_step_count=60 if LONG else 15,
        deadline=None,
        derandomize=not LONG,
        suppress_health_check=list(HealthCheck),
    )


class Machine(RuleBasedStateMachine):
    """Drives one counter; the classes below say how it is made and what it takes."""

    bounded: ClassVar[bool] = True
    skips: ClassVar[bool] = True
    hostile: ClassVar[list[Any]] = [float("nan"), 2, -1, "1", None, True, 0.5, 1j, [1], 10**400]

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp())
        self.counter = self.begun()
        self.taken: list[Any] = []  # an input a step; None for a skipped one
        self.shown: list[Any] = []  # what was released for it
        self.saved = -1

    def make(self) -> Any:
        """Return a new counter, always of the same key."""
        raise NotImplementedError

    def begun(self) -> Any:
        return self.make()

    def load(self) -> Any:
        return type(self.counter).load(self.home / "state")

    def inputs(self, numbers: list[int]) -> list[Any]:
        """Return inputs made of small numbers."""
        return [number % 2 for number in numbers]

    def update(self, counter: Any, one: Any, **named: Any) -> Any:
        return counter.update(one, **named)

    def extend(self, counter: Any, some: list[Any]) -> list[Any]:
        values: list[Any] = counter.extend(some).tolist()
        return values

    def room(self, wanted: int) -> int:
        return min(wanted, HORIZON - len(self.taken)) if self.bounded else wanted

    @rule(number=st.integers(0, 7))
    def takes_a_step(self, number: int) -> None:
        if self.room(1):
            (one,) = self.inputs([number])
            named = {"step": len(self.taken) + 1} if number % 3 == 0 else {}
            self.shown.append(self.update(self.counter, one, **named))
            self.taken.append(one)

    @rule(numbers=st.lists(st.integers(0, 7), max_size=12))
    def takes_many(self, numbers: list[int]) -> None:
        some = self.inputs(numbers[: self.room(len(numbers))])
        self.shown += self.extend(self.counter, some)
        self.taken += some

    @precondition(lambda self: self.skips)
    @rule(steps=st.sampled_from([0, 1, 5, 90]))
    def skips_steps(self, steps: int) -> None:
        steps = self.room(steps)
        self.counter.skip(steps)
        self.taken += [None] * steps
        self.shown += [None] * steps

    @rule()
    def saves(self) -> None:
        self.counter.save(self.home / "state")
        self.saved = len(self.taken)

    @rule()
    def saves_and_loads(self) -> None:
        self.saves()
        self.counter = self.load()

    @precondition(lambda self: self.saved >= 0)
    @rule()
    def crashes(self) -> None:
        """The steps since the last saved state are taken again: nothing is drawn anew."""
        self.counter = self.load()
        assert self.counter.step == self.saved
        for one, value in zip(self.taken[self.saved :], self.shown[self.saved :], strict=True):
            if one is None:
                self.counter.skip(1)
            else:
                assert self.update(self.counter, one) == value

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def asks_again(self, data: Any) -> None:
        step = data.draw(st.integers(1, len(self.taken)))
        one = self.taken[step - 1]
        if one is None or len(self.taken) - step >= REMEMBERED:
            return
        try:
            assert self.update(self.counter, one, step=step) == self.shown[step - 1]
        except ReplayError:  # what lies before a skip is not remembered
            assert None in self.taken[step:]
        (other,) = self.inputs([3]) if self.inputs([2]) == [one] else self.inputs([2])
        with pytest.raises(ReplayError):
            self.update(self.counter, other, step=step)

    @rule(ahead=st.integers(2, 5))
    def asks_out_of_order(self, ahead: int) -> None:
        with pytest.raises(StateError):  # or HorizonError, which is one
            self.update(self.counter, self.inputs([1])[0], step=len(self.taken) + ahead)

    @rule(data=st.data())
    def gives_bad_input(self, data: Any) -> None:
        bad = self.hostile[data.draw(st.integers(0, len(self.hostile) - 1))]
        with pytest.raises(ParameterError):
            self.update(self.counter, bad)
        if self.room(3) == 3:
            with pytest.raises(ParameterError):
                self.extend(self.counter, [*self.inputs([1, 2]), bad])

    @precondition(lambda self: self.bounded)
    @rule()
    def asks_for_too_much(self) -> None:
        with pytest.raises(HorizonError):
            self.extend(self.counter, self.inputs([1] * (HORIZON - len(self.taken) + 1)))

    @invariant()
    def stands_where_it_should(self) -> None:
        assert self.counter.step == len(self.taken)

    def teardown(self) -> None:
        fresh, at = self.make(), 0
        while at < len(self.taken):
            end = at
            while end < len(self.taken) and (self.taken[end] is None) == (self.taken[at] is None):
                end += 1
            if self.taken[at] is None:
                fresh.skip(end - at)
            else:
                assert self.extend(fresh, self.taken[at:end]) == self.shown[at:end]
            at = end
        self.counter = None
        shutil.rmtree(self.home)


class Bounded(Machine):
    def make(self) -> Any:
        return Counter(1, horizon=HORIZON, chain=CHAIN, simulation_seed=5)


class Unbounded(Machine):
    bounded = False

    def make(self) -> Any:
        return Counter(1, simulation_seed=5)


class Gaussian(Machine):
    def make(self) -> Any:
        return GaussianCounter(1, 1e-6, horizon=HORIZON, mechanism="toeplitz", simulation_seed=5)


class Edit(Machine):
    """With a budget so large that values are shown early; BOT is an input."""

    skips = False
    hostile: ClassVar[list[Any]] = [float("nan"), 2, -1, "1", True, 0.5, 1j, [1], 10**400]

    def make(self) -> Any:
        return SimECC(100, 1e-6, horizon=HORIZON, simulation_seed=5)


class Events(Machine):
    skips = False
    hostile: ClassVar[list[Any]] = [("a", 2), ("a", True), ("a", "1"), (1.5, 1), ("a", None), (b"a", 0.5)]

    def make(self) -> Any:
        return DistinctCounter(1, horizon=HORIZON, simulation_seed=5)

    def inputs(self, numbers: list[int]) -> list[Any]:
        return [(f"item {number // 2}", 1 if number % 3 else -1) for number in numbers]

    def update(self, counter: Any, one: Any, **named: Any) -> Any:
        return counter.update(*one, **named)

    def extend(self, counter: Any, some: list[Any]) -> list[Any]:
        return list(counter.extend([item for item, _ in some], [sign for _, sign in some]))


class Durable(Machine):
    """A folder in which every step is kept: after a crash there is nothing to take again."""

    def make(self) -> Any:
        return Counter(1, horizon=HORIZON, chain=CHAIN, simulation_seed=5)

    def begun(self) -> Any:
        return DurableCounter(self.home / "kept", self.make(), journal_bytes=400)

    def load(self) -> Any:
        self.counter = None
        gc.collect()  # the end of a process gives the folder free, and so does the end of a counter
        return DurableCounter.open(self.home / "kept", journal_bytes=400)

    @rule()
    def saves(self) -> None:
        """Every step is saved."""
        with pytest.raises(AttributeError):
            self.counter.save(self.home / "state")
        self.saved = len(self.taken)

    @rule()
    def crashes(self) -> None:
        self.counter = self.load()
        assert self.counter.step == len(self.taken)

    @rule()
    def closes(self) -> None:
        self.counter.close()
        with pytest.raises(StateError):
            self.counter.update(1)
        self.counter = self.load()

    @rule()
    def is_opened_twice(self) -> None:
        with pytest.raises(StateError):
            DurableCounter.open(self.home / "kept")

    @rule()
    def is_copied(self) -> None:
        copy = self.home / "copy"
        shutil.copytree(self.home / "kept", copy)
        with pytest.raises(StateError):
            DurableCounter.open(copy)
        shutil.rmtree(copy)


TestBounded = Bounded.TestCase
TestUnbounded = Unbounded.TestCase
TestGaussian = Gaussian.TestCase
TestEdit = Edit.TestCase
TestEvents = Events.TestCase
TestDurable = Durable.TestCase

for _machine, _examples in (
    (TestBounded, 10),
    (TestUnbounded, 5),
    (TestGaussian, 5),
    (TestEdit, 4),
    (TestEvents, 4),
    (TestDurable, 5),
):
    _machine.settings = length(_examples)
del _machine
