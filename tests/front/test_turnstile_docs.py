"""What docs/turnstile.md, docs/cli.md and the README say about turnstile streams, tried out."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from trilift.application import app
from trilift.counters.turnstile import DistinctCounter, SecondMoment
from trilift.counters.turnstile.distinct import METHODS
from trilift.counters.turnstile.expected import expected
from trilift.experiments.turnstile.expectations import READS, distinct_table, moment_table

Run = Callable[..., Any]

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "turnstile.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
CLI = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")

FLEET = "minute,tail,from,to,sign\n" + "".join(
    f"{k},N{k % 7},EWR,{'IAH' if k % 2 else 'MIA'},{1 if k < 20 else -1}\n" for k in range(40)
)


def between(text: str, name: str) -> str:
    (found,) = re.findall(rf"<!-- table: {name} -->\n(.*?)\n<!-- end -->", text, re.DOTALL)
    return str(found)


def commands(text: str) -> list[list[str]]:
    """Every command on a line of its own, lines that end in a backslash joined."""
    joined = text.replace("\\\n", " ")
    return [
        shlex.split(line)[1:] for line in re.findall(r"^ *(trilift (?:distinct|f2) fleet.*)$", joined, re.M)
    ]


@pytest.mark.parametrize("text", [PAGE, README], ids=["page", "readme"])
def test_the_commands_are_taken(run: Run, text: str) -> None:
    found = commands(text)
    assert [words[0] for words in found] == ["distinct", "distinct", "f2"]
    Path("fleet.csv").write_text(FLEET)
    checked, counted, moment = (run(*words) for words in found)
    assert (checked.code, checked.out.splitlines()[0]) == (0, "40 rows, fine")
    assert "At event 698400: " in checked.out
    for done in (counted, moment):
        assert (done.code, done.out) == (0, ""), done.err  # nothing before event 1800
        assert "released 0: none before step 1800." in done.err


def test_the_sum_of_signs_is_counted(run: Run) -> None:
    """As the page advises where no item is there twice."""
    assert "`trilift count --column sign --bounds -1 1`" in PAGE
    Path("fleet.csv").write_text(FLEET)
    done = run("count", "fleet.csv", "--column", "sign", "--bounds", -1, 1, "-e", "1e6", "-n", 100, "--quiet")
    assert done.out.splitlines()[20] == "20,20"


def example(text: str, name: str) -> str:
    (code,) = re.findall(rf"<!-- example: {name} -->\n```python\n(.*?)```", text, re.DOTALL)
    return str(code)


@pytest.mark.parametrize(("text", "name"), [(PAGE, "use"), (README, "turnstile")], ids=["page", "readme"])
def test_the_examples_run(
    text: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(example(text, name), "example", "exec"), names)
    said = capsys.readouterr().out
    assert said.startswith("[1800] [")
    assert "1-zCDP" in said
    assert len(names["seen"]) == 1
    if name == "use":
        assert SecondMoment.load("routes.json").step == 2


def test_the_tables_are_those_of_the_code() -> None:
    """Their rows of a value after every 1,000 events; the others are slow."""
    for name, made in (("distinct", distinct_table), ("moment", moment_table)):
        shown = between(PAGE, name).splitlines()
        rows = made([READS[1]]).splitlines()
        assert rows == [*shown[:2], *shown[3::2]]


@pytest.mark.slow
def test_the_whole_tables_are_those_of_the_code() -> None:
    assert between(PAGE, "distinct") == distinct_table()
    assert between(PAGE, "moment") == moment_table()


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)", PAGE):
        assert (ROOT / "docs" / target).is_file() or target == "turnstile-results.md", target
    assert "(docs/turnstile.md)" in README
    assert "(turnstile.md)" in CLI


def test_the_symbols_are_explained() -> None:
    for symbol in ("| x_j, D, F2 |", "| ρ |", "| g, m, w |", "| τ_t, μ_t |", "| D̂, β_f |"):
        assert symbol in README


@pytest.mark.parametrize("name", ["distinct", "f2"])
def test_every_option_is_in_the_reference(name: str) -> None:
    section = CLI.split("\n## distinct and f2\n", 1)[1].split("\n## ", 1)[0]
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    options = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
    options -= {"--help"}
    assert options
    for option in options:
        assert f"{option}" in section, option


def test_every_method_is_named() -> None:
    for method in METHODS:
        assert f"`{method}`" in PAGE
        assert f"`{method}`" in CLI


def test_expectations_hold_for_an_empty_stream() -> None:
    """What is released for events that are none lies about the floor, and its interval begins at 0."""
    for made, options in ((DistinctCounter, {}), (SecondMoment, {"rows": 5, "buckets": 64})):
        counter = made(rho=1, horizon=2000, every=500, simulation_seed=3, **options)
        words = expected(counter.blueprint)
        seen = counter.extend([""] * 2000, [0] * 2000)
        assert words.step == seen.step[-1] == 2000
        assert seen.low.tolist() == [0.0] * 4
        assert (seen.high <= 4 * words.nothing.high).all()
        assert words.record()["nothing"]["high"] == words.nothing.high
    hybrid = expected(DistinctCounter(rho=1, horizon=2000, every=500, method="hybrid").blueprint)
    assert hybrid.block == 500
    assert hybrid.nothing.high == hybrid.error
    assert "The count is released after every 500 events" in hybrid.as_text()
