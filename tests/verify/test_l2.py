"""Certificates under the l2 norm: exact against the definitions, refuted by both checkers where they lie."""

import json
from dataclasses import replace
from fractions import Fraction
from math import nextafter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.artifacts import L2Artifact, Provenance, digest, find, find_l2, load, load_l2, save, save_l2
from trilift.artifacts.l2_artifact import L2_SHIPPED
from trilift.factorize import search_l2_stage
from trilift.lift import CertificateError, Dyadic, ParameterError, Stage
from trilift.verify import (
    Bits,
    certify_l2,
    check_artifact,
    check_l2_certificate,
    complete,
    from_l2_search,
    gamma_up,
    loss,
    refutation,
    verification_report,
)

FILES = sorted(L2_SHIPPED.glob("*.npz"))
RATIONALS = ("sensitivity_sq", "max_row_norm_sq", "mean_row_norm_sq")
GAMMAS = ("gamma_max", "gamma_mean", "interior_gamma_max", "interior_gamma_mean")


def columns_sq_by_definition(stage):
    """b^2 and the interior b^2, from three blocks of the lattice spelt out in Fractions."""
    B, g = stage.B.fractions(), stage.g.fractions()
    r, m = B.shape
    v = [sum(B[k, i] * g[k] for k in range(r)) for i in range(m)]
    columns = []
    for block in range(2):
        for i in range(m):
            column = [Fraction(0)] * (2 * r)
            column[block * r : (block + 1) * r] = list(B[:, i])
            columns.append(column)
    blends = [
        sum(((1 - x) * a + x * b) ** 2 for a, b in zip(columns[j], columns[j + 1], strict=True))
        for x in v
        for j in range(m)
    ]
    return max(sum(a * a for a in column) for column in columns), max(blends)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), m=st.integers(2, 5))
def test_claims_are_those_of_the_definitions(random_B, by_definition, seed, m):
    B, g = random_B(seed, m)
    stage = complete(B, g=g, norm="l2")
    claims, known = certify_l2(stage, objective="max"), by_definition(stage)
    b_sq, interior_b_sq = columns_sq_by_definition(stage)
    assert (claims.sensitivity_sq, claims.interior_sensitivity_sq) == (b_sq, interior_b_sq)
    for name in ("max_row_norm_sq", "mean_row_norm_sq"):
        assert getattr(claims, name) == known[name]
        assert getattr(claims, f"interior_{name}") == known[f"interior_{name}"]
    for prefix, b in (("", b_sq), ("interior_", interior_b_sq)):
        for which in ("max", "mean"):
            gamma, square = (
                getattr(claims, f"{prefix}gamma_{which}"),
                b * known[f"{prefix}{which}_row_norm_sq"],
            )
            assert Fraction(nextafter(gamma, 0.0)) ** 2 < square <= Fraction(gamma) ** 2
    check_l2_certificate(L2Artifact(stage, claims, Provenance("max", m)))


def test_a_factorisation_has_no_interior_claims(stages):
    claims = certify_l2(stages.tree, objective="mean")
    assert claims.kind == "direct"
    assert claims.sensitivity_sq == 3  # l1: 3 too, but by entries of one; l2 squares add to the same
    assert claims.interior_gamma_max is None
    assert claims.interior_sensitivity_sq is None


def test_what_is_not_a_stage_is_refused(stages):
    wrong = Stage(stages.two_sided.A, stages.two_sided.B, stages.two_sided.w, Dyadic([1, 1], 1))
    with pytest.raises(CertificateError, match="fails in"):
        certify_l2(wrong, objective="max")
    with pytest.raises(CertificateError, match='kind = "direct" fails'):
        certify_l2(stages.two_sided, objective="max", kind="direct")
    with pytest.raises(ParameterError, match="complete it first"):
        certify_l2(stages.tree.to_float(), objective="max")


def test_gammas_are_rounded_up():
    for q, b in (
        (Fraction(2), Fraction(1)),
        (Fraction(9), Fraction(1, 4)),
        (Fraction(1, 3), Fraction(10**40)),
    ):
        gamma = gamma_up(q, sensitivity_sq=b)
        assert Fraction(nextafter(gamma, 0.0)) ** 2 < q * b <= Fraction(gamma) ** 2


@pytest.mark.slow
def test_every_shipped_file_is_verified_by_both(capsys):
    assert len(FILES) >= 24
    assert check_artifact.main([str(path) for path in FILES]) == 0
    assert capsys.readouterr().out.count("verified") == len(FILES)
    for path in FILES:
        if load_l2(path).stage.size <= 65:
            assert verification_report(path)["verified"] is True


def lie(artifact, path, **changes):
    save_l2(L2Artifact(artifact.stage, replace(artifact.certificate, **changes), artifact.provenance), path)
    return str(path)


@pytest.mark.parametrize("name", [*RATIONALS, *(f"interior_{name}" for name in RATIONALS), *GAMMAS])
@pytest.mark.parametrize("shipped", ["stage-l2-mean-9", "stage-l2-max-9"])
def test_both_checkers_find_a_claim_too_small_by_the_least(tmp_path, capsys, shipped, name):
    artifact = find_l2(shipped)
    value = getattr(artifact.certificate, name)
    less = nextafter(value, 0.0) if name in GAMMAS else value - Fraction(1, 10**40)
    path = lie(artifact, tmp_path / "x.npz", **{name: less})
    assert check_artifact.main([path]) == 1
    out = capsys.readouterr().out
    assert f"  {name}^2 <= " in out if name in GAMMAS else f"  {name} <= " in out
    report = verification_report(path)
    assert report["verified"] is False
    assert report["failure"].startswith(f"{name} <= ")


@pytest.mark.parametrize(("name", "index"), [("A", (3, 1)), ("B", (0, 2)), ("w", 4), ("g", 1)])
def test_one_changed_unit_is_found(tmp_path, capsys, name, index):
    artifact = find_l2("stage-l2-max-9")
    num = np.array(getattr(artifact.stage, name).num, dtype=object)
    num[index] += 1
    parts = {other: getattr(artifact.stage, other) for other in "ABwg"}
    stage = Stage(**{**parts, name: Dyadic(num, parts[name].exp)})
    changed = L2Artifact(stage, replace(artifact.certificate, sha256=digest(stage)), artifact.provenance)
    save_l2(changed, tmp_path / "x.npz")
    assert check_artifact.main([str(tmp_path / "x.npz")]) == 1
    assert verification_report(tmp_path / "x.npz")["verified"] is False
    capsys.readouterr()


def test_versions_and_norms_must_agree(tmp_path, capsys, monkeypatch):
    """A certificate of one norm under the version of the other is no artifact at all."""
    gaussian, laplace = find_l2("stage-l2-max-9"), find("stage-max-9")
    monkeypatch.setattr("trilift.artifacts.l2_artifact.L2_VERSION", 1)
    save_l2(gaussian, tmp_path / "x.npz")
    assert check_artifact.main([str(tmp_path / "x.npz")]) == 2
    assert "another norm" in capsys.readouterr().out
    monkeypatch.setattr("trilift.artifacts.artifact.VERSION", 2)
    save(laplace, tmp_path / "y.npz")
    assert check_artifact.main([str(tmp_path / "y.npz")]) == 2
    capsys.readouterr()


def test_hashes_and_kinds_are_checked(monkeypatch):
    artifact = find_l2("stage-l2-max-9")
    for changes, message in (
        ({"sha256": "0" * 64}, "sha256"),
        ({"kind": "direct"}, 'kind = "direct" fails'),
        ({"interior_gamma_max": None}, "interior_gamma_max <= None"),
        ({"interior_sensitivity_sq": None}, "interior_sensitivity_sq is not claimed"),
    ):
        claims = replace(artifact.certificate, **changes)
        with pytest.raises(CertificateError, match=message):
            check_l2_certificate(L2Artifact(artifact.stage, claims, artifact.provenance))


def test_completion_loses_little_and_finds_its_exponents():
    wide = search_l2_stage(12, objective="mean")
    found = search_l2_stage(12, objective="mean", initial=wide.stage, weight_bits=10)
    bits = Bits(B=28, w=32)  # this B is ill-conditioned: how much so depends on the processor
    stage = complete(found.stage.B, g=found.stage.g, bits=bits, objective="mean", norm="l2")
    assert stage.residual() == 0
    assert loss(stage, found.stage, objective="mean", norm="l2") < 1e-4
    artifact = from_l2_search(found, objective="mean", provenance=Provenance("mean", 12))
    assert artifact.name == "stage-l2-mean-12"
    assert artifact.certificate.gamma_mean < found.gamma * 1.00005
    assert "change in gamma^2" in artifact.provenance.notes


def test_plain_factorisations_stay_plain():
    eye, ones = np.eye(6), np.tril(np.ones((6, 6)))
    artifact = from_l2_search(Stage.plain(ones, eye), objective="max", provenance=Provenance("max", 6))
    assert artifact.certificate.kind == "direct"
    assert artifact.certificate.sensitivity_sq == 1
    assert artifact.certificate.max_row_norm_sq == 6


def test_files_of_one_norm_are_not_read_as_the_other(tmp_path):
    path = L2_SHIPPED / "stage-l2-max-9.npz"
    with pytest.raises(Exception, match=r"about norm l2 \(Gaussian noise\), not l1"):
        load(path)
    with pytest.raises(Exception, match=r"about norm l2 \(Gaussian noise\), not l1"):
        refutation(path)
    save(find("stage-max-9"), tmp_path / "x.npz")
    with pytest.raises(Exception, match=r"about norm l1 \(Laplace noise\), not l2"):
        load_l2(tmp_path / "x.npz")


def test_the_report_has_the_claims():
    report = verification_report(L2_SHIPPED / "direct-l2-mean-8.npz")
    assert list(report)[:3] == ["verified", "norm", "kind"]
    assert json.loads(json.dumps(report))["norm"] == "l2"
    assert report["interior_gamma_max"] is None
