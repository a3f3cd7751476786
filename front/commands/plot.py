"""``trilift plot``: heat maps of factors, errors of planned counters over time, and what trades for what."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from trilift.curves import Planned

__all__ = ["NAME", "app"]

NAME = "plot"

app = typer.Typer(
    help="Draw factors, errors over time, and trade-offs, into a PNG, SVG or PDF file.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

Out = Annotated[Path, typer.Option("--out", "-o", help="Picture to write: a new .png, .svg or .pdf file.")]
Json = Annotated[bool, typer.Option("--json", help="Print the drawn numbers as JSON too.")]
Mechanisms = Annotated[
    list[str] | None,
    typer.Option(
        "--mechanism",
        help="trilift, unbounded, gaussian, gaussian-toeplitz, gaussian-unbounded, or one that `trilift plan "
        "--mechanism` prices; repeat the option for more. (default: trilift)",
    ),
]
Epsilons = Annotated[
    list[str] | None,
    typer.Option("--epsilon", "-e", help="Privacy budget; repeat the option for more. (default: 1)"),
]
Horizons = Annotated[
    list[str],
    typer.Option("--horizon", "-n", metavar="N", help="Number of steps; repeat the option for more."),
]
Objectives = Annotated[
    list[str] | None, typer.Option("--objective", help="max or mean; repeat the option for both.")
]
Delta = Annotated[str | None, typer.Option(help="For Gaussian noise, such as 1e-6.")]
Artifacts = Annotated[
    list[str] | None,
    typer.Option("--artifact", help="Artifact file that chains may use too; repeat the option."),
]

_MOST_CURVES = 16
_MOST_POINTS = 60
_EPSILONS = ("0.1", "0.3", "1", "3", "10")


@app.command()
def factors(
    artifact: Annotated[str, typer.Argument(help="An artifact file, or a name of the catalogue.")],
    *,
    out: Out,
    horizon: Annotated[
        str | None, typer.Option("--horizon", "-n", metavar="N", help="Draw L and R of so many steps.")
    ] = None,
) -> None:
    """Draw an artifact's factors as heat maps: A, B and the weights of a stage, or L and R with --horizon.

    Zero is white, red is above and blue below it. A file whose claims do not stand is drawn as not verified.
    """
    from trilift.arguments import artifact_path, whole
    from trilift.artifacts import load
    from trilift.factor_pictures import artifact_figure
    from trilift.output import note, one_line
    from trilift.verify import refutation

    steps = None if horizon is None else whole("horizon", horizon)
    _check_out(out)
    path = artifact_path(artifact)
    loaded = load(path)
    failure = refutation(path)
    if failure is not None:
        note(f"trilift: not verified: {one_line(failure)}")
    _write(artifact_figure(loaded, horizon=steps, proved=failure is None), out)


@app.command()
def time(
    *,
    horizon: Horizons,
    out: Out,
    epsilon: Epsilons = None,
    mechanism: Mechanisms = None,
    objective: Objectives = None,
    delta: Delta = None,
    artifact: Artifacts = None,
    json: Json = False,
) -> None:
    """Draw standard deviations against the step, a curve for every combination of the options.

    With --epsilon 1 --epsilon 2 --mechanism trilift --mechanism kary there are four. The steps drawn are a
    thousand evenly spaced ones.
    """
    _check_out(out)
    plans = _plans(
        mechanism=mechanism,
        epsilon=epsilon,
        horizon=horizon,
        objective=objective,
        delta=delta,
        artifact=artifact,
        most=_MOST_CURVES,
    )
    from trilift.output import print_json
    from trilift.plotting import draw_over_time

    names = _labels(plans)
    curves = [plan.curve(label) for plan, label in zip(plans, names, strict=True)]
    _write(draw_over_time(curves, title=_common(plans)), out)
    if json:
        print_json([curve.record() for curve in curves])


@app.command()
def epsilon(
    *,
    horizon: Horizons,
    out: Out,
    epsilon: Epsilons = None,
    mechanism: Mechanisms = None,
    objective: Objectives = None,
    delta: Delta = None,
    artifact: Artifacts = None,
    json: Json = False,
) -> None:
    """Draw errors against epsilon. Without --epsilon: 0.1, 0.3, 1, 3 and 10."""
    _check_out(out)
    values = epsilon or list(_EPSILONS)
    plans = _plans(
        mechanism=mechanism,
        epsilon=values,
        horizon=horizon,
        objective=objective,
        delta=delta,
        artifact=artifact,
        most=_MOST_POINTS,
    )
    _trade(plans, "epsilon", out, json)


@app.command()
def horizon(
    *,
    horizon: Horizons,
    out: Out,
    epsilon: Epsilons = None,
    mechanism: Mechanisms = None,
    objective: Objectives = None,
    delta: Delta = None,
    artifact: Artifacts = None,
    json: Json = False,
) -> None:
    """Draw errors against the number of steps: the powers of 4 up to --horizon, or several as given."""
    from trilift.arguments import whole

    _check_out(out)
    if len(horizon) == 1:
        most = whole("horizon", horizon[0])
        powers = [str(4**p) for p in range(2, 31) if 4**p < most]
        horizon = [*powers, horizon[0]]
    plans = _plans(
        mechanism=mechanism,
        epsilon=epsilon,
        horizon=horizon,
        objective=objective,
        delta=delta,
        artifact=artifact,
        most=_MOST_POINTS,
    )
    _trade(plans, "horizon", out, json)


@app.command()
def balance(
    *,
    horizon: Horizons,
    out: Out,
    epsilon: Epsilons = None,
    mechanism: Mechanisms = None,
    objective: Objectives = None,
    delta: Delta = None,
    artifact: Artifacts = None,
    json: Json = False,
) -> None:
    """Draw the error of the worst step against the mean one, a point for every combination of the options."""
    _check_out(out)
    plans = _plans(
        mechanism=mechanism,
        epsilon=epsilon,
        horizon=horizon,
        objective=objective or ["max", "mean"],
        delta=delta,
        artifact=artifact,
        most=_MOST_CURVES,
    )
    from trilift.curves import deviation
    from trilift.lift.errors import ParameterError
    from trilift.output import print_json
    from trilift.plotting import draw_balance

    points = {}
    for plan, label in zip(plans, _labels(plans), strict=True):
        worst, mean = map(deviation, plan.errors())
        if math.isnan(worst) or math.isnan(mean):
            raise ParameterError(f"of {plan.mechanism}, one of the two errors is not known: leave it out")
        points[label] = (worst, mean)
    _write(draw_balance(points, title=_common(plans)), out)
    if json:
        print_json([{"label": name, "max_sd": a, "mean_sd": b} for name, (a, b) in points.items()])


def _check_out(out: Path) -> None:
    """Refuse a file that cannot be written, before any work is done."""
    from trilift.arguments import new_file
    from trilift.experiments.figures import new_figure
    from trilift.plotting import picture_format

    picture_format(out)
    new_file("--out", out)
    new_figure(1.0, 1.0)  # says so if matplotlib is not there


def _plans(
    *,
    mechanism: list[str] | None,
    epsilon: list[str] | None,
    horizon: list[str],
    objective: list[str] | None,
    delta: str | None,
    artifact: list[str] | None,
    most: int,
) -> list[Planned]:
    """Read the options that all pictures of plans have."""
    from trilift.arguments import number, whole
    from trilift.curves import OURS, planned
    from trilift.lift.checks import finite, integer

    steps = [whole("horizon", text) for text in horizon]
    for value in steps:
        integer("horizon", value, minimum=1, maximum=1 << 60)
    budgets = [number("epsilon", text, above=0) for text in epsilon or ["1"]]
    for budget in budgets:
        finite("epsilon", budget, above=0)
    return planned(
        mechanism or [OURS],
        epsilons=budgets,
        horizons=steps,
        objectives=objective or ["max"],
        delta=None if delta is None else number("delta", delta, above=0),
        files=artifact or [],
        most=most,
    )


_ATTRIBUTES = ("mechanism", "epsilon", "horizon", "objective", "delta")


def _differing(plans: list[Planned], *, but: str = "") -> list[str]:
    return [n for n in _ATTRIBUTES if n != but and len({getattr(plan, n) for plan in plans}) > 1]


def _labels(plans: list[Planned]) -> list[str]:
    """Name every plan by the mechanism and what distinguishes it from the others."""
    return [plan.label({"mechanism", *_differing(plans)}) for plan in plans]


def _common(plans: list[Planned], *, but: str = "") -> str:
    """Say what all plans have in common."""
    differing = {"mechanism", but, *_differing(plans)}
    return plans[0].label(name for name in _ATTRIBUTES if name not in differing)


def _trade(plans: list[Planned], along: str, out: Path, json: bool) -> None:
    from trilift.curves import deviation
    from trilift.output import print_json
    from trilift.plotting import draw_trade

    names = {"mechanism", *_differing(plans, but=along)}
    lines: dict[str, list[tuple[float, float, float]]] = {}
    for plan in sorted(plans, key=lambda plan: getattr(plan, along)):
        worst, mean = plan.errors()
        at = float(Fraction(getattr(plan, along)))
        lines.setdefault(plan.label(names), []).append((at, deviation(worst), deviation(mean)))
    words = {"epsilon": "epsilon", "horizon": "number of steps"}
    _write(draw_trade(lines, along=words[along], title=_common(plans, but=along)), out)
    if json:
        keys = (along, "max_sd", "mean_sd")
        print_json(
            [
                {
                    "label": name,
                    "points": [dict(zip(keys, map(_known, point), strict=True)) for point in points],
                }
                for name, points in lines.items()
            ]
        )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _write(figure: Any, out: Path) -> None:
    from trilift.output import note
    from trilift.plotting import save_picture

    save_picture(figure, out)
    note(f"Drawn: {out}")
