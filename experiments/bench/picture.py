"""The picture of the peers in docs/results.md: squared errors against n."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trilift.experiments.figures import new_figure, save_png

__all__ = ["draw_peers", "series"]

_STYLES = {
    "trilift, best chain": ("#30638e", "o-"),
    "trilift, default": ("#30638e", "o:"),
    "OpenDP, tree": ("#9d0208", "s-"),
    "OpenDP, consistent tree (all data at once)": ("#dc2f02", "s--"),
    "averaged k-ary tree": ("#6a994e", "^-"),
    "dpcrpy BinMech": ("#adb5bd", "v-"),
    "dpcrpy Honaker": ("#8d99ae", "v-"),
    "dpcrpy KTCR": ("#6247aa", "D-"),
    "dpcrpy FDA": ("#b298dc", "D-"),
    "dpcrpy AuBCR": ("#f48c06", "D-"),
}


def _name(row: Mapping[str, Any]) -> str | None:
    if row["privacy"] != "pure":
        return None
    if row["tool"] == "trilift":
        kinds = {"best": "trilift, best chain", "default": "trilift, default"}
        return kinds.get(row["kind"])
    if row["tool"] == "OpenDP":
        return "OpenDP, tree" if row["causal"] else "OpenDP, consistent tree (all data at once)"
    if row["tool"] == "averaged tree":
        return "averaged k-ary tree"
    return f"dpcrpy {row['mechanism'].split(',')[0]}"


def series(record: Mapping[str, Any], objective: str) -> dict[str, dict[int, float]]:
    """Return the least squared errors by name and horizon, of pure mechanisms.

    Args:
        record: of :func:`trilift.experiments.bench.run.measure`.
        objective: "max" or "mean".
    """
    found: dict[str, dict[int, float]] = {}
    for row in record["rows"]:
        name, value = _name(row), row[f"{objective}_se"]
        if name is not None and value is not None:
            errors = found.setdefault(name, {})
            errors[row["n"]] = min(value, errors.get(row["n"], value))
    return found


def draw_peers(record: Mapping[str, Any], path: Path) -> None:
    """Draw the largest and the mean squared errors of all tools against n.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure = new_figure(8.6, 4.8)
    axes = figure.subplots(1, 2, sharey=True)
    for axis, objective in zip(axes, ("max", "mean"), strict=True):
        found = series(record, objective)
        for name, (colour, style) in _STYLES.items():
            if name in found:
                horizons = sorted(found[name])
                errors = [found[name][n] for n in horizons]
                axis.plot(horizons, errors, style, color=colour, markersize=4, label=name)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set(title="worst step" if objective == "max" else "mean over the steps", xlabel="n")
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("squared error at ε = 1")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=7, frameon=False)
    save_png(figure, path)
