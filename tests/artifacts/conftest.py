"""A small artifact, and a way to write files that are wrong in one respect."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from trilift.artifacts import Artifact, Provenance, save
from trilift.lift import Dyadic, Stage
from trilift.verify import certify


@pytest.fixture(scope="session")
def tree():
    """The binary tree of four leaves: T_4 = C D by hand."""
    C = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    D = [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [1, 1, 1, 1]]
    stage = Stage.plain(Dyadic(C), Dyadic(D))
    return Artifact(stage, certify(stage, objective="max"), Provenance("max", 4, method="by hand"))


@pytest.fixture
def tree_file(tree, tmp_path):
    path = tmp_path / "tree.npz"
    save(tree, path)
    return path


class Forger:
    """Rewrites the members of a file."""

    def __init__(self, source: Path, target: Path) -> None:
        with zipfile.ZipFile(source) as archive:
            self.members = {name: archive.read(name) for name in archive.namelist()}
        self.target = target

    @property
    def header(self):
        return json.loads(np.load(io.BytesIO(self.members["header.npy"])).tobytes())

    def set_header(self, **changes):
        self.set_raw_header(json.dumps({**self.header, **changes}).encode())

    def set_raw_header(self, text: bytes):
        self.set_array("header", np.frombuffer(text, dtype=np.uint8))

    def set_array(self, name, array, *, allow_pickle=False):
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=allow_pickle)
        self.members[f"{name}.npy"] = buffer.getvalue()

    def array(self, name):
        return np.load(io.BytesIO(self.members[f"{name}.npy"]))

    def write(self, names=None):
        with zipfile.ZipFile(self.target, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in self.members if names is None else names:
                archive.writestr(name, self.members[name])
        return self.target


@pytest.fixture
def forger(tree_file, tmp_path):
    return Forger(tree_file, tmp_path / "forged.npz")
