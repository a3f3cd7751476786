"""The pictures of docs/results.md: constants against the size of a stage, errors against the length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trilift.experiments.figures import new_figure, save_png
from trilift.experiments.published import KAPPA_CERTIFIED, KAPPA_DIRECT
from trilift.experiments.results import OURS, TITLES, best_chain, published_bound, shipped_constants
from trilift.lift.mechanisms import NAMES, price

__all__ = ["OUR_POWERS", "draw_constants", "draw_errors"]

POWERS = range(4, 31)
OUR_POWERS = POWERS[::2]
"""Our chain takes a second or two a point."""

_OBJECTIVES = ("max", "mean")
_OUR_COLOUR = "#30638e"
_OTHERS = "#8d99ae"
_COLOURS = {
    "binary-tree": "#9d0208",
    "smooth-tree": "#dc2f02",
    "smooth-tree-unbalanced": "#f48c06",
    "kary": "#6a994e",
    "kary-subtraction": "#386641",
    "kary-averaged": "#a7c957",
    "honaker": "#b298dc",
    "honaker-kary": "#6247aa",
    "toeplitz-sqrt": "#adb5bd",
    "paper": "black",
    OURS: _OUR_COLOUR,
}


def draw_constants(path: Path) -> None:
    """Draw certified kappas of the shipped artifacts against their size, beside the published ones.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure = new_figure(8.6, 4.0)
    axes = figure.subplots(1, 2, sharey=True)
    for which, (axis, objective) in enumerate(zip(axes, _OBJECTIVES, strict=True)):
        _line(axis, KAPPA_DIRECT, which, "T_k, published", color=_OTHERS, marker="s", linestyle="--")
        _line(axis, shipped_constants("direct"), which, "T_k, certified here", color="#3a9b5c", marker="s")
        _line(axis, shipped_constants("stage"), which, "stage, certified", color=_OUR_COLOUR, marker="o")
        interior = shipped_constants("stage", interior=True)
        _line(axis, interior, which, "stage, interior", color="#d1495b", marker=".", linestyle=":")
        axis.axhline(KAPPA_CERTIFIED[which], color="black", linewidth=0.8)
        axis.annotate("published lift", (180, KAPPA_CERTIFIED[which] * 0.97), fontsize=8, va="top")
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set(title=f"squared error, {objective}", xlabel="size m or k")
        ticks = [0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.8]
        axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
        _clean(axis)
    axes[0].set_ylabel("κ")
    axes[1].legend(frameon=False, fontsize=9)
    save_png(figure, path)


def _line(axis: Any, values: dict[int, tuple[float, float]], which: int, label: str, **style: Any) -> None:
    sizes = sorted(values)
    axis.plot(sizes, [values[size][which] for size in sizes], label=label, markersize=5, **style)


def draw_errors(path: Path, *, powers: Sequence[int] = POWERS, ours: Sequence[int] = OUR_POWERS) -> None:
    """Draw exact standard deviations at epsilon = 1 of every mechanism against the length n = 2^p.

    Args:
        path: the PNG file.
        powers: the p.
        ours: those at which our chain is drawn.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure = new_figure(8.6, 4.8)
    axes = figure.subplots(1, 2, sharey=True)
    for axis, objective in zip(axes, _OBJECTIVES, strict=True):
        for name in NAMES:
            deviations = [_deviation(name, 2**p, objective) for p in powers]
            style = "--" if name == "paper" else "-"
            label = "Arkhipov and Kalinin, best k (bound)" if name == "paper" else TITLES[name]
            axis.plot(powers, deviations, style, color=_COLOURS[name], linewidth=1.2, label=label)
        deviations = [_deviation(OURS, 2**p, objective) for p in ours]
        axis.plot(ours, deviations, "o-", color=_OUR_COLOUR, linewidth=2.4, markersize=4, label=TITLES[OURS])
        axis.set_yscale("log")
        ticks = [2, 5, 10, 20, 50, 100, 200]
        axis.set_yticks(ticks, [str(tick) for tick in ticks])
        axis.minorticks_off()
        axis.set(title="worst step" if objective == "max" else "all steps, root mean square")
        axis.set(xlabel="log2 of the length n", ylim=(2, 260))
        _clean(axis)
    axes[0].set_ylabel("standard deviation at ε = 1")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=7, frameon=False)
    save_png(figure, path)


def _deviation(name: str, n: int, objective: str) -> float:
    if name == OURS:
        cost = best_chain(n, objective).cost
        return math.sqrt(cost.max_se() if objective == "max" else cost.mean_se())
    if name == "paper":
        return math.sqrt(published_bound(n, objective) * math.log2(n) ** 3)
    found = price(name, n, objective=objective)
    error = found.max_se() if objective == "max" else found.mean_se()
    return math.nan if error is None else math.sqrt(error)


def _clean(axis: Any) -> None:
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
