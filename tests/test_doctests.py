"""The examples in the docstrings are run, module by module, on the copy of trilift that is imported."""

import doctest
import importlib
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "setuptools"
]["package-dir"]


def module_names() -> list[str]:
    """Every module of the checkout, by its import name, but __main__ and scripts of other environments."""
    names = []
    for package, folder in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            if parts[-1] != "__main__" and not parts[-1].startswith("peer_"):
                names.append(".".join([package, *parts]).removesuffix(".__init__"))
    return names


@pytest.mark.parametrize("name", module_names())
def test_docstring_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_examples_are_found() -> None:
    """A runner that finds nothing would pass in silence."""
    attempted = doctest.testmod(importlib.import_module("trilift.lift.checks")).attempted
    assert attempted >= 2
    assert {"trilift", "trilift.lift", "trilift.verify"} <= set(module_names())
