"""Saved edit-private counters: continued with the very same noise, refused when anything does not fit."""

import json
import os
import stat
import tracemalloc
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from trilift.counters.edit.design import make_design
from trilift.counters.edit.internals import position
from trilift.counters.edit.mechanism import ECC, SimECC
from trilift.counters.edit.partition_cc import PartitionCC
from trilift.counters.state_file import checksum
from trilift.lift.errors import ArtifactFormatError, ReplayError, StateError

VALUES = np.ma.array(np.random.default_rng(5).integers(0, 2, 600), mask=np.arange(600) % 3 == 0)


@lru_cache
def design(mechanism: str, **options):
    settings = {"horizon": 600, "base": "toeplitz"} | options
    return make_design(20, delta=1e-4, mechanism=mechanism, **settings)


def make(kind=SimECC, *, state=None, **options):
    return kind.of(design(kind.mechanism, **options), simulation_seed=4, state=state)


KINDS = [(SimECC, {}), (ECC, {}), (SimECC, {"resolution": 0.5, "display": "extrapolated"})]


def rewrite(path: Path, **changes) -> None:
    """Change fields and make the checksum fit again."""
    record = json.loads(path.read_text()) | changes
    record["checksum"] = checksum(record)
    path.write_text(json.dumps(record))


@pytest.mark.parametrize(("kind", "options"), KINDS)
@pytest.mark.parametrize("at", [0, 1, 299, 600])
def test_continued_with_the_same_noise(kind, options, at, tmp_path) -> None:
    wanted = make(kind, **options).extend(VALUES).tolist()
    counter = make(kind, **options)
    before = counter.extend(VALUES[:at]).tolist()
    counter.save(tmp_path / "state")
    again = kind.load(tmp_path / "state")
    assert again.step == at
    assert again.design == counter.design
    assert before + again.extend(VALUES[at:]).tolist() == wanted


def test_repeatable_steps_survive(tmp_path) -> None:
    counter = make()
    shown = [counter.update(x) for x in (1, None, 0)]
    counter.save(tmp_path / "state")
    again = SimECC.load(tmp_path / "state")
    assert [again.update(1, step=1), again.update(None, step=2), again.update(0, step=3)] == shown
    with pytest.raises(ReplayError):
        again.update(0, step=2)


def test_a_state_that_is_kept(tmp_path) -> None:
    path = tmp_path / "state"
    with make(state=path) as counter:
        shown = counter.extend(VALUES[:100]).tolist()
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        with pytest.raises(StateError, match="in use"):
            SimECC.load(path, persist=True)
        with pytest.raises(StateError, match=r"exists|in use"):
            make(state=path)
    with pytest.raises(StateError, match="closed"):
        counter.update(1)
    with SimECC.load(path, persist=True) as again:
        assert again.step == 100
        shown += again.extend(VALUES[100:]).tolist()
    assert shown == make().extend(VALUES).tolist()


def test_a_write_that_fails_changes_nothing(tmp_path, monkeypatch) -> None:
    counter = make(state=tmp_path / "state")
    counter.extend(VALUES[:50])
    before = position(counter)

    def broken(*arguments: object, **options: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("trilift.counters.state_file.atomic_write", broken)
    with pytest.raises(OSError, match="disk full"):
        counter.update(1)
    assert position(counter) is before


def test_other_classes_are_refused(tmp_path) -> None:
    make().save(tmp_path / "state")
    for kind in (ECC, PartitionCC):
        with pytest.raises(ArtifactFormatError, match=f"is the state of 'SimECC', not of {kind.__name__}"):
            kind.load(tmp_path / "state")
    (tmp_path / "other").write_text(json.dumps({"format": "trilift counter state"}))
    with pytest.raises(ArtifactFormatError, match="not the state of an edit-private counter"):
        SimECC.load(tmp_path / "other")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"version": 2}, ArtifactFormatError),
        ({"version": True}, ArtifactFormatError),
        ({"step": -1}, ArtifactFormatError),
        ({"step": 601}, ArtifactFormatError),
        ({"count": 1.0}, ArtifactFormatError),
        ({"opened": 10**9}, ArtifactFormatError),
        ({"key": "00"}, ArtifactFormatError),
        ({"shown": [[1, 2]]}, ArtifactFormatError),
        ({"pending": [[1, 2, 3]]}, ArtifactFormatError),
        ({"simulated": 1}, ArtifactFormatError),
        ({"design": {}}, ArtifactFormatError),
        ({"design": None}, ArtifactFormatError),
        ({"digest": "0" * 64}, ReplayError),
        ({"digest": "x"}, ArtifactFormatError),
        ({"recent": [[7, [1, 0], [0]]]}, ArtifactFormatError),
    ],
)
def test_what_does_not_fit_is_refused(changes, error, tmp_path) -> None:
    counter = make()
    counter.extend(VALUES[:100])
    counter.save(tmp_path / "state")
    rewrite(tmp_path / "state", **changes)
    with pytest.raises(error):
        SimECC.load(tmp_path / "state")


def test_damage_is_seen(tmp_path) -> None:
    make().save(tmp_path / "state")
    text = (tmp_path / "state").read_text()
    for damaged in (text[:-5], text.replace('"clock": 0', '"clock": 1'), "", "[]", "\xff"):
        (tmp_path / "bad").write_text(damaged, encoding="latin-1")
        with pytest.raises(ArtifactFormatError):
            SimECC.load(tmp_path / "bad")
    with pytest.raises(ArtifactFormatError, match="cannot be read"):
        SimECC.load(tmp_path / "missing")


def test_a_changed_design_gives_no_fresh_noise(tmp_path) -> None:
    """Another budget in the file: either its own ledger refuses it, or the digest does."""
    make().save(tmp_path / "state")
    record = json.loads((tmp_path / "state").read_text())
    record["design"]["display"] = "extrapolated"
    rewrite(tmp_path / "state", design=record["design"])
    with pytest.raises(ReplayError, match="another mechanism"):
        SimECC.load(tmp_path / "state")


@pytest.mark.slow
@pytest.mark.usefixtures("plain_path")
def test_memory_and_states_stay_small(tmp_path) -> None:
    """Nothing that grows with the steps is kept: neither sums nor pairs that were shown."""
    counter = SimECC(1, 1e-6, base="tapered", simulation_seed=1)
    ones = np.ones(300_000, dtype=np.int8)
    counter.extend(ones[:10_000])
    tracemalloc.start()
    try:
        counter.extend(ones)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 2_000_000  # pages of noise; the sums would add 2,400,000 bytes
    counter.save(tmp_path / "state")
    assert (tmp_path / "state").stat().st_size < 50_000
