"""Whose claims stand: shipped files by their index, all others by proof, once a version of the file."""

from dataclasses import replace
from fractions import Fraction

import pytest
import trilift.verify.certification
from trilift.artifacts import catalogue, find, save
from trilift.lift.errors import ArtifactFormatError, CertificateError
from trilift.verify import refutation, require_proof


@pytest.fixture
def proofs(monkeypatch):
    """The sizes of the artifacts that are proved."""
    sizes, prove = [], trilift.verify.certification.check_certificate

    def spy(artifact):
        sizes.append(artifact.stage.size)
        prove(artifact)

    monkeypatch.setattr(trilift.verify.certification, "check_certificate", spy)
    return sizes


def falsified(artifact):
    low = artifact.certificate.sensitivity - Fraction(1, 2**50)
    return replace(artifact, certificate=replace(artifact.certificate, sensitivity=low))


def test_shipped_files_are_not_proved_again(proofs):
    assert [refutation(entry.path) for entry in catalogue() if entry.source == "shipped"] == [None] * len(
        [entry for entry in catalogue() if entry.source == "shipped"]
    )
    assert proofs == []


def test_each_version_of_a_file_is_proved_once(proofs, tmp_path):
    path = tmp_path / "mine.npz"
    save(find("direct-max-4"), path)
    assert refutation(path) is None
    assert refutation(path) is None
    assert proofs == [4]
    save(falsified(find("direct-max-4")), path)
    assert refutation(path).startswith("sensitivity <=")
    with pytest.raises(CertificateError, match=r"mine.npz: not verified: sensitivity <="):
        require_proof(path)
    assert proofs == [4, 4]
    save(find("direct-max-4"), path)
    require_proof(path)


def test_damaged_numbers_prove_nothing(tmp_path):
    path = tmp_path / "mine.npz"
    save(find("stage-max-17"), path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(data)
    assert "unreadable archive" in refutation(path)


def test_without_a_header_there_is_nothing_to_refute(tmp_path):
    (tmp_path / "junk.npz").write_bytes(b"junk")
    with pytest.raises(ArtifactFormatError):
        refutation(tmp_path / "junk.npz")
