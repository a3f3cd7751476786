"""The certificate record: its JSON, and what it refuses to read."""

import json
from fractions import Fraction

import pytest
from trilift.artifacts import Certificate
from trilift.lift.errors import ArtifactFormatError

WANTED = {
    "kind",
    "size",
    "objective",
    "sensitivity",
    "max_row_norm_sq",
    "mean_row_norm_sq",
    "kappa_max",
    "kappa_mean",
    "interior_kappa_max",
    "interior_kappa_mean",
    "sha256",
}


def test_json_has_the_documented_fields(tree):
    record = json.loads(json.dumps(tree.certificate.to_json()))
    assert set(record) >= WANTED
    assert record["sensitivity"] == "3/1"
    assert record["mean_row_norm_sq"] == "5/4"
    assert record["interior_kappa_max"] is None
    assert Certificate.from_json(record) == tree.certificate


def test_stage_record_round_trips():
    third = Fraction(1, 3)
    claims = Certificate(
        "stage",
        2,
        "mean",
        third,
        third,
        third,
        0.1,
        0.2,
        0.3,
        1e-320,
        "0" * 64,
        third,
        third,
        Fraction(10**50, 7),
    )
    assert Certificate.from_json(json.loads(json.dumps(claims.to_json()))) == claims


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "Direct"),
        ("kind", None),
        ("size", 4.0),
        ("size", True),
        ("size", 1),
        ("objective", "mse"),
        ("sensitivity", 3),
        ("sensitivity", "3"),
        ("sensitivity", "-3/1"),
        ("sensitivity", "3/0"),
        ("sensitivity", "3 /1"),
        ("sensitivity", "٣/1"),
        ("sensitivity", "1" * 5000 + "/1"),
        ("kappa_max", float("nan")),
        ("kappa_max", float("inf")),
        ("kappa_max", -1.0),
        ("kappa_max", "1"),
        ("kappa_max", None),
        ("kappa_max", True),
        ("interior_kappa_max", 0.5),
        ("interior_sensitivity", "1/1"),
        ("sha256", "0" * 63),
        ("sha256", "A" * 64),
    ],
)
def test_refused_fields(tree, field, value):
    with pytest.raises(ArtifactFormatError):
        Certificate.from_json({**tree.certificate.to_json(), field: value})


def test_a_stage_needs_interior_claims(tree):
    with pytest.raises(ArtifactFormatError, match="interior_sensitivity must be given for a stage"):
        Certificate.from_json({**tree.certificate.to_json(), "kind": "stage"})


@pytest.mark.parametrize("record", [None, [], "x", {}])
def test_other_json_is_refused(record):
    with pytest.raises(ArtifactFormatError):
        Certificate.from_json(record)


def test_missing_and_unknown_fields_are_named(tree):
    record = tree.certificate.to_json()
    del record["sha256"]
    with pytest.raises(ArtifactFormatError, match="sha256"):
        Certificate.from_json(record)
    with pytest.raises(ArtifactFormatError, match="epsilon"):
        Certificate.from_json({**tree.certificate.to_json(), "epsilon": 1})
