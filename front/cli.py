"""The entry of the program ``trilift``. Nothing is imported here that takes time: signals come first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from trilift.stopping import as_a_program

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Args:
        arguments: without the program's name; None takes those of the process, and its signals too.
    """
    return as_a_program(_load) if arguments is None else _load()(list(arguments))


def _load() -> Callable[[list[str]], int]:
    from trilift.application import run

    return run


if __name__ == "__main__":
    sys.exit(main())
