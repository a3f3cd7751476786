"""The examples of docs/frames.md are run, the year of flights among them."""

import doctest
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "frames.md"


@pytest.mark.slow
def test_examples_of_the_page() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert result.attempted >= 30
    assert result.failed == 0


def test_the_example_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (PAGE.parents[1] / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"<!-- example: frames -->\n```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    first: dict[str, Any] = {}
    again: dict[str, Any] = {}
    for names in (first, again):
        exec(compile(code, "README.md", "exec"), names)
    assert first["private"].equals(again["private"])
    assert "late_private" in capsys.readouterr().out
