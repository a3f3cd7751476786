"""Warm starts from names, paths, folders and stages, of the same size or smaller."""

import numpy as np
import pytest
from trilift.artifacts import find, load_stage, save
from trilift.factorize import search_direct, search_stage
from trilift.factorize.sources import BEST, enlarged, load_float_stage, warm_stage
from trilift.lift.errors import ArtifactFormatError, ParameterError
from trilift.lift.stage import Stage


@pytest.mark.parametrize("name", ["stage-max-17", "stage-mean-9", "direct-mean-16"])
def test_names_paths_and_stages_give_the_searched_factors(name, tmp_path):
    artifact = find(name)
    save(artifact, tmp_path / "copy.npz")
    stages = [load_float_stage(s) for s in (name, tmp_path / "copy.npz", str(tmp_path / "copy.npz"))]
    objective = artifact.certificate.objective
    for stage in stages:
        assert stage.B.shape == (stage.size, stage.size)
        assert stage.residual() < 1e-9
        claimed = getattr(artifact.certificate, f"kappa_{objective}")
        assert stage.kappa(objective) == pytest.approx(claimed, rel=1e-4)
    assert load_float_stage(stages[0]) is stages[0]
    assert load_float_stage(load_stage(name)).size == artifact.stage.size


def test_folders_of_runs_and_their_files(tmp_path):
    stage = load_float_stage("stage-mean-9")
    np.savez(tmp_path / BEST, A=stage.A, B=stage.B, w=stage.w, g=stage.g)
    for source in (tmp_path, tmp_path / BEST):
        np.testing.assert_array_equal(load_float_stage(source).B, stage.B)
    np.savez(tmp_path / "bad.npz", A=stage.A, B=stage.B[1:], w=stage.w, g=stage.g)
    with pytest.raises(ArtifactFormatError, match="does not hold a stage"):
        load_float_stage(tmp_path / "bad.npz")


@pytest.mark.parametrize("source", ["nothing-mean-9", "none.npz", 3, "", None])
def test_unknown_sources_are_refused(source):
    with pytest.raises((ParameterError, ArtifactFormatError)):
        load_float_stage(source)


@pytest.mark.parametrize("name", ["stage-mean-9", "stage-max-9", "direct-max-8"])
def test_a_smaller_stage_becomes_a_valid_larger_one(name):
    small = load_float_stage(name)
    large = warm_stage(name, size=13)
    assert large.size == large.inner == 13
    assert large.residual() < 1e-9
    assert large.is_plain == small.is_plain
    np.testing.assert_allclose(large.B[: small.size, : small.size], small.B)
    assert large.sensitivity() == pytest.approx(small.sensitivity())
    np.testing.assert_allclose(large.v[: small.size], small.v, atol=1e-12)
    assert enlarged(small, size=small.size) is small


def test_sizes_and_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ParameterError, match="larger than the 5"):
        warm_stage("stage-mean-9", size=5)
    wide = Stage.plain(np.array([[1.0, 0.0, 0.5], [1.0, 1.0, 0.5]]), np.array([[0.5, 0], [0, 1], [1.0, 0]]))
    with pytest.raises(ParameterError, match="square one"):
        warm_stage(wide, size=2)


def test_a_search_begins_at_its_warm_start_and_never_ends_worse():
    quick = {"steps": 5, "starts": 2, "progress": False}
    named = search_stage(9, objective="max", warm_start="stage-max-9", **quick)
    given = search_stage(9, objective="max", initial=load_float_stage("stage-max-9"), **quick)
    assert named.cost == given.cost <= load_float_stage("stage-max-9").kappa("max") * (1 + 1e-12)
    direct = search_direct(8, objective="mean", warm_start="direct-mean-8", **quick)
    assert direct.cost <= load_float_stage("direct-mean-8").kappa("mean") * (1 + 1e-12)
    with pytest.raises(ParameterError, match="two names for one thing"):
        search_stage(9, objective="max", warm_start="stage-max-9", initial=given.stage, **quick)


def test_a_budget_in_seconds_ends_a_search_with_its_best_so_far():
    found = search_stage(5, objective="mean", steps=10**7, starts=1, seconds=0.3, progress=False)
    assert found.status.value == "out of time"
    assert 0 < found.steps < 10**7
    assert found.stage is not None
    for bad in (float("nan"), -1, "1", True):
        with pytest.raises(ParameterError, match="seconds must be"):
            search_stage(5, objective="mean", steps=5, starts=1, seconds=bad, progress=False)
