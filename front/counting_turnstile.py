"""The counter that ``trilift distinct`` or ``trilift f2`` counts with: a new one, or that of a state."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from trilift.counters.turnstile import DistinctCounter, SecondMoment
from trilift.keeping import Keeping
from trilift.lift.errors import ParameterError, ReplayError

__all__ = ["QUANTITIES", "begun", "continued"]

QUANTITIES: dict[str, Any] = {"distinct": DistinctCounter, "f2": SecondMoment}
"""Classes by the names of their commands."""

_BASES = ("auto", "chain", "tree")


def begun(command: str, given: dict[str, Any], *, state: Path | None) -> Any:
    """Make the counter that the options ask for.

    Args:
        command: "distinct" or "f2".
        given: options by name, those alone that were given.
        state: where it is to be saved.

    Raises:
        ParameterError: options that are missing, contradict each other, or are not acceptable.
    """
    why = "" if state is None else f" (there is no saved state {state} yet)"
    if "rho" in given and ("epsilon" in given or "delta" in given):
        raise ParameterError("--rho and --epsilon contradict each other: leave one of them out")
    if "rho" not in given and "epsilon" not in given:
        raise ParameterError(f"--rho or --epsilon is needed{why}")
    if "horizon" not in given:
        raise ParameterError(f"--horizon, the number of events planned for, is needed{why}")
    if given.get("base", "auto") not in _BASES:
        raise ParameterError("base must be one of 'auto', 'chain', 'tree'")  # nothing that is simulated
    if state is not None and not state.parent.is_dir():
        raise ParameterError(f"--state {state}: the folder {state.parent} does not exist")
    return QUANTITIES[command](given.get("epsilon"), **{k: v for k, v in given.items() if k != "epsilon"})


def continued(command: str, given: dict[str, Any], *, kept: Keeping) -> Any:
    """Load a counter, and refuse options that say something else than its state.

    Raises:
        ReplayError: an option that differs, or the state of another mechanism.
        ArtifactFormatError: the file is no state, or that of another command.
    """
    state = kept.state
    counter = QUANTITIES[command].load(state) if kept.single else kept.opened(command)
    saved = _saved(counter)
    for option, value in given.items():
        if option not in saved or not _agree(option, value, saved[option]):
            written = option.replace("_", "-")
            raise ReplayError(f"--{written} differs from that of the saved state {state}: leave it out")
    return counter


def _agree(option: str, given: Any, saved: Any) -> bool:
    if option == "base" and given == "auto":
        return True
    if option == "accuracy":
        return bool(given == Fraction(saved))
    return bool(given == saved)


def _saved(counter: Any) -> dict[str, Any]:
    """Return the options that a loaded counter was made with."""
    plan = counter.blueprint
    budget = plan.budget
    asked_rho = budget.law == "gaussian" and budget.epsilon is None
    return {
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "rho": budget.rho if asked_rho else None,
        "horizon": counter.horizon,
        "every": counter.every,
        "failure": counter.failure,
        "method": counter.method,
        "universe": plan.common.universe,
        "base": plan.bases[0].kind,
        "few_heavy": plan.options.get("few_heavy"),
        "accuracy": plan.options.get("accuracy"),
    }
