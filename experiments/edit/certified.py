"""Points of the mechanisms that are calibrated by ledgers, simulated from their designs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from trilift.experiments.edit.mechanisms import Mechanism
from trilift.experiments.edit.points import Point
from trilift.experiments.edit.streams import RateStream

__all__ = ["certified_points"]

_NAMES = {"simecc": "SimECC", "ecc": "ECC"}
_DISPLAYS = {"latest": "sharp", "extrapolated": "sharp, extrapolated"}


def certified_points(
    epsilon: float, *, ln_delta: float, stream: RateStream, mechanisms: Sequence[str] = ("simecc",)
) -> list[Point]:
    """Return a point for every mechanism and way of showing values, under our accounting.

    Designs know the length of the stream and its mean rate, and have the Toeplitz square root beneath. They
    are made when a point is simulated, since that takes about a second.

    Args:
        epsilon: total epsilon.
        ln_delta: ln delta.
        stream: inputs.
        mechanisms: "simecc", "ecc".
    """
    points = []
    for mechanism in mechanisms:
        for display, variant in _DISPLAYS.items():

            def make(mechanism: str = mechanism, display: str = display) -> Mechanism:
                from trilift.counters.edit.design import make_design
                from trilift.experiments.edit.designs import mechanism_of

                design = make_design(
                    Fraction(epsilon),
                    delta=Fraction(f"{math.exp(ln_delta):.12g}"),
                    mechanism=mechanism,
                    accounting="sharp",
                    base="toeplitz",
                    horizon=stream.steps,
                    rate=float(stream.all_rates().mean()),
                    display=display,
                )
                return mechanism_of(design)

            points.append(Point(_NAMES[mechanism], variant, "toeplitz", epsilon, ln_delta, stream, make))
    return points
