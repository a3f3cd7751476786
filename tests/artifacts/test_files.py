"""Saving and loading: nothing is lost, equal artifacts give equal bytes, wrong pairs are refused."""

import stat
from dataclasses import replace

import numpy as np
import pytest
from trilift.artifacts import Artifact, Provenance, digest, load, save
from trilift.artifacts.artifact import read_header
from trilift.lift import Dyadic, Stage
from trilift.lift.errors import ParameterError
from trilift.verify import Bits, certify, complete


def same_numbers(one, other):
    return all(getattr(one, name).equals(getattr(other, name)) for name in "ABwg")


def test_round_trip(tree, tree_file):
    back = load(tree_file)
    assert same_numbers(back.stage, tree.stage)
    assert back.certificate == tree.certificate
    assert back.provenance == tree.provenance
    assert (back.kind, back.name) == ("direct", "direct-max-4")


def test_round_trip_of_numbers_wider_than_a_word(tmp_path):
    rng = np.random.default_rng(3)
    B = np.tril(rng.uniform(0.2, 1.0, (3, 3)))
    stage = complete(B, g=[0.1, 0.2, 0.3], bits=Bits(B=70, A=90, g=80, v=20, w=66))
    assert stage.A.num.dtype == object
    artifact = Artifact(stage, certify(stage, objective="mean"), Provenance("mean", 3))
    save(artifact, tmp_path / "wide.npz")
    assert same_numbers(load(tmp_path / "wide.npz").stage, stage)


def test_equal_artifacts_give_equal_files(tree, tmp_path):
    scaled = Stage(*(Dyadic(getattr(tree.stage, name).num << 3, 3) for name in "ABwg"))
    save(tree, tmp_path / "one.npz")
    save(Artifact(scaled, tree.certificate, tree.provenance), tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


def test_numpy_reads_the_numerators(tree, tree_file):
    with np.load(tree_file, allow_pickle=False) as arrays:
        assert np.array_equal(arrays["B"], tree.stage.B.num)


def test_saving_replaces_a_file_whole(tree, tree_file):
    tree_file.write_bytes(b"something else")
    save(tree, tree_file)
    assert load(tree_file).certificate == tree.certificate
    assert [path.name for path in tree_file.parent.iterdir()] == [tree_file.name]
    assert stat.S_IMODE(tree_file.stat().st_mode) & 0o600 == 0o600


def test_header_is_read_without_the_matrices(tree, tree_file, monkeypatch):
    monkeypatch.setattr("trilift.artifacts.artifact.stage_of", None)
    header, certificate = read_header(tree_file)
    assert certificate == tree.certificate
    assert (header["inner"], header["tail"]) == (4, 0)


def test_certificate_of_other_numbers_is_not_saved(tree, tmp_path):
    wrong = replace(tree.certificate, sha256=digest(Stage.plain(Dyadic([[1]]), Dyadic([[1]]))))
    with pytest.raises(ParameterError, match="another hash"):
        save(Artifact(tree.stage, wrong, tree.provenance), tmp_path / "x.npz")
    assert not list(tmp_path.iterdir())


def test_certificate_of_another_size_is_refused(tree):
    with pytest.raises(ParameterError, match="size 5"):
        Artifact(tree.stage, replace(tree.certificate, size=5), tree.provenance)


def test_float_stage_is_refused(tree):
    with pytest.raises(ParameterError, match="complete it first"):
        Artifact(tree.stage.to_float(), tree.certificate, tree.provenance)
