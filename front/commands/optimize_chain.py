"""``trilift optimize chain``: move all levels of a chain together for one horizon, and certify the result."""

from __future__ import annotations

import shlex
import signal
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from trilift.artifacts import Provenance
    from trilift.factorize.joint_chain import ChainSearchResult
    from trilift.lift import Chain

__all__ = ["NAME", "command"]

NAME = "chain"


def command(
    *,
    horizon: Annotated[str, typer.Option("--horizon", "-n", metavar="N", help="Number of steps.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write the chain to, a new one.")],
    objective: Annotated[str, typer.Option(help="max or mean: which squared error to make small.")] = "max",
    chain: Annotated[
        list[str] | None,
        typer.Option(
            help="Artifact to start from, finest first, the top last; repeat the option. (default: the plan)"
        ),
    ] = None,
    steps: Annotated[int, typer.Option(help="Steps of the search.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the perturbation.")] = 0,
    spread: Annotated[
        float, typer.Option(help="Perturbation of the start, in units of its mean entry.")
    ] = 0.0,
    dilation: Annotated[
        int, typer.Option(help="By how many neighbours the entries that may move are widened.")
    ] = 0,
    seconds: Annotated[float | None, typer.Option(help="Stop the search after so long.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Move all levels of a chain together towards a smaller exact error at one horizon.

    The folder gets level-0.npz, level-1.npz, ..., top.npz, each a certified artifact of its own, and
    chain.json: exact charges, scales and row norms. There is no checkpoint.
    """
    from trilift.arguments import new_file, whole
    from trilift.factorize.joint_chain import search_chain
    from trilift.factorize.result import SearchStatus
    from trilift.lift.errors import ParameterError
    from trilift.output import note
    from trilift.signals import last_signal

    n = whole("horizon", horizon)
    new_file("--out", out)
    start = _start(n, objective, chain or [])
    note(f"Starting from {' / '.join(start.names)}.")
    with last_signal() as stopped_by:
        result = search_chain(
            start.chain,
            horizon=n,
            objective=objective,
            steps=steps,
            seed=seed,
            spread=spread,
            dilation=dilation,
            seconds=seconds,
        )
        number = stopped_by()
    if result.status is SearchStatus.INTERRUPTED:
        note(f"trilift: stopped at step {result.steps} of {steps}; nothing was written")
        raise typer.Exit(128 + (signal.SIGINT if number is None else number))
    if result.status is SearchStatus.DIVERGED and not result.cost < result.start_cost:
        raise ParameterError("the search ran into NaN or infinity before it found anything better")
    _report(_write(result, start, out), result, out, json)


@dataclass(frozen=True)
class _Start:
    names: tuple[str, ...]
    chain: Chain


def _start(horizon: int, objective: str, names: list[str]) -> _Start:
    """Return the chain to start from: the one given, or the planner's best of the catalogue."""
    from trilift.arguments import artifact_path
    from trilift.artifacts import load
    from trilift.commands.plan import best_plan
    from trilift.lift import Chain
    from trilift.verify import require_proof

    if not names:
        found = best_plan(horizon, objective=objective)
        return _Start(found.names, found.chain)
    paths = [artifact_path(name) for name in names]
    for path in paths:
        require_proof(path)
    levels = [load(path).stage for path in paths]
    return _Start(tuple(names), Chain(levels[-1], levels[:-1]))


def _write(result: ChainSearchResult, start: _Start, out: Path) -> dict[str, Any]:
    """Certify the levels and write them; return what chain.json says.

    Raises:
        CertificateError: completion to exact numbers loses too much.
    """
    from trilift.verify.chains import build_chain, write_chain

    provenance = [_provenance(result, start, level.size) for level in result.chain.levels]
    artifacts = build_chain(result.chain, objective=result.objective, provenance=provenance)
    out.mkdir()
    return write_chain(
        out,
        artifacts,
        horizon=result.horizon,
        objective=result.objective,
        start=list(start.names),
        start_se=result.start_cost,
        found_se=result.cost,
    )


def _provenance(result: ChainSearchResult, start: _Start, size: int) -> Provenance:
    from trilift.artifacts import Provenance

    return Provenance(
        objective=result.objective,
        size=size,
        seed=result.seed,
        steps=result.steps,
        versions=result.versions,
        date=datetime.now(UTC).date().isoformat(),
        method=f"all levels of a chain moved together for {result.horizon} steps (Adam, annealed smoothing)",
        notes=f"from {' / '.join(start.names)}; spread {result.spread}, dilation {result.dilation}",
    )


def _report(claims: dict[str, Any], result: ChainSearchResult, out: Path, json: bool) -> None:
    from trilift.output import note, print_json, print_pairs

    se = 2.0 * float(claims[f"{result.objective}_row_norm_sq"])
    record = {
        "path": str(out),
        "horizon": result.horizon,
        "objective": result.objective,
        "start": claims["start"],
        "levels": [{**level, "file": str(out / level["file"])} for level in claims["levels"]],
        "start_se": result.start_cost,
        "se": se,
        "charges": claims["charges"],
        "scales": claims["scales"],
        "max_row_norm_sq": claims["max_row_norm_sq"],
        "mean_row_norm_sq": claims["mean_row_norm_sq"],
        "status": result.status.value,
        "steps": result.steps,
        "seconds": round(result.seconds, 3),
    }
    if not se < result.start_cost:
        note("trilift: nothing better than the start was found; the start's levels may serve as well")
    if json:
        print_json(record)
        return
    options = " ".join(f"--chain {shlex.quote(level['file'])}" for level in record["levels"])
    name = "MaxSE" if result.objective == "max" else "MeanSE"
    print_pairs(
        {
            "levels": " / ".join(level["name"] for level in record["levels"]),
            f"{name} at epsilon 1": f"{se:.6g} (start {result.start_cost:.6g})",
            "steps": f"{result.steps}, {result.status.value}",
            "use": f"trilift count FILE --epsilon E --horizon {result.horizon} "
            f"--objective {result.objective} {options}",
        }
    )
    note(f"Certified. {out} goes straight into trilift certify, its files into count --chain.")
