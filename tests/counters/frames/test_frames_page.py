"""The examples of docs/frames.md are run, the year of flights among them."""

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "frames.md"


@pytest.mark.slow
def test_examples_of_the_page() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert result.attempted >= 30
    assert result.failed == 0
