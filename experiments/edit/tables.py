"""The paper's Table 1 from simulated points, and what is published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["BOUNDS", "PUBLISHED", "adversary_table", "published_cell"]

BOUNDS = (0.1, 0.05)
"""Bounds of the attack's advantage."""

PUBLISHED: dict[str, tuple[float | None, float | None]] = {
    "BaseCC": (280.6, None),
    "PartitionCC": (107.5, 188.8),
    "GaussianCC": (84.081, 325.98),
    "SimECC": (31.32, 31.32),
}
"""Least error at each bound, as published; None where no point is within the bound."""


def adversary_table(
    records: Sequence[dict[str, Any]], *, bounds: Sequence[float] = BOUNDS, two_sided: bool = False
) -> list[dict[str, Any]]:
    """Return the least error of every mechanism and variant, by bound of the advantage.

    A point is within a bound when the upper end of the 95 % interval of its advantage is. This rule is
    reconstructed: the paper gives the figures alone. It overlooks an attack that is wrong more often than
    right, which is as good when turned around: two-sided, the whole interval must lie within -bound..bound.

    Args:
        records: points with "advantage", "ci_low" and "ci_high".
        bounds: of the advantage.
        two_sided: whether negative advantages count as much as positive ones.

    Returns:
        rows with "mechanism", "variant", "base", "bound", and "rmse", "rmse_se", "epsilon", "advantage",
        "ci_low" and "ci_high" of the best point, None where no point is within the bound.
    """
    kinds = list(dict.fromkeys((r["mechanism"], r["variant"], r["base"]) for r in records))
    rows = []
    for kind in kinds:
        own = [r for r in records if (r["mechanism"], r["variant"], r["base"]) == kind]
        for bound in bounds:
            within = [r for r in own if _within(r, bound, two_sided)]
            best = min(within, key=lambda r: r["rmse"], default=None)
            figures = ("rmse", "rmse_se", "epsilon", "advantage", "ci_low", "ci_high")
            rows.append(
                dict(zip(("mechanism", "variant", "base"), kind, strict=True))
                | {"bound": bound}
                | {name: None if best is None else best[name] for name in figures}
            )
    return rows


def _within(record: dict[str, Any], bound: float, two_sided: bool) -> bool:
    if record["ci_high"] is None or record["ci_high"] > bound:
        return False
    return not two_sided or bool(record["ci_low"] >= -bound)


def published_cell(mechanism: str, *, variant: str, bound: float) -> float | None:
    """Return the published figure beside a row, None where there is none.

    >>> published_cell("SimECC", variant="paper", bound=0.05)
    31.32
    """
    if variant != "paper" or bound not in BOUNDS or mechanism not in PUBLISHED:
        return None
    return PUBLISHED[mechanism][BOUNDS.index(bound)]
