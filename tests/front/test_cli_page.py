"""The reference of the command line, docs/cli.md, is about every command and every option that there is."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from trilift.application import app

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    """Every command with its options."""
    options = {name for parameter in command.params for name in parameter.opts if name.startswith("--")}
    yield path, options
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


def test_every_command_and_option_is_on_the_page() -> None:
    known = set(re.findall(r"--[A-Za-z][A-Za-z0-9-]*", PAGE))
    found = dict(commands(typer.main.get_command(app)))
    assert len(found) > 25
    for path, options in found.items():
        assert all(re.search(rf"\b{re.escape(word)}\b", PAGE) for word in path), path
        assert options - known - {"--help", "--version"} == set(), path
