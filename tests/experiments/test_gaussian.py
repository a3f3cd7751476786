"""docs/gaussian.md is what the shipped certificates and the exact costs give."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from trilift.artifacts import catalogue, catalogue_l2, load_stage_l2
from trilift.experiments import gaussian
from trilift.experiments.gaussian import HORIZONS, chain_row, compare, fill_in, tables
from trilift.experiments.gaussian_search import build
from trilift.lift import Chain, chain_cost, materialise
from trilift.verify import factorisation_lower_bound

PAGE = Path(__file__).resolve().parents[2] / "docs" / "gaussian.md"


@pytest.mark.slow
def test_the_page_is_current() -> None:
    text = PAGE.read_text(encoding="utf-8")
    made = tables()
    assert set(re.findall(r"<!-- table: (\w+) -->", text)) == set(made)
    assert fill_in(text, made) == text


def test_two_levels_are_below_the_square_root_and_nothing_is_below_the_bound() -> None:
    rows = {row.mechanism: row for row in compare(2**10)}
    ours, root, least = rows["small-chain"], rows["toeplitz-sqrt"], rows["lower-bound"]
    assert len((ours.chain or ((),))[0]) == 2
    assert least.gamma_max < rows["chain"].gamma_max < ours.gamma_max < root.gamma_max
    assert least.gamma_mean < ours.gamma_mean < 1.01 * root.gamma_mean
    assert root.gamma_max < rows["honaker"].gamma_max < rows["binary-tree"].gamma_max
    assert least.gamma_max == pytest.approx(math.log(2**10) / math.pi + 0.7019, abs=2e-3)


def test_a_row_is_the_cost_of_its_chain() -> None:
    """The reported gamma is that of the matrices themselves."""
    row = chain_row(2**10, small=True)
    assert row.chain is not None
    for objective, names, gamma in zip(
        ("max", "mean"), row.chain, (row.gamma_max, row.gamma_mean), strict=True
    ):
        levels = [load_stage_l2(name).to_float() for name in names]
        chain = Chain(levels[-1], levels[:-1])
        scales = chain_cost(chain, 2**10, objective=objective, norm="l2").scales
        L, R = materialise(chain, 2**10).scaled(scales)
        squares = (L**2).sum(axis=1)
        b_sq = (R**2).sum(axis=0).max()
        found = math.sqrt((squares.max() if objective == "max" else squares.mean()) * b_sq)
        assert gamma == pytest.approx(found, rel=1e-9)


def test_every_certificate_is_above_the_lower_bound_and_close_to_it() -> None:
    for entry in catalogue_l2():
        claims = entry.certificate
        if claims.kind == "direct":
            least = factorisation_lower_bound(claims.size)
            assert least < claims.gamma_mean <= claims.gamma_max
            own = claims.gamma_max if claims.objective == "max" else claims.gamma_mean
            assert own < 1.055 * least
        else:
            assert claims.interior_gamma_max is not None
            assert claims.interior_gamma_max / math.log(claims.size) > 1 / math.pi


def test_catalogues_do_not_mix() -> None:
    laplace, gaussian_names = {e.name for e in catalogue()}, {e.name for e in catalogue_l2()}
    assert not laplace & gaussian_names
    assert not any("-l2-" in name for name in laplace)


def test_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian, "HORIZONS", (2**6,))
    assert gaussian.main(["--json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert [r["mechanism"] for r in records][-2:] == ["chain", "lower-bound"]
    assert {r["horizon"] for r in records} == {64}
    assert HORIZONS == (2**10, 2**16, 2**20)


def test_building_an_artifact_and_going_on_from_the_raw_results(tmp_path: Path) -> None:
    raw, target = tmp_path / "raw", tmp_path / "target"
    raw.mkdir()
    target.mkdir()
    first = build("stage", 5, raw=raw, target=target)
    assert [name for name, _, _ in first] == ["stage-l2-mean-5", "stage-l2-max-5"]
    assert all(written for _, _, written in first)
    with np.load(raw / "stage_max_5.npz") as found:
        assert json.loads(str(found["record"]))["settings"]["norm"] == "l2"
    again = build("stage", 5, raw=raw, target=target)
    assert [(name, gamma) for name, gamma, _ in again] == [(name, gamma) for name, gamma, _ in first]
    assert not any(written for _, _, written in again)
