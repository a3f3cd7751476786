"""What is shown is what the schedule of the paper shows."""

import numpy as np
from trilift.experiments.edit.display import latest, latest_index, mean_squares


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
