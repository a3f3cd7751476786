"""Imports run one way, the core stays light, and modules stay small."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# What each room may import of trilift. Nothing may import the front (`trilift` itself).
ALLOWED = {
    "lift": {"lift"},
    "artifacts": {"artifacts", "lift"},
    "stream": {"stream", "artifacts", "lift"},
    "counters": {"counters", "stream", "artifacts", "lift"},
    "factorize": {"factorize", "artifacts", "lift"},
    "verify": {"verify", "artifacts", "lift"},
}
ALLOWED["experiments"] = {"experiments", *ALLOWED}
ALLOWED["front"] = {"experiments", "front", *ALLOWED}
# Tries the program as it is installed, by the names of its modules.
TRIES_THE_PROGRAM = ROOT / "experiments" / "trust" / "program.py"

# What else a room may need merely to be imported; None: no rule.
THIRD_PARTY: dict[str, set[str] | None] = {
    "lift": {"numpy"},
    "artifacts": {"numpy", "platformdirs"},
    "stream": {"numpy", "cryptography"},
    "counters": {"numpy"},
    "factorize": {"numpy", "scipy", "sympy", "jax", "optax"},
    "verify": {"numpy", "sympy", "flint"},
    "experiments": None,
    "front": None,
}
HEAVY = [
    "jax",
    "jaxlib",
    "optax",
    "sympy",
    "flint",
    "scipy",
    "matplotlib",
    "pandas",
    "opendp",
    "numba",
    "polars",
    "dp_accounting",
    "pyspark",
    "pyarrow",
]


def modules(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def for_type_checkers_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports(tree: ast.AST, *, inside_functions: bool) -> Iterator[str]:
    """Dotted names that a module imports; those it imports late only when asked for."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # A relative import shows up as '' or as a bare name, and is refused as unknown.
            yield from (f"{node.module or ''}.{alias.name}" for alias in node.names)
        elif not for_type_checkers_only(node) and (inside_functions or not isinstance(node, FUNCTIONS)):
            yield from imports(node, inside_functions=inside_functions)


def room_of(dotted: str) -> str:
    parts = dotted.split(".")
    known = len(parts) > 1 and parts[1] in ALLOWED and parts[1] != "front"
    return parts[1] if known else "front"


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_imports_run_one_way(room: str) -> None:
    for path in modules(room):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for dotted in imports(tree, inside_functions=True):
            if dotted.split(".")[0] == "trilift":
                assert room_of(dotted) in ALLOWED[room], f"{path.relative_to(ROOT)} imports {dotted}"


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_what_is_imported_by_name_runs_the_same_way(room: str) -> None:
    for path in modules(room):
        if path == TRIES_THE_PROGRAM:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("import_module"):
                continue
            name = ast.unparse(node.args[0]).removeprefix("f").strip("'\"")
            if name.split(".")[0] == "trilift":
                assert room_of(name) in ALLOWED[room], f"{path.relative_to(ROOT)} imports {name}"


@pytest.mark.parametrize("room", sorted(THIRD_PARTY))
def test_rooms_import_only_what_they_need(room: str) -> None:
    extra = THIRD_PARTY[room]
    for path in modules(room):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for dotted in imports(tree, inside_functions=room == "lift"):
            top = dotted.split(".")[0]
            where = f"{path.relative_to(ROOT)} imports {dotted}"
            assert top, f"{where} (relative)"
            if extra is not None:
                assert top in extra | {"trilift"} or top in sys.stdlib_module_names, where


def test_the_checker_stands_alone() -> None:
    checker = ROOT / "verify" / "check_artifact.py"
    tree = ast.parse(checker.read_text(encoding="utf-8"))
    tops = {dotted.split(".")[0] for dotted in imports(tree, inside_functions=True)}
    assert tops - sys.stdlib_module_names <= {"numpy"}


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_modules_stay_small(room: str) -> None:
    for path in modules(room):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= 400, f"{path.relative_to(ROOT)} has {lines} lines"
        assert "utils" not in path.stem


def test_import_loads_nothing_heavy() -> None:
    """In a fresh interpreter, since this one has loaded everything already."""
    program = f"import sys, trilift; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_lift_loads_nothing_but_numpy() -> None:
    program = (
        "import importlib, pkgutil, sys, trilift.lift as room\n"
        "for module in pkgutil.iter_modules(room.__path__):\n"
        "    importlib.import_module('trilift.lift.' + module.name)\n"
        "tops = {name.split('.')[0] for name in sys.modules}\n"
        f"print(sorted(tops & {set(HEAVY) | {'cryptography', 'typer', 'rich'}}))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
