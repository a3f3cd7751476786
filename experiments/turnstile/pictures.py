"""Pictures of docs/turnstile-results.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trilift.lift.errors import MissingExtraError

__all__ = ["draw_factors", "draw_streams"]

SHOWN = ("A2 source split", "A2 centred", "A2g centred", "A2g closer")
STREAM_SHOWN = ("A2 centred", "A2g closer", "A2g few-heavy", "hybrid", "A3s centred")


def _pyplot() -> Any:
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtraError("pictures need matplotlib: install trilift[plot]") from None
    mpl.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=110, metadata={"Software": None})
    _pyplot().close(figure)


def draw_factors(points: Sequence[dict[str, Any]], *, path: Path) -> None:
    """Draw the least factors on the unit stream against rho, a panel a T.

    Args:
        points: over the Toeplitz root.
        path: PNG file.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    horizons = sorted({p["T"] for p in points})
    figure, axes = _pyplot().subplots(1, len(horizons), figsize=(8, 3.4), sharey=True, squeeze=False)
    for axis, steps in zip(axes[0], horizons, strict=True):
        for name in SHOWN:
            own = sorted(
                (p["rho"], p["factor"])
                for p in points
                if p["estimator"] == name and p["stream"] == "unit" and p["T"] == steps
            )
            axis.plot([r for r, _ in own], [f for _, f in own], marker="o", label=name)
        axis.set(xscale="log", yscale="log", xlabel="rho", title=f"T = {steps:,}")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("least factor at all steps")
    axes[0][0].legend(fontsize=7)
    figure.tight_layout()
    _save(figure, path)


def draw_streams(points: Sequence[dict[str, Any]], *, path: Path) -> None:
    """Draw the ratio that 95 % of the steps keep within, for every stream.

    Args:
        points: of one T and one budget.
        path: PNG file.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    streams = list(dict.fromkeys(p["stream"] for p in points if p["estimator"] == "A2g closer"))
    figure, axis = _pyplot().subplots(figsize=(8, 3.8))
    width = 0.8 / len(STREAM_SHOWN)
    for number, name in enumerate(STREAM_SHOWN):
        ratio = {p["stream"]: p["ratio_95"] for p in points if p["estimator"] == name}
        places = [k + (number - (len(STREAM_SHOWN) - 1) / 2) * width for k in range(len(streams))]
        axis.bar(places, [ratio.get(s) or float("nan") for s in streams], width, label=name, bottom=0)
    axis.axhline(1.0, color="black", linewidth=0.8)
    axis.set_yscale("log")
    axis.set_ylim(0.9, None)
    axis.set_xticks(range(len(streams)), streams, rotation=20, ha="right")
    axis.set_ylabel("ratio to the truth, 95 % of steps")
    axis.legend(fontsize=7)
    figure.tight_layout()
    _save(figure, path)
