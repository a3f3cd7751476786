"""``trilift plan``: the chain of artifacts with the least exact error at a horizon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from trilift.lift import Plan

__all__ = ["NAME", "best_plan", "command", "plan_record"]

NAME = "plan"

"""More steps than anybody counts; the search among chains would take minutes."""


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
    """Find the chain of artifacts (shipped and your own) with the least exact squared error."""
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
    """Return the best chain of the whole catalogue and the given files for a horizon, by exact cost."""
    from trilift.arguments import artifact_path
    from trilift.artifacts import catalogue, load_stage
    from trilift.lift import plan

    names = [entry.name for entry in catalogue()]
    names += [str(artifact_path(file)) for file in files if file not in names]
    return plan({name: load_stage(name) for name in names}, horizon, objective=objective)


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
