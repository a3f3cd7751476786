"""Pictures like the paper's: error against advantage, error against length, histograms of the statistic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trilift.experiments.figures import new_figure, save_png
from trilift.lift.errors import ParameterError

__all__ = ["draw"]

Records = Sequence[dict[str, Any]]

_COLOURS = {
    "BaseCC": "#c44e52",
    "PartitionCC": "#dd8452",
    "GaussianCC": "#8172b3",
    "HorizonGaussian": "#937860",
    "SimECC": "#4c72b0",
    "ECC": "#55a868",
}
_STYLES = ("o-", "s--", "^:", "v-.", "D--", "P:", "X-.")


def draw(name: str, *, records: Records, path: Path) -> None:
    """Draw the picture of an experiment.

    Args:
        name: "edit-fig1a", "edit-fig1b", "edit-fig2", "edit-fig3" or "edit-table1" (as fig1a).
        records: its points.
        path: a .png file, which is replaced.

    Raises:
        MissingExtraError: matplotlib is not installed.
        ParameterError: a path that does not end in .png, no points.
    """
    if not records:
        raise ParameterError("there are no points to draw")
    makers = {"edit-fig1b": _lengths, "edit-fig2": _histograms, "edit-fig3": _panels}
    save_png(makers.get(name, _one_panel)(records), path)


def _label(record: dict[str, Any]) -> str:
    return f"{record['mechanism']}, {record['variant']}"


def _series(records: Records) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        found.setdefault(_label(record), []).append(record)
    return found


def _styles(records: Records) -> dict[str, tuple[str, str]]:
    """Colour by mechanism, marks by variant."""
    counts: dict[str, int] = {}
    styles = {}
    for label, own in _series(records).items():
        mechanism = own[0]["mechanism"]
        index = counts.get(mechanism, 0)
        counts[mechanism] = index + 1
        styles[label] = (_COLOURS.get(mechanism, "#444444"), _STYLES[index % len(_STYLES)])
    return styles


def _clean(axis: Any) -> None:
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)


def _advantage_panel(axis: Any, records: Records) -> None:
    styles = _styles(records)
    for label, own in _series(records).items():
        colour, style = styles[label]
        x = [r["advantage"] for r in own]
        bars = [
            [max(r["advantage"] - r["ci_low"], 0) for r in own],
            [max(r["ci_high"] - r["advantage"], 0) for r in own],
        ]
        axis.errorbar(
            x,
            [r["rmse"] for r in own],
            xerr=bars,
            fmt=style,
            color=colour,
            markersize=3,
            linewidth=0.9,
            elinewidth=0.6,
            label=label,
        )
    axis.set_yscale("log")
    axis.set(xlabel="advantage of the attack", ylabel="root mean square error")
    _clean(axis)


def _legend(figure: Any, axis: Any) -> None:
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=6.5, frameon=False)


def _one_panel(records: Records) -> Any:
    figure = new_figure(6.4, 4.6)
    axis = figure.subplots()
    _advantage_panel(axis, records)
    axis.set_title(f"{records[0]['stream']}, T = {records[0]['T']}, simulated", fontsize=9)
    _legend(figure, axis)
    return figure


def _panels(records: Records) -> Any:
    groups: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault((record["stream"], record["ln_delta"]), []).append(record)
    figure = new_figure(8.4, 6.4)
    axes = figure.subplots(2, -(-len(groups) // 2), squeeze=False, sharey=True).ravel()
    for axis, ((stream, ln_delta), own) in zip(axes, groups.items(), strict=False):
        _advantage_panel(axis, own)
        exponent = ln_delta / 2.302585092994046
        axis.set_title(f"{stream}, delta = 1e{exponent:.0f}, T = {own[0]['T']}", fontsize=8)
    for axis in axes[len(groups) :]:
        axis.set_visible(False)
    _legend(figure, axes[0])
    return figure


def _lengths(records: Records) -> Any:
    figure = new_figure(6.4, 4.4)
    axis = figure.subplots()
    styles = _styles(records)
    for label, own in _series(records).items():
        colour, style = styles[label]
        axis.errorbar(
            [r["T"] for r in own],
            [r["rmse"] for r in own],
            yerr=[1.96 * (r["rmse_se"] or 0) for r in own],
            fmt=style,
            color=colour,
            markersize=4,
            linewidth=1.1,
            label=label,
        )
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set(xlabel="length T of the stream", ylabel="root mean square error")
    axis.set_title(f"epsilon = {records[0]['epsilon']:g}, {records[0]['stream']}, simulated", fontsize=9)
    _clean(axis)
    _legend(figure, axis)
    return figure


def _histograms(records: Records) -> Any:
    figure = new_figure(8.0, 5.0)
    axes = figure.subplots(2, -(-len(records) // 2), squeeze=False).ravel()
    for axis, record in zip(axes, records, strict=False):
        edges = record["edges"]
        width = edges[1] - edges[0]
        for name, colour in (("original", "#4c72b0"), ("shifted", "#c44e52")):
            total = sum(record[name]) or 1
            heights = [count / total / width for count in record[name]]
            axis.stairs(heights, edges, fill=True, alpha=0.45, color=colour, label=name)
        axis.axvline(record["theta"], color="black", linewidth=0.8, linestyle="--")
        axis.set_title(f"{_label(record)}, epsilon = {record['epsilon']:.3g}", fontsize=8)
        axis.set_yticks([])
        axis.set_xlabel("statistic of the attack", fontsize=7)
        _clean(axis)
    _legend(figure, axes[0])
    return figure
