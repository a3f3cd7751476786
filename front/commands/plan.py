"""``trilift plan``: the chain of artifacts with the least exact error of those that look best."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from trilift.lift import Plan, Stage

__all__ = ["NAME", "best_plan", "command", "plan_record"]

NAME = "plan"


def command(
    *,
    horizon: Annotated[int, typer.Option("--horizon", "-n", help="Number of steps.")],
    epsilon: Annotated[str, typer.Option("--epsilon", "-e", help="Privacy budget, such as 1, 0.1 or 1/3.")],
    objective: Annotated[str, typer.Option(help="max or mean: which squared error to make small.")] = "max",
    artifact: Annotated[
        list[str] | None, typer.Option(help="Artifact file to consider too; repeat the option for more.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Find a chain of artifacts (shipped and your own) with a small exact squared error.

    All chains are ranked by the sum of their levels' costs; of the most promising ones, the one with the
    least exact error is taken.
    """
    from trilift.arguments import number
    from trilift.lift.checks import finite
    from trilift.output import print_json, print_pairs, print_table

    budget = finite("epsilon", number("epsilon", epsilon, above=0), above=0)
    record = plan_record(best_plan(horizon, objective=objective, files=artifact or []), budget)
    if json:
        print_json(record)
        return
    levels = [[level["name"], str(level["size"]), f"{level['scale']:.6g}"] for level in record["levels"]]
    title = f"Chain for {horizon} steps at epsilon {epsilon}, objective {objective} (finest level first)"
    print_table(title, ["name", "size", "noise scale"], levels)
    print_pairs(
        {
            "MaxSE": f"{record['max_se']:.6g} (sd {record['max_se'] ** 0.5:.6g}; "
            f"additive bound {record['bound_max_se']:.6g})",
            "MeanSE": f"{record['mean_se']:.6g} (sd {record['mean_se'] ** 0.5:.6g}; "
            f"additive bound {record['bound_mean_se']:.6g})",
            "kappa max": _kappa(record["kappa_max"]),
            "kappa mean": _kappa(record["kappa_mean"]),
        }
    )
    print_pairs({"use": _use(horizon, epsilon, objective, record)})


def _kappa(value: float | None) -> str:
    return "undefined for one step" if value is None else f"{value:.6f}"


def _use(horizon: int, epsilon: str, objective: str, record: dict[str, Any]) -> str:
    chain = " ".join(f"--chain {level['name']}" for level in record["levels"])
    return f"trilift count FILE --epsilon {epsilon} --horizon {horizon} --objective {objective} {chain}"


def best_plan(horizon: int, *, objective: str, files: Sequence[str] = ()) -> Plan:
    """Return the best chain of the whole catalogue and the given files for a horizon, by exact cost.

    Nothing is planned with that is not proved: given files are proved at once, your own of the catalogue
    when a plan would use them. Those that fail are left out with a warning.

    Raises:
        CertificateError: a claim of a given file is false.
        ParameterError, HorizonError: as :func:`trilift.lift.plan`.
    """
    from trilift.arguments import artifact_path
    from trilift.artifacts import load
    from trilift.lift import plan
    from trilift.verify import refutation, require_proof

    stages, paths = _catalogued()
    for file in files:
        path = paths.get(file) or artifact_path(file)
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


def _catalogued() -> tuple[dict[str, Stage], dict[str, Path]]:
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
    from trilift.lift.checks import finite

    cost = found.cost
    scales = [finite("scale", scale / epsilon, above=0) for scale in cost.scales.tolist()]
    levels = zip(found.names, found.chain.sizes, scales, strict=True)
    errors = {
        "max_se": cost.max_se(epsilon),
        "mean_se": cost.mean_se(epsilon),
        "bound_max_se": cost.bound_max_se(epsilon),
        "bound_mean_se": cost.bound_mean_se(epsilon),
    }
    errors = {name: finite(name, value, above=0) for name, value in errors.items()}
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
