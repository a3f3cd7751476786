"""The public names and signatures are those of docs/api.txt: a change of them is made on purpose, or not."""

import difflib
import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import trilift
from trilift.experiments.api import INSIDE, PUBLIC, api_text

ROOT = Path(__file__).resolve().parents[1]
SNAPSHOT = ROOT / "docs" / "api.txt"
COMMAND = "python -m trilift.experiments.api docs/api.txt"


@pytest.fixture(scope="module")
def text() -> str:
    """Return the listing, made in a process of its own: other tests load and register things."""
    done = subprocess.run(
        [sys.executable, "-m", "trilift.experiments.api"], check=True, capture_output=True, text=True
    )
    return done.stdout


def test_the_snapshot_is_the_library(text: str) -> None:
    old = SNAPSHOT.read_text(encoding="utf-8")
    lines = difflib.unified_diff(old.splitlines(), text.splitlines(), "docs/api.txt", "now", n=0, lineterm="")
    difference = list(lines)
    if difference:
        pytest.fail(
            "the public API is another one than docs/api.txt says:\n"
            + "\n".join(difference[:60])
            + f"\nIf that is meant, write it down: {COMMAND}\n"
            "and put a line into CHANGELOG.md, under Changed or Removed where code of users can break.",
            pytrace=False,
        )


def test_every_package_with_public_names_is_listed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = {
        name
        for name in project["tool"]["setuptools"]["packages"]
        if not name.startswith(INSIDE) and getattr(importlib.import_module(name), "__all__", None)
    }
    assert named - set(PUBLIC) == set(), "add the package to PUBLIC or INSIDE in experiments/api.py"


def test_the_listing_does_not_depend_on_what_was_loaded(text: str) -> None:
    assert api_text() == text


def test_every_public_name_is_listed(text: str) -> None:
    parts = {part.splitlines()[0].strip("[]"): part for part in text.split("\n\n")}
    assert {"trilift", "trilift.lift", "trilift.stream", "trilift.counters.frames"} <= set(parts)
    for name in trilift.__all__:
        assert any(name in line for line in parts["trilift"].splitlines()), name


def test_signatures_and_members_are_listed(text: str) -> None:
    lines = text.splitlines()
    counter = "class Counter(RunningCounter): (epsilon: Any, *, horizon: int | None = None"
    assert any(line.startswith(counter) for line in lines)
    assert "  spent -> Fraction" in lines
    assert "  skip(self, steps: int) -> None" in lines
    (load,) = {line for line in lines if line.startswith("  load(cls") and "chain" in line}
    assert load.endswith("persist: bool = False) -> Self [class]")
    assert "class ParameterError(TriliftError, ValueError)" in lines


def test_nothing_of_this_machine_or_run_is_listed(text: str) -> None:
    assert " at 0x" not in text
    assert str(Path.home()) not in text
    assert max(map(len, text.splitlines())) < 1200
