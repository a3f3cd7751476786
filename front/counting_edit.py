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
    from trilift.edit_plan import best_counter

    mechanism = given.get("mechanism", "auto")
    horizon = given.get("horizon")
    rate = None if "rate" not in given else float(given["rate"])
    inputs: dict[str, Any] = {
        "high": given.get("bounds", (0, 1))[1],
        "resolution": given.get("resolution", 1),
        "clip": given.get("clip", False),
    }
    if mechanism == "gaussian":
        return _gaussian(given["epsilon"], given["delta"], horizon, inputs)
    display = given.get("display", "latest")
    options: dict[str, Any] = {"delta": given["delta"], "horizon": horizon, "display": display, **inputs}
    if mechanism == "auto":
        return best_counter(given["epsilon"], rate=0.5 if rate is None else rate, **options)
    from trilift.counters.edit.design import make_design
    from trilift.counters.edit.mechanism import class_of

    design = make_design(given["epsilon"], mechanism=mechanism, rate=rate, **options)
    return class_of(design).of(design)


def _gaussian(epsilon: Fraction, delta: Fraction, horizon: int | None, inputs: dict[str, Any]) -> Any:
    from trilift.counters.edit.gaussian_cc import GaussianCC, HorizonGaussian

    if horizon is None:
        return GaussianCC(epsilon, delta, **inputs)
    return HorizonGaussian(epsilon, delta, horizon=horizon, **inputs)


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
        "display": None if design is None else design.display,
        "bounds": (Fraction(0), counter.rule.largest),
        "clip": counter.rule.clip,
        "resolution": Fraction(1, 1 << counter.rule.places),
    }
