"""``trilift bench``: error and speed of trilift and of its peers in one run, on one machine, one core each.

Errors are computed once. Speeds are measured in several rounds, in each of which every tool is timed after
the other; a rate is the median over the rounds, and a ratio of speeds the median of the ratios of the rounds.
Times are processor times, so that other work on the machine counts less; warming up is left out for all.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from trilift.experiments.bench.environments import PeerError, ask, default_folder, prepare, script
from trilift.experiments.bench.rows import (
    Ask,
    Line,
    dpcrpy_lines,
    jax_lines,
    opendp_lines,
    our_command,
    our_lines,
)

__all__ = ["HORIZONS", "TOOLS", "measure", "ratios"]

HORIZONS = (2**10, 2**16, 2**20)
TOOLS = ("trilift", "dpcrpy", "opendp", "jax_privacy")
DENSE = (64, 256)
"""Sizes at which the optimisers of dense factorisations are timed."""

_EPSILON, _DELTA = 1, "1e-6"
_TIMEOUT = 3600.0
_WEIGHTS_UP_TO = 1 << 10

Tell = Callable[[str], None]


def _silent(_: str) -> None:
    """Say nothing."""


def measure(
    *,
    horizons: Sequence[int] = HORIZONS,
    tools: Sequence[str] = TOOLS,
    environments: Path | None = None,
    rounds: int = 3,
    seconds: float = 0.3,
    optimisers: bool = True,
    tell: Tell = _silent,
) -> dict[str, Any]:
    """Return the record of one run: "rows", "ratios", "optimisers", "missing", and the conditions.

    Args:
        horizons: numbers of steps n.
        tools: which of :data:`TOOLS`.
        environments: folder for the peers' environments; by default in the user's cache.
        rounds: how often all speeds are measured.
        seconds: at least, for each speed in a round.
        optimisers: time the optimisers of dense factorisations too.
        tell: told what is done.

    A peer that cannot be installed, or whose code fails, has no rows and a line in "missing".
    """
    folder = default_folder() if environments is None else environments
    lines: list[tuple[Ask, Line]] = []
    missing: list[dict[str, str]] = []
    timed: list[dict[str, Any]] = []
    sigma: float | None = None
    for tool in tools:
        tell(f"{tool}: errors")
        try:
            send = _sender(tool, folder)
            if tool == "jax_privacy":
                sigma = send([{"do": "sigma", "epsilon": _EPSILON, "delta": float(_DELTA)}])["answers"][0]
                kept = prepare(tool, folder).parent.parent / "optimised.json"
                blts = {n: _kept(kept, f"blt-{n}", {"do": "optimise", "n": n}, send, tell) for n in horizons}
                made = [
                    line
                    for n in horizons
                    for line in jax_lines(n, send, seconds=seconds, blt=blts[n], sigma_sq=sigma**2)
                ]
                timed += [{"tool": tool, "what": "BLT, worst step", **_optimised(blts[n])} for n in horizons]
                if optimisers:
                    dense = {n: _kept(kept, f"dense-{n}", {"do": "dense", "n": n}, send, tell) for n in DENSE}
                    timed += [{"tool": tool, "what": "dense, mean", **_optimised(dense[n])} for n in DENSE]
            else:
                make = _MAKERS[tool]
                made = [line for n in horizons for line in make(n, send, seconds=seconds)]
                if tool == "trilift" and optimisers:
                    found = send([{"do": "optimise", "n": n} for n in DENSE])["answers"]
                    timed += [{"tool": tool, "what": "dense, mean", **_optimised(one)} for one in found]
        except PeerError as error:
            missing.append({"tool": tool, "why": str(error)})
            tell(f"{tool}: left out: {error}")
            continue
        lines += [(send, line) for line in made]
    for number in range(rounds):
        tell(f"speeds, round {number + 1} of {rounds}")
        _time(lines, number, missing)
    rows = [line.finished() for _, line in lines]
    return {
        "epsilon": _EPSILON,
        "delta": _DELTA,
        "neighbours": "one input changed by 1",
        "sigma": sigma,
        "machine": f"{platform.machine()}, one core, processor time",
        "python": platform.python_version(),
        "rounds": rounds,
        "rows": rows,
        "ratios": ratios([line for _, line in lines]),
        "optimisers": timed,
        "missing": missing,
    }


_MAKERS: dict[str, Callable[..., list[Line]]] = {
    "trilift": our_lines,
    "dpcrpy": dpcrpy_lines,
    "opendp": partial(opendp_lines, weights_up_to=_WEIGHTS_UP_TO),
}


def _sender(tool: str, folder: Path) -> Ask:
    command = our_command() if tool == "trilift" else [str(prepare(tool, folder)), "-I", str(script(tool))]
    return partial(ask, command, timeout=_TIMEOUT)


def _kept(path: Path, name: str, request: Mapping[str, Any], send: Ask, tell: Tell) -> dict[str, Any]:
    """Return what an optimiser found: from an earlier run in the same environment, or found and kept now."""
    try:
        known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    if name not in known:
        tell(f"optimising {name} (kept for later runs)")
        known[name] = send([request])["answers"][0]
        path.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    found: dict[str, Any] = known[name]
    return found


def _optimised(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in ("n", "value", "seconds")}


def _time(lines: Sequence[tuple[Ask, Line]], number: int, missing: list[dict[str, str]]) -> None:
    """Measure the speeds of one round; the lines of one tool are asked in one process."""
    senders: dict[int, tuple[Ask, list[Line]]] = {}
    for send, line in lines:
        if line.speed is not None and (number == 0 or not line.once):
            senders.setdefault(id(send), (send, []))[1].append(line)
    for send, asked in senders.values():
        try:
            answers = send([line.speed or {} for line in asked])["answers"]
        except PeerError as error:
            missing.append({"tool": asked[0].row["tool"], "why": f"speeds of a round: {error}"})
            continue
        for line, answer in zip(asked, answers, strict=True):
            if isinstance(answer, dict):
                line.row.setdefault("mean_squares", []).extend(answer["squares"])
                answer = answer["rate"]
            line.rates.append(float(answer))


def _ours(lines: Sequence[Line], n: int, kind: str, objective: str) -> Line | None:
    for line in lines:
        row = line.row
        if row["n"] == n and row.get("kind") == kind and row["best_for"] == objective:
            return line  # "fast" comes before "plain"
    return None


def ratios(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Return, for every peer's row, how many times our error and how much of our speed it has.

    "max" and "mean" are its squared errors divided by ours, of the best chain for that error; "max_default"
    and "mean_default" by those of the counter as it comes. "theory_max" and "theory_mean" are "max" and
    "mean" with what theory says of the peer. "speed" is our released steps a second (the counter as it comes,
    compiled kernels) divided by its own, the median over the rounds. What is not known is None.
    """
    found = []
    for line in lines:
        row = line.row
        if row["tool"] == "trilift":
            continue
        default, best = ("gaussian", "gaussian-best") if row["privacy"] == "gaussian" else ("default", "best")
        entry: dict[str, Any] = {name: row[name] for name in ("tool", "mechanism", "n", "privacy", "noise")}
        for objective in ("max", "mean"):
            name = f"{objective}_se"
            ours = _ours(lines, row["n"], best, objective)
            entry[objective] = _over(row[name], ours, name)
            entry[f"theory_{objective}"] = _over(row[f"theory_{name}"], ours, name)
            ours = _ours(lines, row["n"], default, objective)
            entry[f"{objective}_default"] = _over(row[name], ours, name)
        ours = _ours(lines, row["n"], default, "max")
        pairs = list(zip(ours.rates, line.rates, strict=False)) if ours is not None else []
        entry["speed"] = median(mine / theirs for mine, theirs in pairs) if pairs else None
        found.append(entry)
    return found


def _over(theirs: float | None, ours: Line | None, name: str) -> float | None:
    return None if theirs is None or ours is None else theirs / float(ours.row[name])


def main() -> None:
    """Print the record of a whole run."""
    json.dump(measure(tell=lambda text: print(text, file=sys.stderr)), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
