"""The standalone checker: it agrees with certify on every shipped file and finds what is false on its own."""

import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from math import nextafter
from pathlib import Path

import numpy as np
import pytest
from trilift.artifacts import Artifact, Provenance, digest, find, load, save
from trilift.artifacts.listing import SHIPPED
from trilift.lift import Dyadic, Stage
from trilift.verify import certify, check_artifact, log2_enclosure, verification_report

FILES = sorted(SHIPPED.glob("*.npz"))
SMALL = SHIPPED / "direct-max-32.npz"


def script():
    spec = importlib.util.find_spec("trilift.verify.check_artifact")
    return Path(spec.origin)


def write(artifact, path):
    """Save an artifact whose certificate may lie about everything but the hash."""
    save(artifact, path)
    return str(path)


def changed(artifact, name, index, by):
    """Add to one numerator, and claim the right hash for the result."""
    num = np.array(getattr(artifact.stage, name).num, dtype=object)
    num[index] += by
    parts = {other: getattr(artifact.stage, other) for other in "ABwg"}
    stage = Stage(**{**parts, name: Dyadic(num, parts[name].exp)})
    return Artifact(stage, replace(artifact.certificate, sha256=digest(stage)), artifact.provenance)


def run(*arguments, capsys):
    status = check_artifact.main([str(argument) for argument in arguments])
    return status, capsys.readouterr().out


def test_every_shipped_file_is_verified(capsys):
    """But for the largest, which take seconds each: .ci/suite runs the checker, as a script, on them all."""
    files = [path for path in FILES if not path.stem.endswith("-1024")]
    status, out = run(*files, capsys=capsys)
    assert status == 0
    assert out.count("verified") == len(files) >= 22
    suite = (Path(__file__).resolve().parents[2] / ".ci" / "suite").read_text(encoding="utf-8")
    assert "shipped=(artifacts/*.npz artifacts/l2/*.npz)" in suite
    assert '"$python" -I -O verify/check_artifact.py "${shipped[@]}"' in suite


def test_it_stands_alone():
    """It imports numpy and the standard library, and runs where trilift cannot be imported."""
    imported = set()
    for node in ast.walk(ast.parse(script().read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module.split(".")[0])
    assert imported - set(sys.stdlib_module_names) == {"numpy"}


@pytest.mark.parametrize("options", [[], ["-O"]])
def test_as_a_script(tmp_path, options):
    shutil.copy(script(), tmp_path / "check_artifact.py")
    write(changed(find("direct-max-4"), "A", (0, 0), 1), tmp_path / "false.npz")
    (tmp_path / "nothing.npz").write_bytes(b"nothing")
    block = "import sys, runpy; sys.modules['trilift'] = None; sys.argv = sys.argv[1:]; "
    command = [sys.executable, *options, "-c", block + "runpy.run_path(sys.argv[0], run_name='__main__')"]

    def status(*files):
        done = subprocess.run(
            [*command, str(tmp_path / "check_artifact.py"), *map(str, files)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert len(done.stdout.splitlines()) == len(files)
        assert not done.stderr
        return done.returncode

    assert status(SMALL) == 0
    assert status(SMALL, tmp_path / "false.npz") == 1
    assert status(tmp_path / "nothing.npz", SMALL) == 2


def test_as_a_module_without_sympy():
    code = (
        "import sys, runpy\n"
        "sys.modules['sympy'] = None\n"
        "sys.argv = ['check', *sys.argv[1:]]\n"
        "runpy.run_module('trilift.verify.check_artifact', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(SMALL)], check=False, env=os.environ
    )
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("name", "index"), [("A", (3, 1)), ("A", (0, -1)), ("B", (2, 5)), ("B", (-1, 0)), ("w", 5), ("g", 0)]
)
@pytest.mark.parametrize("shipped", ["stage-mean-9", "stage-max-17"])
def test_one_changed_unit_is_found(tmp_path, capsys, shipped, name, index):
    status, out = run(write(changed(find(shipped), name, index, 1), tmp_path / "x.npz"), capsys=capsys)
    assert status == 1
    assert out.startswith("FALSE")


def test_the_entry_is_named(tmp_path, capsys):
    artifact = find("direct-max-4")
    _, out = run(
        write(changed(artifact, "A", (2, 0), 1 << artifact.stage.A.exp), tmp_path / "x.npz"), capsys=capsys
    )
    assert "T = A B + w (1 - v)^T at (2, 0): 1 against" in out


def test_changed_numbers_under_the_old_hash(tmp_path, capsys, monkeypatch):
    artifact = changed(find("stage-mean-9"), "A", (0, 0), 1)
    lie = replace(artifact.certificate, sha256="0" * 64)
    monkeypatch.setattr("trilift.artifacts.artifact.digest", lambda stage: "0" * 64)
    status, out = run(
        write(Artifact(artifact.stage, lie, artifact.provenance), tmp_path / "x.npz"), capsys=capsys
    )
    assert status == 1
    assert "sha256" in out


CLAIMS = ("sensitivity", "max_row_norm_sq", "mean_row_norm_sq")
KAPPAS = ("kappa_max", "kappa_mean", "interior_kappa_max", "interior_kappa_mean")


@pytest.mark.parametrize("name", [*CLAIMS, *(f"interior_{name}" for name in CLAIMS), *KAPPAS])
@pytest.mark.parametrize("shipped", ["stage-mean-9", "stage-max-9"])
def test_both_checkers_find_a_claim_too_small_by_the_least(tmp_path, capsys, shipped, name):
    artifact = find(shipped)
    value = getattr(artifact.certificate, name)
    less = nextafter(value, 0.0) if name in KAPPAS else value - Fraction(1, 10**40)
    lie = replace(artifact.certificate, **{name: less})
    path = write(Artifact(artifact.stage, lie, artifact.provenance), tmp_path / "x.npz")
    status, out = run(path, capsys=capsys)
    assert status == 1
    assert f"  {name} <= " in out
    report = verification_report(path)
    assert report["verified"] is False
    assert report["failure"].startswith(f"{name} <= ")


def test_weights_outside_their_range(tmp_path, capsys):
    stage = Stage(Dyadic([[1, 0], [1, 1]]), Dyadic([[1, 0], [0, 1]]), Dyadic([0, 0]), Dyadic([3, 0], 1))
    honest = certify(Stage.plain(stage.A, stage.B), objective="max", kind="stage")
    artifact = Artifact(stage, replace(honest, sha256=digest(stage)), Provenance("max", 2))
    status, out = run(write(artifact, tmp_path / "x.npz"), capsys=capsys)
    assert (status, "0 <= v <= 1 at index 0: it is 3/2" in out) == (1, True)


def test_numbers_wider_than_words(tmp_path, capsys):
    """A factorisation of T_2 with entries of 100 bits, true and false."""
    big = 1 << 100
    A, B = [[1, 0], [1 - big, 1]], [[1, 0], [big, 1]]
    stage = Stage.plain(Dyadic(A), Dyadic(B))
    artifact = Artifact(stage, certify(stage, objective="max"), Provenance("max", 2))
    assert run(write(artifact, tmp_path / "x.npz"), capsys=capsys)[0] == 0
    for by in (1, 1 << 90):
        false = changed(artifact, "A", (1, 1), by)
        assert run(write(false, tmp_path / "y.npz"), capsys=capsys)[0] == 1


def test_absurdly_large_numbers_are_told_in_one_line(tmp_path, capsys):
    artifact = find("direct-max-4")
    false = changed(artifact, "A", (1, 1), 1 << 1000)
    status, out = run(write(false, tmp_path / "x.npz"), capsys=capsys)
    assert (status, len(out.splitlines())) == (1, 1)
    false = changed(artifact, "B", (1, 1), 1 << 1000)
    assert run(write(false, tmp_path / "y.npz"), capsys=capsys)[0] == 1


def test_wrong_tail_is_refused(tmp_path, capsys, monkeypatch):
    artifact = find("stage-mean-9")
    monkeypatch.setattr(Stage, "tail", 3)
    path = write(artifact, tmp_path / "x.npz")
    status, out = run(path, capsys=capsys)
    assert (status, "tail" in out) == (2, True)


def test_json_and_the_worst_status(tmp_path, capsys):
    (tmp_path / "bad.npz").write_bytes(b"PK")
    status, out = run("--json", SMALL, tmp_path / "bad.npz", tmp_path / "absent.npz", capsys=capsys)
    assert status == 2
    assert [record["verdict"] for record in json.loads(out)] == ["verified", "unreadable", "unreadable"]


def test_hostile_files_are_unreadable_not_fatal(tmp_path, capsys):
    whole = (SHIPPED / "direct-max-4.npz").read_bytes()
    path = tmp_path / "x.npz"
    for place in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        status, _ = run(path, capsys=capsys)
        assert status in (0, 2)  # a flip either breaks a CRC or hits what the format ignores
        path.write_bytes(whole[:place])
        assert run(path, capsys=capsys)[0] == 2


@pytest.mark.parametrize("m", [3, 5, 9, 100, 129, 1000, 4095])
def test_its_logarithm_is_finer_than_certifys(m):
    low, high = log2_enclosure(m)
    assert low <= check_artifact.log2_below(m) <= high
    assert check_artifact.log2_below(m) <= log2_enclosure(m, bits=200)[1]


def test_report_of_a_true_file():
    report = verification_report(SMALL)
    assert list(report)[:4] == ["verified", "kind", "size", "objective"]
    assert report["verified"] is True
    assert report["sha256"] == load(SMALL).certificate.sha256
