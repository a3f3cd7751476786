"""Running the command line inside the test process."""

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from trilift.cli import main


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def values(self) -> list[int]:
        return [int(line) for line in self.out.splitlines()]


Run = Callable[..., Done]


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Done]:
    """Call ``run("plan", "--horizon", 10, ..., stdin=b"...")``; the user's catalogue is an empty folder."""
    catalogue = tmp_path / "catalogue"
    catalogue.mkdir()
    monkeypatch.setenv("TRILIFT_ARTIFACTS", str(catalogue))
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return call


@pytest.fixture
def refused(run: Run) -> Callable[..., str]:
    """Like ``run``, for commands that must fail with exit code 2 and a single line; returns the line."""

    def call(*arguments: object, stdin: bytes = b"") -> str:
        done = run(*arguments, stdin=stdin)
        lines = done.err.splitlines()
        assert (done.code, done.out, len(lines)) == (2, "", 1), done
        assert lines[0].startswith("trilift: ")
        return lines[0]

    return call
