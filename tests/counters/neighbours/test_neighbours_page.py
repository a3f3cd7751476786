"""The examples of docs/neighbours.md are run."""

import doctest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "neighbours.md"


def test_the_examples_run() -> None:
    done = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert done.failed == 0
    assert done.attempted > 15
