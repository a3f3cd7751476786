"""The README's examples: its Python runs, its commands are taken as they stand there."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

README = Path(__file__).resolve().parents[2] / "README.md"


@pytest.fixture(scope="module")
def section() -> str:
    text = README.read_text(encoding="utf-8")
    return text.split("## When somebody joins", 1)[1].split("\n## ", 1)[0]


def test_the_example_runs(section: str, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"<!-- example: edit -->\n```python\n(.*?)```", section, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), names)
    said = capsys.readouterr().out
    assert "Cuts the stream into buckets of about" in said
    assert "spent: epsilon 1 (1), ln delta -13.8" in said
    assert names["counter"].step == 4


def test_the_commands_are_taken(section: str, run: Run) -> None:
    (block,) = re.findall(r"```\n(trilift count.*?)```", section, re.DOTALL)
    count, plan = (shlex.split(line, comments=True) for line in block.splitlines())
    Path("jfk.csv").write_text("slot,late\n1,0\n2,\n3,1\n")
    assert count[0] == plan[0] == "trilift"
    done = run(*count[1:])
    assert (done.code, done.out) == (0, "step,released\n1,0\n2,0\n3,0\n")
    assert "Neighbours: edit" in done.err
    priced = run(*plan[1:])
    assert priced.code == 0
    assert "use  trilift count FILE --mechanism simecc" in priced.out


def test_the_commands_that_price_are_taken(run: Run) -> None:
    text = README.read_text(encoding="utf-8").replace("100000", "1000")  # less to draw
    (block,) = re.findall(r"```\n(trilift plan --horizon 1000 --epsilon 0.3.*?)```", text, re.DOTALL)
    lines = [shlex.split(line, comments=True) for line in block.splitlines()]
    for line in lines:
        assert run(*line[1:]).code == 0
    assert {path.name for path in Path().glob("*.png")} == {"errors.png", "steps.png"}


def test_the_symbols_of_edit_mechanisms_are_explained() -> None:
    text = README.read_text(encoding="utf-8")
    for symbol in ("| ⊥ (BOT) |", "| μ |", "| α_l, η |", "| ε_p, τ, δ_E |"):
        assert symbol in text
