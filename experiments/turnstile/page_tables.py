"""Tables of docs/turnstile-results.md, from measured points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trilift.experiments.turnstile.reference import RHOS

__all__ = [
    "by_budget",
    "coverage_table",
    "find",
    "number",
    "power",
    "pure_table",
    "runs_words",
    "speed_table",
    "streams_table",
    "table",
]

_STREAMED = ("A2 centred", "A2g centred", "A2g closer", "A2g few-heavy", "A3s centred", "hybrid")
_LABELS = {
    "A2 source split": "A2, the paper's split, strong threshold",
    "A2": "A2, split by the table, weak threshold",
    "A2 centred": "– centred",
    "A2g": "A2g raw",
    "A2g centred": "– centred",
    "A2g closer": "– centred, closer (the default)",
    "A2g few-heavy": "A2g, few-heavy",
    "A3s": "A3s raw",
    "A3s centred": "A3s centred",
    "hybrid": "hybrid, centred",
    "additive": "recomputation, E (half budget)",
    "A4 raw": "A4 raw",
    "A4": "– noise subtracted",
}


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [list(header), ["---"] * len(header), *[list(row) for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def number(value: float | None) -> str:
    """Three digits, or all of a whole number below 10^5."""
    if value is None:
        return "none"
    if value >= 1e5:
        return f"{value:.2g}"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def power(steps: int) -> str:
    """Return a power of ten as text."""
    return f"10^{len(str(steps)) - 1}"


def find(points: Sequence[dict[str, Any]], **wanted: Any) -> dict[str, Any] | None:
    """Return the first point with these values, or None."""
    return next((p for p in points if all(p.get(key) == value for key, value in wanted.items())), None)


def by_budget(points: Sequence[dict[str, Any]], names: Sequence[str], *, stream: str, key: str) -> str:
    """A row an estimator, a column a rho, with T = 10^4 / 10^5 in a cell."""
    horizons = sorted({p["T"] for p in points})
    rows = []
    for name in names:
        cells = []
        for rho in RHOS:
            found = [find(points, estimator=name, stream=stream, T=steps, rho=rho) for steps in horizons]
            cells.append(" / ".join("" if p is None else number(p[key]) for p in found))
        if any(cell.strip(" /") for cell in cells):
            rows.append([_LABELS.get(name, name), *cells])
    return table(["", *[f"ρ = {rho:g}" for rho in RHOS]], rows)


def streams_table(points: Sequence[dict[str, Any]], *, steps: int, rho: float) -> str:
    """A row a stream, a column an estimator: factor, and the ratio that 95 % of the steps keep within."""
    own = [p for p in points if p["T"] == steps and p.get("rho") == rho]
    streams = list(dict.fromkeys(p["stream"] for p in own if p["estimator"] == "A2g"))
    rows = []
    for stream in streams:
        cells = []
        for name in _STREAMED:
            point = find(own, estimator=name, stream=stream)
            cells.append("" if point is None else f"{number(point['factor'])} ({number(point['ratio_95'])})")
        additive = find(own, estimator="additive", stream=stream)
        cells.append("" if additive is None else number(additive["largest_error"]))
        rows.append([stream, *cells])
    return table(["stream", *_STREAMED, "recomputation: largest error"], rows)


def coverage_table(points: Sequence[dict[str, Any]]) -> tuple[str, int]:
    """Return the table of misses, and the most that a point has."""
    rows = []
    worst = 0
    kinds = dict.fromkeys((p["base"], "rho" if "rho" in p else "epsilon", p["T"]) for p in points)
    for base, law, steps in kinds:
        own = [
            p
            for p in points
            if (p["base"], p["T"]) == (base, steps) and law in p and p["coverage_misses"] is not None
        ]
        for name in dict.fromkeys(p["estimator"] for p in own):
            some = [p for p in own if p["estimator"] == name]
            if name in ("A2 centred", "A2g centred", "A2g closer", "A2g few-heavy", "A3s centred"):
                continue  # the same intervals
            most = max(p["coverage_misses"] for p in some)
            worst = max(worst, most)
            runs = {p["runs"] for p in some}
            checks = sum(p["runs"] for p in some)
            total = sum(p["coverage_misses"] for p in some)
            label = f"{base}, {'ρ' if law == 'rho' else 'ε'}, T = {power(steps)}"
            rows.append([label, name, str(max(runs)), str(most), f"{total} of {checks}"])
    header = ["noise", "intervals of", "runs", "most misses at one stream and budget", "all"]
    return table(header, rows), worst


def pure_table(points: Sequence[dict[str, Any]]) -> str:
    """Figures for pure epsilon."""
    horizons = sorted({p["T"] for p in points})
    own = [p for p in points if "epsilon" in p and p["stream"] in ("unit", "heavy rotation", "heavy element")]
    rows = []
    for name in dict.fromkeys(p["estimator"] for p in own):
        for stream in ("unit", "heavy rotation", "heavy element"):
            some = [p for p in own if (p["estimator"], p["stream"]) == (name, stream)]
            if not some:
                continue
            cells = [name, stream]
            for steps in horizons:
                point = find(some, T=steps)
                if point is None:
                    cells += ["", ""]
                elif name.startswith("A4"):
                    cells += [f"β = {number(point['additive'])}", ""]
                else:
                    cells += [number(point["factor"]), number(point["ratio_95"])]
            rows.append(cells)
    header = ["estimator", "stream"]
    for steps in horizons:
        header += [f"T = {power(steps)}: factor", "95 %"]
    return table(header, rows)


def speed_table(rows: Sequence[dict[str, Any]]) -> str:
    """A row a measured rate."""
    cells = [
        [
            r["estimator"],
            f"ρ = {r['rho']:g}" if "rho" in r else f"ε = {r['epsilon']:g}",
            power(r["T"]),
            str(r["every"]),
            f"{r['updates_per_s']:,}",
            str(r["grown_mb"]),
        ]
        for r in rows
    ]
    header = ["estimator", "budget", "T", "read every", "updates a second", "memory grown, MB"]
    return table(header, cells)


def runs_words(points: Sequence[dict[str, Any]], estimator: str) -> str:
    """Say how many runs there are of each horizon."""
    counts = {p["T"]: p["runs"] for p in points if p["estimator"] == estimator}
    return ", ".join(f"{runs} at T = {power(steps)}" for steps, runs in sorted(counts.items()))
