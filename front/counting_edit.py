"""Making and continuing the counters of ``trilift count`` whose neighbours are edits."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from trilift.lift.errors import ArtifactFormatError

__all__ = ["load_edit", "new_edit", "saved_edit"]


def new_edit(given: dict[str, Any]) -> Any:
    """Make the counter of checked options; with mechanism "auto" the one of least predicted error.

    Raises:
        ParameterError: an option that is not acceptable.
    """
    from trilift.counters.edit.gaussian_cc import GaussianCC, HorizonGaussian

    epsilon, delta, horizon = given["epsilon"], given["delta"], given.get("horizon")
    mechanism = given.get("mechanism", "auto")
    inputs: dict[str, Any] = {
        "high": given.get("bounds", (0, 1))[1],
        "resolution": given.get("resolution", 1),
        "clip": given.get("clip", False),
    }
    if mechanism == "gaussian":
        if horizon is None:
            return GaussianCC(epsilon, delta, **inputs)
        return HorizonGaussian(epsilon, delta, horizon=horizon, **inputs)
    from trilift.counters.edit.mechanism import class_of

    rate = None if "rate" not in given else float(given["rate"])
    arguments: dict[str, Any] = {"delta": delta, "horizon": horizon, "rate": rate, **inputs}
    if mechanism == "auto":
        from trilift.counters.edit.choose import choose_design

        design = choose_design(epsilon, **arguments)
    else:
        from trilift.counters.edit.design import make_design

        design = make_design(epsilon, mechanism=mechanism, **arguments)
    return class_of(design).of(design)


def load_edit(state: Path, kind: str) -> Any:
    """Load a counter of edit-neighbouring streams.

    Args:
        state: the file.
        kind: name of the class, as the file says.

    Raises:
        ArtifactFormatError: the file is damaged, or of a class that is not known.
        ReplayError: it belongs to another mechanism.
    """
    from trilift.counters.edit.gaussian_cc import GaussianCC, HorizonGaussian
    from trilift.counters.edit.mechanism import ECC, SimECC

    classes: dict[str, Any] = {known.__name__: known for known in (SimECC, ECC, GaussianCC, HorizonGaussian)}
    if kind not in classes:
        raise ArtifactFormatError(f"{state}: the state of a counter that this version does not know")
    return classes[kind].load(state)


def saved_edit(counter: Any) -> dict[str, Any]:
    """Return the options that a loaded counter was made with."""
    design = getattr(counter, "design", None)
    return {
        "neighbours": "edit",
        "epsilon": counter.epsilon,
        "delta": counter.delta,
        "mechanism": "gaussian" if design is None else design.mechanism,
        "horizon": counter.horizon,
        "unbounded": counter.horizon is None,
        "rate": None if design is None else design.rate,
        "bounds": (Fraction(0), counter.rule.largest),
        "clip": counter.rule.clip,
        "resolution": Fraction(1, 1 << counter.rule.places),
    }
