"""The examples in the docstrings are run, module by module, on the copy of trilift that is imported."""

import doctest
import importlib
import pkgutil

import pytest
import trilift


def module_names() -> list[str]:
    found = pkgutil.walk_packages(trilift.__path__, prefix="trilift.")
    return ["trilift", *(module.name for module in found if not module.name.endswith("__main__"))]


@pytest.mark.parametrize("name", module_names())
def test_docstring_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_every_room_is_walked() -> None:
    rooms = {name.split(".")[1] for name in module_names() if "." in name}
    expected = {"lift", "factorize", "verify", "artifacts", "stream", "counters", "experiments"}
    assert expected <= rooms
