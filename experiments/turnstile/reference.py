"""Figures that an independent simulation gave, and what of them is to be reproduced within 30 %."""

from __future__ import annotations

from typing import Any

__all__ = ["REFERENCE", "REPRODUCED", "TOLERANCE", "compared"]

TOLERANCE = 0.3

RHOS = (0.1, 1.0, 10.0)

REFERENCE: dict[tuple[str, str, str], dict[int, tuple[float, float, float]]] = {
    ("A2 source split", "unit", "factor"): {10**4: (3570, 1150, 354), 10**5: (4890, 1580, 515)},
    ("A2", "unit", "factor"): {10**4: (1190, 356, 125), 10**5: (1700, 506, 157)},
    ("A2 centred", "unit", "factor"): {10**4: (74, 39, 25), 10**5: (92, 49, 27)},
    ("A2g", "unit", "factor"): {10**4: (171, 66, 21), 10**5: (268, 86, 29)},
    ("A2g centred", "unit", "factor"): {10**4: (24, 20, 10), 10**5: (35, 20, 12)},
    ("A3s", "unit", "factor"): {10**4: (171, 171, 160), 10**5: (1430, 1430, 265)},
    ("A3s", "random ±1", "factor"): {10**4: (30, 30, 27), 10**5: (250, 247, 117)},
    ("A3", "unit", "factor"): {10**4: (5000, 5000, 5000), 10**5: (50000, 50000, 50000)},
    ("A3", "frequent", "factor"): {10**5: (250, 16, 2)},
    ("A4 raw", "unit", "additive"): {10**4: (1.4e5, 1.4e4, 1350), 10**5: (2.4e5, 2.2e4, 2100)},
    ("A4", "unit", "additive"): {10**4: (3.2e4, 3100, 230), 10**5: (5.5e4, 4200, 290)},
    ("additive", "unit", "additive"): {10**4: (343, 164, 78), 10**5: (782, 373, 177)},
}
"""(estimator, stream, field): at T, for rho = 0.1, 1, 10; one seed, Toeplitz noise."""

REPRODUCED = ("A2 source split", "A2", "A2 centred", "A2g", "A2g centred", "A4 raw", "A4", "additive")
"""Those that must be within the tolerance; A3s has other numbers of groups here."""


def _within(value: float, ends: list[float | None]) -> bool:
    least, most = ends
    return (least is None or least <= value) and (most is None or value <= most)


def compared(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for every reference figure that the points have.

    With "measured" (a median of runs), "reference", "off" (relatively), and whether the reference is
    "among_runs", between the least and the largest.

    Args:
        points: over the Toeplitz root.
    """
    found = {(p["estimator"], p["stream"], p["T"], p.get("rho")): p for p in points}
    rows = []
    for (estimator, stream, name), by_steps in REFERENCE.items():
        for steps, figures in by_steps.items():
            for rho, figure in zip(RHOS, figures, strict=True):
                point = found.get((estimator, stream, steps, rho))
                if point is None or point[name] is None:
                    continue
                rows.append(
                    {
                        "estimator": estimator,
                        "stream": stream,
                        "T": steps,
                        "rho": rho,
                        "measured": point[name],
                        "reference": figure,
                        "off": point[name] / figure - 1.0,
                        "among_runs": _within(figure, point[f"{name}_range"]),
                    }
                )
    return rows
