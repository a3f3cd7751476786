"""What the figures and the table of the paper are made of: lists of points.

edit-fig1a, edit-table1   error against the attack's advantage, T = 10^4, delta = 1e-5, 12 epsilons
edit-fig1b                error against the length, epsilon = 10, rate 0.01
edit-fig2                 histograms of the attack's statistic
edit-fig3                 as fig1a for T = 1000, in four settings (chosen here: the paper does not say which)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from trilift.experiments.edit import reference
from trilift.experiments.edit.certified import certified_points
from trilift.experiments.edit.mechanisms import Mechanism
from trilift.experiments.edit.points import Point
from trilift.experiments.edit.streams import RateStream, block_stream, constant_stream
from trilift.lift.checks import choice

__all__ = ["EPSILONS", "EXPERIMENTS", "LN_DELTA", "Experiment", "comparison", "experiment"]

LN_DELTA = math.log(1e-5)
EPSILONS = tuple(0.1 * 1500 ** (i / 11) for i in range(12))
"""The paper's grid: 12 geometric points from 0.1 to 150."""

Make = Callable[[float, float, int], Mechanism]

_PAPER: tuple[tuple[str, str, Make], ...] = (
    ("BaseCC", "toeplitz epochs", lambda e, d, T: reference.base_cc(e, ln_delta=d)),
    ("PartitionCC", "toeplitz epochs", lambda e, d, T: reference.partition_cc(e, ln_delta=d, steps=T)),
    ("GaussianCC", "independent", lambda e, d, T: reference.gaussian_cc(e, ln_delta=d, steps=T)),
    ("SimECC", "toeplitz epochs", lambda e, d, T: reference.simecc(e, ln_delta=d)),
)
_ECC: tuple[str, str, Make] = ("ECC", "toeplitz epochs", lambda e, d, T: reference.ecc(e, ln_delta=d))
_HORIZON: tuple[str, str, Make] = (
    "HorizonGaussian",
    "independent",
    lambda e, d, T: reference.horizon_gaussian(e, ln_delta=d, steps=T),
)


@dataclass(frozen=True)
class Experiment:
    """A figure or table.

    Attributes:
        name: of the command.
        title: in words.
        points: what is simulated.
        runs: runs of each point unless others are asked for.
        kept: stem of the file of finished points; experiments with the same points share it.
    """

    name: str
    title: str
    points: tuple[Point, ...]
    runs: int
    kept: str


def _point(entry: tuple[str, str, Make], epsilon: float, ln_delta: float, stream: RateStream) -> Point:
    name, base, make = entry
    variant = "horizon known" if entry is _HORIZON else "paper"
    return Point(
        name, variant, base, epsilon, ln_delta, stream, lambda: make(epsilon, ln_delta, stream.steps)
    )


def _joint(epsilon: float, ln_delta: float, stream: RateStream) -> list[Point]:
    """SimECC under one Gaussian account, by formulas alone."""
    points = []
    for norm_sq, share in ((40, 51), (40, 9), (12, 9)):

        def make(norm_sq: int = norm_sq, share: int = share) -> Mechanism:
            return reference.simecc_joint(epsilon, ln_delta=ln_delta, share=share, norm_sq=norm_sq)

        variant = f"joint sqrt({norm_sq}), eps/{share}"
        points.append(Point("SimECC", variant, "toeplitz epochs", epsilon, ln_delta, stream, make))
    return points


def comparison(epsilon: float, *, ln_delta: float, stream: RateStream) -> list[Point]:
    """Return the points of Figure 1(a) at one epsilon: the paper's four mechanisms and variants of SimECC."""
    return [
        *[_point(entry, epsilon, ln_delta, stream) for entry in _PAPER],
        *_joint(epsilon, ln_delta, stream),
        *certified_points(epsilon, ln_delta=ln_delta, stream=stream),
    ]


def _fig1a() -> list[Point]:
    stream = block_stream(10_000)
    return [point for e in EPSILONS for point in comparison(e, ln_delta=LN_DELTA, stream=stream)]


def _fig1b() -> list[Point]:
    points = []
    for steps in (10**3, 10**4, 10**5, 10**6):
        stream = constant_stream(steps, rate=0.01)
        for entry in (_PAPER[2], _HORIZON, _PAPER[3], _ECC):
            points.append(_point(entry, 10.0, LN_DELTA, stream))
        points += certified_points(10.0, ln_delta=LN_DELTA, stream=stream, mechanisms=("simecc", "ecc"))
    return [replace(point, attack=False) for point in points]


def _fig2() -> list[Point]:
    """Each mechanism at the grid point that Table 1 has for an advantage of at most 0.1."""
    stream = block_stream(10_000)
    places = zip(_PAPER, (0, 2, 8, 11), strict=True)
    points = [_point(entry, EPSILONS[i], LN_DELTA, stream) for entry, i in places]
    return [replace(point, histogram=True) for point in points]


def _fig3() -> list[Point]:
    points = []
    for stream, ln_delta in (
        (block_stream(1000, block=5), LN_DELTA),
        (block_stream(1000, block=20), LN_DELTA),
        (block_stream(1000, low=0.3, high=0.7), LN_DELTA),
        (block_stream(1000), math.log(1e-8)),
    ):
        points += [point for e in EPSILONS for point in comparison(e, ln_delta=ln_delta, stream=stream)]
    return points


_LISTS: dict[str, tuple[str, Callable[[], list[Point]], int, str]] = {
    "edit-fig1a": ("Error against the attack's advantage, T = 10^4", _fig1a, 2000, "edit-fig1a"),
    "edit-fig1b": ("Error against the length, epsilon = 10, rate 0.01", _fig1b, 100, "edit-fig1b"),
    "edit-fig2": ("The attack's statistic with and without the insertion", _fig2, 2000, "edit-fig2"),
    "edit-fig3": ("Error against the attack's advantage, T = 1000", _fig3, 2000, "edit-fig3"),
    "edit-table1": ("Least error at a bound of the advantage, T = 10^4", _fig1a, 2000, "edit-fig1a"),
}
EXPERIMENTS = tuple(_LISTS)
"""Names of the experiments."""


def experiment(name: str) -> Experiment:
    """Return an experiment by its name.

    >>> experiment("edit-fig2").points[3].epsilon
    150.0

    Raises:
        ParameterError: an unknown name.
    """
    title, points, runs, kept = _LISTS[choice("experiment", name, EXPERIMENTS)]
    return Experiment(name, title, tuple(points()), runs, kept)
