"""Texts as people really have them, at the command line: taken as meant, or refused by their line."""

import os
import re
import threading
from pathlib import Path

import pytest
from trilift.experiments.trust.input_texts import CASES, fault

from .conftest import Run

KINDS = sorted({case.name.split(":")[0] for case in CASES})


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_taken_as_meant_or_refused_by_their_line(run: Run, kind: str) -> None:
    found = []
    for case in CASES:
        if case.name.startswith(f"{kind}:"):
            done = run(*case.command, stdin=case.data)
            what = fault(case, (done.code, done.out, done.err))
            found += [f"{case.name}: {what}"] if what else []
    assert found == []


def test_a_file_that_is_no_file(run: Run, tmp_path: Path) -> None:
    for command in (("count", "-n", 9, "-e", 1), ("distinct", "-n", 9, "-e", 1), ("f2", "-n", 9, "-e", 1)):
        for place, why in ((tmp_path, "Is a directory"), (tmp_path / "none", "No such file or directory")):
            done = run(*command, place)
            assert (done.code, done.out, done.err) == (2, "", f"trilift: {place}: {why}\n")


@pytest.mark.parametrize("command", [("count", "-q", "-e", "1e40"), ("distinct", "-q", "-e", "1")])
def test_a_named_pipe_is_read_as_it_comes(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        with open(pipe, "wb") as file:
            file.write(b"1\r\n0\r\nSECRET\r1\n")

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    done = run(*command, "-n", 9, pipe)
    writer.join(timeout=60)
    assert done.code == 2
    assert len([row for row in done.out.splitlines() if "step" not in row]) == 2
    assert done.err.splitlines()[-1].startswith("trilift: line 3: a carriage return within the line")
    assert "SECRET" not in done.err


@pytest.mark.parametrize("data", [b"1\n1\nSECRET\n1\n", b"1\n1\n\n\n", b"1\n1\n1\r1\n"])
def test_what_comes_before_stays_in_the_file_and_the_state(run: Run, tmp_path: Path, data: bytes) -> None:
    """Nothing of the refused line is counted: what follows, put right, goes on from there."""
    given = ("-n", 9, "-e", "1e40", "-q")
    refused = run("count", "-", *given, "--state", "s", "--out", "o", stdin=data)
    assert (refused.code, refused.out) == (2, "")
    assert (tmp_path / "o").read_text() == "1\n2\n"
    after = run("count", "-", "--state", "s", "--out", "o", stdin=b"1\n1\n0\n1\n")
    assert after.code == 0
    assert (tmp_path / "o").read_text() == "1\n2\n2\n3\n"


def test_the_page_has_a_row_for_what_the_table_tries() -> None:
    """Every form named in the table of docs/cli.md that can be written down is a case here."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    table = page[page.index("**Odd text**") : page.index("**No horizon.**")]
    tried = b"\n".join(case.data for case in CASES if len(case.data) < 1000).decode("utf-8", "replace")
    for form in re.findall(r"`([^`]+)`", table):
        if not form.startswith("-") and form not in ("attack", "+"):
            assert form in tried or form == "1e3", form
