"""The part of docs/spark.md that shows a record of ``spark_scaling``."""

from __future__ import annotations

from typing import Any

__all__ = ["between", "page_table", "ratio", "with_table"]

_BEGIN, _END = "<!-- measured: spark_scaling -->\n", "<!-- end -->"


def _best(record: dict[str, Any], workers: int, cores: int, run: int) -> dict[str, Any]:
    """Return the quickest of the first (0) or second (1) runs of a case."""
    runs = (
        one["runs"][run] for one in record["processes"] if (one["workers"], one["cores"]) == (workers, cores)
    )
    best: dict[str, Any] = min(runs, key=lambda found: found["seconds"])
    return best


def ratio(record: dict[str, Any], *, cores: int, run: int) -> float:
    """Return how many times as fast two workers with two cores are as one worker.

    Args:
        record: of a measurement.
        cores: of the one worker.
        run: 0 for first runs, 1 for second ones.
    """
    one, two = (_best(record, *case, run)["seconds"] for case in ((1, cores), (2, 2)))
    return float(one / two)


def page_table(record: dict[str, Any]) -> str:
    """Return the part of the page."""
    count = len(record["processes"]) // 3
    same = "the same" if record["same_values"] else "NOT THE SAME"
    lines = [
        f"{record['rows']:,} events, {record['keys']:,} keys, one of which has half of the events; Spark "
        f"{record['processes'][0]['spark']}, a machine with {record['cores']} cores. {record['note']}",
        "",
        f"| workers | cores | first run, seconds (best of {count}) | second run | events a second | "
        "core-seconds of the second run: tasks in Java, its compiler, its collector, Python |",
        "|---|---|---|---|---|---|",
    ]
    for workers, cores in ((1, 1), (1, 2), (2, 2)):
        first, second = (_best(record, workers, cores, run) for run in (0, 1))
        used = [second["processor"][name] for name in ("engine", "compiler", "collector", "python")]
        lines.append(
            f"| {workers} | {cores} | {first['seconds']:.1f} | {second['seconds']:.1f} | "
            f"{record['rows'] / second['seconds']:,.0f} | {', '.join(f'{part:.0f}' for part in used)} |"
        )
    shared = _best(record, 2, 2, 1)
    everything = sum(stage["seconds"] for stage in shared["stages"])
    lines += [
        "",
        f"Two workers with a core each are {ratio(record, cores=1, run=1):.2f} times as fast as one with one "
        f"core ({ratio(record, cores=1, run=0):.2f} times in the first run). A single worker that has both "
        f"cores uses more than one, Java and Python being two processes: two workers are "
        f"{ratio(record, cores=2, run=1):.2f} times as fast as that ({ratio(record, cores=2, run=0):.2f} "
        "times in the first run). Work that needs nothing but a core gets done "
        f"{record['machine_ratio']:.2f} times as fast by two processes as by one on this machine, which "
        f"bounds all of this. The released values of all runs are {same}.",
        "",
        "| stages (two workers, second run) | tasks | seconds of tasks | share | longest task | shuffled |",
        "|---|---|---|---|---|---|",
    ]
    for stage in shared["stages"]:
        lines.append(
            f"| {stage['kind']} | {stage['tasks']} | {stage['seconds']:.1f} | "
            f"{100 * stage['seconds'] / everything:.0f} % | {stage['longest']:.1f} | "
            f"{stage['bytes'] / 1e6:.0f} MB |"
        )
    busy = everything / (2 * shared["seconds"])
    return "\n".join([*lines, "", f"Tasks keep both workers busy for {100 * busy:.0f} % of the time."]) + "\n"


def with_table(text: str, record: dict[str, Any]) -> str:
    """Return the page with the tables of a record.

    Raises:
        SystemExit: it has no place for them.
    """
    return between(text, _BEGIN, _END, page_table(record), what="the table")


def between(text: str, begin: str, end: str, new: str, *, what: str) -> str:
    """Return a page with other text between two marks, which stay.

    Raises:
        SystemExit: it has not both marks; ``what`` was to be put there.
    """
    head, _, rest = text.partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        raise SystemExit(f"the page has no place for {what}")
    return head + begin + new + found + tail
