"""From one worker to two on Spark: private running sums of many events, of which one key has half.

    python -m trilift.experiments.spark_scaling --out docs/measurements/spark_scaling.json
    python -m trilift.experiments.spark_scaling --page docs/spark.md

The events are written once (Parquet). Every measurement is a process with an engine of its own; those
of one and two workers take turns, so that what else the machine does is shared by both. The second command
writes the table of the page. Needs the extra ``spark`` and Java.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from trilift.lift.files import atomic_write

__all__ = ["events", "main", "page_table", "released"]

KEY_NAME = "TRILIFT_SCALING_KEY"
_KEY = "17" * 32  # of a measurement, which protects nobody
_BEGIN, _END = "<!-- measured: spark_scaling -->\n", "<!-- end -->"


def events(spark: Any, *, rows: int, keys: int) -> Any:
    """Return events with key, time and value: half of them are of the key "big"."""
    from pyspark.sql import functions as F

    other = F.concat(F.lit("key"), F.pmod(F.xxhash64("id"), F.lit(keys - 1)).cast("string"))
    return spark.range(rows).select(
        F.when(F.col("id") % 2 == 0, F.lit("big")).otherwise(other).alias("key"),
        F.col("id").alias("time"),
        (F.pmod(F.xxhash64("id", F.lit(1)), F.lit(10)) < 3).cast("int").alias("late"),
    )


def released(frame: Any, *, rows: int) -> Any:
    """Return the frame with private running sums."""
    from trilift.counters.spark import spark_cumsum

    return spark_cumsum(
        frame,
        "late",
        epsilon=1,
        by="key",
        groups="observed",
        order="time",
        horizon=rows,
        key=f"env:{KEY_NAME}",
        version="scaling",
        rows_per_task=max(rows // 16, 2),
    )


def _engine(workers: int) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{workers}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "16").config("spark.driver.memory", "3g")
    builder = builder.config("spark.sql.adaptive.coalescePartitions.enabled", "false")
    engine = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "100000").getOrCreate()
    engine.sparkContext.setLogLevel("ERROR")
    return engine


def _measured(folder: Path, *, rows: int, workers: int) -> dict[str, Any]:
    """Return seconds of a run, after a small one that starts the workers, and a hash of what it released."""
    import pyspark
    from pyspark.sql import functions as F

    engine = _engine(workers)
    small = events(engine, rows=1000, keys=10)
    released(small, rows=1000).collect()
    start = time.perf_counter()
    result = released(engine.read.parquet(str(folder)), rows=rows)
    row = result.agg(
        F.count("*").alias("rows"),
        F.expr("bit_xor(xxhash64(key, time, late_private))").alias("values"),
    ).collect()[0]
    seconds = time.perf_counter() - start
    if row["rows"] != rows:
        raise SystemExit(f"the run has {row['rows']} rows, not {rows}")
    engine.stop()
    return {"workers": workers, "seconds": seconds, "values": row["values"], "spark": pyspark.__version__}


def _write_events(folder: Path, *, rows: int, keys: int) -> None:
    engine = _engine(2)
    events(engine, rows=rows, keys=keys).repartition(8).write.parquet(str(folder))
    engine.stop()


def _child(arguments: list[str]) -> str:
    environment = {
        **os.environ,
        KEY_NAME: _KEY,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "trilift.experiments.spark_scaling", *arguments]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()[-1] if done.stdout else ""


def measure(*, rows: int, keys: int, rounds: int, note: str, kept: Path | None = None) -> dict[str, Any]:
    """Return the record: seconds with one and two workers, in turns, and their ratio.

    Args:
        rows, keys: of the events.
        rounds: how often both are measured.
        note: a sentence about the machine.
        kept: a file with a line for each run that is done; those that it has are not done again.
    """
    runs: list[dict[str, Any]] = []
    if kept is not None and kept.exists():
        runs = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    wanted = [1, 2] * rounds
    if [run["workers"] for run in runs] != wanted[: len(runs)]:
        raise SystemExit(f"{kept} has other runs than those that are wanted")
    if len(runs) < len(wanted):
        with tempfile.TemporaryDirectory() as scratch:
            sizes = ["--rows", str(rows), "--keys", str(keys), "--data", str(Path(scratch, "events"))]
            _child([*sizes, "--write"])
            for workers in wanted[len(runs) :]:
                load = os.getloadavg()[0]
                run = json.loads(_child([*sizes, "--workers", str(workers)])) | {"load_before": load}
                runs.append(run)
                if kept is not None:
                    atomic_write(kept, "".join(json.dumps(run) + "\n" for run in runs).encode())
    best = {workers: min(run["seconds"] for run in runs if run["workers"] == workers) for workers in (1, 2)}
    return {
        "rows": rows,
        "keys": keys,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "runs": runs,
        "seconds": {str(workers): seconds for workers, seconds in best.items()},
        "ratio": best[1] / best[2],
        "same_values": len({run["values"] for run in runs}) == 1,
        "note": note,
    }


def page_table(record: dict[str, Any]) -> str:
    """Return the part of docs/spark.md that shows a record."""
    one, two = (record["seconds"][workers] for workers in ("1", "2"))
    count = len(record["runs"]) // 2
    same = "the same" if record["same_values"] else "NOT THE SAME"
    lines = [
        f"{record['rows']:,} events, {record['keys']:,} keys, one of which has half of the events; Spark "
        f"{record['runs'][0]['spark']}, a machine with {record['cores']} cores. {record['note']}",
        "",
        f"| workers | seconds (best of {count}) | events a second |",
        "|---|---|---|",
        *(
            f"| {name} | {took:.1f} | {record['rows'] / took:,.0f} |"
            for name, took in (("1", one), ("2", two))
        ),
        "",
        f"Two workers are {record['ratio']:.2f} times as fast as one; "
        f"the released values of all runs are {same}.",
    ]
    return "\n".join(lines) + "\n"


def with_table(text: str, record: dict[str, Any]) -> str:
    """Return the page with the table of a record."""
    head, _, rest = text.partition(_BEGIN)
    _, end, tail = rest.partition(_END)
    if not end:
        raise SystemExit("the page has no place for the table")
    return head + _BEGIN + page_table(record) + end + tail


def main() -> None:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--note", default="", help="a sentence about the machine, for the page")
    parser.add_argument("--kept", type=Path, help="file of runs that are done, to go on from")
    parser.add_argument("--out", type=Path, help="where to write the record")
    parser.add_argument("--page", type=Path, help="write the table of the record into this page")
    parser.add_argument("--record", type=Path, default=Path("docs/measurements/spark_scaling.json"))
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    sizes = {"rows": given.rows, "keys": given.keys}
    if given.write:
        _write_events(given.data, **sizes)
    elif given.workers is not None:
        print(json.dumps(_measured(given.data, rows=given.rows, workers=given.workers)))
    elif given.page is not None:
        record = json.loads(given.record.read_text(encoding="utf-8"))
        atomic_write(given.page, with_table(given.page.read_text(encoding="utf-8"), record).encode())
    else:
        record = measure(**sizes, rounds=given.rounds, note=given.note, kept=given.kept)
        text = json.dumps(record, indent=1) + "\n"
        if given.out is None:
            print(text, end="")
        else:
            atomic_write(given.out, text.encode())


if __name__ == "__main__":
    main()
