"""Parts of the trust page: what a result must be, how it is kept, and every part again in small."""

import json
from pathlib import Path
from typing import Any

import pytest
from trilift.experiments.trust.page import TITLES, page, write_page
from trilift.experiments.trust.parts import (
    PARTS,
    failures,
    load_result,
    measure_part,
    save_result,
)
from trilift.lift.errors import ArtifactFormatError, ParameterError

DOCS = Path(__file__).resolve().parents[3] / "docs"
KEPT = DOCS / "measurements"

ROW: dict[str, Any] = {"what": "a | b", "tried": 1200, "held": 1200, "detail": "well"}
RESULT: dict[str, Any] = {"part": "soak", "full": True, "rows": [ROW], "note": "How.", "more": [1, 2]}


def test_the_page_is_current() -> None:
    assert (DOCS / "trust.md").read_text(encoding="utf-8") == page(KEPT)


def test_every_part_has_a_title() -> None:
    assert set(TITLES) == set(PARTS)


@pytest.mark.parametrize("part", PARTS)
def test_what_is_kept_is_full_and_held(part: str) -> None:
    result = load_result(part, measurements=KEPT)
    assert result["full"]
    assert failures(result) == []


def test_keeping(tmp_path: Path) -> None:
    path = save_result(RESULT, measurements=tmp_path)
    assert path.name == "trust_soak.json"
    assert json.loads(path.read_text(encoding="utf-8")) == RESULT
    assert load_result("soak", measurements=tmp_path) == RESULT
    with pytest.raises(ParameterError, match=r"trust_kills\.json is not there"):
        load_result("kills", measurements=tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"part": "kills"},
        {"full": 1},
        {"rows": []},
        {"rows": [ROW | {"held": 1201}]},
        {"rows": [ROW | {"tried": 0, "held": 0}]},
        {"rows": [ROW | {"held": True}]},
        {"rows": [{"what": "x"}]},
        {"columns": {"bound": "bound"}},
        {"note": None},
    ],
)
def test_damaged_results(change: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "trust_soak.json").write_text(json.dumps(RESULT | change))
    with pytest.raises(ArtifactFormatError, match=r"trust_soak\.json"):
        load_result("soak", measurements=tmp_path)


def test_no_json(tmp_path: Path) -> None:
    (tmp_path / "trust_soak.json").write_text("{")
    with pytest.raises(ArtifactFormatError, match="is not JSON"):
        load_result("soak", measurements=tmp_path)


def test_a_page(tmp_path: Path) -> None:
    (tmp_path / "measurements").mkdir()
    bound = ROW | {"held": 1199, "bound": 0.123456}
    small = {"full": False, "columns": {"bound": "bound on it"}, "rows": [ROW | {"bound": None}, bound]}
    save_result(RESULT | small, measurements=tmp_path / "measurements")
    text = write_page(tmp_path).read_text(encoding="utf-8")
    assert "| a \\| b | 1,200 | 1,199 | 0.1235 | well |" in text
    assert "| a \\| b | 1,200 | 1,200 |  | well |" in text
    assert "| [Soak](#soak) | 2,400 | 2,399 |" in text
    assert "**Not everything held.** 1 rows:" in text
    assert "small version" in text
    assert "trilift reproduce trust --part soak --out docs" in text


def test_no_such_part() -> None:
    with pytest.raises(ParameterError, match="part must be one of"):
        measure_part("nothing", full=False)


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_the_part_again_in_small(part: str) -> None:
    result = measure_part(part, full=False, seed=2)
    assert failures(result) == []
    assert not result["full"]
