"""Files that are damaged or made to do harm: one error of one kind, one line, and no large allocation."""

import pickle
import random
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from trilift.artifacts import digest, load
from trilift.lift.errors import ArtifactFormatError


def refused(path, match=None):
    with pytest.raises(ArtifactFormatError, match=match) as caught:
        load(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


class Bomb:
    """Unpickling this would be noticed."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


def test_unchanged_members_load(forger, tree):
    assert load(forger.write()).certificate == tree.certificate


def test_every_truncation_is_refused(tree_file, tmp_path):
    whole = tree_file.read_bytes()
    path = tmp_path / "short.npz"
    for length in [*range(0, len(whole), 37), len(whole) - 1]:
        path.write_bytes(whole[:length])
        refused(path)


def test_one_flipped_bit_never_changes_the_numbers(tree, tree_file, tmp_path):
    """Where a flip is not refused, it hit what the format ignores (a date, a permission)."""
    whole, path, rng = tree_file.read_bytes(), tmp_path / "flipped.npz", random.Random(7)
    refusals = 0
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            artifact = load(path)
        except ArtifactFormatError:
            refusals += 1
        else:
            assert digest(artifact.stage) == tree.certificate.sha256
            assert artifact.certificate == tree.certificate
    assert refusals > len(whole) // 2


def test_wrong_crc(tree_file, tmp_path):
    whole = bytearray(tree_file.read_bytes())
    with zipfile.ZipFile(tree_file) as archive:
        entry = archive.getinfo("A.npy")
    path = tmp_path / "crc.npz"
    in_directory, in_front = whole.rindex(b"A.npy") - 46 + 16, entry.header_offset + 14
    whole[in_directory : in_directory + 4] = struct.pack("<L", entry.CRC ^ 1)
    path.write_bytes(whole)
    refused(path, "not what the archive's directory says")
    whole[in_front : in_front + 4] = struct.pack("<L", entry.CRC ^ 1)
    path.write_bytes(whole)
    refused(path, "CRC")


@pytest.mark.parametrize("name", ["A", "w"])
def test_object_arrays_are_refused_unread(forger, name):
    forger.set_array(name, np.array([Bomb()], dtype=object), allow_pickle=True)
    refused(forger.write(), "plain array of dtype")


def test_a_pickle_in_place_of_a_member_is_refused_unread(forger):
    forger.members["B.npy"] = pickle.dumps(Bomb())
    refused(forger.write(), "not an .npy array")


def test_a_pickle_in_place_of_the_file_is_refused_unread(tmp_path):
    path = tmp_path / "pickle.npz"
    path.write_bytes(pickle.dumps(Bomb()))
    refused(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_members(forger):
    names = list(forger.members)
    refused(forger.write([*names, "A.npy"]), "6 members")
    refused(forger.write([*names[:4], "A.npy"]), "members must be")


def test_missing_reordered_and_foreign_members(forger):
    names = list(forger.members)
    refused(forger.write(names[:-1]), "members must be")
    refused(forger.write(names[::-1]), "members must be")
    forger.members["../g.npy"] = forger.members.pop("g.npy")
    refused(forger.write(), "members must be")


@pytest.mark.parametrize("shape", [(2**31, 2**31), (999999999, 1), (10**9,), (4, 10**8, 2)])
def test_huge_declared_shapes_allocate_nothing(forger, shape):
    text = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    forger.members["A.npy"] = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text
    path = forger.write()
    tracemalloc.start()
    refused(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10**6


def test_zip_bomb_is_refused_before_it_unfolds(forger, tmp_path):
    """A gigabyte of zeros in a megabyte, as A: the header of the file does not allow such an A."""
    forger.set_array("A", np.zeros((4, 2**22), dtype=np.int64))
    path = forger.write()
    assert path.stat().st_size < 2**18
    tracemalloc.start()
    refused(path, "A must be int64 of shape")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10**6


def test_declared_total_is_limited(forger):
    path = forger.write()
    whole = bytearray(path.read_bytes())
    place = whole.rindex(b"A.npy") - 46 + 24  # the uncompressed size in the directory entry
    whole[place : place + 4] = struct.pack("<L", 2**31)
    path.write_bytes(whole)
    refused(path, "declare more than")


def test_member_longer_than_declared(forger):
    forger.members["w.npy"] += b"\0" * 8
    refused(forger.write(), "its array header")


def test_other_types_and_orders(forger):
    for array in (
        np.zeros((4, 4)),
        np.zeros((4, 4), dtype=">i8"),
        np.asfortranarray(np.arange(16).reshape(4, 4)),
    ):
        forger.set_array("A", array)
        refused(forger.write(), "plain array of dtype")
    forger.set_array("A", np.zeros((4, 4), dtype=np.uint8))
    refused(forger.write(), "A must be int64")


def test_numbers_must_be_canonical(forger, tree):
    forger.set_array("B", tree.stage.B.num * 2)
    forger.set_header(exponents={**forger.header["exponents"], "B": 1})
    refused(forger.write(), "canonical form")


def test_words_must_be_least(forger, tree):
    forger.set_array("g", np.stack([tree.stage.g.num, np.zeros(4, dtype=np.int64)], axis=1))
    refused(forger.write(), "canonical form")


def test_changed_numbers_do_not_have_the_hash(forger, tree):
    num = np.array(tree.stage.B.num)
    num[0, 0] += 2
    forger.set_array("B", num)
    refused(forger.write(), "SHA-256")
    assert load(forger.target, verify_hash=False).stage.B.num[0, 0] == 3


def test_newer_version_is_refused_clearly(forger):
    forger.set_header(version=3)
    refused(forger.write(), "format version 3 is newer than 2")


def test_the_other_norms_version_is_told_apart(forger):
    forger.set_header(version=2)
    refused(forger.write(), r"about norm l2 \(Gaussian noise\), not l1")


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 0},
        {"version": True},
        {"version": "1"},
        {"format": "other"},
        {"size": 5},
        {"size": 10**6},
        {"size": "4"},
        {"inner": 33},
        {"inner": -1},
        {"tail": 3},
        {"kind": "stage"},
        {"exponents": {"A": 0}},
        {"exponents": {"A": -1, "B": 0, "w": 0, "g": 0}},
        {"exponents": {"A": 10**9, "B": 0, "w": 0, "g": 0}},
        {"certificate": None},
        {"provenance": {}},
        {"extra": 1},
    ],
)
def test_wrong_headers(forger, changes):
    forger.set_header(**changes)
    refused(forger.write())


@pytest.mark.parametrize("field", ["seed", "steps", "versions", "notes", "size"])
def test_wrong_provenance(forger, field):
    forger.set_header(provenance={**forger.header["provenance"], field: [1.5]})
    refused(forger.write(), "provenance")


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[" * 100_000, b'{"format": NaN}', b'{"a": 1, "a": 1}', b"\xff\xfe", b"null"]
)
def test_headers_that_are_not_json_objects(forger, text):
    forger.set_raw_header(text)
    refused(forger.write(), "header")


def test_header_is_limited(forger):
    forger.set_raw_header(b" " * (2**20 + 1))
    refused(forger.write(), "header declares more")


def test_no_file_and_a_directory(tmp_path):
    refused(tmp_path / "nothing.npz", "no such file")
    refused(tmp_path)


def test_kind_direct_with_weights(forger):
    forger.set_array("w", np.array([0, 0, 0, 1]))
    forger.set_header(tail=3)
    refused(forger.write(), "w or g is not zero")
