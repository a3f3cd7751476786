"""The vectorised schedule against a dictionary that is filled and read step by step."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trilift.counters.edit.schedule import Pairs, Schedule, extrapolated, latest

Entry = tuple[int, int, int]


def literal(events: list[list[Entry]]) -> list[Entry | None]:
    """Add before check, largest l of equal times, overwrite in order of time: the entry shown."""
    waiting: dict[int, Entry] = {}
    shown: Entry | None = None
    out = []
    for t, added in enumerate(events, start=1):
        for entry in added:
            if entry[1] not in waiting or waiting[entry[1]][0] < entry[0]:
                waiting[entry[1]] = entry
        shown = waiting.pop(t, shown)
        out.append(shown)
    return out


def pairs(entries: list[Entry]) -> Pairs:
    columns = zip(*entries, strict=True) if entries else ([], [], [])
    return Pairs(*(np.array(list(column), dtype=np.int64) for column in columns))


@st.composite
def streams(draw) -> list[list[Entry]]:
    """At each step perhaps a bucket ends, and its pair is due after 0..6 steps."""
    events, index = [], 0
    for t in range(1, draw(st.integers(1, 30)) + 1):
        added = []
        if draw(st.booleans()):
            added.append((index, t + draw(st.integers(0, 6)), draw(st.integers(-5, 50))))
            index += 1
        events.append(added)
    return events


@given(streams(), st.data())
def test_any_split_shows_what_the_dictionary_shows(events, data) -> None:
    wanted = literal(events)
    schedule, step, got_latest, got_carried = Schedule.start(), 0, [], []
    while step < len(events):
        k = data.draw(st.integers(1, len(events) - step))
        new = pairs([entry for added in events[step : step + k] for entry in added])
        schedule, shown, where = schedule.advanced(step=step, steps=k, new=new)
        assert len(schedule.shown) <= 1
        got_latest += latest(shown, where).tolist()
        delays = 2 + shown.index % 3
        got_carried += extrapolated(shown, where, step=step, delays=delays, largest=3).tolist()
        step += k
    assert got_latest == [0 if entry is None else entry[2] for entry in wanted]
    for t, (entry, value) in enumerate(zip(wanted, got_carried, strict=True), start=1):
        if entry is None:
            assert value == 0
            continue
        index, due, seen = entry
        end = due - (2 + index % 3)
        rate = Fraction(min(max(seen, 0), 3 * end), end) if end >= 1 else Fraction(0)
        assert value == (seen + rate * (t - end) + Fraction(1, 2)) // 1


def test_collisions_keep_the_largest_index() -> None:
    new = pairs([(0, 5, 10), (1, 5, 20), (2, 4, 30)])
    schedule, shown, where = Schedule.start().advanced(step=2, steps=4, new=new)
    assert latest(shown, where).tolist() == [0, 30, 20, 20]
    assert len(schedule.pending) == 0


@pytest.mark.parametrize("big", [1 << 70, -(1 << 70)])
def test_values_past_64_bits(big) -> None:
    new = Pairs(np.array([0, 1]), np.array([1, 3]), np.array([7, big], dtype=object))
    _, shown, where = Schedule.start().advanced(step=0, steps=3, new=new)
    assert latest(shown, where).tolist() == [7, 7, big]
    carried = extrapolated(shown, where, step=0, delays=np.array([0, 1]), largest=1 << 69)
    rate = Fraction(min(max(big, 0), 2 << 69), 2)
    assert carried.tolist() == [7, 14, int(big + rate)]
