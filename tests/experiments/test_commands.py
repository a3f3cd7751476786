"""Every module of experiments that is a program says what it does, and refuses what it does not know."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "experiments"
PROGRAMS = sorted(
    path.stem for path in ROOT.glob("*.py") if "\ndef main(" in path.read_text(encoding="utf-8")
)


def test_there_are_programs() -> None:
    assert {"certify_speed", "exact_product", "extend_speed", "results", "sampler_speed", "tables"} <= set(
        PROGRAMS
    )


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("option", "code"), [("--help", 0), ("--bogus", 2)])
def test_help_and_usage(
    name: str, option: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = importlib.import_module(f"trilift.experiments.{name}")
    monkeypatch.setattr(sys, "argv", [name, option])
    with pytest.raises(SystemExit) as left:
        module.main()
    assert left.value.code == code
    captured = capsys.readouterr()
    text = captured.out if code == 0 else captured.err
    assert text.startswith("usage: ")
