"""Files that earlier versions wrote are still read, and go on with the very same noise (docs/format.md).

The files in ``tests/kept`` are never written again. ``python tests/test_kept_files.py`` adds those that are
missing: for a new kind of file, or a new version of one, beside the old one. Those in ``tests/kept/refused``
are of development versions whose Laplace noise came from another sampler: what they had released must not get
other noise.
"""

import importlib
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trilift
from trilift.counters.accounting import Budget
from trilift.counters.frames import private_cumsum
from trilift.lift.errors import ArtifactFormatError, ReplayError

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "tests" / "kept"
DELTA = 1e-6
FIRST, THEN = [1, 0, 1, 1, 0, 1, 1, 1], [0, 1, 1, 0, 1]
EVENTS = [("a", 1), ("b", 1), ("c", 1), ("a", -1)] * 3

MAKERS: dict[str, Callable[[], Any]] = {
    "Counter-2": lambda: trilift.Counter(1, horizon=1000, simulation_seed=1),
    "Counter-3": lambda: trilift.Counter(1, simulation_seed=1),
    "GaussianCounter-3": lambda: trilift.GaussianCounter(1, DELTA, horizon=1000, simulation_seed=1),
    "GaussianCounter-3-toeplitz": lambda: trilift.GaussianCounter(
        1, DELTA, horizon=100, mechanism="toeplitz", simulation_seed=1
    ),
    "BiasedCounter-3": lambda: trilift.BiasedCounter(1, DELTA, horizon=1000, simulation_seed=1),
    "SimECC-1": lambda: trilift.SimECC(1, DELTA, horizon=1000, rate=0.5, simulation_seed=1),
    "ECC-1": lambda: trilift.ECC(1, DELTA, horizon=1000, rate=0.5, simulation_seed=1),
    "PartitionCC-1": lambda: trilift.PartitionCC(1, DELTA, horizon=1000, simulation_seed=1),
    "GaussianCC-1": lambda: trilift.GaussianCC(1, DELTA, simulation_seed=1),
    "HorizonGaussian-1": lambda: trilift.HorizonGaussian(1, DELTA, horizon=100, simulation_seed=1),
    "DistinctCounter-1": lambda: trilift.DistinctCounter(5, horizon=60, every=4, simulation_seed=1),
    "SecondMoment-1": lambda: trilift.SecondMoment(rho=5, horizon=60, every=4, simulation_seed=1),
}


def taken(counter: Any, values: list[int]) -> list[Any]:
    """What a counter releases for some more inputs."""
    if hasattr(counter, "every"):
        events = (EVENTS * 2)[: len(values)]
        readings = counter.extend([item for item, _ in events], [sign for _, sign in events])
        return [[reading.step, reading.estimate, reading.low, reading.high] for reading in readings]
    shown: list[Any] = counter.extend(values).tolist()
    return shown


def expected() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((KEPT / "expected.json").read_text(encoding="utf-8"))
    return found


def test_every_kind_is_kept() -> None:
    assert set(expected()) == {path.stem for path in KEPT.glob("*.json")} - {"expected"}
    assert set(MAKERS) <= set(expected())


@pytest.mark.parametrize("name", MAKERS)
def test_kept_states_go_on_with_the_same_noise(name: str) -> None:
    counter = getattr(trilift, name.split("-", maxsplit=1)[0]).load(KEPT / f"{name}.json")
    assert counter.step == len(FIRST)
    assert taken(counter, THEN) == expected()[name]


@pytest.mark.parametrize("name", MAKERS)
def test_a_new_counter_with_the_same_key_has_the_same_noise(name: str) -> None:
    counter = MAKERS[name]()
    taken(counter, FIRST)
    assert taken(counter, THEN) == expected()[name]


def test_kept_budgets(tmp_path: Path) -> None:
    shutil.copy(KEPT / "Budget-1.json", tmp_path / "budget.json")
    budget = Budget.load(tmp_path / "budget.json")
    assert {name: str(left) for name, left in budget.left.items()} == expected()["Budget-1"]
    assert [entry.by for entry in budget.entries] == ["kept"]


def frame() -> Any:
    import polars

    return polars.DataFrame({"g": ["a", 'b"', None] * 3, "t": range(9), "x": [1, 0, 1] * 3})


def from_frame(state: Path, version: str) -> list[int]:
    out = private_cumsum(
        frame(),
        "x",
        by="g",
        groups=["a", 'b"', None],
        order="t",
        epsilon=1,
        horizon=50,
        state=state,
        version=version,
    )
    values: list[int] = out["x_private"].to_list()
    return values


def test_kept_keys_of_frames(tmp_path: Path) -> None:
    shutil.copy(KEPT / "frames-2.json", tmp_path / "keys.json")
    assert [from_frame(tmp_path / "keys.json", version) for version in ("1", "2")] == expected()["frames-2"]


@pytest.mark.parametrize("path", sorted((KEPT / "refused").glob("*.json")), ids=lambda path: path.stem)
def test_states_of_another_sampler_are_refused(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    shutil.copy(path, copy)
    if path.stem == "frames-1":
        with pytest.raises(ArtifactFormatError, match="version 1"):
            from_frame(copy, "1")
    else:
        with pytest.raises(ReplayError, match="belongs to another mechanism; it is not continued"):
            taken(getattr(trilift, path.stem.split("-", maxsplit=1)[0]).load(copy), THEN)
    assert copy.read_bytes() == path.read_bytes()


def test_the_page_says_which_versions_there_are() -> None:
    """The table of docs/format.md, and the numbers in the program."""
    text = (ROOT / "docs" / "format.md").read_text(encoding="utf-8").split("## What stays readable")[1]
    rows = {
        form: sorted({int(n) for n in written.split(",")})
        for form, written in re.findall(
            r"^\|.*\| `(trilift[^`]*)` \| [0-9, ]+ \| ([0-9, ]+) \|$", text, re.MULTILINE
        )
    }
    homes = {
        "artifacts.artifact": ("VERSION", "L2_VERSION"),
        "counters.state": ("VERSION", "LATER_VERSION"),
        "counters.edit.state": ("VERSION",),
        "counters.edit.gaussian_state": ("VERSION",),
        "counters.turnstile.state": ("VERSION",),
        "counters.durable.identity": ("VERSION",),
        "counters.accounting.record": ("VERSION",),
        "counters.frames.registry": ("VERSION",),
    }
    found = {}
    for home, names in homes.items():
        module = importlib.import_module(f"trilift.{home}")
        found[module.FORMAT] = sorted(getattr(module, name) for name in names)
    assert rows == found


def write_missing() -> None:
    """Add the files that are not there yet."""
    KEPT.mkdir(exist_ok=True)
    known = expected() if (KEPT / "expected.json").exists() else {}
    for name, make in MAKERS.items():
        if name not in known:
            counter = make()
            taken(counter, FIRST)
            counter.save(KEPT / f"{name}.json")
            known[name] = taken(counter, THEN)
    if "Budget-1" not in known:
        budget = Budget(1, delta=DELTA, record=KEPT / "Budget-1.json")
        budget.charge(trilift.Counter(0.25, horizon=10), by="kept")
        known["Budget-1"] = {name: str(left) for name, left in budget.left.items()}
    if "frames-2" not in known:
        known["frames-2"] = [from_frame(KEPT / "frames-2.json", version) for version in ("1", "2")]
    for lock in KEPT.glob("*.lock"):
        lock.unlink()
    (KEPT / "expected.json").write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_missing()
    sys.exit(0)
