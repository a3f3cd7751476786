"""Headers of .npy arrays: those that numpy writes are read, everything else is refused before it is used."""

import io

import numpy as np
import pytest
from trilift.artifacts.npy import read_npy_header
from trilift.experiments.trust.forgery import plain_npy
from trilift.lift.errors import ArtifactFormatError

KINDS = ["<f2", "<f4", "<f8", "<i1", "<i2", "<i4", "<i8", "<u1", "<u2", "<u4", "<u8"]
KINDS += ["|b1", ">f8", ">i4", "<U3", "|S5"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 1, 4)])
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_what_numpy_writes(kind: str, shape: tuple[int, ...], version: tuple[int, int]) -> None:
    array = np.array(np.zeros(shape), dtype=kind, order="F")
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=version)
    whole = file.tell()
    file.seek(0)
    header = read_npy_header(file)
    assert (header.dtype, header.shape) == (array.dtype, shape)
    assert header.length == file.tell()
    assert header.length + header.size == whole
    data = np.frombuffer(file.read(), header.dtype).reshape(shape, order=header.order)
    assert (data == array).all()


@pytest.mark.parametrize("kind", ["<f1", "<f3", "<i3", "|O", "<c16", "<M8", "<U999999999", "<V8", "x", ""])
def test_other_types_are_refused(kind: str) -> None:
    with pytest.raises(ArtifactFormatError, match="not a plain array of numbers or text"):
        read_npy_header(io.BytesIO(plain_npy(kind, (1,), bytes(8))))


@pytest.mark.parametrize("cut", range(0, 64, 3))
def test_what_ends_early_is_refused(cut: int) -> None:
    with pytest.raises(ArtifactFormatError, match=r"not an \.npy array|not a plain array"):
        read_npy_header(io.BytesIO(plain_npy("<f8", (1,), bytes(8))[:cut]))


def test_a_header_that_is_too_long_is_not_read() -> None:
    file = io.BytesIO(b"\x93NUMPY\2\0\xff\xff\xff\x7f" + bytes(100))
    with pytest.raises(ArtifactFormatError, match="not a plain array"):
        read_npy_header(file)
    assert file.tell() == 12
