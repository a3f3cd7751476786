"""The public names of trilift itself."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import trilift

ROOT = Path(__file__).resolve().parents[2]


def test_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert trilift.__version__ == project["version"]


@pytest.mark.parametrize("name", sorted(set(trilift.__all__) - {"__version__"}))
def test_every_name_is_there(name: str) -> None:
    value = getattr(trilift, name)
    assert value.__module__.startswith("trilift.")
    assert value is getattr(trilift, name)
    assert name in dir(trilift)


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse((ROOT / "front" / "__init__.py").read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    pairs = [
        (node.module, alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    names = [name for _, name in pairs]
    assert sorted([*names, "__version__"]) == sorted(trilift.__all__)
    for module, name in pairs:
        assert getattr(sys.modules[str(module)], name) is getattr(trilift, name)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = trilift.nothing


def test_import_alone_loads_nothing() -> None:
    names = ["numpy", "jax", "scipy", "sympy", "matplotlib", "typer", "rich", "trilift.lift"]
    program = f"import sys, trilift; print([name for name in {names} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
