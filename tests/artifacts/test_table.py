"""The table of hostile artifacts of the trust page: every case, by every reader."""

from pathlib import Path

import pytest
from trilift.artifacts import digest, load
from trilift.experiments.trust.files import READERS, complaint, same_artifact
from trilift.experiments.trust.hostile_archives import ARCHIVES, LOADER_ALONE, small_artifact
from trilift.experiments.trust.hostile_texts import PLACES, flips, truncations
from trilift.lift.errors import ArtifactFormatError

CASES = [(group, name) for group, cases in ARCHIVES.items() for name in cases]


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(("group", "name"), CASES)
def test_hostile_artifacts(group: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "case.npz"
    path.write_bytes(ARCHIVES[group][name]())
    for reader, read in READERS.items():
        if reader != "checker" or name not in LOADER_ALONE:
            assert not complaint(read, path), reader


@pytest.mark.parametrize("name", PLACES)
def test_no_file_there(name: str, tmp_path: Path) -> None:
    path = PLACES[name](tmp_path)
    for reader, read in READERS.items():
        assert not complaint(read, path), reader


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(small_artifact())
    (tmp_path / "link.npz").symlink_to("real")
    assert same_artifact()(load(tmp_path / "link.npz"))


@pytest.mark.slow
def test_every_truncation_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.npz"
    for data in truncations(small_artifact()):
        path.write_bytes(data)
        with pytest.raises(ArtifactFormatError):
            load(path)


@pytest.mark.slow
def test_flipped_bits_are_found_or_without_effect(tmp_path: Path) -> None:
    """What is not found lies in zip's dates, versions, attributes, or in the padding of a member."""
    whole, path, same = small_artifact(), tmp_path / "flipped.npz", same_artifact()
    own, harmless = load_from(path, whole), 0
    places = 0
    for place, data in flips(whole):
        path.write_bytes(data)
        places += 1
        try:
            read = load(path)
        except ArtifactFormatError:
            continue
        harmless += 1
        assert same(read), place
        assert digest(read.stage) == own.certificate.sha256, place
    assert places == len(whole)
    assert 0 < harmless < 5 * 40 + 16  # a member's dates, versions, attributes; the end record's disks


def load_from(path: Path, data: bytes) -> object:
    path.write_bytes(data)
    return load(path)


def test_complaints_are_made(tmp_path: Path) -> None:
    """A reader that reads, raises something else, says too much or takes too much is complained about."""
    path = tmp_path / "file"

    def fail(error: Exception) -> object:
        def read(path: Path) -> None:
            raise error

        return read

    def greedy(path: Path) -> None:
        held = bytearray(64 << 20)
        raise ArtifactFormatError(f"took {len(held)}")

    assert complaint(lambda path: 1, path) == "it was read"
    assert complaint(lambda path: 1, path, takes=lambda value: value == 2) == "it was read"
    assert complaint(lambda path: 2, path, takes=lambda value: value == 2) == ""
    assert complaint(fail(KeyError("x")), path).startswith("KeyError")
    assert complaint(fail(ArtifactFormatError("a\nb")), path).startswith("not one line")
    assert complaint(fail(ArtifactFormatError("a")), path) == ""
    assert complaint(greedy, path) == "64 MiB were taken"
