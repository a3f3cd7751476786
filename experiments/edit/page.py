"""The page docs/edit-results.md, from results that are kept in docs/measurements.

    trilift reproduce edit-table1 --runs 4000 --seed 1 --out FOLDER     # and edit-fig1b, edit-fig2, edit-fig3
    python -m trilift.experiments.edit.page --keep FOLDER --out docs    # take them into docs/measurements
    python -m trilift.experiments.edit.page --out docs                  # write the page and its pictures anew

A test compares the page with what this makes, and repeats some of its points with fewer runs.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trilift.experiments.edit.attack import block_rates
from trilift.experiments.edit.paper_constants import gaussian_constant
from trilift.experiments.edit.plans import LN_DELTA, experiment
from trilift.experiments.edit.predicted_advantage import (
    doubling_noise_sd,
    independent_noise_sd,
    predicted_advantage,
)
from trilift.experiments.edit.reference import gaussian_rmse, gaussian_scales
from trilift.experiments.edit.runner import points_file
from trilift.experiments.edit.tables import BOUNDS, adversary_table, published_cell
from trilift.experiments.edit.unreproduced import fill, why_not_published
from trilift.lift.errors import ParameterError

__all__ = [
    "KEPT",
    "PICTURES",
    "compact",
    "fill",
    "keep",
    "load_kept",
    "page",
    "why_not_published",
    "write_page",
]

KEPT = {
    "edit-table1": "edit_table1.json",
    "edit-fig1b": "edit_fig1b.json",
    "edit-fig2": "edit_fig2.json",
    "edit-fig3": "edit_fig3.json",
}
"""Experiments and their files in docs/measurements; edit-fig1a has the points of edit-table1."""

PICTURES = {
    "edit-table1": "edit-fig1a.png",
    "edit-fig1b": "edit-fig1b.png",
    "edit-fig2": "edit-fig2.png",
    "edit-fig3": "edit-fig3.png",
}


def compact(value: Any) -> Any:
    """Return JSON data with floats of seven significant digits."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {key: compact(item) for key, item in value.items()}
    return [compact(item) for item in value] if isinstance(value, list) else value


def keep(name: str, *, folders: Sequence[Path], measurements: Path) -> Path:
    """Take the points of an experiment into docs/measurements, of each the record with the most runs.

    Args:
        name: of the experiment.
        folders: what ``trilift reproduce NAME --out`` wrote.
        measurements: the folder to write into.

    Raises:
        ParameterError: a point that no folder has.
        OSError: a file cannot be read or written.
    """
    chosen = experiment(name)
    found: dict[str, dict[str, Any]] = {}
    seeds = set()
    for folder in folders:
        path = points_file(chosen, folder=folder)
        if path.is_file():
            held = json.loads(path.read_text(encoding="utf-8"))
            seeds.add(held["settings"]["seed"])
            for key, record in held["points"].items():
                if key not in found or record["runs"] > found[key]["runs"]:
                    found[key] = record
    missing = [point.key for point in chosen.points if point.key not in found]
    if missing:
        raise ParameterError(f"{len(missing)} points of {name} are missing, the first is {missing[0]}")
    records = [{k: v for k, v in found[p.key].items() if k != "correct"} for p in chosen.points]
    head = json.dumps({"experiment": name, "simulation": "floating-point noise", "seeds": sorted(seeds)})
    lines = ",\n".join(json.dumps(compact(record)) for record in records)
    path = measurements / KEPT[name]
    path.write_text(f'{head[:-1]}, "points": [\n{lines}\n]}}\n', encoding="utf-8")
    return path


def load_kept(name: str, *, measurements: Path) -> dict[str, Any]:
    """Return a result that is kept.

    Raises:
        ParameterError: there is none.
    """
    path = measurements / KEPT[name]
    if not path.is_file():
        raise ParameterError(f"{path} is not there: see the text of trilift.experiments.edit.page")
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return result


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [list(header), ["---"] * len(header), *[list(row) for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _digits(value: float) -> str:
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def _error(row: dict[str, Any]) -> str:
    if row["rmse"] is None:
        return "none"
    se = row["rmse_se"]
    return _digits(row["rmse"]) + ("" if se is None else f" ± {1.96 * se:.2g}")


def _runs(records: Sequence[dict[str, Any]]) -> str:
    counts = [r["runs"] for r in records]
    return str(counts[0]) if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"


def _adversary(records: Sequence[dict[str, Any]], *, two_sided: bool = False) -> str:
    """Table 1: a row a mechanism and variant."""
    rows = adversary_table(records, two_sided=two_sided)
    kinds = list(dict.fromkeys((r["mechanism"], r["variant"], r["base"]) for r in rows))
    lines = []
    for kind in kinds:
        own = {r["bound"]: r for r in rows if (r["mechanism"], r["variant"], r["base"]) == kind}
        cells = [kind[0], kind[1], kind[2]]
        for bound in BOUNDS:
            published = published_cell(kind[0], variant=kind[1], bound=bound)
            at = own[bound]["epsilon"]
            cells += [_error(own[bound]), "" if at is None else f"{at:.3g}"]
            cells.append("" if published is None else f"{published:g}")
        lines.append(cells)
    header = ["mechanism", "variant", "base"]
    for bound in BOUNDS:
        header += [f"advantage ≤ {bound:g}", "at ε", "published"]
    return _table(header, lines)


def _sweep(records: Sequence[dict[str, Any]]) -> str:
    """Error of every variant at every epsilon of the grid."""
    epsilons = list(dict.fromkeys(r["epsilon"] for r in records))
    kinds = list(dict.fromkeys((r["mechanism"], r["variant"], r["base"]) for r in records))
    lines = []
    for kind in kinds:
        own = {r["epsilon"]: r["rmse"] for r in records if (r["mechanism"], r["variant"], r["base"]) == kind}
        lines.append(
            [kind[0], kind[1], kind[2], *["" if e not in own else _digits(own[e]) for e in epsilons]]
        )
    return _table(["mechanism", "variant", "base", *[f"{e:.3g}" for e in epsilons]], lines)


def _turned(records: Sequence[dict[str, Any]]) -> str:
    """Say what the rule of the table overlooks, with the largest advantage on SimECC."""
    most = max((r for r in records if r["mechanism"] == "SimECC"), key=lambda r: abs(r["advantage"]))
    return f"""An attack that is wrong more often than right is as good when turned around, which this rule
        overlooks. And the sharper a variant of SimECC, the shorter are its delays: at some ε of 10 and more
        they are short beside the period of the rates, and the attack finds something in one or the other
        direction, at most {most["advantage"]:.3f} ({most["variant"]}, ε = {most["epsilon"]:.3g}). That is no
        breach: ε bounds what any attack can find, and ε = 10 allows nearly everything. The same table for
        the mechanisms that are edit-private, with the whole confidence interval within the bound on both
        sides:"""


def _by_length(records: Sequence[dict[str, Any]]) -> str:
    lengths = list(dict.fromkeys(r["T"] for r in records))
    kinds = list(dict.fromkeys((r["mechanism"], r["variant"]) for r in records))
    lines = []
    for kind in kinds:
        own = {r["T"]: r for r in records if (r["mechanism"], r["variant"]) == kind}
        lines.append([kind[0], kind[1], *["" if T not in own else _error(own[T]) for T in lengths]])
    return _table(["mechanism", "variant", *[f"T = 10^{round(math.log10(T))}" for T in lengths]], lines)


def _advantage_text(records: Sequence[dict[str, Any]]) -> str:
    """What the mathematics predicts for BaseCC, beside the nearest simulated points."""
    rates = block_rates(10_000)
    plain = gaussian_rmse(150.0, ln_delta=LN_DELTA, steps=10_000)

    def predicted(epsilon: float) -> float:
        sigma = gaussian_constant(epsilon / 2, ln_delta=LN_DELTA - math.log(2))
        return predicted_advantage(rates, noise_sd=doubling_noise_sd(rates, sigma=sigma))

    rows = [
        [
            f"{r['epsilon']:.3g}",
            f"{predicted(r['epsilon']):.3f}",
            f"{r['advantage']:.3f} ({r['ci_low']:.3f} .. {r['ci_high']:.3f})",
        ]
        for r in records
        if r["mechanism"] == "BaseCC" and r["epsilon"] < 6
    ]
    sds = gaussian_scales(150.0, ln_delta=LN_DELTA, steps=10_000)
    gauss = predicted_advantage(rates, noise_sd=independent_noise_sd(rates, sds=sds))
    table = _table(["ε", "predicted advantage", "simulated (95 %)"], rows)
    text = fill(
        f"""For noise that does not look at the data the advantage has a closed form
        (`trilift.experiments.edit.predicted_advantage`). For GaussianCC at ε = 150 it is {gauss:.3f}, so that
        chance decides whether its error there, {plain:.2f}, is in the first column of Table 1 (as published)
        or that of the next smaller ε. For BaseCC at ε = 1 it is {predicted(1.0):.3f}:"""
    )
    return f"{text}\n\n{table}"


def page(measurements: Path) -> str:
    """Return docs/edit-results.md.

    Args:
        measurements: the folder docs/measurements.

    Raises:
        ParameterError: a result that is not there.
    """
    from trilift.experiments.edit.grid_page import grid_section

    held = {name: load_kept(name, measurements=measurements)["points"] for name in KEPT}
    table1, by_length = held["edit-table1"], held["edit-fig1b"]
    blocks = [
        "# Edit-neighbouring streams: results",
        """This page is made by `python -m trilift.experiments.edit.page --out docs` from the results in
        [measurements](measurements/README.md); a test compares it with what that command makes, and repeats
        some of its points. All errors here are **simulated** in floating point, many runs at once; releases
        use exact keyed noise of the same laws. An error is the mean over runs of the root mean square error
        over the steps, with 95 % intervals; an advantage is 2q - 1 for the share q of right guesses, with
        95 % Clopper-Pearson intervals.""",
        """The experiments are those of "Edit-Neighboring Data Streams and Privacy under Continual
        Observation" (Andersson, Chaturvedi, Henzinger, Safavi). Variant "paper" is the paper's own budget,
        calibrated exactly. The variants "joint sqrt(40)" and "joint sqrt(12)" account for both counters of
        SimECC together, by formulas alone; all others are those of `trilift.counters.edit`, simulated from
        the designs that its ledgers calibrate.""",
        "## Table 1: least error at a bound of the attack's advantage",
        f"""T = 10^4, inputs of rate 0.1 and 0.9 in blocks of 10, δ = 1e-5, {_runs(table1)} runs a point.
        Of the 12 values of ε between 0.1 and 150, the one of least error whose upper confidence limit is
        within the bound (the paper does not state its rule; this one gives its figures). BaseCC and
        PartitionCC are private for swaps only, and that is what the attack uses.""",
        _adversary(table1),
        _turned(table1),
        _adversary([r for r in table1 if r["mechanism"] not in ("BaseCC", "PartitionCC")], two_sided=True),
        "![Error against advantage](edit-fig1a.png)",
        "## Why 31.32 is not reproduced",
        why_not_published(),
        "## Errors at every ε",
        _sweep(table1),
        "## What the attack must find",
        _advantage_text(table1),
        "![Histograms of the attack's statistic](edit-fig2.png)",
        "## Error against the length",
        f"""ε = 10, δ = 1e-5, rate 0.01, {_runs(by_length)} runs a point. Before its first update a
        mechanism shows 0.""",
        _by_length(by_length),
        "![Error against the length](edit-fig1b.png)",
        "## Other settings",
        f"""T = 1000, {_runs(held["edit-fig3"])} runs a point. The paper varies "other" parameters without
        naming them; these are ours.""",
        "![Error against advantage in four settings](edit-fig3.png)",
        *grid_section(measurements),
    ]
    return "\n\n".join(block if block[:1] in "#|!" else fill(block) for block in blocks) + "\n"


def write_page(out: Path, *, pictures: bool = True) -> list[Path]:
    """Write edit-results.md and its pictures into a folder that has measurements/.

    Raises:
        MissingExtraError: matplotlib is not installed.
        ParameterError: a result that is not there.
        OSError: a file cannot be written.
    """
    measurements = out / "measurements"
    files = [out / "edit-results.md"]
    files[0].write_text(page(measurements), encoding="utf-8")
    if pictures:
        from trilift.experiments.edit.pictures import draw

        for name, file in PICTURES.items():
            draw(name, records=load_kept(name, measurements=measurements)["points"], path=out / file)
            files.append(out / file)
    return files


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page; with --keep, take results into docs/measurements first."""
    parser = argparse.ArgumentParser(description="Write edit-results.md and its pictures.")
    parser.add_argument("--out", type=Path, required=True, help="the folder docs")
    parser.add_argument(
        "--keep", type=Path, nargs="+", help="folders of results to take into docs/measurements"
    )
    chosen = parser.parse_args(arguments)
    for name in KEPT if chosen.keep is not None else ():
        print(keep(name, folders=chosen.keep, measurements=chosen.out / "measurements"))
    for path in write_page(chosen.out):
        print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
