"""What every edit-private mechanism would cost, and which one to take: for ``plan`` and ``count``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

__all__ = ["ASSUMED_HORIZON", "PLANNED", "Variant", "best_variant", "edit_variants"]

ASSUMED_HORIZON = 1 << 20
"""Number of steps over which counters without a horizon are compared, where none is named."""

PLANNED = ("sharp", "joint", "paper")
"""The accountings that a plan shows: ours, the paper's with joint Gaussian accounting, the paper's."""

_POINTS = 4096


@dataclass(frozen=True)
class Variant:
    """One mechanism, priced.

    Attributes:
        mechanism: "simecc", "ecc" or "gaussian".
        base: noise beneath it.
        accounting: the proof that its ledger rests on.
        predicted_rmse: root mean squared error over all steps, for events of constant rate.
        first_update_steps: step of the first value that is more than 0, about.
        first_update_events: events before that, about.
        ledger: as JSON: part, epsilon, ln_delta.
        words: what it will do, in sentences.
        make: makes the counter, with fresh keys.
    """

    mechanism: str
    base: str
    accounting: str
    predicted_rmse: float
    first_update_steps: float
    first_update_events: float
    ledger: list[dict[str, Any]]
    words: tuple[str, ...]
    make: Callable[[], Any]

    def record(self) -> dict[str, Any]:
        """Return the variant for JSON."""
        return {
            "mechanism": self.mechanism,
            "base": self.base,
            "accounting": self.accounting,
            "predicted_rmse": self.predicted_rmse,
            "ledger": [{**part, "epsilon": _ratio(part["epsilon"])} for part in self.ledger],
            "first_update_events": self.first_update_events,
            "first_update_steps": self.first_update_steps,
            "words": list(self.words),
        }


def _ratio(text: str) -> str:
    exact = Fraction(text)
    return f"{exact.numerator}/{exact.denominator}"


def edit_variants(
    epsilon: Fraction,
    *,
    delta: Fraction,
    horizon: int | None,
    steps: int,
    rate: float,
    accountings: Sequence[str] = PLANNED,
    mechanisms: Sequence[str] = ("simecc", "ecc", "gaussian"),
    display: str = "latest",
    high: Any = 1,
    resolution: Any = 1,
    clip: bool = False,
) -> list[Variant]:
    """Price edit-private mechanisms; the one with the least predicted error comes first.

    Args:
        epsilon: > 0.
        delta: in (0, 1).
        horizon: steps that they are made for, or None for mechanisms without a horizon.
        steps: steps over which errors are predicted.
        rate: events a step.
        accountings: of SimECC and ECC.
        mechanisms: which ones.
        display: "latest" or "extrapolated", of SimECC and ECC.
        high: largest input.
        resolution: lattice of the inputs.
        clip: whether inputs outside the bounds are moved to them.

    Raises:
        ParameterError: an argument that is not acceptable.
    """
    inputs = {"high": high, "resolution": resolution, "clip": clip}
    common = {"delta": delta, "horizon": horizon, **inputs}
    found = [
        _designed(epsilon, steps=steps, mechanism=name, accounting=one, rate=rate, display=display, **common)
        for name in mechanisms
        if name != "gaussian"
        for one in accountings
    ]
    if "gaussian" in mechanisms:
        found += _gaussians(epsilon, steps=steps, **common)
    return sorted(found, key=lambda variant: variant.predicted_rmse)


def best_variant(
    epsilon: Fraction, *, delta: Fraction, horizon: int | None, rate: float, **inputs: Any
) -> Variant:
    """Return the variant of our own accounting, or of independent noise, with the least predicted error.

    Without a horizon, errors are compared over :data:`ASSUMED_HORIZON` steps.
    """
    steps = ASSUMED_HORIZON if horizon is None else horizon
    options = {"delta": delta, "horizon": horizon, "steps": steps, "rate": rate, **inputs}
    return edit_variants(epsilon, accountings=("sharp",), **options)[0]


def _designed(epsilon: Fraction, *, steps: int, **options: Any) -> Variant:
    from trilift.counters.edit.design import make_design
    from trilift.counters.edit.mechanism import class_of
    from trilift.counters.edit.statement import described, first_wait

    design = make_design(epsilon, **options)
    price = design.predict(horizon=steps)
    unit, wait = first_wait(design)
    return Variant(
        mechanism=design.mechanism,
        base=design.values.kind,
        accounting=design.accounting,
        predicted_rmse=price.rmse,
        first_update_steps=price.first_update_steps,
        first_update_events=float(wait) if unit == "events" else price.first_update_steps * options["rate"],
        ledger=design.ledger.record(),
        words=tuple(line for line in described(design).splitlines() if not line.startswith("Predicted")),
        make=lambda: class_of(design).of(design),
    )


def _gaussians(epsilon: Fraction, *, steps: int, horizon: int | None, **options: Any) -> list[Variant]:
    from trilift.counters.edit.gaussian_cc import GaussianCC, HorizonGaussian

    made: list[tuple[str, Any]] = [("growing", lambda: GaussianCC(epsilon, horizon=horizon, **options))]
    if horizon is not None:
        made.append(("flat", lambda: HorizonGaussian(epsilon, horizon=horizon, **options)))
    return [_independent(base, make, steps) for base, make in made]


def _independent(base: str, make: Callable[[], Any], steps: int) -> Variant:
    counter = make()
    points = np.unique(np.linspace(1, steps, min(steps, _POINTS)).astype(np.int64))
    rmse = math.sqrt(float(np.mean(np.asarray(counter.sd(points)) ** 2)))
    what = "independent noise to every running sum"
    if base == "flat":
        law = f"Adds {what}, of standard deviation {rmse:.4g} at every step."
    else:
        law = f"Adds {what}, growing like sqrt(t) ln(t): {counter.sd(steps):.4g} at step {steps}."
    return Variant(
        mechanism="gaussian",
        base=base,
        accounting="gdp",
        predicted_rmse=rmse,
        first_update_steps=1.0,
        first_update_events=0.0,
        ledger=counter.ledger.record(),
        words=(
            law,
            "Shows a value from the first step on, without delay; neighbouring values differ wildly.",
        ),
        make=make,
    )
