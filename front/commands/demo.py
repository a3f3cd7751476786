"""``trilift demo``: search, prove, lift and count privately, on a year of real flights."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import numpy as np
    from trilift.counters import Counter
    from trilift.experiments.flights import Accuracy, Flights

__all__ = ["NAME", "command"]

NAME = "demo"

_SIZE, _STEPS, _STARTS, _SEED = 9, 1000, 8, 0
_OBJECTIVE = "max"
_STAGE = "demo-stage.npz"
_PICTURE = "flights.png"
_COLUMNS = """\
sd is the standard deviation of the value released there, all at the same epsilon: by the stage found
just now, by the shipped chain (found by longer searches, and more precise), by the averaged 17-ary
tree, and by the binary tree."""


def command(
    *,
    out: Annotated[Path, typer.Option(help="Folder for the artifact and the picture.")] = Path("demo-output"),
    epsilon: Annotated[str, typer.Option("--epsilon", "-e", help="Privacy budget of the count.")] = "1",
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Find a stage in seconds, prove it, and count the late flights of a year with it.

    The count is a real one: true noise under a fresh key. The flights are public data, so that released
    values can be shown beside true ones; with data that need protection nobody would print those.
    """
    from trilift.arguments import number
    from trilift.experiments.figures import new_figure
    from trilift.experiments.flights import load_flights
    from trilift.lift.checks import finite
    from trilift.output import note, print_json

    exact = number("epsilon", epsilon, above=0)
    finite("epsilon", exact, above=0)
    new_figure(1.0, 1.0)  # both extras are looked for before anything takes time
    flights = load_flights()
    out.mkdir(parents=True, exist_ok=True)
    stage = out / _STAGE
    kappa, seconds = _found(stage)
    names = _lifted(stage, len(flights.late))
    counter, shipped = _counter(exact, flights, names), _counter(exact, flights, None)
    released = counter.extend(flights.late)
    accuracies = _accuracies(counter, shipped, float(exact), horizon=len(flights.late))
    record = _record(flights, released, accuracies, counter)
    record["search"] = {"size": _SIZE, "objective": _OBJECTIVE, "kappa_max": kappa, "seconds": seconds}
    _draw(flights, released, accuracies, out / _PICTURE, float(exact))
    if json:
        print_json(record)
    else:
        _show(record, counter)
    note(f"Written: {stage} (the certified stage) and {out / _PICTURE}")


def _found(path: Path) -> tuple[float, float]:
    """Search, complete, certify and save a small stage; prove the file again as anybody would."""
    from trilift.artifacts import save
    from trilift.commands.optimize import artifact_of
    from trilift.factorize import SearchStatus, search_stage
    from trilift.lift.errors import CertificateError
    from trilift.output import note
    from trilift.signals import last_signal
    from trilift.verify import verification_report

    note(
        f"1. Search: a stage of size {_SIZE}, {_STARTS} starts of {_STEPS} steps (some seconds, most of "
        "them for compilation)"
    )
    start = time.perf_counter()
    with last_signal() as stopped_by:
        result = search_stage(_SIZE, objective=_OBJECTIVE, seed=_SEED, steps=_STEPS, starts=_STARTS)
        number = stopped_by()
    seconds = time.perf_counter() - start
    if result.status is SearchStatus.INTERRUPTED:
        raise typer.Exit(128 + (signal.SIGINT if number is None else number))
    artifact = artifact_of(result)
    save(artifact, path)
    note("2. Prove: every claim about it, again from the saved file, in integers")
    report = verification_report(path)
    if not report["verified"]:
        raise CertificateError(report["failure"])
    note(f"   verified: kappa <= {report['kappa_max']:.6f}, sha256 {report['sha256'][:16]}...")
    return float(report["kappa_max"]), round(seconds, 3)


def _lifted(stage: Path, horizon: int) -> list[str]:
    """Plan the best chain of the new stage over a shipped top; return the names, finest first."""
    from trilift.artifacts import catalogue, load_stage
    from trilift.lift import plan
    from trilift.output import note

    tops = [entry.name for entry in catalogue() if entry.kind == "direct" and entry.source == "shipped"]
    names = [str(stage), *tops]
    found = plan({name: load_stage(name) for name in names}, horizon, objective=_OBJECTIVE)
    sizes = " x ".join(map(str, found.chain.sizes))
    note(f"3. Lift: {len(found.names)} levels of sizes {sizes} for {horizon:,} steps")
    return list(found.names)


def _counter(epsilon: Any, flights: Flights, names: list[str] | None) -> Counter:
    from trilift.counters import Counter
    from trilift.output import note

    if names is not None:
        note("4. Count: every flight is a step, and one flight is what is protected")
    return Counter(epsilon, horizon=len(flights.late), objective=_OBJECTIVE, chain=names)


def _accuracies(counter: Counter, shipped: Counter, epsilon: float, *, horizon: int) -> list[Accuracy]:
    """Return the exact accuracy of both trees, of the shipped chain, and last of the new one."""
    from trilift.experiments.flights import chain_accuracy, tree_accuracy
    from trilift.lift.tree_costs import averaged_kary_tree_cost, binary_tree_cost

    names = (binary_tree_cost, averaged_kary_tree_cost)
    trees = [cost(horizon, objective=_OBJECTIVE) for cost in names]
    chains = [("default shipped chain", shipped), ("stage found just now", counter)]
    return [tree_accuracy(cost, epsilon=epsilon) for cost in trees] + [
        chain_accuracy(name, one.setup.chain, scales=one.setup.ledger.scales, horizon=horizon)
        for name, one in chains
    ]


def _record(
    flights: Flights, released: np.ndarray[Any, Any], accuracies: list[Accuracy], counter: Counter
) -> dict[str, Any]:
    """Return everything that is shown, as JSON values."""
    import numpy as np

    true = np.cumsum(flights.late)
    ends = flights.month_ends()
    ours = accuracies[-1]
    steps = [
        {
            "step": int(t),
            "date": f"{flights.month[t - 1]:02d}-{flights.day[t - 1]:02d}",
            "true": int(true[t - 1]),
            "released": int(released[t - 1]),
            "sd": {a.name: float(a.step_sd[t - 1]) for a in accuracies},
        }
        for t in ends
    ]
    mechanisms = [
        {
            "name": a.name,
            "max_se": a.max_se,
            "mean_se": a.mean_se,
            "max_se_ratio": a.max_se / ours.max_se,
            "mean_se_ratio": a.mean_se / ours.mean_se,
        }
        for a in accuracies
    ]
    within = float(np.mean(np.abs(released - true) <= 2.0 * ours.step_sd))
    return {
        "flights": len(true),
        "late": int(true[-1]),
        "epsilon": float(counter.epsilon),
        "spent": float(counter.spent),
        "chain": [Path(name).name for name in counter.setup.names or ()],
        "steps": steps,
        "mechanisms": mechanisms,
        "share_within_two_sd": within,
    }


def _draw(flights: Flights, released: Any, accuracies: list[Accuracy], path: Path, epsilon: float) -> None:
    from trilift.experiments.flights_picture import draw_flights

    draw_flights(flights, released, accuracies, path, epsilon=epsilon)


def _show(record: dict[str, Any], counter: Counter) -> None:
    from trilift.output import print_table, write

    write("\n" + counter.privacy_statement() + "\n\n")
    names = [m["name"] for m in record["mechanisms"]]
    rows = [
        [
            f"{s['step']:,}",
            s["date"],
            f"{s['true']:,}",
            f"{s['released']:,}",
            f"{s['released'] - s['true']:+,}",
            *[f"{s['sd'][name]:.1f}" for name in reversed(names)],
        ]
        for s in record["steps"]
    ]
    short = ["sd: just now", "shipped", "17-ary", "binary"]
    columns = ["after flight", "date", "true", "released", "error", *short]
    title = (
        f"Late departures (more than 15 minutes) at the end of each month, epsilon = {record['epsilon']:g}"
    )
    print_table(title, columns, rows, left=())
    write(_COLUMNS + "\n\n")
    rows = [
        [
            m["name"],
            f"{m['max_se']:,.1f}",
            f"{m['max_se'] ** 0.5:.1f}",
            f"{m['max_se_ratio']:.2f}",
            f"{m['mean_se']:,.1f}",
            f"{m['mean_se'] ** 0.5:.1f}",
            f"{m['mean_se_ratio']:.2f}",
        ]
        for m in reversed(record["mechanisms"])
    ]
    columns = ["name", "MaxSE", "sd of worst step", "ratio", "MeanSE", "typical sd", "ratio "]
    print_table("Exact squared errors over the whole year, and their ratios to the first", columns, rows)
