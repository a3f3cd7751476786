"""The page docs/turnstile-results.md, from results that are kept in docs/measurements.

    trilift reproduce turnstile --T 100000 --runs 5 --seed 1 --out FOLDER  # and so on: see KEPT
    python -m trilift.experiments.turnstile.page --keep FOLDER --out docs  # take them into docs/measurements
    python -m trilift.experiments.turnstile.page --out docs                # write the page and its pictures

A test compares the page with what this makes, and repeats some of its points with fewer runs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trilift.experiments.edit.unreproduced import fill
from trilift.experiments.turnstile.reference import REPRODUCED, RHOS, TOLERANCE, compared
from trilift.lift.errors import ParameterError

__all__ = ["KEPT", "PICTURES", "SPEEDS", "keep", "load_points", "load_speeds", "page", "write_page"]

KEPT = {
    "turnstile-toeplitz-rho-10000": "turnstile_toeplitz_10000.json",
    "turnstile-toeplitz-rho-100000": "turnstile_toeplitz_100000.json",
    "turnstile-chain-rho-10000": "turnstile_chain_10000.json",
    "turnstile-chain-rho-100000": "turnstile_chain_100000.json",
    "turnstile-chain-epsilon-10000": "turnstile_pure_10000.json",
    "turnstile-chain-epsilon-100000": "turnstile_pure_100000.json",
}
"""Results of trilift reproduce turnstile and their files in docs/measurements."""

SPEEDS = "turnstile_speeds.json"

PICTURES = ("turnstile-factors.png", "turnstile-streams.png")

_UNIT = ("A2 source split", "A2", "A2 centred", "A2g", "A2g centred", "A2g closer", "A3s", "A3")
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


def keep(name: str, *, folder: Path, measurements: Path) -> Path:
    """Take a result into docs/measurements, a point a line.

    Args:
        name: from :data:`KEPT`.
        folder: what ``trilift reproduce turnstile --out`` wrote.
        measurements: the folder to write into.

    Raises:
        ParameterError: the folder does not have it.
        OSError: a file cannot be read or written.
    """
    source = folder / f"{name}.json"
    if not source.is_file():
        raise ParameterError(f"{source} is not there")
    result = json.loads(source.read_text(encoding="utf-8"))
    head = {key: value for key, value in result.items() if key not in ("points", "speeds")}
    lines = ",\n".join(json.dumps(point, ensure_ascii=False) for point in result["points"])
    path = measurements / KEPT[name]
    path.write_text(f'{json.dumps(head)[:-1]}, "points": [\n{lines}\n]}}\n', encoding="utf-8")
    return path


def load_points(measurements: Path, *, start: str = "turnstile_") -> list[dict[str, Any]]:
    """Return the kept points of all files whose names start so.

    Raises:
        ParameterError: a file that is not there.
    """
    points: list[dict[str, Any]] = []
    for file in KEPT.values():
        if not file.startswith(start):
            continue
        path = measurements / file
        if not path.is_file():
            raise ParameterError(f"{path} is not there: see the text of trilift.experiments.turnstile.page")
        points += json.loads(path.read_text(encoding="utf-8"))["points"]
    return points


def load_speeds(measurements: Path) -> list[dict[str, Any]]:
    """Return the kept speeds.

    Raises:
        ParameterError: they are not there.
    """
    path = measurements / SPEEDS
    if not path.is_file():
        raise ParameterError(f"{path} is not there: see the text of trilift.experiments.turnstile.speeds")
    return list(json.loads(path.read_text(encoding="utf-8"))["speeds"])


# -- tables -------------------------------------------------------------------------------------------


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [list(header), ["---"] * len(header), *[list(row) for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _number(value: float | None) -> str:
    """Three digits, or all of a whole number below 10^5."""
    if value is None:
        return "none"
    if value >= 1e5:
        return f"{value:.2g}"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _power(steps: int) -> str:
    return f"10^{len(str(steps)) - 1}"


def _find(points: Sequence[dict[str, Any]], **wanted: Any) -> dict[str, Any] | None:
    return next((p for p in points if all(p.get(key) == value for key, value in wanted.items())), None)


def _by_budget(points: Sequence[dict[str, Any]], names: Sequence[str], *, stream: str, key: str) -> str:
    """A row an estimator, a column a rho, with T = 10^4 / 10^5 in a cell."""
    horizons = sorted({p["T"] for p in points})
    rows = []
    for name in names:
        cells = []
        for rho in RHOS:
            found = [_find(points, estimator=name, stream=stream, T=steps, rho=rho) for steps in horizons]
            cells.append(" / ".join("" if p is None else _number(p[key]) for p in found))
        if any(cell.strip(" /") for cell in cells):
            rows.append([_LABELS.get(name, name), *cells])
    return _table(["", *[f"ρ = {rho:g}" for rho in RHOS]], rows)


def _comparison(points: list[dict[str, Any]]) -> str:
    """How far the figures are from the reference."""
    rows = []
    every = compared(points)
    for estimator, stream in dict.fromkeys((r["estimator"], r["stream"]) for r in every):
        own = [r for r in every if (r["estimator"], r["stream"]) == (estimator, stream)]
        cells = []
        for rho in RHOS:
            some = [r for r in own if r["rho"] == rho]
            cells.append(" / ".join(f"{100 * r['off']:+.0f} %" for r in some))
        rows.append([f"{estimator}, {stream}", *cells])
    return _table(["", *[f"ρ = {rho:g}" for rho in RHOS]], rows)


def _streams(points: Sequence[dict[str, Any]], *, steps: int, rho: float) -> str:
    own = [p for p in points if p["T"] == steps and p.get("rho") == rho]
    streams = list(dict.fromkeys(p["stream"] for p in own if p["estimator"] == "A2g"))
    rows = []
    for stream in streams:
        cells = []
        for name in _STREAMED:
            point = _find(own, estimator=name, stream=stream)
            cells.append(
                "" if point is None else f"{_number(point['factor'])} ({_number(point['ratio_95'])})"
            )
        additive = _find(own, estimator="additive", stream=stream)
        cells.append("" if additive is None else _number(additive["largest_error"]))
        rows.append([stream, *cells])
    return _table(["stream", *_STREAMED, "recomputation: largest error"], rows)


def _coverage(points: Sequence[dict[str, Any]]) -> tuple[str, int]:
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
            label = f"{base}, {'ρ' if law == 'rho' else 'ε'}, T = {_power(steps)}"
            rows.append([label, name, str(max(runs)), str(most), f"{total} of {checks}"])
    header = ["noise", "intervals of", "runs", "most misses at one stream and budget", "all"]
    return _table(header, rows), worst


def _pure(points: Sequence[dict[str, Any]]) -> str:
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
                point = _find(some, T=steps)
                if point is None:
                    cells += ["", ""]
                elif name.startswith("A4"):
                    cells += [f"β = {_number(point['additive'])}", ""]
                else:
                    cells += [_number(point["factor"]), _number(point["ratio_95"])]
            rows.append(cells)
    header = ["estimator", "stream"]
    for steps in horizons:
        header += [f"T = {_power(steps)}: factor", "95 %"]
    return _table(header, rows)


def _speed_table(rows: Sequence[dict[str, Any]]) -> str:
    cells = [
        [
            r["estimator"],
            f"ρ = {r['rho']:g}" if "rho" in r else f"ε = {r['epsilon']:g}",
            _power(r["T"]),
            str(r["every"]),
            f"{r['updates_per_s']:,}",
            str(r["grown_mb"]),
        ]
        for r in rows
    ]
    header = ["estimator", "budget", "T", "read every", "updates a second", "memory grown, MB"]
    return _table(header, cells)


def _farther(rows: Sequence[dict[str, Any]]) -> str:
    """Say which figures are not within the tolerance."""
    parts = []
    for r in rows:
        among = "among our runs" if r["among_runs"] else "not among our runs"
        where = f"{r['estimator']} at T = {_power(r['T'])}, ρ = {r['rho']:g}"
        parts.append(
            f"{where} deviates by {100 * r['off']:+.0f} %; runs differ, and the reference is {among}."
        )
    return " ".join(parts)


def _runs(points: Sequence[dict[str, Any]], estimator: str) -> str:
    counts = {p["T"]: p["runs"] for p in points if p["estimator"] == estimator}
    return ", ".join(f"{runs} at T = {_power(steps)}" for steps, runs in sorted(counts.items()))


# -- the page -----------------------------------------------------------------------------------------


def page(measurements: Path) -> str:
    """Return docs/turnstile-results.md.

    Args:
        measurements: the folder docs/measurements.

    Raises:
        ParameterError: a result that is not there.
    """
    toeplitz = load_points(measurements, start="turnstile_toeplitz")
    chain = load_points(measurements, start="turnstile_chain")
    pure = load_points(measurements, start="turnstile_pure")
    speed = load_speeds(measurements)
    coverage, worst = _coverage([*toeplitz, *chain, *pure])
    owed = [r for r in compared(toeplitz) if r["estimator"] in REPRODUCED]
    near = sum(abs(r["off"]) <= TOLERANCE for r in owed)
    far = [r for r in owed if abs(r["off"]) > TOLERANCE]

    def figure(name: str, stream: str, key: str) -> str:
        point = _find(toeplitz, estimator=name, stream=stream, T=10**5, rho=1.0)
        return "none" if point is None else _number(point[key])

    blocks = [
        "# Turnstile streams: results",
        """This page is made by `python -m trilift.experiments.turnstile.page --out docs` from the results in
        [measurements](measurements/README.md); a test compares it with what that command makes, and repeats
        some of its points. The command `trilift reproduce turnstile` makes the results.""",
        """A factor is the least α with estimate ≤ α D + β and D ≤ α estimate + β at **all** steps of a
        stream, β being 1 (A2), g (A2g, A3s), and times what the estimate is multiplied by if it is centred.
        Below, "95 %" is the ratio between estimate and truth, in either direction and with no β, that 95 % of
        the steps keep within. Figures are medians over runs. Over the Toeplitz root noise is simulated in
        floating point; over chains it is the exact noise of releases. All estimators of a run see the same
        noise, where they may, and hashes are ideal. No parameter is fitted to a stream; but the margin of the
        "closer" estimate (4 standard deviations, 4 levels) was settled with the unit stream at hand, and the
        rule of the few-heavy option with the heavy rotation.""",
        "## Distinct items: insert all, remove all",
        f"""T/2 distinct items are inserted and removed, T = 10^4 / 10^5. Toeplitz root, simulated; runs:
        {_runs(toeplitz, "A2g")}.""",
        _by_budget(toeplitz, _UNIT, stream="unit", key="factor"),
        f"""The default ("closer") moves the centred estimate to where sums and scatter of the same noisy
        counters allow it to be. At T = 10^5, ρ = 1 the centred factor is
        {figure("A2g centred", "unit", "factor")}, the default's {figure("A2g closer", "unit", "factor")};
        on the heavy rotation the few-heavy option keeps within {
            figure("A2g few-heavy", "heavy rotation", "ratio_95")
        } at 95 % of the steps.""",
        "![Factors against rho](turnstile-factors.png)",
        "The same over certified chains, one run, with exact noise (A3 is read over the Toeplitz root only):",
        _by_budget(chain, (*_UNIT[:-1], "hybrid"), stream="unit", key="factor"),
        "## Second moment",
        """What errors leave beyond 0.625 F2 at all steps, same stream, Toeplitz root and chains. "Raw" is the
        paper's estimate, which keeps the noise's own second moment.""",
        _by_budget(toeplitz, ("A4 raw", "A4"), stream="unit", key="additive"),
        _by_budget(chain, ("A4 raw", "A4"), stream="unit", key="additive"),
        f"""The exact sketch itself (m rows for α = 0.5) was off by at most
        {100 * max(p["sketch_error"] for p in toeplitz if p["estimator"] == "A4"):.0f} % in any run on any
        stream.""",
        "## Recomputation",
        """E, what recomputing D now and then is off by at most, at half of the budget; the hybrid has it
        where D is large.""",
        _by_budget(toeplitz, ("additive",), stream="unit", key="additive"),
        "## Against the reference",
        f"""Deviations of our medians from an independent simulation of one seed (T = 10^4 / 10^5). For A2,
        A2g, A4 and the recomputation {near} of {len(owed)} are within 30 %. {_farther(far)}
        A3s has g = 39 and 47 groups here, which its
        failure probability needs, in place of 29 and 35: where nothing is detected it shows the least answer
        g. A3 is read at three steps only.""",
        _comparison(toeplitz),
        "## All streams",
        """Least factor, and in parentheses the 95 % ratio, at T = 10^5, ρ = 1, Toeplitz root. A least factor
        near 1 beside a large β says little: at D below β anything is allowed. Streams: *heavy element*, one
        item T times; *heavy rotation*, 23 items inserted 2000 times each and removed; *flippancy*, 40 items
        toggled throughout; *marginals*, a secret half of √T items, then query sets inserted and removed;
        *window*,
        the newest √T of distinct items; *zipf*, frequencies like 1/rank; *frequent*, T/100 items 100 times;
        *random ±1* is not strict, so that all but A3s and the recomputation promise nothing.""",
        _streams(toeplitz, steps=10**5, rho=1.0),
        "![Ratios by stream](turnstile-streams.png)",
        "T = 10^4:",
        _streams(toeplitz, steps=10**4, rho=1.0),
        "Over certified chains, with exact noise, T = 10^5:",
        _streams(chain, steps=10**5, rho=1.0),
        "## Intervals",
        f"""β = 0.01 for all steps of a run together: of 40 runs at most 4 may miss. The most at any stream
        and budget is {worst}. Intervals of A2g are those of D_hat; "default" is the whole counter, whose
        interval is narrowed, read 1000 times. The streams of a run share their noise, so that its misses come
        together.""",
        coverage,
        "## Pure ε = 1",
        """Exact discrete Laplace noise over chains. A4s is read 1000 times; A4's rows share the budget by
        their number m, A4s's by its few rows.""",
        _pure(pure),
        "## Speed",
        """Whole counters with exact noise on one core, distinct items inserted and removed; items are
        integers. Memory is by how much the process grew: 0 where making the stream, or a counter before,
        needed as much.""",
        _speed_table(speed),
    ]
    return "\n\n".join(block if block[:1] in "#|!" else fill(block) for block in blocks) + "\n"


def write_page(out: Path, *, pictures: bool = True) -> list[Path]:
    """Write turnstile-results.md and its pictures into a folder that has measurements/.

    Raises:
        MissingExtraError: matplotlib is not installed.
        ParameterError: a result that is not there.
        OSError: a file cannot be written.
    """
    measurements = out / "measurements"
    files = [out / "turnstile-results.md"]
    files[0].write_text(page(measurements), encoding="utf-8")
    if pictures:
        from trilift.experiments.turnstile.pictures import draw_factors, draw_streams

        points = load_points(measurements, start="turnstile_toeplitz")
        files += [out / name for name in PICTURES]
        draw_factors(points, path=files[1])
        draw_streams([p for p in points if p["T"] == 10**5 and p["rho"] == 1.0], path=files[2])
    return files


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page; with --keep, take results into docs/measurements first."""
    parser = argparse.ArgumentParser(description="Write turnstile-results.md and its pictures.")
    parser.add_argument("--out", type=Path, required=True, help="the folder docs")
    parser.add_argument("--keep", type=Path, help="folder of results to take into docs/measurements")
    chosen = parser.parse_args(arguments)
    if chosen.keep is not None:
        there = [name for name in KEPT if (chosen.keep / f"{name}.json").is_file()]
        if not there:
            raise ParameterError(f"{chosen.keep} has no results of trilift reproduce turnstile")
        for name in there:
            print(keep(name, folder=chosen.keep, measurements=chosen.out / "measurements"))
    for path in write_page(chosen.out):
        print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
