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
from trilift.experiments.turnstile.page_tables import (
    by_budget,
    coverage_table,
    find,
    number,
    power,
    pure_table,
    runs_words,
    speed_table,
    streams_table,
    table,
)
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


# -- tables -----------------------------------------------------------------------------------------


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
    return table(["", *[f"ρ = {rho:g}" for rho in RHOS]], rows)


def _farther(rows: Sequence[dict[str, Any]]) -> str:
    """Say which figures are not within the tolerance."""
    parts = []
    for r in rows:
        among = "among our runs" if r["among_runs"] else "not among our runs"
        where = f"{r['estimator']} at T = {power(r['T'])}, ρ = {r['rho']:g}"
        parts.append(
            f"{where} deviates by {100 * r['off']:+.0f} %; runs differ, and the reference is {among}."
        )
    return " ".join(parts)


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
    coverage, worst = coverage_table([*toeplitz, *chain, *pure])
    owed = [r for r in compared(toeplitz) if r["estimator"] in REPRODUCED]
    near = sum(abs(r["off"]) <= TOLERANCE for r in owed)
    far = [r for r in owed if abs(r["off"]) > TOLERANCE]

    def figure(name: str, stream: str, key: str) -> str:
        point = find(toeplitz, estimator=name, stream=stream, T=10**5, rho=1.0)
        return "none" if point is None else number(point[key])

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
        {runs_words(toeplitz, "A2g")}.""",
        by_budget(toeplitz, _UNIT, stream="unit", key="factor"),
        f"""The default ("closer") moves the centred estimate to where sums and scatter of the same noisy
        counters allow it to be. At T = 10^5, ρ = 1 the centred factor is
        {figure("A2g centred", "unit", "factor")}, the default's {figure("A2g closer", "unit", "factor")};
        on the heavy rotation the few-heavy option keeps within {
            figure("A2g few-heavy", "heavy rotation", "ratio_95")
        } at 95 % of the steps.""",
        "![Factors against rho](turnstile-factors.png)",
        "The same over certified chains, one run, with exact noise (A3 is read over the Toeplitz root only):",
        by_budget(chain, (*_UNIT[:-1], "hybrid"), stream="unit", key="factor"),
        "## Second moment",
        """What errors leave beyond 0.625 F2 at all steps, same stream, Toeplitz root and chains. "Raw" is the
        paper's estimate, which keeps the noise's own second moment.""",
        by_budget(toeplitz, ("A4 raw", "A4"), stream="unit", key="additive"),
        by_budget(chain, ("A4 raw", "A4"), stream="unit", key="additive"),
        f"""The exact sketch itself (m rows for α = 0.5) was off by at most
        {100 * max(p["sketch_error"] for p in toeplitz if p["estimator"] == "A4"):.0f} % in any run on any
        stream.""",
        "## Recomputation",
        """E, what recomputing D now and then is off by at most, at half of the budget; the hybrid has it
        where D is large.""",
        by_budget(toeplitz, ("additive",), stream="unit", key="additive"),
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
        streams_table(toeplitz, steps=10**5, rho=1.0),
        "![Ratios by stream](turnstile-streams.png)",
        "T = 10^4:",
        streams_table(toeplitz, steps=10**4, rho=1.0),
        "Over certified chains, with exact noise, T = 10^5:",
        streams_table(chain, steps=10**5, rho=1.0),
        "## Intervals",
        f"""β = 0.01 for all steps of a run together: of 40 runs at most 4 may miss. The most at any stream
        and budget is {worst}. Intervals of A2g are those of D_hat; "default" is the whole counter, whose
        interval is narrowed, read 1000 times. The streams of a run share their noise, so that its misses come
        together.""",
        coverage,
        "## Pure ε = 1",
        """Exact discrete Laplace noise over chains. A4s is read 1000 times; A4's rows share the budget by
        their number m, A4s's by its few rows.""",
        pure_table(pure),
        "## Speed",
        """Whole counters with exact noise on one core, distinct items inserted and removed; items are
        integers. Memory is by how much the process grew: 0 where making the stream, or a counter before,
        needed as much.""",
        speed_table(speed),
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
