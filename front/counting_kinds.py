"""The counter that ``trilift count`` counts with, of whatever kind: a new one, or that of a saved state."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

from trilift.counting import Tally
from trilift.counting_edit import load_edit, new_edit, saved_edit
from trilift.counting_options import GAUSSIAN, PLAIN, arguments_of, check_needed, kind_of
from trilift.counting_plain import check_scalar, load_plain, new_gaussian, new_plain, saved_plain
from trilift.keeping import Keeping, check_command
from trilift.lift.errors import ParameterError, ReplayError
from trilift.lift.files import open_regular
from trilift.tallies import Edit, Plain

__all__ = ["begun", "continued"]

_STATE = re.compile(
    rb'\{"format": "trilift (edit |turnstile |)(?:counter |gaussian )state", '
    rb'"version": [0-9]+, "kind": "([A-Za-z]+)"'
)
_HEADER = 200
_CHECKED = {"delta": Fraction(1, 10**6)}


def begun(given: dict[str, Any], *, state: Path | None, check: bool = False) -> Tally:
    """Make the counter that the options ask for.

    Args:
        given: options by name, those alone that were given.
        state: where it is to be saved.
        check: nothing will be released, so that the budget need not be given.

    Raises:
        ParameterError: options that are missing, of no use, or contradict each other.
    """
    kind = kind_of(given)
    arguments = arguments_of(given, kind)
    if check:
        arguments = {"epsilon": Fraction(1), **({} if kind == PLAIN else _CHECKED), **arguments}
    check_needed(arguments, kind, state=state)
    if state is not None and not state.parent.is_dir():
        raise ParameterError(f"--state {state}: the folder {state.parent} does not exist")
    if kind == PLAIN:
        return Plain(new_plain(arguments))
    return Plain(new_gaussian(arguments)) if kind == GAUSSIAN else Edit(new_edit(arguments))


def continued(given: dict[str, Any], *, kept: Keeping) -> Tally:
    """Load a counter, and refuse options that say something else than its state.

    Raises:
        ReplayError: an option that differs, or the state of another mechanism.
        ArtifactFormatError: the file is no state.
        ParameterError: another command continues it.
    """
    state = kept.state
    if kept.single:
        edit, name = _saved_kind(state)
        counter: Any = load_edit(state, name) if edit else load_plain(state, name)
    else:
        counter = kept.opened("count")
        edit = hasattr(counter, "rule")
    if not edit:
        check_scalar(counter, state)
    saved = saved_edit(counter) if edit else saved_plain(counter)
    tally: Tally = Edit(counter) if edit else Plain(counter)
    for option, value in given.items():
        if option not in saved or not _agree(option, value, saved[option]):
            written = option.replace("_", "-")
            raise ReplayError(f"--{written} differs from that of the saved state {state}: leave it out")
    return tally


def _agree(option: str, given: Any, saved: Any) -> bool:
    if option == "mechanism" and given == "auto":
        return True  # what it stood for was chosen when the state was begun
    return bool(float(given) == saved if option == "rate" else given == saved)


def _saved_kind(state: Path) -> tuple[bool, str]:
    """Return whether a state is that of a counter of edits, and the class that it names ("" for none)."""
    with open_regular(state) as file:
        found = _STATE.match(file.read(_HEADER))
    if found is not None and found[1] == b"turnstile ":
        check_command(found[2].decode("ascii"), "count", state)
    return (False, "") if found is None else (found[1] != b"", found[2].decode("ascii"))
