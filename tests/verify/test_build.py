"""From search results to artifacts."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from trilift.artifacts import Provenance, load
from trilift.artifacts.listing import INDEX, index_record
from trilift.lift import Stage
from trilift.lift.errors import CertificateError, ParameterError
from trilift.verify import Bits, best_stage, build, check_certificate, from_search


@pytest.fixture
def found(random_B):
    B, g = random_B(11, 8)
    return {"two": best_stage(B, g=g), "one": best_stage(B), "direct": best_stage(B, plain=True)}


@pytest.mark.parametrize(
    ("kind", "name"), [("two", "stage-mean-8"), ("one", "stage-mean-8"), ("direct", "direct-mean-8")]
)
def test_a_search_result_becomes_an_artifact(found, kind, name):
    result = SimpleNamespace(stage=found[kind])
    artifact = from_search(
        result, objective="mean", provenance=Provenance("mean", 8, seed=11, notes="a test")
    )
    assert artifact.name == name
    assert artifact.stage.one_sided == (kind != "two")
    assert artifact.certificate.kappa_mean <= found[kind].kappa("mean") * (1 + 1e-4)
    assert artifact.provenance.notes.startswith("a test; completed with a relative change in kappa of")
    check_certificate(artifact)


def test_no_stage_no_artifact():
    with pytest.raises(ParameterError, match="no finite stage"):
        from_search(SimpleNamespace(stage=None), objective="max", provenance=Provenance("max", 8))


def test_too_few_places_are_refused(found):
    with pytest.raises(CertificateError, match="completion loses"):
        from_search(found["direct"], objective="max", provenance=Provenance("max", 8), bits=Bits(B=4, A=4))


def test_finer_places_are_taken_where_needed():
    """A nearly singular B: its w needs more than twelve places."""
    B = np.array([[0.5005, 0.4995, 0.3], [0.4995, 0.5005, 0.1], [0.0, 0.0, 0.6]])
    found = best_stage(B, g=np.linalg.solve(B.T, [0.1, 0.2, 0.5]))
    artifact = from_search(found, objective="mean", provenance=Provenance("mean", 3))
    assert artifact.certificate.kappa_mean <= found.kappa("mean") * (1 + 1e-4)


def test_folder_keeps_the_better_file(found, tmp_path, capsys):
    raw, target = tmp_path / "raw", tmp_path / "target"
    raw.mkdir()
    target.mkdir()

    def put(stage, provenance):
        parts = {name: getattr(stage, name) for name in "ABwg"}
        np.savez(raw / "stage_mean_8.npz", **parts, provenance=np.str_(json.dumps(provenance)))

    settings = {"seed": 5, "objective": "mean"}
    put(
        found["one"],
        {"lineage": [{"way": "cold", "settings": settings, "steps": 10, "versions": {"numpy": "2"}}]},
    )
    np.savez(raw / "notes.npz", x=1)
    assert build.main([str(raw), str(target)]) == 0
    first = load(target / "stage-mean-8.npz")
    assert (first.provenance.seed, first.provenance.steps) == (5, 10)
    assert first.provenance.versions == {"numpy": "2"}
    assert len(first.provenance.date) == 10
    assert [path.name for path in target.glob("*.npz")] == ["stage-mean-8.npz"]
    assert json.loads((target / INDEX).read_text()) == [index_record(target / "stage-mean-8.npz")]

    worse = best_stage(found["one"].B @ np.diag(np.linspace(1.0, 2.0, 8)))
    put(worse, {})
    build.main([str(raw), str(target)])
    assert "kept" in capsys.readouterr().out
    assert load(target / "stage-mean-8.npz").certificate == first.certificate


def test_results_that_cannot_be_built_are_reported(tmp_path, capsys):
    zeros = np.zeros(2)
    np.savez(tmp_path / "direct_max_2.npz", A=np.eye(2), B=np.ones((2, 2)), w=zeros, g=zeros)
    (tmp_path / "target").mkdir()
    assert build.main([str(tmp_path), str(tmp_path / "target")]) == 0
    assert "direct-max-2: not built: B is singular" in capsys.readouterr().out


def test_a_foreign_file_in_the_target_is_one_line(tmp_path, capsys):
    (tmp_path / "foreign.npz").write_bytes(b"nothing")
    assert build.main([str(tmp_path), str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_stage_is_taken_too(found):
    assert isinstance(found["two"], Stage)
    assert from_search(found["two"], objective="max", provenance=Provenance("max", 8)).name == "stage-max-8"
