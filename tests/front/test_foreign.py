"""Other people's matrices: certify R.npy, import and export, and files that mean harm."""

import io
import json
import math
import pickle
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trilift.artifacts import find, load, save
from trilift.lift.errors import ArtifactFormatError
from trilift.matrices import read_factors, read_matrix

Run = Callable[..., Any]

FIELDS = ["verified", "kind", "size", "sensitivity", "row_norm", "frobenius", "correction", "rounding"]
FIELDS += ["kappa_direct_max", "kappa_direct_mean", "kappa_lifted_max", "kappa_lifted_mean"]
T = np.tril(np.ones((8, 8)))
R = np.linalg.cholesky(T @ T.T + 3 * np.eye(8)).T
L = T @ np.linalg.inv(R)


def test_certify_a_right_factor(run: Run) -> None:
    np.save("R.npy", R)
    done = run("certify", "R.npy", "--json")
    assert (done.code, done.err) == (0, "")
    record = done.json
    assert list(record) == FIELDS
    assert (record["verified"], record["kind"], record["size"]) == (True, "right-factor", 8)
    top, bottom = record["sensitivity"].split("/")
    assert int(top) / int(bottom) == pytest.approx(np.abs(R).sum(axis=0).max())
    assert record["row_norm"] == pytest.approx(np.sqrt((L**2).sum(axis=1).max()))
    assert record["frobenius"] == pytest.approx(np.sqrt((L**2).sum()))
    assert record["kappa_lifted_max"] < record["kappa_direct_max"]
    assert "kappa_lifted_max" in run("certify", "R.npy").out


def test_what_cannot_be_proved_exits_with_1(run: Run) -> None:
    """Pascal's matrix: invertible, but floats do not find its inverse."""
    np.save("R.npy", [[float(math.comb(i + j, i)) for j in range(16)] for i in range(16)])
    done = run("certify", "R.npy", "--json")
    assert done.code == 1
    assert list(done.json) == ["verified", "kind", "size", "failure"]
    assert done.json["verified"] is False
    assert done.err == f"trilift: not verified: {done.json['failure']}\n"


def test_a_foreign_matrix_goes_all_the_way(run: Run) -> None:
    """import, certify, plan, count."""
    np.save("R.npy", R)
    done = run("import", "R.npy", "--out", "mine.npz", "--json")
    assert done.code == 0
    assert done.json["name"] == "direct-max-8"
    assert "sha256" in load("mine.npz").provenance.notes
    proof = run("certify", "mine.npz", "--json")
    assert (proof.code, proof.json["verified"]) == (0, True)
    assert proof.json["sha256"] == done.json["sha256"]
    record = run("certify", "R.npy", "--json").json
    assert proof.json["kappa_max"] == pytest.approx(record["kappa_direct_max"], rel=1e-4)
    planned = run("plan", "-n", 8, "-e", 1, "--artifact", "mine.npz", "--json")
    assert planned.code == 0
    counted = run("count", "-", "-n", 8, "-e", "1e6", "-q", "--chain", "mine.npz", stdin=b"1\n1\n0\n1\n")
    assert counted.values == [1, 2, 2, 3]


@pytest.mark.parametrize("form", ["files", "archive"])
def test_pairs(run: Run, form: str) -> None:
    if form == "files":
        np.save("L.npy", np.asfortranarray(L))
        np.save("R.npy", R.astype(">f8"))
        files = ["L.npy", "R.npy"]
    else:
        np.savez_compressed("pair.npz", R=R, L=L, more=np.arange(3))
        files = ["pair.npz"]
    done = run("import", *files, "--out", "mine.npz", "--kind", "stage", "--objective", "mean", "--json")
    assert done.code == 0
    assert (done.json["kind"], done.json["objective"]) == ("stage", "mean")
    assert load("mine.npz").provenance.notes.count("sha256") == len(files)


def test_a_pair_that_does_not_fit_exits_with_1(run: Run) -> None:
    np.savez("pair.npz", R=R, L=L + 0.1)
    done = run("import", "pair.npz", "--out", "mine.npz")
    assert (done.code, done.out) == (1, "")
    assert "L R = T fails at" in done.err
    assert not Path("mine.npz").exists()


@pytest.mark.parametrize("name", ["direct-max-8", "direct-mean-16"])
def test_export_and_import_give_the_same_artifact(run: Run, name: str) -> None:
    done = run("export", name, "--out", "folder", "--json")
    assert (done.code, done.json["files"]) == (0, ["folder/L.npy", "folder/R.npy"])
    assert (done.json["rounded"], done.json["residual"]) == (False, 0.0)
    objective = name.split("-")[1]
    back = run("import", *done.json["files"], "--objective", objective, "--out", "b.npz", "--json").json
    assert back["sha256"] == find(name).certificate.sha256


def test_export_of_a_stage_and_its_integers(run: Run) -> None:
    done = run("export", "stage-mean-9", "--out", "s.npz", "--exact")
    assert done.code == 0
    stage = find("stage-mean-9").stage
    with np.load("s.npz") as arrays:
        for name in "ABwg":
            assert np.array_equal(arrays[name], getattr(stage, name).to_float())
            exact = np.ldexp(arrays[f"{name}_num"].astype(float), -arrays[f"{name}_exp"])
            assert np.array_equal(exact, arrays[name])


def test_export_of_lifted_factors(run: Run) -> None:
    done = run("export", "stage-max-9", "--horizon", 50, "--out", "x/y", "--json")
    assert done.json["rounded"] is True
    assert "Rounded to float64" in done.err
    left, right = np.load("x/y/L.npy"), np.load("x/y/R.npy")
    assert np.abs(left @ right - np.tril(np.ones((50, 50)))).max() == done.json["residual"] < 1e-12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("import", "none.npy", "--out", "o.npz"), "none.npy: No such file"),
        (("import", "none.npz", "--out", "o.npz"), "none.npz: unreadable archive (No such file"),
        (("import", "catalogue", "--out", "o.npz"), "catalogue: unreadable archive"),
        (("import", "a.npy", "b.npy", "c.npy", "--out", "o.npz"), "factors must be given as"),
        (("import", "a.npz", "b.npy", "--out", "o.npz"), "factors must be given as"),
        (("import", "I.npy", "--out", "o.npy"), "--out must end in .npz"),
        (("import", "I.npy", "--out", "I.npz"), "I.npz exists already"),
        (("import", "I.npy", "--out", "no/o.npz"), "the folder no does not exist"),
        (("import", "I.npy", "--out", "o.npz", "--kind", "top"), "kind must be one of"),
        (("import", "I.npy", "--out", "o.npz", "--objective", "x"), "objective must be one of"),
        (("import", "I.npz", "--out", "o.npz"), "I.npz: the archive has no array R, only ['A.npy']"),
        (("import", "wide.npy", "--out", "o.npz"), "at least as many rows as columns"),
        (("certify", "none.npy"), "none.npy: No such file"),
        (("certify", "wide.npy", "--json"), "R must be a square matrix"),
        (("export", "nothing", "--out", "o"), "neither a file nor an artifact"),
        (("export", "direct-max-4", "--out", "I.npz"), "I.npz exists already"),
        (("export", "direct-max-4", "--out", "."), "L.npy exists already"),
        (("export", "direct-max-4", "--out", "o", "--horizon", 5), "past the capacity 4"),
        (("export", "direct-max-4", "--out", "o", "--horizon", 0), "horizon must be an integer >= 1"),
        (("export", "direct-max-4", "--out", "o", "-n", 2, "--exact"), "leave --horizon out"),
    ],
)
def test_refusals(refused: Callable[..., str], arguments: tuple[object, ...], message: str) -> None:
    np.save("I.npy", np.eye(2))
    np.save("L.npy", np.eye(2))
    np.savez("I.npz", A=np.eye(2))
    np.save("wide.npy", np.ones((2, 3)))
    assert message in refused(*arguments)
    assert not Path("o.npz").exists()


class Bomb:
    """Unpickling this would be noticed."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("a pickle was loaded",))


def npy(header: str, data: bytes = b"", *, version: int = 1) -> bytes:
    text = header.encode() + b"\n"
    width = "<H" if version == 1 else "<I"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack(width, len(text)) + text + data


def header(descr: str = "'<f8'", shape: object = (2, 2), order: object = False) -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


def saved(array: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


HOSTILE = {
    "empty": b"",
    "text": b"1,0\n0,1\n",
    "magic alone": b"\x93NUMPY\x01\x00",
    "pickle": pickle.dumps(Bomb()),
    "objects": saved(np.array([[Bomb()]], dtype=object), allow_pickle=True),
    "huge": npy(header(shape=(10**5, 4096))),
    "overflowing": npy(header(shape=(2**40, 2**40))),
    "longer than declared": saved(np.eye(2)) + b"\0",
    "shorter than declared": saved(np.eye(2))[:-1],
    "other dimensions": saved(np.eye(2).reshape(2, 2, 1)),
    "no entries": saved(np.zeros((0, 2))),
    "a scalar": saved(np.float64(1.0)),
    "a record": saved(np.zeros((2, 2), dtype=[("a", "<f8")])),
    "complex": saved(np.eye(2) * 1j),
    "long double": saved(np.eye(2, dtype=np.longdouble)),
    "booleans": saved(np.eye(2, dtype=bool)),
    "code": npy(header(descr="__import__('os').abort()"), bytes(32)),
    "nested": npy("{'descr': " + "(" * 3000 + ")" * 900 + ", }"),
    "long header": npy(" " * 5000, version=2),
    "header beyond the file": b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
    "newer version": npy(header(), bytes(32), version=9),
    "large integers": saved(np.array([[2**53 + 1, 0], [0, 1]])),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_arrays_are_refused_in_one_line(refused: Callable[..., str], name: str) -> None:
    """As a file and as a member of an archive; nothing large is allocated, nothing run."""
    Path("x.npy").write_bytes(HOSTILE[name])
    with zipfile.ZipFile("x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("R.npy", HOSTILE[name])
    tracemalloc.start()
    for path in (Path("x.npy"), Path("x.npz")):
        with pytest.raises(ArtifactFormatError, match=str(path)):
            read_factors([path])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10**6
    assert "x.npy" in refused("certify", "x.npy")
    assert "x.npz" in refused("import", "x.npz", "--out", "o.npz")


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=dtype).reshape(3, 2)
        for dtype in ("<f8", ">f8", "<f4", "<f2", "i1", ">i2", "u8", "<i8")
    ],
)
def test_plain_arrays_are_read(tmp_path: Path, array: Any) -> None:
    for version in ((1, 0), (2, 0)):
        for made in (array, np.asfortranarray(array)):
            with (tmp_path / "x.npy").open("wb") as file:
                np.lib.format.write_array(file, made, version=version)
            read = read_matrix(tmp_path / "x.npy")
            assert read.dtype == np.float64
            assert read.tolist() == array.tolist()


def test_hostile_archives(refused: Callable[..., str], tmp_path: Path) -> None:
    """Thousands of members, a bomb of zeros, NaN, an encrypted member, a truncated archive."""
    with zipfile.ZipFile("many.npz", "w") as archive:
        for i in range(100):
            archive.writestr(f"{i}.npy", b"")
    assert "100 members, more than 16" in refused("import", "many.npz", "--out", "o.npz")
    with zipfile.ZipFile("bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("R.npy", npy(header(), bytes(10**7)))
    tracemalloc.start()
    assert "asks for 32 bytes" in refused("import", "bomb.npz", "--out", "o.npz")
    assert tracemalloc.get_traced_memory()[1] < 5 * 10**6
    tracemalloc.stop()
    np.savez("nan.npz", R=np.array([[np.nan, 0], [0, 1]]))
    assert "R must be finite" in refused("import", "nan.npz", "--out", "o.npz")
    np.savez("good.npz", R=np.eye(2))
    data = bytearray(Path("good.npz").read_bytes())
    Path("cut.npz").write_bytes(data[:-30])
    assert "cut.npz" in refused("import", "cut.npz", "--out", "o.npz")
    data[data.rindex(b"PK\1\2") + 8] |= 1
    Path("secret.npz").write_bytes(data)
    assert "secret.npz" in refused("import", "secret.npz", "--out", "o.npz")


def test_export_refuses_false_claims(run: Run) -> None:
    artifact = find("direct-max-4")
    low = replace(artifact.certificate, kappa_max=0.0)
    save(replace(artifact, certificate=low), "false.npz")
    done = run("export", "false.npz", "--out", "o")
    assert (done.code, done.out) == (1, "")
    assert "not verified: kappa_max <=" in done.err
    assert not Path("o").exists()


def test_json_of_import_is_json(run: Run) -> None:
    np.save("I.npy", np.eye(3))
    out = run("import", "I.npy", "--out", "o.npz", "--json").out
    assert list(json.loads(out)) == [
        *["name", "path", "inner", "kind", "size", "objective", "kappa_max", "kappa_mean"],
        *["interior_kappa_max", "interior_kappa_mean", "sha256"],
    ]
