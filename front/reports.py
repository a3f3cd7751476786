"""What stands in the HTML reports of artifacts and of plans."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from trilift.arguments import new_file
from trilift.curves import OURS, Curve, Planned, planned
from trilift.experiments.figures import new_figure
from trilift.factor_pictures import artifact_figure
from trilift.html_report import HtmlReport
from trilift.lift.mechanisms import NAMES
from trilift.output import note
from trilift.plotting import draw_over_time

if TYPE_CHECKING:
    from trilift.artifacts import Artifact

__all__ = ["artifact_report", "can_report", "edit_report", "plan_report", "swap_report", "written"]

_BESIDE = ("smooth-tree", "kary-averaged")
_EPSILONS = tuple(Fraction(text) for text in ("1/10", "1/3", "1", "3", "10"))


def can_report(path: Path) -> None:
    """Check, before any work is done, that a report can be made and written.

    Raises:
        ParameterError: the file exists, or its folder does not.
        MissingExtraError: matplotlib is not installed.
    """
    new_file("--html", path)
    new_figure(1.0, 1.0)


def written(report: HtmlReport, path: Path) -> None:
    """Write a report and say so."""
    report.write(path)
    note(f"Written: {path}")


def artifact_report(artifact: Artifact, *, record: Mapping[str, Any], failure: str | None) -> HtmlReport:
    """Return the report of an artifact.

    Args:
        artifact: as loaded.
        record: what ``trilift inspect --json`` prints.
        failure: why its claims do not stand, or None; then they are not repeated.
    """
    stage, claims = artifact.stage.to_float(), artifact.certificate
    kind = "A plain factorisation" if stage.is_plain else "A stage"
    alarm = None if failure is None else f"NOT verified: {failure}"
    lead = f"{kind} of {stage.size} steps, searched for the {claims.objective} squared error."
    report = HtmlReport(f"Artifact {artifact.name}", lead, alarm=alarm)
    if failure is None:
        report.heading("What is certified")
        report.text("Exact rational upper bounds, proved again in integers when this report was made.")
        rows = [(name, getattr(claims, name)) for name in _NORMS]
        rows = [(name, value) for name, value in rows if value is not None]
        report.table(["norm", "at most"], [[name.replace("_", " "), _up(value)] for name, value in rows])
        kappas = {name: value for name, value in record.items() if "kappa" in name and value is not None}
        report.table(["constant", "at most"], [[k.replace("_", " "), f"{v:.6f}"] for k, v in kappas.items()])
        report.pairs({f"{name.replace('_', ' ')}, exactly": str(Fraction(value)) for name, value in rows})
    report.heading("Factors")
    caption = "A and B as heat maps (zero white, red above, blue below, signed square roots)"
    caption += "." if stage.is_plain else "; w and v, the weights with which blocks are rounded."
    report.figure(artifact_figure(artifact, horizon=None, proved=failure is None), caption=caption)
    report.heading("Norms, step by step")
    report.figure(
        _norms_figure(stage), caption="Squared row norms (error) and l1 norms of columns (privacy)."
    )
    shares = {name.replace("_", " "): f"{record[name]:.1%}" for name in record if name.startswith("nonzero")}
    report.pairs({"measurements of a block": str(stage.inner), **shares, "sha256": claims.sha256})
    found = {k: v for k, v in record["provenance"].items() if v not in (None, "", {})}
    if found:
        report.heading("How it was found")
        report.pairs({name: _plain(value) for name, value in found.items()})
    return report


_NORMS = (
    "sensitivity",
    "max_row_norm_sq",
    "mean_row_norm_sq",
    "interior_sensitivity",
    "interior_max_row_norm_sq",
    "interior_mean_row_norm_sq",
)


def _up(value: Any) -> str:
    """Return six decimals of a rational, rounded up."""
    scaled = math.ceil(Fraction(value) * 10**6)
    return f"{scaled // 10**6}.{scaled % 10**6:06d}"


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {text}" for name, text in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _norms_figure(stage: Any) -> Any:
    figure = new_figure(9.0, 3.2)
    rows = (stage.A**2).sum(axis=1) + (1 - stage.w) ** 2 * (stage.g**2).sum()
    steps = np.arange(1, stage.size + 1)
    for axis, values, name in zip(
        figure.subplots(1, 2), (rows, np.abs(stage.B).sum(axis=0)), ("row", "column"), strict=True
    ):
        axis.step(steps, values, where="mid", color="#30638e")
        axis.set(xlabel="step of the block", ylim=(0, None))
        axis.set_title("squared norms of rows" if name == "row" else "l1 norms of columns", fontsize=10)
        axis.grid(alpha=0.25)
    return figure


def plan_report(
    record: Mapping[str, Any], *, epsilon: Fraction, files: Sequence[str], use: str, arity: int | None = None
) -> HtmlReport:
    """Return the report of a plan: of a chain, or of another mechanism.

    Args:
        record: what ``trilift plan --json`` prints, with "mechanism"; of a chain, "trilift".
        epsilon: exact.
        files: artifacts that were considered too.
        arity: of a k-ary mechanism, or None for the best.
        use: the command that counts so, or "".
    """
    steps, objective, name = record["horizon"], record["objective"], record["mechanism"]
    lead = (
        f"{steps:,} steps at epsilon {epsilon}, pure differential privacy, chosen by the {objective} squared "
        "error. Errors are standard deviations of the count, for inputs from 0 to 1; with --bounds LOW HIGH "
        "they are HIGH - LOW times as large."
    )
    report = HtmlReport("A planned counter" if name == OURS else f"What {name} costs", lead)
    report.heading("How precise it is")
    report.table(
        ["", "squared error", "standard deviation", "±2 of them"],
        [
            ["worst step", *_error(record["max_se"], record["bound_max_se"])],
            ["mean over the steps", *_error(record["mean_se"], record["bound_mean_se"])],
        ],
    )
    names = [name, *(other for other in (OURS, *_BESIDE) if other != name)]
    beside = planned(
        names,
        epsilons=[epsilon],
        horizons=[steps],
        objectives=[objective],
        files=files if OURS in names else [],
    )
    beside[0] = replace(beside[0], arity=arity)
    curves = [one.curve(one.mechanism) for one in beside if one.mechanism != "paper"]
    caption = f"Standard deviation of the released count at every step, beside {' and '.join(names[1:])}."
    report.figure(draw_over_time(curves), caption=caption)
    report.heading("Beside other mechanisms")
    report.table(["mechanism", "worst step", "mean"], [_compared(one) for one in _all_beside(beside[0])])
    report.text("Standard deviations; at most so much for the paper, of which only norms are published.")
    report.heading("Other budgets")
    report.table(
        ["epsilon", "standard deviation of the worst step"],
        [[str(other), _scaled(record, epsilon / other)] for other in _EPSILONS],
    )
    report.heading("Levels, finest first")
    report.table(
        ["name", "steps of a block", "noise scale"],
        [[level["name"], f"{level['size']:,}", f"{level['scale']:.6g}"] for level in record["levels"]],
    )
    if use:
        report.heading("To count so")
        report.code(use)
    return report


def _all_beside(first: Planned) -> list[Planned]:
    """Return our chain and every other mechanism for the same task."""
    return planned(
        [OURS, *NAMES],
        epsilons=[first.epsilon],
        horizons=[first.horizon],
        objectives=[first.objective],
        files=first.files,
        beside=first,
    )


def _compared(one: Planned) -> list[str]:
    return [one.mechanism, *("" if e is None else f"{math.sqrt(e):.6g}" for e in one.errors())]


def _error(exact: float | None, bound: float | None) -> list[str]:
    value = bound if exact is None else exact
    if value is None:
        return ["not known", "", ""]
    above = "at most " if exact is None else ""
    root = math.sqrt(value)
    return [f"{above}{value:.6g}", f"{above}{root:.6g}", f"±{2 * root:.4g}"]


def _scaled(record: Mapping[str, Any], factor: Fraction) -> str:
    value = record["bound_max_se"] if record["max_se"] is None else record["max_se"]
    return "not known" if value is None else f"{math.sqrt(value) * float(factor):.6g}"


def swap_report(record: Mapping[str, Any], curves: Sequence[Curve], *, use: str) -> HtmlReport:
    """Return the report of counters with Gaussian noise, or without a horizon.

    Args:
        record: what ``trilift plan --json`` prints.
        curves: standard deviations of the variants.
        use: the command that counts with the chosen one.
    """
    delta = record["delta"]
    noise = "Laplace noise" if delta is None else f"Gaussian noise, delta {float(Fraction(delta)):.6g}"
    end = " of a stream without end" if record["horizon"] is None else ""
    lead = f"{noise}, epsilon {record['epsilon']}, {record['steps']:,} steps{end}, by the "
    lead += f"{record['objective']} error."
    report = HtmlReport("A planned counter", lead)
    report.heading("How precise it is")
    rows = [
        [
            " ".join(filter(None, (v["mechanism"], v["growth"]))),
            f"{math.sqrt(v['max_se']):.6g}",
            f"{math.sqrt(v['mean_se']):.6g}",
        ]
        for v in record["variants"]
    ]
    report.table(["mechanism", "sd of the worst step", "typical sd"], rows)
    report.figure(draw_over_time(curves), caption="Standard deviation of the released count at every step.")
    report.heading("To count so")
    report.code(use)
    return report


def edit_report(record: Mapping[str, Any], *, use: str) -> HtmlReport:
    """Return the report of mechanisms for edit neighbours.

    Args:
        record: what ``trilift plan --neighbours edit --json`` prints.
        use: the command that counts with the best one.
    """
    lead = (
        f"Streams that shift: epsilon {record['epsilon']}, delta {float(Fraction(record['delta'])):.6g}, "
        f"{record['steps']:,} steps, {record['rate']:g} events a step. Errors are predictions for events "
        "that come evenly."
    )
    report = HtmlReport("Mechanisms for edit neighbours", lead)
    report.heading("Predicted errors")
    rows = [
        [
            " ".join(filter(None, (v["mechanism"], v["base"], v["accounting"], v["display"]))),
            f"{v['predicted_rmse']:.4g}",
            f"{v['first_update_steps']:,.0f}",
            f"{v['first_update_events']:,.0f}",
        ]
        for v in record["variants"]
    ]
    report.table(
        ["mechanism, noise, accounting, display", "error", "first value at step", "after events"], rows
    )
    report.figure(
        _bars([(row[0], v["predicted_rmse"]) for row, v in zip(rows, record["variants"], strict=True)]),
        caption="Predicted root mean squared errors over all steps, the least on top.",
    )
    report.heading("What the best one does")
    for sentence in record["chosen"]["words"]:
        report.text(sentence)
    report.heading("Where its budget goes")
    report.table(
        ["part", "epsilon", "ln delta"],
        [
            [p["part"], str(p["epsilon"]), "" if p["ln_delta"] is None else f"{p['ln_delta']:.6g}"]
            for p in record["chosen"]["ledger"]
        ],
    )
    report.heading("To count so")
    report.code(use)
    return report


def _bars(values: Sequence[tuple[str, float]]) -> Any:
    figure = new_figure(9.0, 0.9 + 0.3 * len(values))
    axis = figure.subplots()
    axis.barh([name for name, _ in values], [value for _, value in values], color="#30638e")
    axis.invert_yaxis()
    axis.set(xlabel="predicted root mean squared error", xscale="log")
    axis.spines[["top", "right"]].set_visible(False)
    return figure
