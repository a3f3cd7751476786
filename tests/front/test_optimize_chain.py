"""``trilift optimize chain``, and the certificate of its folder."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

PIECES = ("--chain", "stage-mean-9", "--chain", "direct-mean-4")


@pytest.fixture
def folder(run: Run) -> Path:
    options = ("-n", 36, "--objective", "mean", *PIECES, "--steps", 6)
    done = run("optimize", "chain", *options, "--out", "c", "--json")
    assert done.code == 0, done.err
    record = done.json
    assert (record["horizon"], record["objective"], record["steps"]) == (36, "mean", 6)
    assert record["start"] == ["stage-mean-9", "direct-mean-4"]
    assert record["se"] <= record["start_se"] * (1 + 1e-4)  # what completion may lose
    return Path("c")


def test_from_search_to_certificate_and_count(run: Run, folder: Path, refused: Callable[..., str]) -> None:
    stored = json.loads((folder / "chain.json").read_text())
    assert [level["file"] for level in stored["levels"]] == ["level-0.npz", "top.npz"]
    charges, scales = ([Fraction(text) for text in stored[name]] for name in ("charges", "scales"))
    assert 1 - Fraction(1, 10**9) < sum(b / s for b, s in zip(charges, scales, strict=True)) <= 1
    certified = run("certify", folder, "--json")
    assert (certified.code, certified.json["verified"]) == (0, True)
    options = ("-n", 36, "-e", "1e6", "-q", "--objective", "mean")
    levels = ("--chain", folder / "level-0.npz", "--chain", folder / "top.npz")
    assert run("count", "-", *options, *levels, stdin=b"1\n" * 5).values == [1, 2, 3, 4, 5]
    assert "exists already" in refused("optimize", "chain", "-n", 36, "--out", folder)


FALSE = (
    ("scales", lambda values: ["1/1", *values[1:]], "sum to 1 +"),
    ("charges", lambda values: ["1/2", *values[1:]], "the charge of level 0 fails"),
    ("mean_row_norm_sq", lambda value: "0.5", "mean_row_norm_sq fails"),
    ("horizon", lambda value: 37, "past the capacity 36"),
    ("levels", lambda levels: [levels[0] | {"sha256": "0" * 64}, levels[1]], "the file has another"),
)


def test_false_claims_are_found(run: Run, folder: Path) -> None:
    path = folder / "chain.json"
    stored = json.loads(path.read_text())
    for name, change, failure in FALSE:
        path.write_text(json.dumps(stored | {name: change(stored[name])}))
        done = run("certify", folder, "--json")
        assert done.code == 1, name
        assert failure in done.json["failure"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "trilift-chain-1", "levels": []}'])
def test_what_describes_no_chain_is_refused(refused: Callable[..., str], text: str) -> None:
    Path("c").mkdir()
    Path("c/chain.json").write_text(text)
    assert "does not describe a chain" in refused("certify", "c")
