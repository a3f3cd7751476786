"""The picture of ``trilift demo``: the released count of late flights, and how exact four mechanisms are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from trilift.experiments.figures import new_figure, save_png
from trilift.experiments.flights import Accuracy, Flights

__all__ = ["draw_flights"]

_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_BINS = 240
_COLOURS = ("#d1495b", "#edae49", "#3a9b5c", "#30638e")


def draw_flights(
    flights: Flights, released: Any, accuracies: Sequence[Accuracy], path: Path, *, epsilon: float
) -> None:
    """Draw the count, its error, and the standard deviations over the year.

    Args:
        flights: the data.
        released: released value after each flight, shape (n,).
        accuracies: of the mechanisms; the last one made ``released``.
        path: the PNG file to write.
        epsilon: of all mechanisms, for the title.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure = new_figure(9.0, 10.0)
    count, error, accuracy = figure.subplots(3, 1, sharex=True, height_ratios=(1.0, 1.0, 1.25))
    true = np.cumsum(flights.late)
    steps = np.arange(1, len(true) + 1)
    _draw_count(count, steps, true, released)
    _draw_error(error, steps, released - true, accuracies[-1])
    _draw_accuracy(accuracy, steps, accuracies)
    _months(accuracy, flights)
    figure.suptitle(
        f"Late departures from New York City in 2013, one flight at a time, epsilon = {epsilon:g}"
    )
    save_png(figure, path)


def _draw_count(axis: Any, steps: Any, true: Any, released: Any) -> None:
    axis.plot(steps, released, color=_COLOURS[3], linewidth=2.5, alpha=0.45, label="released (private)")
    axis.plot(steps, true, color="black", linewidth=0.9, linestyle="--", label="true")
    axis.set(ylabel="late flights so far", ylim=(0, None))
    axis.yaxis.set_major_formatter("{x:,.0f}")
    axis.legend(loc="upper left", frameon=False)
    _clean(axis)


def _draw_error(axis: Any, steps: Any, error: Any, accuracy: Accuracy) -> None:
    """The error at evenly spaced steps (all of them would fill the panel), within two standard deviations."""
    starts, widths = _bins(len(steps))
    shown = starts + widths - 1
    sd = _typical(accuracy, starts, widths)
    axis.fill_between(
        steps[shown],
        -2 * sd,
        2 * sd,
        color=_COLOURS[3],
        alpha=0.15,
        linewidth=0,
        label="two standard deviations",
    )
    label = f"released minus true, every {int(widths.max()):,} flights"
    axis.plot(steps[shown], error[shown], ".", color=_COLOURS[3], markersize=4.5, label=label)
    axis.axhline(0.0, color="black", linewidth=0.6)
    limit = 1.45 * max(float(np.abs(error[shown]).max()), 2 * float(sd.max()))
    axis.set(ylabel="error (flights)", ylim=(-limit, limit))
    axis.legend(loc="upper left", frameon=False, ncols=2)
    _clean(axis)


def _draw_accuracy(axis: Any, steps: Any, accuracies: Sequence[Accuracy]) -> None:
    """The largest standard deviation of each window: a curve reaches the worst step of its legend."""
    starts, widths = _bins(len(steps))
    places = steps[starts] + (widths - 1) / 2.0
    curves = [_largest(accuracy, starts) for accuracy in accuracies]
    for colour, accuracy, curve in zip(_COLOURS, accuracies, curves, strict=False):
        label = f"{accuracy.name}: worst {float(np.sqrt(accuracy.max_se)):.1f}"
        axis.plot(places, curve, color=colour, linewidth=1.8, label=label)
    top = max(float(curve.max()) for curve in curves)
    axis.set(ylabel=f"largest standard deviation\nof {int(widths.max()):,} flights", ylim=(0, 1.4 * top))
    axis.legend(loc="upper left", frameon=False, ncols=2)
    _clean(axis)


def _bins(n: int) -> tuple[Any, Any]:
    """Return the first indices and the lengths of at most 240 bins of steps."""
    edges = np.unique(np.linspace(0, n, _BINS + 1).astype(np.int64))
    return edges[:-1], np.diff(edges)


def _typical(accuracy: Accuracy, starts: Any, widths: Any) -> Any:
    """Return the root of the mean squared error of each bin."""
    return np.sqrt(np.add.reduceat(accuracy.step_sd**2, starts) / widths)


def _largest(accuracy: Accuracy, starts: Any) -> Any:
    """Return the largest standard deviation of each bin."""
    return np.maximum.reduceat(accuracy.step_sd, starts)


def _months(axis: Any, flights: Flights) -> None:
    ends = flights.month_ends()
    starts = np.concatenate([[0], ends[:-1]])
    axis.set_xlim(0, ends[-1])
    axis.set_xticks([*starts, ends[-1]], labels=[])
    axis.set_xticks(
        (starts + ends) / 2.0, labels=[_MONTHS[flights.month[start] - 1] for start in starts], minor=True
    )
    for shared in axis.figure.axes:
        shared.tick_params(axis="x", which="minor", length=0)
    axis.set_xlabel("flights in the order of departure, by month")


def _clean(axis: Any) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="0.9", linewidth=0.6)
    axis.set_axisbelow(True)
