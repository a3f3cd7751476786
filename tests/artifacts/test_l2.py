"""Artifacts for Gaussian noise: their record, their files, and a catalogue apart from that for Laplace."""

import json
import warnings
from dataclasses import replace
from fractions import Fraction

import pytest
from trilift.artifacts import (
    L2Artifact,
    L2Certificate,
    Provenance,
    catalogue,
    catalogue_l2,
    find,
    find_l2,
    load_l2,
    load_stage_l2,
    save,
    save_l2,
)
from trilift.artifacts.l2_artifact import L2_SHIPPED, l2_index_record
from trilift.artifacts.listing import INDEX
from trilift.lift.errors import ArtifactFormatError, ParameterError


@pytest.fixture
def mine(tmp_path, monkeypatch):
    directory = tmp_path / "mine"
    directory.mkdir()
    monkeypatch.setenv("TRILIFT_ARTIFACTS", str(directory))
    return directory


def test_index_agrees_with_the_shipped_files(mine):
    files = sorted(L2_SHIPPED.glob("*.npz"))
    assert json.loads((L2_SHIPPED / INDEX).read_text()) == [l2_index_record(path) for path in files]
    for path in files:
        assert load_l2(path).name == path.stem
    assert [entry.path for entry in sorted(catalogue_l2(), key=lambda e: e.path)] == files


def test_promised_names_are_shipped(mine):
    names = {entry.name for entry in catalogue_l2()}
    stages = {f"stage-l2-{o}-{m}" for o in ("max", "mean") for m in (9, 17, 33, 65, 129, 257)}
    tops = {f"direct-l2-{o}-{k}" for o in ("max", "mean") for k in (4, 8, 16, 32, 64, 128, 256)}
    assert names >= stages | tops | {"stage-l2-max-1025", "direct-l2-max-1024"}
    assert not names & {entry.name for entry in catalogue()}


def test_entries_say_what_their_stages_are(mine):
    for entry in catalogue_l2():
        if entry.certificate.size > 33:
            continue
        stage = load_stage_l2(entry.name)
        assert (entry.inner, entry.tail) == (stage.inner, stage.tail)
        assert entry.certificate.sensitivity_sq == stage.sensitivity_sq()
        assert entry.certificate.gamma_max == pytest.approx(stage.gamma("max"))
        assert entry.certificate.gamma_mean == pytest.approx(stage.gamma("mean"))


def test_a_users_files_are_listed_by_their_norm(mine, tree):
    """Each catalogue lists its own, without warnings about the other's."""
    save(tree, mine / "tree.npz")
    save_l2(find_l2("stage-l2-max-9"), mine / "nine.npz")
    save_l2(find_l2("stage-l2-max-17"), mine / "stage-l2-max-9.npz")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = [entry.name for entry in catalogue() if entry.source == "user"]
        second = [entry.name for entry in catalogue_l2() if entry.source == "user"]
    assert (first, sorted(second)) == (["tree"], ["nine", "user/stage-l2-max-9"])
    assert find_l2("nine").stage.size == 9
    assert find_l2("stage-l2-max-9").stage.size == 9
    assert find_l2("user/stage-l2-max-9").stage.size == 17
    (mine / "bad.npz").write_bytes(b"nothing")
    with pytest.warns(UserWarning, match="bad.npz"):
        catalogue_l2()


@pytest.mark.parametrize("name", ["stage-max-9", "nothing", "", None])
def test_names_of_the_other_norm_are_unknown(mine, name):
    with pytest.raises(ParameterError):
        find_l2(name)
    with pytest.raises(ParameterError):
        find("stage-l2-max-9")


def test_the_record_round_trips():
    for name in ("stage-l2-mean-9", "direct-l2-max-4"):
        claims = find_l2(name).certificate
        record = json.loads(json.dumps(claims.to_json()))
        assert record["norm"] == "l2"
        assert isinstance(record["sensitivity_sq"], str)
        assert L2Certificate.from_json(record) == claims


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("norm", "l1"),
        ("norm", None),
        ("kind", "chain"),
        ("size", 1),
        ("objective", "mse"),
        ("sensitivity_sq", 1.0),
        ("sensitivity_sq", "1/0"),
        ("gamma_max", float("nan")),
        ("gamma_mean", -1.0),
        ("gamma_mean", "1"),
        ("interior_gamma_max", None),
        ("interior_sensitivity_sq", None),
        ("sha256", "0" * 63),
        ("kappa_max", 0.1),
    ],
)
def test_refused_fields(field, value):
    record = find_l2("stage-l2-mean-9").certificate.to_json()
    with pytest.raises(ArtifactFormatError):
        L2Certificate.from_json({**record, field: value})


@pytest.mark.parametrize("record", [None, [], {}, {"norm": "l2"}])
def test_other_json_is_refused(record):
    with pytest.raises(ArtifactFormatError):
        L2Certificate.from_json(record)


def test_an_artifact_holds_an_exact_stage_of_its_size():
    whole = find_l2("direct-l2-max-4")
    with pytest.raises(ParameterError, match="exact stage"):
        L2Artifact(whole.stage.to_float(), whole.certificate, whole.provenance)
    with pytest.raises(ParameterError, match="about size 5"):
        L2Artifact(whole.stage, replace(whole.certificate, size=5), Provenance("max", 5))


def test_saving_and_loading_compare_the_hash(tmp_path, monkeypatch):
    whole = find_l2("direct-l2-max-4")
    false = L2Artifact(whole.stage, replace(whole.certificate, sha256="0" * 64), whole.provenance)
    with pytest.raises(ParameterError, match="another hash"):
        save_l2(false, tmp_path / "x.npz")
    monkeypatch.setattr("trilift.artifacts.artifact.digest", lambda stage: "0" * 64)
    save_l2(false, tmp_path / "x.npz")
    with pytest.raises(ArtifactFormatError, match="SHA-256"):
        load_l2(tmp_path / "x.npz")
    assert load_l2(tmp_path / "x.npz", verify_hash=False).stage.size == 4


def test_the_same_artifact_gives_the_same_bytes(tmp_path):
    for name in ("stage-l2-max-9", "direct-l2-mean-8"):
        save_l2(find_l2(name), tmp_path / "x.npz")
        assert (tmp_path / "x.npz").read_bytes() == (L2_SHIPPED / f"{name}.npz").read_bytes()


def test_certified_norms_are_near_one():
    """B's columns were scaled to one; completion adds almost nothing."""
    for entry in catalogue_l2():
        assert Fraction(1) - Fraction(1, 10**3) < entry.certificate.sensitivity_sq < 1 + Fraction(1, 10**3)
