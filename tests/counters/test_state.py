"""Saved counters: continued exactly, written whole or not at all, refused when anything is off."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trilift.artifacts import Artifact, Provenance, save
from trilift.counters import Counter, chain_of, state
from trilift.counters.state_file import checksum
from trilift.lift.budget import horizon_scales
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import ArtifactFormatError, ParameterError, ReplayError
from trilift.lift.stage import Stage
from trilift.verify.certification import certify

Make = Callable[..., Counter]
Record = dict[str, Any]
SMALL = ("stage-max-9", "direct-max-4")


@pytest.fixture
def saved(small: Make, tmp_path: Path) -> Path:
    """The file of a counter with a secret key after five steps."""
    counter = small(simulation_seed=None, bounds=(0, 3), max_contributions=2)
    counter.extend([1, 0, 3, 2, 1])
    counter.save(tmp_path / "counter.json")
    return tmp_path / "counter.json"


def rewrite(path: Path, change: Callable[[Record], Any], *, forge: bool = True) -> None:
    """Edit a state; with ``forge``, by somebody who corrects the checksum."""
    record = json.loads(path.read_text())
    change(record)
    if forge:
        record["checksum"] = checksum(record)
    path.write_text(json.dumps(record))


def test_continue_exactly(saved: Path) -> None:
    first, second = Counter.load(saved), Counter.load(saved)
    assert first.step == 5
    assert first.extend([1] * 25).tolist() == [second.update(1) for _ in range(25)]
    assert first.update(3, step=3) == second.update(3, step=3)


def test_all_parameters_survive(small: Make, tmp_path: Path) -> None:
    for options in (
        {
            "epsilon": 0.1,
            "bounds": (-0.5, 0.75),
            "resolution": 0.25,
            "output_resolution": 2.0**-9,
            "clip": True,
        },
        {"dimension": 3, "norm_bound": 2, "max_contributions": 4, "objective": "mean"},
        {"postprocess": "monotone", "simulation_seed": None},
        {"chain": None, "horizon": 1000},
        {"bounds": (0, 2**300), "epsilon": 2.0**250},
    ):
        counter = small(**options)
        vector = options.get("dimension")
        counter.update(0 if vector is None else [0] * vector)
        counter.save(tmp_path / "state")
        other = Counter.load(tmp_path / "state")
        assert state.setup_record(other.setup) == state.setup_record(counter.setup)
        assert other.setup.ledger == counter.setup.ledger
        assert other.privacy_statement() == counter.privacy_statement()
        assert repr(other) == repr(counter)
        other.save(tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == (tmp_path / "state").read_bytes()


def test_only_the_owner_can_read_it(saved: Path, small: Make) -> None:
    before = os.umask(0)
    try:
        small().save(saved)
    finally:
        os.umask(before)
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600


@pytest.mark.parametrize("broken", ["json.dumps", "os.fsync", "os.replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file(
    saved: Path, monkeypatch: pytest.MonkeyPatch, broken: str, error: BaseException
) -> None:
    counter, before = Counter.load(saved), saved.read_bytes()
    counter.update(1)

    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(broken, fail)
    with pytest.raises(type(error)):
        counter.save(saved)
    monkeypatch.undo()
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]
    assert counter.step == 6


def test_places_that_cannot_be_written(small: Make, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        small().save(tmp_path / "missing" / "state")
    with pytest.raises(OSError, match="director"):
        small().save(tmp_path)
    assert os.listdir(tmp_path) == []
    small().save(str(tmp_path / ("long" * 60)))  # 240 characters, as long as names may nearly be


def test_links_are_followed(saved: Path, small: Make, tmp_path: Path) -> None:
    """A link replaced by a file would leave an old state behind, ready to be continued twice."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    link = folder / "current"
    link.symlink_to(saved)
    counter = Counter.load(link)
    counter.update(1)
    counter.save(link)
    assert link.is_symlink()
    assert Counter.load(saved).step == 6
    assert os.listdir(folder) == ["current"]


def test_chain_objects_are_given_again(small: Make, tmp_path: Path) -> None:
    chain = chain_of(("stage-max-9", "direct-max-4"))
    counter = small(chain=chain)
    assert counter.update(1) == small(chain=chain_of(("stage-max-9", "direct-max-4"))).update(1)
    counter.save(tmp_path / "state")
    with pytest.raises(ParameterError, match="pass it as chain="):
        Counter.load(tmp_path / "state")
    with pytest.raises(ReplayError, match="level 0 of the chain that is given has other numbers"):
        Counter.load(tmp_path / "state", chain=chain_of(("stage-mean-9", "direct-max-4")))
    with pytest.raises(ReplayError, match="the chain that is given has 1 levels, the saved one 2"):
        Counter.load(tmp_path / "state", chain=chain_of(["direct-max-32"]))
    for bad in (chain.to_float(), 5, "stage-max-9"):
        with pytest.raises(ParameterError, match="chain must be"):
            Counter.load(tmp_path / "state", chain=bad)
    assert Counter.load(tmp_path / "state", chain=chain).update(0) == counter.update(0)
    small().save(tmp_path / "named")
    with pytest.raises(ParameterError, match="not needed"):
        Counter.load(tmp_path / "named", chain=chain)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "5", '"x"', "[" * 100_000, '{"format": "trilift counter state"}', "\x00\xff"],
)
def test_other_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ArtifactFormatError) as caught:
        Counter.load(path)
    assert str(caught.value).startswith(str(path))


def test_unreadable_places(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(ArtifactFormatError, match="cannot be read"):
            Counter.load(path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_truncated_files(saved: Path, share: float) -> None:
    data = saved.read_bytes()
    saved.write_bytes(data[: int(share * len(data))])
    with pytest.raises(ArtifactFormatError, match="damaged"):
        Counter.load(saved)


EDITS: dict[str, Callable[[Record], Any]] = {
    "epsilon": lambda r: r["setup"].update(epsilon="2"),
    "horizon": lambda r: r["setup"].update(horizon=31),
    "objective": lambda r: r["setup"].update(objective="mean"),
    "bounds": lambda r: r["setup"].update(bounds=["1", "4"]),
    "clip": lambda r: r["setup"].update(clip=True),
    "contributions": lambda r: r["setup"].update(max_contributions=3),
    "post-processing": lambda r: r["setup"].update(postprocess="monotone"),
    "step": lambda r: r.update(step=4, recent=r["recent"][:4]),
    "counts": lambda r: r.update(counts=[8]),
    "inputs": lambda r: r["recent"][2].__setitem__(1, [0]),
    "key": lambda r: r.update(key="00" * 32),
    "stream": lambda r: r.update(stream_id="00" * 16),
    "simulation": lambda r: r.update(simulated=True),
}


@pytest.mark.parametrize("name", EDITS)
def test_edits_show(saved: Path, name: str) -> None:
    rewrite(saved, EDITS[name], forge=False)
    with pytest.raises(ArtifactFormatError, match="damaged counter state"):
        Counter.load(saved)


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r["setup"].update(epsilon="2"),
        lambda r: r["setup"].update(bounds=["0", "2"]),
        lambda r: r["setup"].update(max_contributions=1),
        lambda r: r["setup"].update(output_resolution="1/2"),
        lambda r: r["levels"][0].update(scale=r["levels"][0]["scale"] + 1),
        lambda r: r["levels"][1].update(
            scale=2 * r["levels"][1]["scale"], places=r["levels"][1]["places"] + 1
        ),
        lambda r: r.update(digest="00" * 32),
    ],
)
def test_another_mechanism_is_never_continued(saved: Path, change: Callable[[Record], Any]) -> None:
    """Even if the checksum is right: other noise for released steps would spend epsilon again."""
    rewrite(saved, change)
    with pytest.raises(ReplayError, match="another mechanism"):
        Counter.load(saved)


HOSTILE: dict[str, Callable[[Record], Any]] = {
    "newer": lambda r: r.update(version=3),
    "older": lambda r: r.update(version=1),
    "digest short": lambda r: r.update(digest="00"),
    "digest list": lambda r: r.update(digest=[r["digest"]]),
    "levels none": lambda r: r.update(levels=[]),
    "levels fewer": lambda r: r["levels"].pop(),
    "levels more": lambda r: r["levels"].append(r["levels"][0]),
    "level list": lambda r: r.update(levels=[[], []]),
    "level more": lambda r: r["levels"][0].update(extra=1),
    "hash short": lambda r: r["levels"][0].update(sha256="00"),
    "hash number": lambda r: r["levels"][0].update(sha256=5),
    "scale float": lambda r: r["levels"][0].update(scale=1e9),
    "scale zero": lambda r: r["levels"][0].update(scale=0),
    "scale small": lambda r: r["levels"][0].update(scale=r["levels"][0]["scale"] // 2),
    "scale huge": lambda r: r["levels"][0].update(scale=10**4000),
    "places negative": lambda r: r["levels"][0].update(places=-1),
    "places coarse": lambda r: r["levels"][1].update(places=r["levels"][1]["places"] - 1),
    "places huge": lambda r: r["levels"][0].update(places=10**18),
    "spends more": lambda r: r["setup"].update(bounds=["0", "4"]),
    "contributes more": lambda r: r["setup"].update(max_contributions=3),
    "other lattice": lambda r: r["setup"].update(resolution="1/2", output_resolution="1/2"),
    "version true": lambda r: r.update(version=True),
    "other format": lambda r: r.update(format="x"),
    "key short": lambda r: r.update(key=r["key"][2:]),
    "key not hex": lambda r: r.update(key="zz" * 32),
    "key number": lambda r: r.update(key=5),
    "stream short": lambda r: r.update(stream_id=""),
    "simulated number": lambda r: r.update(simulated=1),
    "step negative": lambda r: r.update(step=-1, recent=[]),
    "step beyond": lambda r: r.update(step=31, recent=[]),
    "step float": lambda r: r.update(step=5.0),
    "step true": lambda r: r.update(step=True),
    "step ahead": lambda r: r.update(step=6),
    "counts missing": lambda r: r.update(counts=[]),
    "counts twice": lambda r: r.update(counts=[1, 1]),
    "counts float": lambda r: r.update(counts=[7.0]),
    "counts text": lambda r: r.update(counts="7"),
    "counts number": lambda r: r.update(counts=7),
    "peaks nested": lambda r: r.update(peaks=[[0]]),
    "recent number": lambda r: r.update(recent=5),
    "recent short": lambda r: r.update(recent=[[5, [1]]]),
    "recent gap": lambda r: r["recent"].pop(2),
    "recent from zero": lambda r: r.update(step=1, recent=[[0, [1], [1]], [1, [1], [1]]]),
    "recent before zero": lambda r: r.update(step=1, recent=[[n, [1], [1]] for n in (-1, 0, 1)]),
    "recent wide": lambda r: r["recent"][4].__setitem__(2, [1, 1]),
    "setup list": lambda r: r.update(setup=[]),
    "setup empty": lambda r: r.update(setup={}),
    "setup more": lambda r: r["setup"].update(extra=1),
    "epsilon zero": lambda r: r["setup"].update(epsilon="0"),
    "epsilon nan": lambda r: r["setup"].update(epsilon="nan"),
    "epsilon float": lambda r: r["setup"].update(epsilon=1.0),
    "epsilon over zero": lambda r: r["setup"].update(epsilon="1/0"),
    "epsilon exponent": lambda r: r["setup"].update(epsilon="1e999999999"),
    "epsilon long": lambda r: r["setup"].update(epsilon="1" * 3000),
    "epsilon null": lambda r: r["setup"].update(epsilon=None),
    "horizon text": lambda r: r["setup"].update(horizon="30"),
    "horizon zero": lambda r: r["setup"].update(horizon=0),
    "horizon beyond the chain": lambda r: r["setup"].update(horizon=10**6),
    "bounds one": lambda r: r["setup"].update(bounds=["0"]),
    "bounds text": lambda r: r["setup"].update(bounds="0123"),
    "bounds reversed": lambda r: r["setup"].update(bounds=["3", "0"]),
    "bounds numbers": lambda r: r["setup"].update(bounds=[0, 3]),
    "clip text": lambda r: r["setup"].update(clip="no"),
    "dimension text": lambda r: r["setup"].update(dimension="1"),
    "dimension huge": lambda r: r["setup"].update(dimension=10**12),
    "chain short": lambda r: r["setup"].update(chain=["direct-max-4"]),
    "chain empty": lambda r: r["setup"].update(chain=[]),
    "chain number": lambda r: r["setup"].update(chain=5),
    "chain numbers": lambda r: r["setup"].update(chain=[5]),
    "levels reversed": lambda r: r["levels"].reverse(),
    "post-processing": lambda r: r["setup"].update(postprocess="x"),
    "norm bound": lambda r: r["setup"].update(norm_bound="1"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_states(saved: Path, name: str) -> None:
    key = json.loads(saved.read_text())["key"]
    rewrite(saved, HOSTILE[name])
    with pytest.raises(ArtifactFormatError) as caught:
        Counter.load(saved)
    assert str(caught.value).startswith(str(saved))
    assert "\n" not in str(caught.value)
    assert key not in str(caught.value)


CHAINED = ("mine-first", "mine-top")


@pytest.fixture
def mine(small: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path, list[int]]:
    """A folder of two own artifacts, a state of a counter that names them, and what it releases next."""
    folder = tmp_path / "artifacts"
    folder.mkdir()
    monkeypatch.setenv("TRILIFT_ARTIFACTS", str(folder))
    for name, made in zip(CHAINED, (own_stage(3), own_top(4)), strict=True):
        save(made, folder / f"{name}.npz")
    counter = small(chain=CHAINED, horizon=12)
    counter.extend([1, 0, 1])
    counter.save(tmp_path / "state")
    return folder, tmp_path / "state", [counter.update(1, step=step) for step in range(4, 9)]


def own_stage(size: int) -> Artifact:
    """A stage that is not shipped: blocks of counts, measured as they are."""
    ones, eye = (np.tril(np.ones((size, size), dtype=np.int64)), np.eye(size, dtype=np.int64))
    return artifact(Stage(Dyadic(ones), Dyadic(eye), Dyadic([0] * size), Dyadic([1] * size)), kind="stage")


def own_top(size: int, factor: int = 1) -> Artifact:
    """A plain factorisation that is not shipped, its two halves stretched against each other."""
    ones, eye = (np.tril(np.ones((size, size), dtype=np.int64)), np.eye(size, dtype=np.int64))
    shift = factor.bit_length() - 1
    return artifact(Stage.plain(Dyadic(ones, shift), Dyadic(eye * factor)), kind="direct")


def artifact(stage: Stage, *, kind: str) -> Artifact:
    provenance = Provenance(objective="max", size=stage.size)
    return Artifact(stage, certify(stage, objective="max", kind=kind), provenance)


def continued(path: Path) -> list[int]:
    counter = Counter.load(path)
    return [counter.update(1) for _ in range(5)]


def test_artifacts_are_found_by_their_numbers(mine: tuple[Path, Path, list[int]], tmp_path: Path) -> None:
    """Renamed, or another one filed under the name: the counter goes on with the numbers it began with."""
    folder, path, expected = mine
    assert continued(path) == expected
    (folder / "mine-top.npz").rename(folder / "moved.npz")
    assert continued(path) == expected
    save(own_top(4, factor=4), folder / "mine-top.npz")
    assert continued(path) == expected
    counter = Counter.load(path)
    assert counter.setup.names == ("mine-first", "moved")
    counter.save(path)
    assert continued(path) == expected


def test_changed_and_missing_artifacts(mine: tuple[Path, Path, list[int]], saved: Path) -> None:
    folder, path, _ = mine
    save(own_top(4, factor=4), folder / "mine-top.npz")
    with pytest.raises(
        ReplayError, match=r"level 1: artifact 'mine-top' has other numbers .*\(SHA-256 [0-9a-f]{64}\)"
    ):
        Counter.load(path)
    (folder / "mine-top.npz").unlink()
    (folder / "mine-first.npz").unlink()
    with pytest.raises(ReplayError, match="state: level 0: artifact 'mine-first' cannot be loaded"):
        Counter.load(path)
    assert Counter.load(saved).step == 5  # the others are not concerned


@pytest.mark.parametrize("by_object", [False, True])
@pytest.mark.parametrize("factor", [1 + 1e-12, 1.5, 0.2])
def test_scales_are_not_computed_again(
    small: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_object: bool, factor: float
) -> None:
    """Another version, processor or numpy may round the wanted scales otherwise: the noise must not care."""
    chain: Any = chain_of(SMALL) if by_object else SMALL
    counter = small(chain=chain, simulation_seed=None)
    counter.extend([1, 0, 1])
    counter.save(tmp_path / "state")

    def moved(*arguments: Any, **options: Any) -> Any:
        return horizon_scales(*arguments, **options) * [1.0, factor]

    monkeypatch.setattr("trilift.counters.setup.horizon_scales", moved)
    if factor > 1.1:
        assert small(chain=chain).setup.ledger != counter.setup.ledger  # the change would matter
    other = Counter.load(tmp_path / "state", chain=chain if by_object else None)
    assert other.setup.ledger == counter.setup.ledger
    assert other.extend([1] * 27).tolist() == counter.extend([1] * 27).tolist()


def test_nothing_is_planned_again(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("horizon_scales", "default_names", "chain_of", "make_ledger"):
        monkeypatch.delattr(f"trilift.counters.setup.{name}")
    assert Counter.load(saved).step == 5


def names(record: Record) -> list[tuple[str, ...]]:
    return [(name,) for name in record] + [("setup", name) for name in record["setup"]]


def test_missing_fields(saved: Path) -> None:
    whole = saved.read_text()
    for path in names(json.loads(whole)):
        if path == ("kind",):  # files of older versions do not say it
            continue
        record = json.loads(whole)
        inner = record if len(path) == 1 else record["setup"]
        del inner[path[-1]]
        if path != ("checksum",):
            record["checksum"] = checksum(record)
        saved.write_text(json.dumps(record))
        with pytest.raises((ArtifactFormatError, ParameterError)):
            Counter.load(saved)


def test_fields_of_other_kinds(saved: Path) -> None:
    """Every field in turn replaced by every kind of JSON value: refused, or it meant the same."""
    whole = json.loads(saved.read_text())
    expected = Counter.load(saved).update(1)
    for path in names(whole):
        for value in (None, True, -1, 0, 1.5, float("nan"), 10**400, "", "x", [], [None], [[]], {}, {"a": 1}):
            record = json.loads(json.dumps(whole))
            inner = record if len(path) == 1 else record["setup"]
            if inner[path[-1]] is value:
                continue
            inner[path[-1]] = value
            if path != ("checksum",):
                record["checksum"] = checksum(record)
            saved.write_text(json.dumps(record))
            try:
                counter = Counter.load(saved)
            except (ArtifactFormatError, ParameterError, ReplayError):
                continue
            assert path[-1] in ("recent", "clip", "dimension", "peaks", "simulated", "counts", "step"), (
                path,
                value,
            )
            if path[-1] != "counts":
                assert counter.update(1) == expected


def test_too_large(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_MAX_BYTES", 100)
    with pytest.raises(ArtifactFormatError, match="too large"):
        Counter.load(saved)


def test_snapshots_hide_their_secrets(saved: Path) -> None:
    snapshot = state.read(saved)
    assert snapshot.key.hex() not in repr(snapshot)
    assert repr(snapshot) == "Snapshot(step=5, secrets hidden)"


def test_a_wide_counter_can_be_read_again(small: Make, tmp_path: Path) -> None:
    counter = small(dimension=1100)
    counter.extend(np.ones((5, 1100), dtype=np.int8))
    counter.save(tmp_path / "state")
    expected = counter.update(np.zeros(1100, dtype=int))
    assert (Counter.load(tmp_path / "state").update(np.zeros(1100, dtype=int)) == expected).all()
