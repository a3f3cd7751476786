"""Figures and picture of docs/turnstile.md: a year of flights counted by turnstile counters.

    python -m trilift.experiments.turnstile.flights_page --out docs

Noise is exact and of the shipped chains; its key comes from a public seed, so that everybody gets the same
figures. A value is released after every 1,800 events, about once a day.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from trilift.counters.turnstile import DistinctCounter, SecondMoment
from trilift.experiments.figures import new_figure
from trilift.experiments.turnstile.flights import Events, YearOfFlights, load_year, truths

__all__ = ["EVERY", "HORIZON", "RECORD", "SERIES", "Series", "draw", "main", "measured", "table"]

HORIZON, EVERY, RHO, SEED = 700_000, 1800, 1, 2013
RECORD = "turnstile_flights.json"
PICTURE = "turnstile-flights.png"

_DAY = 1440


@dataclass(frozen=True)
class Series:
    """One thing that is counted.

    Attributes:
        name: in the record.
        title: in the table.
        stream: "air" or "use".
        items: "tails" or "routes".
        method: of a DistinctCounter, or of a SecondMoment.
        moment: whether it is the second moment.
    """

    name: str
    title: str
    stream: str
    items: str
    method: str
    moment: bool = False

    def counter(self) -> Any:
        """Return the counter, under noise from a public seed."""
        made: Any = SecondMoment if self.moment else DistinctCounter
        return made(rho=RHO, horizon=HORIZON, every=EVERY, method=self.method, simulation_seed=SEED)


SERIES = (
    Series("air-grouped", "aircraft in the air, `grouped`", "air", "tails", "grouped"),
    Series("air-hybrid", "aircraft in the air, `hybrid`", "air", "tails", "hybrid"),
    Series("air-routes", "F2 of the routes in the air", "air", "routes", "bucketed", moment=True),
    Series("use-grouped", "aircraft in use, `grouped`", "use", "tails", "grouped"),
    Series("use-hybrid", "aircraft in use, `hybrid`", "use", "tails", "hybrid"),
    Series("use-routes", "F2 of the routes in use", "use", "routes", "bucketed", moment=True),
)


def run_series(series: Series, events: Events) -> dict[str, Any]:
    """Count a stream, and return released values beside true ones."""
    items = getattr(events, series.items)
    seen = series.counter().extend(items, events.signs)
    distinct, moment, _ = truths(items, events.signs)
    true = (moment if series.moment else distinct)[seen.step - 1]
    within = (seen.low <= true) & (true <= seen.high)
    worst = float(np.max(np.maximum(seen.estimate / true, true / np.maximum(seen.estimate, 1e-9))))
    return {
        "step": seen.step.tolist(),
        "minute": events.minute[seen.step - 1].tolist(),
        "true": true.tolist(),
        "estimate": [round(x, 1) for x in seen.estimate.tolist()],
        "low": [round(x, 1) for x in seen.low.tolist()],
        "high": [round(x, 1) for x in seen.high.tolist()],
        "mean_true": float(np.mean(true)),
        "mean_error": float(np.mean(np.abs(seen.estimate - true))),
        "worst_factor": worst,
        "outside": int(np.sum(~within)),
    }


def measured(year: YearOfFlights, *, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Return everything that the page says, as JSON values.

    Args:
        year: the flights.
        names: of series, all when left out.
    """
    streams = {"air": year.in_the_air(), "use": year.in_use()}
    facts = {}
    for name, events in streams.items():
        distinct, _, twice = truths(events.tails, events.signs)
        total = np.cumsum(events.signs)
        facts[name] = {
            "events": len(events.signs),
            "most": int(distinct.max()),
            "inserted_again": twice,
            "largest_sum_less_distinct": int(np.max(total - distinct)),
        }
    return {
        "horizon": HORIZON,
        "every": EVERY,
        "rho": RHO,
        "seed": SEED,
        "flights": len(year.tails),
        "never_left": year.gaps.never_left,
        "no_air_time": year.gaps.no_air_time,
        "no_tail_number": year.gaps.no_tail_number,
        "streams": facts,
        "series": {
            series.name: run_series(series, streams[series.stream])
            for series in SERIES
            if names is None or series.name in names
        },
    }


def table(record: dict[str, Any]) -> str:
    """Return the table of the page."""
    lines = [
        "| | true, mean | error, mean | worst factor | interval, median | outside |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for series in SERIES:
        found = record["series"][series.name]
        low, high = np.median(found["low"]), np.median(found["high"])
        worst = found["worst_factor"]
        factor = f"{worst:.3g}" if worst < 100 else "above 100"
        lines.append(
            f"| {series.title} | {found['mean_true']:,.0f} | {found['mean_error']:,.0f} | {factor} "
            f"| {low:,.0f} to {high:,.0f} | {found['outside']} of {len(found['true'])} |"
        )
    return "\n".join(lines)


_PANELS = (
    ("air-hybrid", "Aircraft in the air: hybrid", False),
    ("use-hybrid", "Aircraft in use within 30 days: hybrid", False),
    ("use-grouped", "Aircraft in use within 30 days: grouped", True),
    ("use-routes", "Second moment of the routes in use: bucketed", False),
)


def draw(record: dict[str, Any], path: Path) -> None:
    """Draw truth, estimate and interval over the year."""
    figure = new_figure(9.0, 9.5)
    for place, (name, title, logarithmic) in enumerate(_PANELS, 1):
        found = record["series"][name]
        days = np.array(found["minute"]) / _DAY
        axes = figure.add_subplot(len(_PANELS), 1, place)
        low = np.maximum(found["low"], 1.0) if logarithmic else found["low"]
        axes.fill_between(days, low, found["high"], color="#cfe0f2", label="interval", linewidth=0)
        axes.plot(days, found["estimate"], color="#1f5fa8", linewidth=0.9, label="released estimate")
        axes.plot(days, found["true"], color="black", linewidth=0.9, label="true")
        axes.set_title(title, fontsize=10, loc="left")
        axes.set_xlim(0, 365)
        if logarithmic:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    axes.set_xlabel("day of 2013")
    figure.axes[0].legend(loc="upper right", fontsize=8, ncols=3)
    figure.savefig(path, dpi=65, metadata={"Software": None})


def main(arguments: Sequence[str] | None = None) -> None:
    """Write record and picture into a folder of documents."""
    parser = argparse.ArgumentParser(description="Count a year of flights with turnstile counters.")
    parser.add_argument("--out", type=Path, required=True, help="folder of documents, such as docs")
    out: Path = parser.parse_args(arguments).out
    record = measured(load_year())
    (out / "measurements").mkdir(parents=True, exist_ok=True)
    rows = json.dumps(record, separators=(",", ":")).replace(',"series"', ',\n"series"').replace("},", "},\n")
    (out / "measurements" / RECORD).write_text(rows + "\n", encoding="utf-8")
    draw(record, out / PICTURE)
    print(table(record))


if __name__ == "__main__":
    main()
