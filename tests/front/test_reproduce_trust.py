"""``trilift reproduce trust``."""

import json
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trilift.experiments.trust import parts

Run = Callable[..., Any]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the parts soak and kills be ones of a moment; of the second not everything holds."""

    def module(part: str) -> Any:
        def measure(*, full: bool, seed: int, tell: Callable[[str], None]) -> dict[str, Any]:
            tell("halfway")
            held = 3 if part == "soak" else 2
            row = {"what": f"thing {seed}", "tried": 3, "held": held, "detail": "some"}
            return {"part": part, "full": full, "rows": [row], "note": ""}

        return types.SimpleNamespace(measure=measure)

    monkeypatch.setattr(parts, "import_module", lambda name: module(name.rsplit(".", 1)[1]))


@pytest.mark.usefixtures("short")
def test_a_part(run: Run) -> None:
    done = run("reproduce", "trust", "--part", "soak", "--seed", 5, "--json")
    assert done.code == 0
    (result,) = done.json
    assert result["rows"][0]["what"] == "thing 5"
    assert not result["full"]
    assert "halfway" in done.err
    assert "thing 1" in run("reproduce", "trust", "--part", "soak", "--part", "soak").out


@pytest.mark.usefixtures("short")
def test_the_page(run: Run, tmp_path: Path) -> None:
    done = run("reproduce", "trust", "--part", "soak", "--full", "--out", "new")
    assert done.code == 0
    kept = json.loads((tmp_path / "new/measurements/trust_soak.json").read_text())
    assert kept["full"]
    text = (tmp_path / "new/trust.md").read_text()
    assert "| thing 1 | 3 | 3 | some |" in text
    assert "Kill points" not in text


@pytest.mark.usefixtures("short")
def test_what_does_not_hold_is_said_and_exits_1(run: Run, tmp_path: Path) -> None:
    done = run("reproduce", "trust", "--part", "kills", "--out", "new")
    assert done.code == 1
    assert "kills: thing 1: 2 of 3 held: some" in done.err
    assert "**Not everything held.** 1 rows:" in (tmp_path / "new/trust.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--part", "nothing"), "part must be one of"),
        (("--seed", "-1"), "seed must be an integer >= 0"),
        (("--seed", "1e3"), "seed must be an integer"),
        (("--out", "/dev/null/x"), "/dev/null"),
    ],
)
def test_refusals(refused: Run, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused("reproduce", "trust", *arguments)
