"""What every edit-private mechanism would cost, and which one to take: for ``plan`` and ``count``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trilift.counters.edit.choose import Choice, variants
from trilift.counters.edit.gaussian_laws import gaussian_rmse
from trilift.counters.edit.gaussian_statement import described as independent
from trilift.counters.edit.statement import described, first_wait
from trilift.counters.edit.tune import NOMINAL_HORIZON

__all__ = ["PLANNED", "Variant", "best_counter", "edit_variants"]

PLANNED = ("sharp", "joint", "paper")
"""The accountings that a plan shows: ours, the paper's with joint Gaussian accounting, the paper's."""


@dataclass(frozen=True)
class Variant:
    """One mechanism, priced, and in words what it will do.

    Attributes:
        choice: the mechanism with its parameters.
        predicted_rmse: root mean squared error over all steps, for events of constant rate.
        first_update_events: events before the first value other than 0, about.
        words: what it will do, in sentences.
    """

    choice: Choice
    predicted_rmse: float
    first_update_events: float
    words: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """Return the variant for JSON."""
        return {
            **self.choice.record(),
            "predicted_rmse": self.predicted_rmse,
            "first_update_events": self.first_update_events,
            "words": list(self.words),
        }


def edit_variants(
    epsilon: Fraction,
    *,
    delta: Fraction,
    horizon: int | None,
    rate: float,
    steps: int | None = None,
    accountings: Sequence[str] = PLANNED,
    displays: Sequence[str] = ("latest", "extrapolated"),
    **inputs: Any,
) -> list[Variant]:
    """Price edit-private mechanisms; the one with the least predicted error comes first.

    Args:
        epsilon: > 0.
        delta: in (0, 1).
        horizon: steps that they are made for, or None for mechanisms without a horizon.
        rate: events a step.
        steps: over which errors of mechanisms without a horizon are predicted; 10^5 when left out.
        accountings: of SimECC and ECC.
        displays: of SimECC and ECC.
        **inputs: high, resolution, clip.

    Raises:
        ParameterError: an argument that is not acceptable.
    """
    common: dict[str, Any] = {"delta": delta, "horizon": horizon, "rate": rate, **inputs}
    choices = variants(epsilon, accountings=accountings, displays=displays, **common)
    length = NOMINAL_HORIZON if horizon is None else horizon
    if steps is not None:
        length = steps
    found = [_priced(choice, epsilon, delta, steps=length, inputs=inputs) for choice in choices]
    return sorted(found, key=lambda variant: variant.predicted_rmse)


def best_counter(
    epsilon: Fraction, *, delta: Fraction, horizon: int | None, rate: float, display: str, **inputs: Any
) -> Any:
    """Make the counter with the least predicted error, of our own accounting or of independent noise."""
    from trilift.counters.edit.gaussian_cc import GaussianCC, HorizonGaussian
    from trilift.counters.edit.mechanism import class_of

    common: dict[str, Any] = {"delta": delta, "horizon": horizon, **inputs}
    best = edit_variants(epsilon, rate=rate, accountings=("sharp",), displays=(display,), **common)[0].choice
    if best.design is not None:
        return class_of(best.design).of(best.design)
    if horizon is None or best.mechanism == "gaussian":
        return GaussianCC(epsilon, **common)
    return HorizonGaussian(epsilon, **common)


def _priced(
    choice: Choice, epsilon: Fraction, delta: Fraction, steps: int, inputs: dict[str, Any]
) -> Variant:
    design = choice.design
    if design is not None:
        unit, wait = first_wait(design)
        words = [line for line in described(design).splitlines() if not line.startswith("Predicted")]
        if choice.first_update_steps > steps:
            words.append(f"At this rate it shows 0 for all of {steps} steps.")
        events = float(wait) if unit == "events" else choice.first_update_events
        return Variant(choice, design.predict(horizon=steps).rmse, events, tuple(words))
    flat = choice.mechanism == "horizon-gaussian"
    law = "flat" if flat else "growing"
    rmse = gaussian_rmse(epsilon, delta=delta, horizon=steps, mechanism=law, high=inputs.get("high", 1))
    said = () if choice.setup is None else tuple(independent(choice.setup).splitlines())
    return Variant(choice, rmse, choice.first_update_events, said)
