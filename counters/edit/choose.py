"""All edit-private mechanisms for a task side by side, and the one with the least predicted error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trilift.counters.edit.base import BOUNDED, KINDS
from trilift.counters.edit.design import DISPLAYS, MECHANISMS, Design, make_design
from trilift.counters.edit.gaussian_laws import gaussian_rmse
from trilift.counters.edit.gaussian_setup import GaussianSetup, make_gaussian_setup
from trilift.counters.edit.ledger import EditLedger
from trilift.counters.edit.predict import checked_horizon, checked_rate
from trilift.counters.edit.tune import NOMINAL_HORIZON
from trilift.counters.edit.variants import ACCOUNTINGS
from trilift.lift.checks import choices

__all__ = ["Choice", "choose_design", "variants"]


@dataclass(frozen=True)
class Choice:
    """One mechanism with what it will do.

    Attributes:
        mechanism: "simecc", "ecc", "gaussian" (GaussianCC) or "horizon-gaussian".
        base: kind of noise beneath.
        accounting: the proof that its ledger rests on.
        display: "latest" or "extrapolated".
        predicted_rmse: root mean squared error over the steps at the rate.
        first_update_steps: expected step of the first update.
        first_update_events: expected number of events by then.
        ledger: the budget.
        design: of "simecc" and "ecc".
        setup: of the Gaussian counters.
    """

    mechanism: str
    base: str
    accounting: str
    display: str
    predicted_rmse: float
    first_update_steps: float
    first_update_events: float
    ledger: EditLedger
    design: Design | None = None
    setup: GaussianSetup | None = None

    @property
    def words(self) -> str:
        """What the mechanism will do, in a sentence.

        >>> paper = variants(
        ...     10, delta=1e-5, horizon=1000, rate=0.5, accountings=("paper",), displays=("latest",)
        ... )
        >>> [choice.words for choice in paper if choice.mechanism == "ecc"]
        ['no update before about 790 events (beyond the horizon: it will show 0 throughout)']
        """
        if self.design is None:
            return "an update at every step, with independent noise"
        late = self.design.horizon is not None and self.first_update_steps > self.design.horizon
        end = " (beyond the horizon: it will show 0 throughout)" if late else ""
        if self.mechanism == "ecc":
            return f"no update before about {_about(self.first_update_events)} events{end}"
        return f"no update before about {_about(self.first_update_steps)} steps{end}"

    def record(self) -> dict[str, Any]:
        """Return what ``trilift plan --json`` prints."""
        return {
            "mechanism": self.mechanism,
            "base": self.base,
            "accounting": self.accounting,
            "display": self.display,
            "predicted_rmse": self.predicted_rmse,
            "ledger": self.ledger.record(),
            "first_update_events": self.first_update_events,
            "first_update_steps": self.first_update_steps,
        }


def _about(value: float) -> str:
    """Two significant digits."""
    digits = max(0, int(math.log10(max(value, 1.0))) - 1)
    return str(round(value / 10**digits) * 10**digits)


def _of_design(design: Design, horizon: int, rate: float) -> Choice:
    made = design.predict(horizon=horizon, rate=rate)
    return Choice(
        design.mechanism,
        design.values.kind,
        design.accounting,
        design.display,
        made.rmse,
        made.first_update_steps,
        max(1.0, made.first_update_steps * rate),
        design.ledger,
        design=design,
    )


def variants(
    epsilon: Any,
    *,
    delta: Any,
    horizon: int | None = None,
    rate: float | None = None,
    accountings: Sequence[str] | None = None,
    bases: Sequence[str] | None = None,
    displays: Sequence[str] = DISPLAYS,
    **inputs: Any,
) -> list[Choice]:
    """Return the mechanisms of all kinds, the one with the least predicted error first.

    Args:
        epsilon: > 0, exact.
        delta: between 0 and 1, exact.
        horizon: number of steps, or None; unbounded ones are compared over 10^5 steps.
        rate: events a step; 1/2 when left out.
        accountings: which; all of them when left out.
        bases: for the sharp accounting; "auto" when left out.
        displays: which.
        **inputs: high, resolution, clip.

    Raises:
        ParameterError: as :func:`~trilift.counters.edit.design.make_design`.
    """
    T = NOMINAL_HORIZON if horizon is None else checked_horizon(horizon)
    r = 0.5 if rate is None else checked_rate(rate)
    common: dict[str, Any] = {"delta": delta, "horizon": horizon, "rate": rate, **inputs}
    found = []
    chosen = ACCOUNTINGS if accountings is None else choices("accountings", accountings, ACCOUNTINGS)
    bases = None if bases is None else choices("bases", bases, ("auto", *KINDS))
    displays = choices("displays", displays, DISPLAYS)
    for accounting in chosen:
        for mechanism in ACCOUNTINGS[accounting]:
            kinds = bases if accounting == "sharp" and bases is not None else ("auto",)
            for base in kinds:
                if base != "auto" and (base in BOUNDED) == (horizon is None):
                    continue
                for display in displays:
                    design = make_design(
                        epsilon,
                        mechanism=mechanism,
                        accounting=accounting,
                        base=base,
                        display=display,
                        **common,
                    )
                    found.append(_of_design(design, T, r))
    found += _gaussians(epsilon, delta=delta, horizon=horizon, steps=T, rate=r, **inputs)
    return sorted(found, key=lambda choice: choice.predicted_rmse)


def _gaussians(
    epsilon: Any, *, delta: Any, horizon: int | None, steps: int, rate: float, **inputs: Any
) -> list[Choice]:
    made = []
    for law, name in (("growing", "gaussian"), ("flat", "horizon-gaussian")):
        if law == "flat" and horizon is None:
            continue
        setup = make_gaussian_setup(epsilon, delta=delta, law=law, horizon=horizon, **inputs)
        high = inputs.get("high", 1)
        rmse = gaussian_rmse(epsilon, delta=delta, horizon=steps, mechanism=law, high=high)
        made.append(
            Choice(name, "independent", "exact", "latest", rmse, 1.0, rate, setup.ledger, setup=setup)
        )
    return made


def choose_design(
    epsilon: Any,
    *,
    delta: Any,
    horizon: int | None = None,
    rate: float | None = None,
    mechanism: str | None = None,
    display: str | None = None,
    **inputs: Any,
) -> Design:
    """Return the design with the least predicted error at (horizon, rate) under the sharp accounting.

    Args:
        epsilon: > 0, exact.
        delta: between 0 and 1, exact.
        horizon: number of steps, or None.
        rate: events a step; 1/2 when left out.
        mechanism: "simecc", "ecc", or None for the better of the two.
        display: "latest", "extrapolated", or None for the better of the two.
        **inputs: high, resolution, clip.

    Raises:
        ParameterError: as :func:`~trilift.counters.edit.design.make_design`.
    """
    T = NOMINAL_HORIZON if horizon is None else horizon
    designs = [
        make_design(epsilon, delta=delta, horizon=horizon, rate=rate, mechanism=name, display=shown, **inputs)
        for name in (MECHANISMS if mechanism is None else (mechanism,))
        for shown in (DISPLAYS if display is None else (display,))
    ]
    return min(designs, key=lambda design: design.predict(horizon=T).rmse)
