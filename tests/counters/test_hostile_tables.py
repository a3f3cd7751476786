"""The tables of hostile states of the trust page, for every class of counters."""

from pathlib import Path

import pytest
from trilift.experiments.trust.files import complaint
from trilift.experiments.trust.fuzz_targets import saved_state
from trilift.experiments.trust.hostile_texts import PLACES, STATES, TEXTS, flips, truncations
from trilift.experiments.trust.kinds import KINDS, Kind
from trilift.lift.errors import ArtifactFormatError

CLASSES = [kind for kind in KINDS if kind.name.isalpha()]
every_class = pytest.mark.parametrize("kind", CLASSES, ids=[kind.name for kind in CLASSES])


@every_class
def test_odd_and_forged_states(kind: Kind, tmp_path: Path) -> None:
    _, cls, whole = saved_state(kind)
    path = tmp_path / "state"
    for what, change in (TEXTS | STATES).items():
        path.write_bytes(change(whole))
        assert not complaint(cls.load, path, most=None), what


@every_class
def test_damage_anywhere(kind: Kind, tmp_path: Path) -> None:
    _, cls, whole = saved_state(kind)
    path = tmp_path / "state"
    for data in [*truncations(whole, stride=11), *(data for _, data in flips(whole, stride=5))]:
        path.write_bytes(data)
        with pytest.raises(ArtifactFormatError):
            cls.load(path)


@every_class
def test_no_state_there(kind: Kind, tmp_path: Path) -> None:
    _, cls, whole = saved_state(kind)
    for number, (what, make) in enumerate(PLACES.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert not complaint(cls.load, make(folder)), what
    (tmp_path / "state").write_bytes(whole)
    (tmp_path / "link").symlink_to("state")
    assert cls.load(tmp_path / "link").step == 5


@every_class
def test_a_newer_version_is_called_one(kind: Kind, tmp_path: Path) -> None:
    _, cls, whole = saved_state(kind)
    (tmp_path / "state").write_bytes(STATES["a newer version"](whole))
    with pytest.raises(ArtifactFormatError, match="version 99, this library reads"):
        cls.load(tmp_path / "state")
