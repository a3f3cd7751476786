"""What ``trilift attack`` needs: rates from a file, and somebody's mechanism from a module or a file."""

from __future__ import annotations

import importlib
import importlib.util
import io
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from trilift.arguments import parse_number
from trilift.lift.errors import ParameterError, TriliftError
from trilift.reading import Lines, Numbered, read_column, read_plain

__all__ = ["GuardedMechanism", "load_mechanism", "read_rates"]

COLUMNS = ("rate", "p")
"""The column that is read of a table with several, if none is named: the first of these that is there."""


def read_rates(source: IO[bytes], *, column: str | None, delimiter: str = ",") -> NDArray[np.float64]:
    """Return the rates of a file: a number a line, or a column of a CSV with a header.

    Args:
        source: the file.
        column: name of the column. Without it: plain numbers if the first line is one, else a table's only
            column, or the one called "rate" or "p".
        delimiter: what separates the fields.

    Returns:
        shape (T,).

    Raises:
        ParameterError: a line that is not a number in [0, 1], named by its number; no such column.
    """
    stream = io.BytesIO(source.read())
    first = next(iter(Lines(io.BytesIO(stream.getvalue()))), "").strip(" \t\n")
    lines = Lines(stream)
    if column is None and (not first or parse_number(first) is not None):
        numbers = read_plain(lines, parse=parse_number)
    else:
        if column is None:
            names = [name.strip('" ') for name in first.split(delimiter)]
            known = [name for name in COLUMNS if name in names]
            column = names[0] if len(names) == 1 else [*known, *COLUMNS][0]
        numbers = read_column(lines, column, parse=parse_number, delimiter=delimiter)
    rates = list(_within(numbers))
    if len(rates) < 2:
        raise ParameterError(f"the rates of at least two steps are needed, the file holds {len(rates)}")
    return np.array(rates)


def _within(numbers: Iterator[Numbered]) -> Iterator[float]:
    for line, value in numbers:
        if value is None or not 0 <= value <= 1:
            raise ParameterError(f"line {line}: a rate must be a number from 0 to 1")
        yield float(value)


class GuardedMechanism:
    """Somebody's mechanism whose failures name their place in one line.

    Args:
        target: an object with ``release(stream, seed)``, or such a function.
        name: what to call it.
    """

    def __init__(self, target: Any, *, name: str) -> None:
        self._target, self._name = target, name
        many = getattr(target, "release_many", None)
        if callable(many):
            self.release_many = self._guarded(many)

    def release(self, stream: NDArray[np.int64], seed: int) -> Any:
        """Run the mechanism."""
        release = getattr(self._target, "release", self._target)
        return self._guarded(release)(stream, seed)

    def _guarded(self, method: Any) -> Any:
        def call(stream: Any, seed: int) -> Any:
            with _blamed(f"the mechanism {self._name} failed"):
                return method(stream, seed)

        return call


def load_mechanism(name: str) -> GuardedMechanism:
    """Return the mechanism that ``module:object`` or ``file.py:object`` names.

    The object has a method ``release(stream, seed)``; it may also be such a function, or a class that is made
    without arguments. Modules are looked for in the current folder too. This runs the code of the module.

    Raises:
        ParameterError: no such module or object, an error in it, no ``release``.
    """
    place, _, path = name.rpartition(":")
    if not place or not path:
        raise ParameterError(f"--mechanism {name}: name it module:object or file.py:object")
    module = _module(place, name)
    target: Any = module
    for part in path.split("."):
        if not hasattr(target, part):
            raise ParameterError(f"--mechanism {name}: {place} has no {part!r}")
        target = getattr(target, part)
    if isinstance(target, type):
        with _blamed(f"--mechanism {name}: {path}() failed"):
            target = target()
    usable = [getattr(target, way, None) for way in ("release", "release_many")]
    if not any(map(callable, usable)) and not callable(target):
        raise ParameterError(f"--mechanism {name}: the object has no method release(stream, seed)")
    return GuardedMechanism(target, name=name)


def _module(place: str, name: str) -> ModuleType:
    file = Path(place) if place.endswith(".py") else None
    if file is not None and not file.is_file():
        raise ParameterError(f"--mechanism {name}: there is no file {file}")
    folder = os.fspath(Path.cwd() if file is None else file.resolve().parent)
    sys.path.insert(0, folder)  # so that what lies beside it can be imported
    try:
        with _blamed(f"--mechanism {name}"):
            if file is None:
                return importlib.import_module(place)
            spec = importlib.util.spec_from_file_location(file.stem, file)
            if spec is None or spec.loader is None:
                raise ParameterError(f"--mechanism {name}: {file} cannot be imported")
            module = importlib.util.module_from_spec(spec)
            known = sys.modules.get(file.stem)
            sys.modules[file.stem] = module  # as an import does: dataclasses look their module up
            try:
                spec.loader.exec_module(module)
            finally:
                if known is not None:
                    sys.modules[file.stem] = known
            return module
    finally:
        sys.path.remove(folder)


@contextmanager
def _blamed(what: str) -> Iterator[None]:
    """Make one line of a failure in somebody else's code; our own errors say enough already."""
    try:
        yield
    except TriliftError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        there = [frame for frame in frames if frame.filename not in (__file__, importlib.__file__)]
        own = [frame for frame in there if not frame.filename.startswith("<frozen")]
        at = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
        raise ParameterError(f"{what}: {type(error).__name__}: {error}{at}") from error
