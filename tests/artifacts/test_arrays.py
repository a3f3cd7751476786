"""Plain arrays of any archive: what numpy writes is read as numpy reads it, and nothing else is."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from trilift.artifacts.arrays import read_arrays
from trilift.experiments.trust.forgery import plain_npy
from trilift.lift.errors import ArtifactFormatError

SORTS = {
    "floats": np.linspace(0, 1, 6).reshape(2, 3),
    "float32": np.ones(3, dtype=np.float32),
    "integers": np.arange(4, dtype=np.int64),
    "bytes": np.frombuffer(b"abc", dtype=np.uint8),
    "truth": np.array([True, False]),
    "text": np.array("a text"),
    "nothing": np.zeros((0, 3)),
    "one": np.float64(2.5),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "other end": np.arange(3, dtype=">i4"),
}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_numpy_writes(save: object, tmp_path: Path) -> None:
    path = tmp_path / "arrays.npz"
    save(path, **SORTS)  # type: ignore[operator]
    found = read_arrays(path)
    assert list(found) == list(SORTS)
    for name, array in SORTS.items():
        assert found[name].dtype == np.asarray(array).dtype, name
        assert np.array_equal(found[name], array), name
    assert np.array_equal(read_arrays(io.BytesIO(path.read_bytes()))["floats"], SORTS["floats"])
    found["floats"][0, 0] = 5.0  # as those of numpy.load, they can be written to


def archive(path: Path, method: int = zipfile.ZIP_STORED, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", method) as made:
        for name, data in members.items():
            made.writestr(f"{name}.npy", data)
    return path


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (plain_npy("|O", (1,), bytes(8)), "not a plain array"),
        (plain_npy("<f8", (2**20, 2**20)), "does not hold"),
        (plain_npy("<f8", (2**40,)), "does not hold"),
        (plain_npy("<f8", (-1,)), "not a plain array"),
        (plain_npy("<f8", (1,) * 9, bytes(8)), "does not hold"),
        (plain_npy("<U99999999", ()), "does not hold"),
        (plain_npy("<U999999999", ()), "not a plain array"),
        (plain_npy("[('a', '<f8')]", (1,), bytes(8)), "not a plain array"),
        (b"\x80\x04.", "not an .npy array"),
        (b"", "not an .npy array"),
    ],
)
def test_other_members(data: bytes, match: str, tmp_path: Path) -> None:
    with pytest.raises(ArtifactFormatError, match=match):
        read_arrays(archive(tmp_path / "odd.npz", x=data))


def test_other_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = plain_npy("<f8", (1,), bytes(8))
    with pytest.raises(ArtifactFormatError, match="neither stored nor deflated"):
        read_arrays(archive(tmp_path / "lzma.npz", zipfile.ZIP_LZMA, x=one))
    monkeypatch.setattr("trilift.artifacts.arrays.MAX_UNFOLDED", 100)
    with pytest.raises(ArtifactFormatError, match="would unfold"):
        read_arrays(archive(tmp_path / "bomb.npz", zipfile.ZIP_DEFLATED, x=one))
    with pytest.raises(FileNotFoundError):
        read_arrays(tmp_path / "missing.npz")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name(tmp_path: Path) -> None:
    path = tmp_path / "twice.npz"
    with zipfile.ZipFile(path, "w") as made:
        for _ in range(2):
            made.writestr("x.npy", plain_npy("<f8", (1,), bytes(8)))
    with pytest.raises(ArtifactFormatError, match="two members of one name"):
        read_arrays(path)
