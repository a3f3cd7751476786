"""Every option of the commands that count, with every text that is no number: one line, exit code 2."""

from typing import Any

import pytest
import typer
from trilift.application import app

from .conftest import Run

NO_NUMBERS = (
    "nan",
    "inf",
    "-inf",
    "",
    " ",
    "1_000",
    "1,000",
    "１",
    "0x10",
    "true",
    "1e",
    "1/0",
    "--",
    "1 2",
    "½",
    "1\n2",
)
EDGES = ("0", "-1", "1e-320", "1e400", "9" * 300, "9" * 5000, "1e999", "1e99999999")

COMMANDS: dict[str, tuple[str, ...]] = {
    "count": ("-", "--epsilon", "1", "--horizon", "9", "--check"),
    "distinct": ("-", "--epsilon", "1", "--horizon", "9", "--check"),
    "f2": ("-", "--epsilon", "1", "--horizon", "9", "--check"),
}
# Texts and files: a name may be anything.
NAMES = {
    "column",
    "item_column",
    "sign_column",
    "delimiter",
    "out",
    "state",
    "chain",
    "artifact",
    "json",
    "mechanism",
}


def options(command: str) -> list[tuple[str, int]]:
    group: Any = typer.main.get_command(app)
    return [
        (parameter.opts[0], parameter.nargs)
        for parameter in group.commands[command].params
        if parameter.opts[0].startswith("--")
        and not getattr(parameter, "is_flag", False)
        and parameter.name not in NAMES
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_number_is_no_option(run: Run, command: str) -> None:
    tried, found = 0, []
    for option, nargs in options(command):
        for text in (*NO_NUMBERS, *EDGES):
            given = [*COMMANDS[command]]
            if option in given:
                at = given.index(option)
                del given[at : at + 2]
            done = run(command, *given, option, *[text] * nargs, stdin=b"1\n0\n")
            tried += 1
            last = done.err.splitlines()[-1] if done.err else ""
            fine = done.code == 2 and done.out == "" and last.startswith("trilift: ") and len(last) < 500
            if not fine and (text in NO_NUMBERS or done.code != 0):
                found.append((option, text[:20], done.code, last[:120]))
    assert found == []
    assert tried > 50


def test_two_values_written_as_one_are_explained(run: Run) -> None:
    done = run("count", "-", "--bounds", "0,12", "--epsilon", "1", "--horizon", "9")
    assert (done.code, done.out) == (2, "")
    assert "unexpected extra argument" in done.err
    assert "with a space between its two values: --bounds LOW HIGH (see trilift count --help)" in done.err
    assert "space" not in run("plan", "x", "--epsilon", "1").err
