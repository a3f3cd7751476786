"""The program as it is installed, for parts that try it: the one place where experiments meet the front."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

__all__ = ["command", "part_of_program"]


def command() -> Callable[[Sequence[str]], int]:
    """Return ``trilift``, the command: it takes arguments and returns an exit code."""
    (script,) = entry_points(group="console_scripts", name="trilift")
    main: Callable[[Sequence[str]], int] = script.load()
    return main


def part_of_program(name: str) -> Any:
    """Return a module of the front by its name, such as "reading", for what is tried by itself.

    Raises:
        ModuleNotFoundError: there is none.
    """
    return import_module(f"trilift.{name}")
