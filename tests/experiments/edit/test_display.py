"""What is shown is what the schedule of the paper shows."""

import numpy as np
from trilift.counters.edit import schedule
from trilift.experiments.edit.display import extrapolated, latest, latest_index, mean_squares, shown_at


def slow(times: list[int], steps: int) -> list[int]:
    """Step by step: add before check, the largest l of those due at one step."""
    shown, result = 0, []
    for t in range(1, steps + 1):
        due = [l for l, when in enumerate(times, start=1) if when == t]
        shown = due[-1] if due else shown
        result.append(shown)
    return result


def test_against_the_schedule_list() -> None:
    rng = np.random.default_rng(11)
    for _ in range(50):
        count, steps = int(rng.integers(0, 12)), int(rng.integers(1, 20))
        times = rng.integers(1, steps + 4, (3, count))
        found = latest_index(times, steps=steps)
        values = rng.normal(size=(3, count))
        outputs = latest(times, values, steps=steps)
        for row in range(3):
            expected = slow(times[row].tolist(), steps)
            assert found[row, 1:].tolist() == expected
            padded = [0.0, *values[row]]
            assert outputs[row].tolist() == [padded[l] for l in expected]


def test_mean_squares() -> None:
    prefix = np.array([[0, 1, 1]], dtype=np.int32)
    assert mean_squares(np.array([[3.0, 1.0]]), prefix).tolist() == [2.0]


def test_extrapolation_is_that_of_the_mechanism() -> None:
    """Against the exact display, which rounds to whole numbers; and both ways of reading at some steps."""
    rng = np.random.default_rng(12)
    for _ in range(40):
        count, steps = int(rng.integers(1, 12)), 40
        times = rng.integers(1, steps + 4, count)
        delays = rng.integers(0, 12, count)
        values = rng.integers(-5, 30, count)
        pairs = schedule.Pairs(np.arange(count), times, values).ordered()
        _, shown, where = schedule.Schedule.start().advanced(step=0, steps=steps, new=pairs)
        exact = schedule.extrapolated(
            shown, where, step=0, delays=delays[shown.index] if len(shown) else delays[:0], largest=1
        )
        row = times[None], values[None].astype(float)
        found = extrapolated(*row, steps=steps, delays=delays.astype(float))[0]
        assert np.floor(found + 0.5 + 1e-9).tolist() == exact.tolist()
        at = np.arange(1, steps + 1)
        read = shown_at(times, values.astype(float), at=at, delays=delays.astype(float))
        assert np.allclose(read, found, atol=1e-9)
        plain = shown_at(times, values.astype(float), at=at)
        assert plain.tolist() == latest(*row, steps=steps)[0].tolist()
