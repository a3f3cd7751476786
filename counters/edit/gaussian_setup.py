"""The public parameters of the edit-private Gaussian counters: law of the noise, lattices, ledger, record."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from trilift.counters.edit.gaussian_laws import (
    FlatLaw,
    GrowingLaw,
    calibrated_mu,
    flat_law,
    growing_law,
)
from trilift.counters.edit.inputs import BotRule
from trilift.counters.edit.ledger import EditLedger, LedgerPart
from trilift.counters.inputs import lattice_places
from trilift.counters.state_file import exact_number
from trilift.lift.checks import choice, integer, written
from trilift.lift.errors import ParameterError
from trilift.stream.gdp import ln_delta_bounds

__all__ = ["LAWS", "MOST_STEPS", "GaussianSetup", "make_gaussian_setup"]

LAWS = ("growing", "flat")

MOST_STEPS = 1 << 48
"""Most steps of a counter without a horizon."""

_FIELDS = ("law", "epsilon", "delta", "horizon", "high", "resolution", "clip", "output_resolution", "mu")


@dataclass(frozen=True)
class GaussianSetup:
    """Everything about a Gaussian counter of edit neighbours that is public and fixed.

    Attributes:
        epsilon: asked for, exact.
        delta: asked for, exact.
        horizon: number of steps, or None.
        rule: what an input may be.
        output_places: released values are multiples of 2^-output_places.
        mu: all values together are mu-GDP.
        law: the standard deviations, which prove mu.
        ledger: the budget.
    """

    epsilon: Fraction
    delta: Fraction
    horizon: int | None
    rule: BotRule
    output_places: int
    mu: Fraction
    law: GrowingLaw | FlatLaw
    ledger: EditLedger

    def record(self) -> dict[str, Any]:
        """Return the arguments that make the setup again, exact numbers as strings."""
        return {
            "law": "flat" if isinstance(self.law, FlatLaw) else "growing",
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "horizon": self.horizon,
            "high": str(self.rule.largest),
            "resolution": str(Fraction(1, 1 << self.rule.places)),
            "clip": self.rule.clip,
            "output_resolution": str(Fraction(1, 1 << self.output_places)),
            "mu": str(self.mu),
        }

    @classmethod
    def from_record(cls, record: Any) -> Self:
        """Restore a setup with its own mu, proving the budget again.

        Raises:
            ValueError: a record that was not written by :meth:`record`.
            ParameterError: numbers that make no setup.
        """
        if not isinstance(record, dict) or set(record) != set(_FIELDS):
            raise ValueError("not the record of a Gaussian counter")
        exact = ("epsilon", "delta", "high", "resolution", "output_resolution", "mu")
        return cls._make(**{k: exact_number(v) if k in exact else v for k, v in record.items()})

    @classmethod
    def _make(
        cls,
        *,
        law: Any,
        epsilon: Any,
        delta: Any,
        horizon: Any,
        high: Any,
        resolution: Any,
        clip: Any,
        output_resolution: Any,
        mu: Fraction | None,
    ) -> Self:
        asked = written("epsilon", epsilon, above=0)
        allowed = written("delta", delta, above=0)
        if allowed >= 1:
            raise ParameterError("delta must be smaller than 1")
        steps = None if horizon is None else integer("horizon", horizon, minimum=1, maximum=MOST_STEPS)
        rule = BotRule.make(high=high, resolution=resolution, clip=clip)
        places = rule.places
        if output_resolution is not None:
            places = lattice_places("output_resolution", output_resolution)
        if places < rule.places:
            raise ParameterError("output_resolution must not be coarser than resolution")
        exact = calibrated_mu(asked, delta=allowed) if mu is None else mu
        flat = choice("law", law, LAWS) == "flat"
        if flat and steps is None:
            raise ParameterError("horizon must be given: the same noise at every step needs it")
        made = (
            flat_law(exact, high=rule.largest, horizon=steps)
            if flat and steps is not None
            else growing_law(exact, high=rule.largest)
        )
        part = LedgerPart(
            "running sums",
            asked,
            ln_delta_bounds(asked, mu=exact)[1],
            f"mu-GDP with mu = {float(exact):.9g}: the squared changes of all sums over their variances add"
            f" up to {float(made.spent_mu_sq):.9g} <= mu^2, proved in rationals",
        )
        ledger = EditLedger(asked, allowed, (part,))
        return cls(asked, allowed, steps, rule, places, exact, made, ledger)


def make_gaussian_setup(
    epsilon: Any,
    *,
    delta: Any,
    law: str,
    horizon: int | None = None,
    high: Any = 1,
    resolution: Any = 1,
    clip: bool = False,
    output_resolution: Any = None,
) -> GaussianSetup:
    """Check the arguments of a Gaussian counter, calibrate its noise and prove its budget.

    Args:
        epsilon: > 0.
        delta: in (0, 1).
        law: "growing" (no horizon needed) or "flat".
        horizon: number of steps; needed for "flat".
        high: the largest input, on the lattice; the smallest is 0.
        resolution: inputs are rounded to multiples of it: 1 or 2^-k.
        clip: move inputs outside [0, high] to the nearest bound.
        output_resolution: released values are multiples of it; the resolution, or finer.

    Raises:
        ParameterError: an argument that is not acceptable.

    >>> setup = make_gaussian_setup(10, delta=Fraction(1, 10**5), law="flat", horizon=10**4)
    >>> round(setup.law.deviation, 1), setup.ledger.spent_delta <= setup.delta
    (50.0, True)
    """
    return GaussianSetup._make(
        law=law,
        epsilon=epsilon,
        delta=delta,
        horizon=horizon,
        high=high,
        resolution=resolution,
        clip=clip,
        output_resolution=output_resolution,
        mu=None,
    )
