"""States whose parts are of the wrong shape, by somebody who corrects the checksum: one error for all."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trilift.counters import BiasedCounter, Counter, GaussianCounter
from trilift.counters.edit import PartitionCC, SimECC
from trilift.counters.state_file import checksum, exact_number
from trilift.counters.turnstile import DistinctCounter
from trilift.lift.errors import ArtifactFormatError, ParameterError


def forged(path: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    record = json.loads(path.read_text())
    change(record)
    record["checksum"] = checksum(record)
    path.write_text(json.dumps(record))
    return path


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "x", [], [[]]])
@pytest.mark.parametrize("kind", [Counter, GaussianCounter, BiasedCounter])
def test_epochs_that_are_none(kind: Any, value: Any, tmp_path: Path) -> None:
    arguments = (1,) if kind is Counter else (1, 1e-6)
    path = tmp_path / "state.json"
    kind(*arguments, simulation_seed=1).save(path)
    with pytest.raises(ArtifactFormatError):
        kind.load(forged(path, lambda record: record.update(epochs=value)))


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["setup"].update(bases=[]),
        lambda record: record["setup"].update(bases=record["setup"]["bases"][:1]),
        lambda record: record["held"].update(released=10**500),
    ],
)
def test_hybrid_states(change: Callable[[dict[str, Any]], Any], tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    counter = DistinctCounter(1, horizon=64, method="hybrid", simulation_seed=1)
    counter.extend(list("abc"), [1, 1, 1])
    counter.save(path)
    with pytest.raises(ArtifactFormatError):
        DistinctCounter.load(forged(path, change))


@pytest.mark.parametrize("items", [np.array(1.0), np.ma.masked])
def test_items_without_a_dimension(items: Any) -> None:
    counter = DistinctCounter(1, horizon=64, simulation_seed=1)
    with pytest.raises(ParameterError):
        counter.extend(items, [1])
    assert counter.step == 0


@pytest.mark.parametrize("value", ["x", [], {}, -1, True, 1.5])
@pytest.mark.parametrize("name", ["capacity", "horizon", "high", "places"])
def test_designs_of_other_types(value: Any, name: str, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    SimECC(20, 0.1, horizon=100, base="toeplitz", simulation_seed=1).save(path)
    with pytest.raises(ArtifactFormatError):
        SimECC.load(forged(path, lambda record: record["design"].update({name: value})))


def test_delays_are_not_unrolled_without_an_end(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    SimECC(20, 0.1, horizon=100, base="toeplitz", simulation_seed=1).save(path)
    with pytest.raises(ArtifactFormatError):
        SimECC.load(forged(path, lambda record: record["design"].update(delays=[[3, 2**63]])))


@pytest.mark.parametrize("value", ["0", "-1", "x", None])
def test_partition_designs(value: Any, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    PartitionCC(20, 0.1, horizon=100, simulation_seed=1).save(path)
    with pytest.raises(ArtifactFormatError):
        PartitionCC.load(forged(path, lambda record: record["design"].update(epsilon=value)))


@pytest.mark.parametrize(
    "text", ["1e999999999", " 1", "1_0", "0x1", "1/", "nan", "9" * 2001, 1, 0.5, None, True]
)
def test_only_exact_numbers_of_a_few_digits_are_read(text: object) -> None:
    """Fraction would multiply the first one out for hours."""
    with pytest.raises(ValueError, match="not an exact number"):
        exact_number(text)
