"""Which counter the options of ``trilift count`` ask for, and what contradicts itself among them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trilift.lift.checks import fail
from trilift.lift.errors import ParameterError

__all__ = ["EDIT", "EDIT_GAUSSIAN", "GAUSSIAN", "KINDS", "PLAIN", "arguments_of", "check_needed", "kind_of"]

PLAIN, GAUSSIAN, EDIT, EDIT_GAUSSIAN = "plain", "gaussian", "edit", "edit-gaussian"
KINDS = (PLAIN, GAUSSIAN, EDIT, EDIT_GAUSSIAN)

NEIGHBOURS = ("swap", "edit")
EDIT_MECHANISMS = ("auto", "simecc", "ecc", "gaussian")
GAUSSIAN_MECHANISMS = ("chain", "toeplitz")

_EVERYWHERE = {"neighbours", "epsilon", "horizon", "unbounded", "bounds", "clip", "resolution"}
_TAKEN = {
    PLAIN: _EVERYWHERE | {"objective", "max_contributions", "chain", "postprocess"},
    GAUSSIAN: _EVERYWHERE | {"delta", "mechanism", "objective", "max_contributions", "postprocess"},
    EDIT: _EVERYWHERE | {"delta", "mechanism", "rate", "display"},
    EDIT_GAUSSIAN: _EVERYWHERE | {"delta", "mechanism"},
}
_WHY = {
    PLAIN: "without --delta and --neighbours edit",
    GAUSSIAN: "with --delta and swap neighbours",
    EDIT: "with --neighbours edit",
    EDIT_GAUSSIAN: "with --neighbours edit --mechanism gaussian",
}


def kind_of(given: Mapping[str, Any]) -> str:
    """Return the kind of counter that the given options ask for.

    Raises:
        ParameterError: options that contradict each other.
    """
    neighbours = given.get("neighbours", "swap")
    if neighbours not in NEIGHBOURS:
        raise fail("neighbours", f"one of {_listed(NEIGHBOURS)}", neighbours)
    mechanism = given.get("mechanism")
    if neighbours == "edit":
        if mechanism is not None and mechanism not in EDIT_MECHANISMS:
            wanted = f"one of {_listed(EDIT_MECHANISMS)} for edit neighbours"
            raise fail("mechanism", wanted, mechanism)
        return EDIT_GAUSSIAN if mechanism == "gaussian" else EDIT
    if mechanism in EDIT_MECHANISMS:
        raise ParameterError(f"--mechanism {mechanism} is about edit neighbours: add --neighbours edit")
    if mechanism is not None and mechanism not in GAUSSIAN_MECHANISMS:
        raise fail("mechanism", f"one of {_listed(GAUSSIAN_MECHANISMS)} for swap neighbours", mechanism)
    return PLAIN if given.get("delta") is None and mechanism is None else GAUSSIAN


def arguments_of(given: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return the options of a kind of counter; refuse those that it does not take.

    Raises:
        ParameterError: an option that is of no use with this kind, or contradicts another.
    """
    for name in given:
        if name not in _TAKEN[kind]:
            raise ParameterError(f"--{name.replace('_', '-')} is of no use {_WHY[kind]}: leave it out")
    if given.get("unbounded") and "horizon" in given:
        raise ParameterError("--unbounded and --horizon contradict each other: leave one of them out")
    if kind in (EDIT, EDIT_GAUSSIAN) and given.get("bounds", (0, 1))[0] != 0:
        raise ParameterError("--bounds must begin at 0 with --neighbours edit: sums must not fall")
    return dict(given)


def check_needed(given: Mapping[str, Any], kind: str, *, state: Path | None) -> None:
    """Check that what a new counter needs is given.

    Raises:
        ParameterError: an option is missing.
    """
    why = "" if state is None else f" (there is no saved state {state} yet)"
    if "epsilon" not in given:
        raise ParameterError(f"--epsilon is needed{why}")
    if kind != PLAIN and "delta" not in given:
        more = "edit neighbours" if kind in (EDIT, EDIT_GAUSSIAN) else "Gaussian noise"
        raise ParameterError(f"--delta is needed for {more}, such as 1e-6{why}")
    if "horizon" not in given and not given.get("unbounded"):
        raise ParameterError(f"--horizon is needed, or --unbounded{why}")


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names))
