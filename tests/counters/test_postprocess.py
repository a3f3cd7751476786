"""Post-processed counters: functions of the plain releases, repeated and resumed alike."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from trilift.counters import Counter
from trilift.lift.errors import ParameterError

Make = Callable[..., Counter]


@pytest.mark.parametrize("dimension", [None, 2])
def test_they_are_functions_of_the_plain_releases(small: Make, dimension: int | None) -> None:
    shape = (30,) if dimension is None else (30, dimension)
    inputs = np.random.default_rng(0).integers(0, 2, shape)

    def released(seed: int, **options: str) -> np.ndarray:
        return small(dimension=dimension, simulation_seed=seed, **options).extend(inputs)

    seed = next(seed for seed in range(50) if (released(seed) < 0).any())  # or nothing would be to be done
    plain = released(seed)
    assert (np.diff(plain, axis=0) < 0).any()
    nonnegative = released(seed, postprocess="nonnegative")
    assert (nonnegative == np.maximum(plain, 0)).all()
    monotone = released(seed, postprocess="monotone")
    assert (monotone == np.maximum(np.maximum.accumulate(plain, axis=0), 0)).all()


@pytest.mark.parametrize("kind", ["nonnegative", "monotone"])
def test_repeated_and_resumed(small: Make, tmp_path: Path, kind: str) -> None:
    inputs = [1, 0, 0, 1, 1, 0, 1, 0]
    expected = small(postprocess=kind).extend(inputs).tolist()
    counter = small(postprocess=kind)
    for step, x in enumerate(inputs, start=1):
        assert counter.update(x) == expected[step - 1]
        counter.save(tmp_path / "state")
        counter = Counter.load(tmp_path / "state")
        for earlier in range(1, step + 1):
            assert counter.update(inputs[earlier - 1], step=earlier) == expected[earlier - 1]


@pytest.mark.parametrize("kind", ["nonnegative", "monotone"])
def test_negative_inputs_do_not_go_with_it(small: Make, kind: str) -> None:
    with pytest.raises(ParameterError, match="needs inputs that cannot be negative"):
        small(bounds=(-1, 1), postprocess=kind)
    small(bounds=(1, 2), postprocess=kind)


def test_simultaneous_intervals_stay_valid(small: Make) -> None:
    """Whenever all plain releases lie within their intervals, so do the post-processed ones.

    The width of a running maximum's interval is the largest one so far, because an old value may be shown.
    """
    inputs = np.random.default_rng(3).integers(0, 2, 30)
    true = np.cumsum(inputs)
    plain = small()
    widths = np.array([plain.interval(t, 0.9, simultaneous=True) for t in range(1, 31)])
    seen = 0
    for seed in range(30):
        if (np.abs(small(simulation_seed=seed).extend(inputs) - true) <= widths).all():
            seen += 1
            nonnegative = small(simulation_seed=seed, postprocess="nonnegative").extend(inputs)
            assert (np.abs(nonnegative - true) <= widths).all()
            monotone = small(simulation_seed=seed, postprocess="monotone").extend(inputs)
            assert (np.abs(monotone - true) <= np.maximum.accumulate(widths)).all()
    assert seen > 0
