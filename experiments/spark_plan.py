"""What 10^12 events would take on Spark, by arithmetic: the table of docs/spark.md.

python -m trilift.experiments.spark_plan                       # the table
python -m trilift.experiments.spark_plan --page docs/spark.md  # written into the page
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from trilift.experiments.spark_table import between
from trilift.lift.files import atomic_write

__all__ = ["Plan", "main", "with_plan"]

_BEGIN, _END = "<!-- computed: spark_plan -->\n", "<!-- end of plan -->"


@dataclass(frozen=True)
class Plan:
    """Sizes, and what is assumed of the machines.

    Attributes:
        rows, keys: of the events; one key has half of the rows.
        key_bytes, place_bytes, value_bytes: of a row.
        part_bytes: of its part and its route.
        rows_per_task: where groups are cut.
        samples: places that are looked at for each part.
        step_us: time for the noise of a step, of many steps of one key at once; assumed.
        key_us: time to set up the noise of a key; assumed.
        cores, executors: assumed.
        state_bytes: of a group in a stream, with what the engine adds; assumed.
    """

    rows: int = 10**12
    keys: int = 10**9
    key_bytes: int = 8
    place_bytes: int = 8
    value_bytes: int = 8
    part_bytes: int = 16
    rows_per_task: int = 10**7
    samples: int = 64
    step_us: int = 2
    key_us: int = 1000
    cores: int = 1000
    executors: int = 200
    state_bytes: int = 100

    def lines(self) -> list[str]:
        """Return the lines of the table."""
        row = self.key_bytes + self.place_bytes + self.value_bytes
        reads = (self.key_bytes, self.key_bytes + self.place_bytes, row, row)
        shuffled = row + self.part_bytes
        large = self.rows // 2
        parts = -(-large // self.rows_per_task)
        steps, setups = self.rows * self.step_us // 10**6, self.keys * self.key_us // 10**6
        minutes = (steps + setups) / self.cores / 60
        state = self.keys * self.state_bytes
        table = [
            (
                "reads of the source",
                _bytes(self.rows * sum(reads)),
                "counts, samples, totals, rows: "
                f"{' + '.join(map(str, reads))} bytes of each event, in columns",
            ),
            (
                "shuffle of the rows",
                _bytes(self.rows * shuffled),
                f"written once, read once: {row} bytes of an event, {self.part_bytes} of part and route",
            ),
            (
                "shuffle of the counts",
                f"at most {_bytes(self.rows * (self.key_bytes + 8))}",
                "combined before it is sent; so much only where no two events of a key meet in one task",
            ),
            (
                "parts of the large key",
                f"{parts:,}",
                f"{_bytes(self.rows_per_task * shuffled)} each, in one task; an event finds its part in "
                f"{parts.bit_length()} comparisons",
            ),
            (
                "sampled places",
                _bytes(parts * self.samples * self.place_bytes),
                f"{self.samples} a part, sorted in one task",
            ),
            ("totals", _bytes(parts * (self.key_bytes + 8 + 16)), "one row a part, sent to all executors"),
            (
                "noise",
                f"{steps + setups:,} core-seconds",
                f"{self.step_us} µs a step and {self.key_us} µs a key; "
                f"{minutes:.0f} minutes of {self.cores:,} cores",
            ),
            (
                "result",
                _bytes(self.rows * row),
                "key, place, released value",
            ),
            (
                "state of a stream",
                _bytes(state),
                f"{self.state_bytes} bytes a group; "
                f"{_bytes(state // self.executors)} on each of {self.executors} executors",
            ),
        ]
        return ["| what | how much | why |", "|---|---|---|", *(f"| {' | '.join(line)} |" for line in table)]


def _bytes(count: int) -> str:
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:,} bytes"


def with_plan(text: str, plan: Plan) -> str:
    """Return the page with the table of a plan.

    Raises:
        SystemExit: it has no place for it.
    """
    return between(text, _BEGIN, _END, "\n".join(plan.lines()) + "\n", what="the plan")


def main() -> None:
    """Print the table, or write it into the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--page", type=Path, help="the page to write it into")
    page = parser.parse_args().page
    if page is None:
        print("\n".join(Plan().lines()))
    else:
        atomic_write(page, with_plan(page.read_text(encoding="utf-8"), Plan()).encode())


if __name__ == "__main__":
    main()
