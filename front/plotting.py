"""Pictures of plans, with matplotlib (extra ``plot``): errors over time, and what trades for what."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trilift.curves import Curve
from trilift.experiments.figures import new_figure
from trilift.lift.errors import ParameterError

__all__ = ["FORMATS", "draw_balance", "draw_over_time", "draw_trade", "picture_format", "save_picture"]

FORMATS = ("png", "svg", "pdf")
_COLOURS = (
    "#30638e",
    "#d1495b",
    "#3a9b5c",
    "#f48c06",
    "#6247aa",
    "#8d99ae",
    "#00798c",
    "#7f4f24",
)
_SIZE = (8.0, 4.6)


def picture_format(path: Path) -> str:
    """Return the format that a file's name asks for.

    Raises:
        ParameterError: it asks for none that can be written.
    """
    form = path.suffix.lower().removeprefix(".")
    if form not in FORMATS:
        raise ParameterError(f"a picture must be a .png, .svg or .pdf file, got {path}")
    return form


def save_picture(figure: Any, path: Path) -> None:
    """Write a figure into a PNG, SVG or PDF file, the same bytes for the same figure.

    Raises:
        ParameterError: another kind of file.
        OSError: the file cannot be written.
    """
    from matplotlib import rc_context

    form = picture_format(path)
    undated: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
    with rc_context({"svg.hashsalt": "trilift"}):
        figure.savefig(path, dpi=150, format=form, metadata=undated)


def draw_over_time(curves: Sequence[Curve], *, title: str = "") -> Any:
    """Return a figure of standard deviations against the step, one line for each curve.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure = new_figure(*_SIZE)
    axis = figure.subplots()
    for number, curve in enumerate(curves):
        style = "-" if number < len(_COLOURS) else "--"
        colour = _COLOURS[number % len(_COLOURS)]
        axis.plot(curve.steps, curve.sd, style, color=colour, linewidth=1.2, label=curve.label)
    axis.set(xlabel="step", ylabel="standard deviation of the released count", title=title)
    axis.set_ylim(bottom=0)
    if len({int(curve.steps[-1]) for curve in curves}) > 1:
        axis.set_xscale("log")
    _finish(axis, legend=len(curves) > 1)
    return figure


def draw_trade(
    lines: Mapping[str, Sequence[tuple[float, float, float]]], *, along: str, title: str = ""
) -> Any:
    """Return a figure of errors against one parameter: the worst step solid, the mean dashed.

    Args:
        lines: by name, points (x, sd of the worst step, root of the mean squared error); NaN is left out.
        along: name of x.
        title: above it.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure = new_figure(*_SIZE)
    axis = figure.subplots()
    for number, (name, points) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        x = [point[0] for point in points]
        worst, mean = ([point[i] for point in points] for i in (1, 2))
        axis.plot(x, worst, "o-", color=colour, markersize=4, linewidth=1.4, label=f"{name}, worst step")
        if not all(map(math.isnan, mean)):
            axis.plot(x, mean, ".--", color=colour, markersize=4, linewidth=1.0, label=f"{name}, mean")
    axis.set(xlabel=along, ylabel="standard deviation of the released count", title=title)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.yaxis.get_major_locator().set_params(subs=(1.0, 2.0, 5.0))
    axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_formatter("")
    _finish(axis, legend=True)
    return figure


def draw_balance(points: Mapping[str, tuple[float, float]], *, title: str = "") -> Any:
    """Return a figure of the worst step's error against the mean one, a named point for each counter.

    Args:
        points: by name (sd of the worst step, root of the mean squared error).
        title: above it.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure = new_figure(6.4, 5.4)
    axis = figure.subplots()
    for number, (name, (worst, mean)) in enumerate(points.items()):
        axis.plot([mean], [worst], "o", color=_COLOURS[number % len(_COLOURS)], label=name)
    known = [value for pair in points.values() for value in pair]
    low, high = min(known) * 0.95, max(known) * 1.05
    axis.plot([low, high], [low, high], color="#bbbbbb", linewidth=0.8, zorder=0)  # no step worse than others
    axis.set(
        xlabel="root of the mean squared error", ylabel="standard deviation of the worst step", title=title
    )
    _finish(axis, legend=True)
    return figure


def _finish(axis: Any, *, legend: bool) -> None:
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    if legend:
        axis.legend(frameon=False, fontsize=8)
