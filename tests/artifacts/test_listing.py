"""The catalogue: the shipped index agrees with the files; the user's files are listed, and shadow nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from trilift.artifacts import catalogue, find, load, load_stage, save, user_directory
from trilift.artifacts.listing import INDEX, SHIPPED, index_record, shipped_entry
from trilift.lift.errors import ArtifactFormatError, ParameterError

EXPECTED = {
    *(f"stage-{objective}-{size}" for objective in ("max", "mean") for size in (9, 17, 33, 65, 129)),
    *(f"direct-{objective}-{size}" for objective in ("max", "mean") for size in (4, 8, 16, 32, 64, 128)),
}


@pytest.fixture
def mine(tmp_path, monkeypatch):
    directory = tmp_path / "mine"
    directory.mkdir()
    monkeypatch.setenv("TRILIFT_ARTIFACTS", str(directory))
    return directory


def test_index_agrees_with_the_shipped_files():
    records = json.loads((SHIPPED / INDEX).read_text())
    files = sorted(SHIPPED.glob("*.npz"))
    assert records == [index_record(path) for path in files]
    for path in files:
        artifact = load(path)
        assert artifact.name == path.stem
        assert artifact.provenance.objective == artifact.certificate.objective
        assert artifact.provenance.size == artifact.stage.size


def test_everything_promised_is_shipped(mine):
    assert {entry.name for entry in catalogue()} >= EXPECTED
    assert all(entry.source == "shipped" for entry in catalogue())


def test_entries_have_the_documented_json_and_planning_numbers(mine):
    kappas = "kappa_max kappa_mean interior_kappa_max interior_kappa_mean"
    fields = f"name kind size objective {kappas} sha256 certified"
    for entry in catalogue():
        record = json.loads(json.dumps(entry.to_json(certified=True)))
        assert list(record) == fields.split()
        assert record["certified"] is True
        unproved = entry.to_json(certified=False)
        assert unproved == {**record, "certified": False, **dict.fromkeys(kappas.split())}
        stage = load_stage(entry.name).to_float()
        assert entry.sensitivity == pytest.approx(stage.sensitivity())
        assert entry.mean_row_norm_sq == pytest.approx(stage.row_norms_sq().mean())
        assert entry.max_row_norm_sq == pytest.approx(stage.row_norms_sq().max())
        assert (entry.inner, entry.tail) == (stage.inner, stage.tail)
        assert entry.interior_sensitivity <= entry.sensitivity
        assert entry.interior_mean_row_norm_sq <= entry.mean_row_norm_sq
        assert entry.interior_max_row_norm_sq <= entry.max_row_norm_sq


def test_users_files_are_filed_by_their_stem(mine, tree):
    save(tree, mine / "tree.npz")
    entry = next(entry for entry in catalogue() if entry.source == "user")
    assert (entry.name, entry.size, entry.kind) == ("tree", 4, "direct")
    assert find("tree").certificate == tree.certificate
    assert find(str(mine / "tree.npz")).certificate == tree.certificate


def test_a_users_file_does_not_shadow_a_shipped_one(mine, tree):
    save(tree, mine / "direct-max-4.npz")
    assert find("direct-max-4").certificate.sha256 != tree.certificate.sha256
    assert find("user/direct-max-4").certificate == tree.certificate
    names = [entry.name for entry in catalogue()]
    assert len(names) == len(set(names))


def test_unreadable_files_are_left_out_with_a_warning(mine, tree):
    save(tree, mine / "tree.npz")
    (mine / "bad.npz").write_bytes(b"nothing")
    with pytest.warns(UserWarning, match="bad.npz"):
        names = [entry.name for entry in catalogue()]
    assert "tree" in names
    assert "bad" not in names


def test_a_shipped_file_must_be_the_one_in_the_index(tree, monkeypatch, tmp_path):
    for path in SHIPPED.glob("direct-max-*.npz"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / INDEX).write_bytes((SHIPPED / INDEX).read_bytes())
    save(tree, tmp_path / "direct-max-4.npz")
    from trilift.artifacts import listing

    monkeypatch.setattr(listing, "SHIPPED", tmp_path)
    listing._shipped.cache_clear()
    try:
        assert find("direct-max-8").stage.size == 8
        with pytest.raises(ArtifactFormatError, match="not the file that the catalogue lists"):
            find("direct-max-4")
    finally:
        listing._shipped.cache_clear()


def test_shipped_files_are_known_by_their_path(tmp_path):
    entry = next(entry for entry in catalogue() if entry.name == "direct-max-8")
    assert shipped_entry(entry.path) == entry
    copy = tmp_path / "direct-max-8.npz"
    copy.write_bytes(entry.path.read_bytes())
    assert shipped_entry(copy) is None
    copy.unlink()
    copy.symlink_to(entry.path)
    assert shipped_entry(copy) == entry


@pytest.mark.parametrize("name", ["nothing", "", "../direct-max-4", "user/direct-max-4", None, 4])
def test_unknown_names(mine, name):
    with pytest.raises(ParameterError):
        find(name)


def test_directory_of_the_environment_replaces_the_platforms(monkeypatch):
    monkeypatch.setenv("TRILIFT_ARTIFACTS", "/somewhere")
    assert user_directory() == Path("/somewhere")
    monkeypatch.delenv("TRILIFT_ARTIFACTS")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    if sys.platform.startswith("linux"):
        assert user_directory() == Path("/data/trilift/artifacts")


def test_loading_imports_numpy_only():
    code = (
        "import sys; from trilift.artifacts import catalogue, load_stage\n"
        "catalogue(); load_stage('stage-mean-9')\n"
        "print(sorted({'jax', 'scipy', 'sympy', 'flint', 'matplotlib', 'rich', 'typer'} & set(sys.modules)))"
    )
    env = {**os.environ, "TRILIFT_ARTIFACTS": "/nowhere"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert done.stdout.strip() == "[]"
