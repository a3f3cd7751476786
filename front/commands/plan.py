"""``trilift plan``: the chain of artifacts with the least exact error of those that look best, or a
mechanism's price.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from trilift.lift import Plan, Stage
    from trilift.lift.mechanism_cost import MechanismCost

__all__ = ["NAME", "best_plan", "catalogued", "command", "plan_record"]

NAME = "plan"

_MECHANISMS = (
    "binary-tree",
    "smooth-tree",
    "smooth-tree-unbalanced",
    "kary",
    "kary-subtraction",
    "kary-averaged",
    "honaker",
    "honaker-kary",
    "toeplitz-sqrt",
    "paper",
)
"""trilift.lift.mechanisms.NAMES, for the help, which loads nothing."""


def command(
    *,
    epsilon: Annotated[str, typer.Option("--epsilon", "-e", help="Privacy budget, such as 1, 0.1 or 1/3.")],
    horizon: Annotated[
        str | None, typer.Option("--horizon", "-n", metavar="N", help="Number of steps.")
    ] = None,
    objective: Annotated[
        str | None, typer.Option(help="max or mean: which squared error to make small. (default: max)")
    ] = None,
    artifact: Annotated[
        list[str] | None, typer.Option(help="Artifact file to consider too; repeat the option for more.")
    ] = None,
    mechanism: Annotated[
        str | None, typer.Option(help=f"Price this mechanism instead: {', '.join(_MECHANISMS)}.")
    ] = None,
    arity: Annotated[
        int | None, typer.Option(help="Children per node, for a k-ary --mechanism. (default: the best)")
    ] = None,
    neighbours: Annotated[
        str | None, typer.Option(help="swap, or edit: price the mechanisms for streams that shift.")
    ] = None,
    delta: Annotated[
        str | None, typer.Option(help="Edit neighbours, or swap with Gaussian noise: such as 1e-6.")
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(help="Edit neighbours: what a step counts on average, at most 1. (default: 1/2)"),
    ] = None,
    unbounded: Annotated[bool, typer.Option("--unbounded", help="Counters without a horizon.")] = False,
    display: Annotated[
        str | None, typer.Option(help="Edit neighbours: latest, or extrapolated. (default: both)")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Write a report into this new HTML file, which needs no other."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Find a chain of artifacts (shipped and your own) with a small exact squared error.

    All chains are ranked by the sum of their levels' costs; of the most promising ones, the one with the
    least exact error is taken. With --mechanism, say what another mechanism costs: exactly, or (the paper's
    lift, of which only norms are published) by a bound. With --neighbours edit, predict the errors of SimECC,
    ECC and independent noise, and say what each will do. With --delta or --unbounded alone, price counters
    with Gaussian noise or without a horizon.
    """
    from trilift.arguments import number, whole
    from trilift.lift.checks import finite
    from trilift.lift.errors import ParameterError
    from trilift.output import note, print_json, print_pairs

    exact = number("epsilon", epsilon, above=0)
    length = None if horizon is None else whole("horizon", horizon)
    if html is not None:
        from trilift.reports import can_report

        can_report(html)
    if _is_edit(neighbours):
        from trilift.edit_plan_shown import plan_edit

        chains = {"objective": objective, "artifact": artifact, "mechanism": mechanism, "arity": arity}
        _refuse(chains, "is about swap neighbours:")
        plan_edit(
            exact,
            delta=None if delta is None else number("delta", delta, above=0),
            horizon=length,
            unbounded=unbounded,
            rate=None if rate is None else number("rate", rate, above=0),
            display=display,
            html=html,
            json=json,
        )
        return
    _refuse({"rate": rate, "display": display}, "is about edit neighbours: add --neighbours edit, or")
    if delta is not None or unbounded:
        from trilift.swap_plan import plan_swap

        chains = {"artifact": artifact, "mechanism": mechanism, "arity": arity}
        _refuse(chains, "is about pure noise and a horizon:")
        plan_swap(
            exact,
            delta=None if delta is None else number("delta", delta, above=0),
            horizon=length,
            unbounded=unbounded,
            objective=objective,
            html=html,
            json=json,
        )
        return
    if length is None:
        raise ParameterError("--horizon is needed")
    objective = "max" if objective is None else objective
    steps = length
    budget = finite("epsilon", exact, above=0)
    if mechanism is not None:
        if artifact:
            raise ParameterError("--artifact is about chains: leave it out beside --mechanism")
        cost = _price(mechanism, steps, objective=objective, arity=arity)
        record = cost.record(budget)
        what = cost.title[:1].upper() + cost.title[1:]
    elif arity is not None:
        raise ParameterError("--arity is about a --mechanism: name one")
    else:
        found = best_plan(steps, objective=objective, files=artifact or [])
        record = plan_record(found, budget)
        what = "Chain"
        for file in dict.fromkeys(artifact or []):
            if not {file, str(Path(file))} & set(found.names):
                note(f"{file} was considered and not used")
    use = "" if mechanism is not None else _use(steps, epsilon, record)
    if html is not None:
        from trilift.reports import plan_report, written

        named = {**record, "mechanism": "trilift" if mechanism is None else mechanism}
        written(plan_report(named, epsilon=exact, files=artifact or [], use=use, arity=arity), html)
    if json:
        print_json(record)
    else:
        _show(record, f"{what} for {steps} steps at epsilon {epsilon}, objective {objective}")
        if use:
            print_pairs({"use": use})


def _is_edit(neighbours: str | None) -> bool:
    from trilift.lift.checks import fail

    if neighbours not in (None, "swap", "edit"):
        raise fail("neighbours", "one of 'swap', 'edit'", neighbours)
    return neighbours == "edit"


def _refuse(options: dict[str, Any], why: str) -> None:
    from trilift.lift.errors import ParameterError

    for name, value in options.items():
        if value is not None and value != []:
            raise ParameterError(f"--{name} {why} leave it out")


def _price(name: str, horizon: int, *, objective: str, arity: int | None) -> MechanismCost:
    from trilift.lift.mechanisms import price

    return price(name, horizon, objective=objective, arity=arity)


def _show(record: dict[str, Any], title: str) -> None:
    from trilift.output import print_pairs, print_table

    levels = [[level["name"], str(level["size"]), f"{level['scale']:.6g}"] for level in record["levels"]]
    print_table(f"{title} (finest level first)", ["name", "size", "noise scale"], levels)
    print_pairs(
        {
            "MaxSE": _error(record["max_se"], record["bound_max_se"]),
            "MeanSE": _error(record["mean_se"], record["bound_mean_se"]),
            "kappa max": _kappa(record, "max"),
            "kappa mean": _kappa(record, "mean"),
        }
    )


def _error(exact: float | None, bound: float | None) -> str:
    """Show a squared error and what bounds it, of which either may not be known."""
    above = "" if bound is None else f"at most {bound:.6g} (sd {bound**0.5:.6g})"
    if exact is None:
        return above or "not known"
    more = f"; additive bound {bound:.6g}" if bound is not None and bound != exact else ""
    return f"{exact:.6g} (sd {exact**0.5:.6g}{more})"


def _kappa(record: dict[str, Any], objective: str) -> str:
    value, bound = record[f"kappa_{objective}"], record[f"bound_{objective}_se"]
    if record["horizon"] == 1:
        return "undefined for one step"
    if value is not None:
        return f"{value:.6f}"
    if bound is None:
        return "not known"
    return f"at most {bound * record['epsilon'] ** 2 / math.log2(record['horizon']) ** 3:.6f}"


def _use(horizon: int, epsilon: str, record: dict[str, Any]) -> str:
    """Return the command that counts with a planned chain."""
    chain = " ".join(f"--chain {level['name']}" for level in record["levels"])
    options = f"--epsilon {epsilon} --horizon {horizon} --objective {record['objective']} {chain}"
    return f"trilift count FILE {options}"


def best_plan(
    horizon: int,
    *,
    objective: str,
    files: Sequence[str] = (),
    known: tuple[dict[str, Stage], dict[str, Path]] | None = None,
) -> Plan:
    """Return the best chain of the whole catalogue and the given files for a horizon, by exact cost.

    Args:
        horizon: number of steps.
        objective: "max" or "mean".
        files: artifacts beside the catalogue's.
        known: what :func:`catalogued` has returned, to load it once for several plans.

    Nothing is planned with that is not proved: given files are proved at once, your own of the catalogue
    when a plan would use them. Those that fail are left out with a warning.

    Raises:
        CertificateError: a claim of a given file is false.
        ParameterError, HorizonError: as :func:`trilift.lift.plan`.
    """
    from trilift.arguments import readable_artifact
    from trilift.artifacts import load
    from trilift.lift import plan
    from trilift.verify import refutation, require_proof

    known = catalogued() if known is None else known
    stages, paths = dict(known[0]), dict(known[1])
    for file in files:
        path = paths.get(file) or readable_artifact(file)[0]
        require_proof(path)
        if file not in stages:
            stages[str(path)] = load(path).stage
    while True:
        found = plan(stages, horizon, objective=objective)
        failures = {name: refutation(paths[name]) for name in found.names if name in paths}
        if not any(failures.values()):
            return found
        for name, why in failures.items():
            if why is not None:
                del stages[name]
                warnings.warn(f"left out of the plan: {name}: not verified: {why}", stacklevel=2)


def catalogued() -> tuple[dict[str, Stage], dict[str, Path]]:
    """Return the stages of the catalogue and their files, by name; damaged files are left out."""
    from trilift.artifacts import catalogue, load_stage
    from trilift.lift.errors import ArtifactFormatError

    stages, paths = {}, {}
    for entry in catalogue():
        try:
            stages[entry.name] = load_stage(entry.name)
        except ArtifactFormatError as error:
            if entry.source == "shipped":
                raise
            warnings.warn(f"left out of the plan: {error}", stacklevel=3)
        else:
            paths[entry.name] = entry.path
    return stages, paths


def plan_record(found: Plan, epsilon: float) -> dict[str, Any]:
    """Return what ``--json`` prints: errors and scales at this epsilon, kappas free of it.

    Raises:
        ParameterError: an epsilon so extreme that an error does not fit a float.
    """
    cost = found.cost
    errors = {
        "max_se": cost.max_se(epsilon),
        "mean_se": cost.mean_se(epsilon),
        "bound_max_se": cost.bound_max_se(epsilon),
        "bound_mean_se": cost.bound_mean_se(epsilon),
    }
    scales = [scale / epsilon for scale in cost.scales.tolist()]  # floats, as their squares are
    levels = zip(found.names, found.chain.sizes, scales, strict=True)
    several = cost.horizon > 1
    return {
        "horizon": cost.horizon,
        "epsilon": epsilon,
        "objective": cost.objective,
        "levels": [{"name": name, "size": size, "scale": scale} for name, size, scale in levels],
        "max_se": errors["max_se"],
        "mean_se": errors["mean_se"],
        "kappa_max": cost.kappa("max") if several else None,
        "kappa_mean": cost.kappa("mean") if several else None,
        "bound_max_se": errors["bound_max_se"],
        "bound_mean_se": errors["bound_mean_se"],
    }
