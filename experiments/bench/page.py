"""The peers' part of docs/results.md, made from docs/measurements/bench.json."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trilift.lift.errors import ParameterError

__all__ = ["RECORD", "load_record", "save_record", "section", "shown_rows"]

RECORD = "bench.json"


def save_record(record: Mapping[str, Any], path: Path) -> Path:
    """Write a record of :func:`trilift.experiments.bench.run.measure`; return its path.

    Raises:
        OSError: the file cannot be written.
    """
    path.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return path


def load_record(path: Path) -> dict[str, Any]:
    """Read a record.

    Raises:
        OSError: the file cannot be read.
        ParameterError: it is no record.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        record = None
    if not isinstance(record, dict) or not {"rows", "ratios", "optimisers", "missing"} <= record.keys():
        raise ParameterError(f"{path.name} is no record of trilift bench")
    return record


def _power(n: int) -> str:
    return f"2^{n.bit_length() - 1}" if n & (n - 1) == 0 else f"{n}"


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}" if value < 20 else f"{value:.0f}"


def shown_rows(record: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the table that ``trilift bench`` prints."""
    header = ["n", "tool", "mechanism", "max_se", "mean_se", "released/s"]
    rows = [
        [
            _power(row["n"]),
            f"{row['tool']} {row['version']}",
            row["mechanism"],
            _figure(row["max_se"]),
            _figure(row["mean_se"]),
            _figure(row["released_per_s"]),
        ]
        for row in sorted(record["rows"], key=lambda row: int(row["n"]))
    ]
    return header, rows


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    rule = ["---"] * left + ["---:"] * (len(header) - left)
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, rule, *rows])


def _horizons(record: Mapping[str, Any]) -> list[int]:
    return sorted({int(row["n"]) for row in record["rows"]})


def _errors(record: Mapping[str, Any], n: int, privacy: str) -> str:
    """Return the table of one horizon: errors, how many times ours, by theory too, and speed."""
    header = ["tool", "mechanism", "max", "mean", "max/ours", "theory", "mean/ours", "theory", "released/s"]
    if privacy == "gaussian":
        header = ["tool", "mechanism", "max", "mean", "max/ours", "mean/ours", "released/s"]
    by_name = {(entry["tool"], entry["mechanism"], entry["n"]): entry for entry in record["ratios"]}
    rows = []
    for row in record["rows"]:
        if row["n"] != n or row["privacy"] != privacy:
            continue
        entry = by_name.get((row["tool"], row["mechanism"], n), {})
        cells = [
            row["tool"],
            row["mechanism"] + ("" if row["causal"] else " *"),
            _figure(row["max_se"]),
            _figure(row["mean_se"]),
        ]
        for name in ("max", "mean"):
            cells.append(_times(entry.get(name)))
            if privacy == "pure":
                cells.append(_times(entry.get(f"theory_{name}")))
        rows.append([*cells, _figure(row["released_per_s"])])
    return _table(header, rows, 2)


def _speeds(record: Mapping[str, Any]) -> str:
    """Return the table of our speed over theirs."""
    entries = [entry for entry in record["ratios"] if entry["speed"] is not None]
    names = dict.fromkeys(
        (entry["tool"], entry["mechanism"].split(",")[0].lstrip("0123456789").removeprefix("-ary "))
        for entry in entries
    )
    rows = []
    for tool, short in names:
        cells = []
        for n in _horizons(record):
            found = [
                entry
                for entry in entries
                if entry["n"] == n
                and entry["tool"] == tool
                and entry["mechanism"].split(",")[0].lstrip("0123456789").removeprefix("-ary ") == short
            ]
            cells.append(_times(min((entry["speed"] for entry in found), default=None)))
        noise = next(entry["noise"] for entry in entries if entry["tool"] == tool)
        rows.append([tool, short, noise, *cells])
    header = ["tool", "mechanism", "noise", *[f"n = {_power(n)}" for n in _horizons(record)]]
    return _table(header, rows, 3)


def _optimisers(record: Mapping[str, Any]) -> str:
    rows = [
        [entry["tool"], entry["what"], _power(entry["n"]), f"{entry['value']:.4f}", f"{entry['seconds']:.2f}"]
        for entry in sorted(
            record["optimisers"], key=lambda entry: (entry["what"], entry["n"], entry["tool"])
        )
    ]
    header = ["tool", "objective", "n", "squared error per unit of noise", "seconds"]
    return _table(header, rows, 2)


def _verdict(record: Mapping[str, Any]) -> str:
    """Say in one paragraph what the record shows: least ratios over all pure peers."""
    pure = [entry for entry in record["ratios"] if entry["privacy"] == "pure"]
    lines = []
    for n in _horizons(record):
        least = [
            min(entry[name] for entry in pure if entry["n"] == n and entry[name] is not None)
            for name in ("max", "mean", "max_default", "mean_default")
        ]
        lines.append(
            f"- n = {_power(n)}: the best peer has {least[0]:.2f} times our largest squared error and "
            f"{least[1]:.2f} times our mean one; against the counter as it comes, {least[2]:.2f} and "
            f"{least[3]:.2f} times."
        )
    exact = [e for e in pure if e["noise"] == "exact" and e["speed"] is not None]
    if exact:
        lines.append(
            f"- Released steps a second (one core, compiled kernels): at least "
            f"{min(e['speed'] for e in exact):.1f} times those of every peer with exact noise."
        )
    samplers = [e for e in record["ratios"] if e["privacy"] == "none" and e["speed"] is not None]
    if samplers:
        shown = ", ".join(f"{e['speed']:.1f} (n = {_power(e['n'])})" for e in samplers)
        lines.append(
            f"- Our released steps a second over samples a second of OpenDP's exact vector sampler: {shown}. "
            "A released step of ours is a sum of many exact draws."
        )
    return "\n".join(lines)


def _check(record: Mapping[str, Any]) -> str:
    """Say how the runs of OpenDP's consistent tree agree with the weights of least squares."""
    parts = []
    for row in record["rows"]:
        squares = row.get("mean_squares", [])
        if row["tool"] == "OpenDP" and not row["causal"] and squares:
            mean = sum(squares) / len(squares)
            parts.append(f"{mean / row['mean_se']:.2f} at n = {_power(row['n'])} ({len(squares)} runs)")
    return ", ".join(parts)


def section(record: Mapping[str, Any]) -> str:
    """Return the section of docs/results.md, heading included, for a record."""
    parts = [
        f"""## Peers side by side

Made from `measurements/bench.json`, which `trilift bench --out docs` writes: one run, one machine, one core,
ε = {record["epsilon"]}, neighbours that differ in one input by 1. Every peer's figures come from its own code
in its own pinned environment, with the parameters that are best for it at each n. Errors are squared errors
of a released sum, exact: dpcrpy states its own; OpenDP's follow from the weights that its code applies (read
from it at n = 2^10; beyond, least squares, which these weights are) and the variance of its exact noise.
"Theory" is what closed forms, written down independently, say of the same ratio. Rates are medians of
{record["rounds"]} rounds, in which all tools are timed one after the other by processor time,
warming up left out (what takes ten seconds a call is timed in one round).

{_verdict(record)}

![Squared error against n, ours and the peers'](results-peers.png)"""
    ]
    if record["missing"]:
        why = "; ".join(f"{entry['tool']}: {entry['why']}" for entry in record["missing"])
        parts.append(f"Missing in this run: {why}.")
    for n in _horizons(record):
        parts.append(f"### Pure differential privacy, n = {_power(n)}\n\n{_errors(record, n, 'pure')}")
    parts.append(
        f"""(*) All data at once: not a continual release. The mean squared errors of the timed runs of
OpenDP's consistent tree, divided by the exact ones: {_check(record)}. KTCR is made for Gaussian noise:
its method for the l1 sensitivity raises an error in this version, so it is taken with equal budgets, of
which the sensitivity is known, and with its own least variances. AuBCR has weights optimised numerically
and no closed form here. The averaged tree has no package: its cost is exact, its speed is not measured;
"averaged chain" is its relative that streams here. [fast] and [plain] are our counter with compiled kernels
and without.

### Speed

Our released steps a second (the counter as it comes, compiled kernels) divided by theirs; for the sampler, by
its samples a second, which are no released sums.

{_speeds(record)}"""
    )
    if any(row["privacy"] == "gaussian" and row["tool"] != "trilift" for row in record["rows"]):
        tables = "\n\n".join(
            f"n = {_power(n)}:\n\n{_errors(record, n, 'gaussian')}" for n in _horizons(record)
        )
        parts.append(
            f"""### Gaussian noise at ε = {record["epsilon"]}, δ = {record["delta"]}

jax_privacy's noise is in floats, with σ = {record["sigma"]:.4f} for sensitivity 1 by its accounting; ours is
exact.

{tables}"""
        )
    if record["optimisers"]:
        parts.append(
            f"""### Time to a solution

Processor seconds of jax_privacy's optimisers, compilation included, and of our search under the l2 norm:

{_optimisers(record)}"""
        )
    return "\n\n".join(parts)
