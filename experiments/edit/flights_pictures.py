"""The pictures of docs/edit-streams.md, drawn from the departures of a year (extra ``demo``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from trilift.experiments.edit.departures import BOT_SLOT, Departures
from trilift.experiments.edit.flights_counts import Counts
from trilift.experiments.figures import new_figure, save_png

__all__ = ["draw_counts", "draw_losses", "draw_queue"]

_LATE, _PUNCTUAL, _FREE, _LINE = "#d1495b", "#9ec1dd", "#f4f4f4", "#30638e"
_BEFORE, _AFTER = 6, 9


def draw_queue(queue: Departures, path: Path) -> None:
    """Draw some slots of the example twice, with a flight and without it, and how far the sums are apart.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    from trilift.experiments.edit.flights_queue import EXAMPLE_BEHIND, example_of

    index = example_of(queue)
    slots, stream = queue.slots(), queue.stream()
    first = int(slots[index])
    before = min(first, _BEFORE)
    shown = slice(first - before, first + EXAMPLE_BEHIND + _AFTER)
    other = queue.without(index).stream(slots=len(stream))
    figure = new_figure(9.0, 3.2)
    strips, sums = figure.subplots(2, 1, sharex=True, height_ratios=(1.5, 1.0))
    labels = ("as it was", "one flight cancelled")
    for row, (label, items) in enumerate(zip(labels, (stream[shown], other[shown]), strict=True)):
        _strip(strips, items, y=1.25 * (1 - row))
        strips.text(-0.9, 1.25 * (1 - row) + 0.5, label, ha="right", va="center", fontsize=9)
    for place in range(before + 1, before + 1 + EXAMPLE_BEHIND):  # who moves
        strips.plot([place + 0.47, place - 0.53], [1.24, 1.01], color="0.3", linewidth=0.8)
    strips.text(before + 0.5, 2.35, "this flight", ha="center", fontsize=9)
    strips.set(xlim=(-9.5, len(stream[shown]) + 0.5), ylim=(-0.2, 2.9))
    strips.axis("off")
    apart = np.cumsum(np.maximum(stream, 0) - np.maximum(other, 0))[shown]
    sums.step(np.arange(len(apart)), apart, where="post", color=_LINE)
    sums.set(ylim=(-0.2, 1.3), yticks=[0, 1], xticks=range(0, len(apart), 5))
    sums.set(ylabel="sums apart by", xlabel="slots of two minutes")
    sums.spines[["top", "right"]].set_visible(False)
    save_png(figure, path)


def _strip(axis: Any, items: Any, *, y: float) -> None:
    for place, item in enumerate(items.tolist()):
        colour = {BOT_SLOT: _FREE, 0: _PUNCTUAL, 1: _LATE}[item]
        axis.add_patch(_rectangle(place, y, colour))
        text = {BOT_SLOT: "", 0: "0", 1: "1"}[item]
        axis.text(place + 0.5, y + 0.48, text, ha="center", va="center", fontsize=8)


def _rectangle(x: float, y: float, colour: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), 0.94, 1.0, facecolor=colour, edgecolor="0.75", linewidth=0.5)


def draw_losses(queue: Departures, loss: Any, path: Path, *, epsilon: float) -> None:
    """Draw how many aircraft a cancellation moves, and what a swap-private counter gives away about it.

    Args:
        queue: the departures.
        loss: of each flight, as an epsilon; shape (n,).
        path: the PNG file to write.
        epsilon: what the counter promises about one flight's lateness.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    moved = queue.moved()
    figure = new_figure(9.0, 3.2)
    left, right = figure.subplots(1, 2)
    counts = np.bincount(moved)
    left.bar(np.arange(len(counts)), counts, width=1.0, color=_PUNCTUAL)
    left.set(yscale="log", xlabel="aircraft that one cancellation moves", ylabel="flights of the year")
    ordered = np.sort(loss)[::-1]
    share = np.arange(1, len(ordered) + 1) / len(ordered)
    right.plot(ordered, 100 * share, color=_LATE, linewidth=1.8)
    right.axvline(epsilon, color="black", linewidth=0.8, linestyle="--")
    right.annotate(f"  promised: {epsilon:g}", (epsilon, 0.1), xycoords=("data", "axes fraction"), fontsize=9)
    right.set(
        yscale="log",
        xlim=(0, None),
        xlabel="privacy loss about a flight's being there (epsilon)",
        ylabel="% of flights with at least that",
    )
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    save_png(figure, path)


def draw_counts(counts: Counts, path: Path) -> None:
    """Draw an afternoon's count as it is shown, and the errors of a year.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    colours = {"Counter": "#3a9b5c", "SimECC": _LINE, "ECC": "#edae49"}
    names = {"Counter": "Counter (swaps alone)", "SimECC": "SimECC (edits)", "ECC": "ECC (edits)"}
    figure = new_figure(8.0, 3.2)
    close, year = figure.subplots(1, 2, width_ratios=(1.0, 1.3))
    shown = slice(9 * 720, 16 * 720, 10)  # 10 to 16 January, every 20 minutes
    days = np.arange(len(counts.true)) / 720 + 1
    close.plot(days[shown], counts.true[shown], color="black", linewidth=1.4, linestyle="--", label="true")
    for name, colour in colours.items():
        close.plot(days[shown], counts.shown[name][shown], color=colour, linewidth=1.0, label=names[name])
    close.set(xlabel="day of the year 2013", ylabel="late departures so far")
    close.legend(loc="upper left", frameon=False, fontsize=8)
    starts = np.arange(0, len(counts.true), 720)  # a day a point
    for name, colour in reversed(colours.items()):
        squares = np.asarray(counts.shown[name] - counts.true, dtype=np.float64) ** 2
        year.plot(days[starts], np.sqrt(np.add.reduceat(squares, starts) / 720), color=colour, linewidth=1.2)
    year.set(xlabel="day of the year 2013", ylabel="error (root mean square of a day)", ylim=(0, None))
    for axis in (close, year):
        axis.spines[["top", "right"]].set_visible(False)
    save_png(figure, path)
