"""The lazily loaded names of the room: the same for users, for type checkers and in the table of homes."""

import ast
from importlib import import_module
from pathlib import Path

import pytest
import trilift.verify

SOURCE = Path(__file__).resolve().parents[2] / "verify" / "__init__.py"


def test_type_checkers_see_the_same_names() -> None:
    (block,) = [
        node for node in ast.parse(SOURCE.read_text(encoding="utf-8")).body if isinstance(node, ast.If)
    ]
    seen = {
        alias.name: str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(seen) == sorted(trilift.verify.__all__)
    for name, module in seen.items():
        assert getattr(import_module(module), name) is getattr(trilift.verify, name)
        assert name in dir(trilift.verify)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = trilift.verify.nothing
