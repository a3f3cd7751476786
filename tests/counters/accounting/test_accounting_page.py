"""The examples of docs/accounting.md are run, with dp_accounting and OpenDP themselves."""

import doctest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "accounting.md"


def test_examples_of_the_page() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert result.attempted >= 20
    assert result.failed == 0
