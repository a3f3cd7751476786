"""From one worker to two on Spark: private running sums of many events, of which one key has half.

    python -m trilift.experiments.spark_scaling --out docs/measurements/spark_scaling.json
    python -m trilift.experiments.spark_scaling --page docs/spark.md

The events are written once (Parquet). Every measurement is a process with an engine of its own, which does
the job twice: the engine compiles its programs while it does it for the first time. One worker is measured
twice, with one core and with all of them, since the compiler and the worker's two processes, Java and Python,
use a second core where there is one; all take turns, so that what else the machine does is shared. The second
command writes the part of the page. Needs the extra ``spark``, Java, and Linux.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from trilift.experiments.spark_stages import processor_seconds, settings, stages
from trilift.experiments.spark_table import with_table
from trilift.lift.files import atomic_write

__all__ = ["CASES", "events", "main", "measure", "released"]

KEY_NAME = "TRILIFT_SCALING_KEY"
_KEY = "17" * 32  # of a measurement, which protects nobody
CASES = ((1, 1), (1, 2), (2, 2))
"""Workers, and cores that they have."""


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


def _engine(workers: int, **more: str) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{workers}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "16").config("spark.driver.memory", "3g")
    builder = builder.config("spark.sql.adaptive.coalescePartitions.enabled", "false")
    for name, value in more.items():
        builder = builder.config(name, value)
    engine = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "100000").getOrCreate()
    engine.sparkContext.setLogLevel("ERROR")
    return engine


def _measured(folder: Path, log: Path, *, rows: int, workers: int, cores: int) -> dict[str, Any]:
    """Return seconds of two runs, after a small one that starts the workers, and what they released, hashed.

    Where the time went is said of both.
    """
    import pyspark
    from pyspark.sql import functions as F

    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    engine = _engine(workers, **settings(log))
    small = events(engine, rows=1000, keys=10)
    released(small, rows=1000).collect()
    runs: list[dict[str, Any]] = []
    for _ in range(2):
        used, begin, start = processor_seconds(), time.time(), time.perf_counter()
        result = released(engine.read.parquet(str(folder)), rows=rows)
        row = result.agg(
            F.count("*").alias("rows"),
            F.expr("bit_xor(xxhash64(key, time, late_private))").alias("values"),
        ).collect()[0]
        seconds = time.perf_counter() - start
        if row["rows"] != rows:
            raise SystemExit(f"the run has {row['rows']} rows, not {rows}")
        after = processor_seconds()
        spent = {name: after[name] - used[name] for name in after}
        runs.append(
            {"seconds": seconds, "values": row["values"], "processor": spent, "at": (begin, time.time())}
        )
    engine.stop()
    for run in runs:
        begin, end = run.pop("at")
        run["stages"] = stages(log, begin=begin, end=end)
    return {"workers": workers, "cores": cores, "spark": pyspark.__version__, "runs": runs}


def _spun(blocks: int = 1500) -> float:
    """Return seconds that hashing takes: work that needs nothing but a core."""
    block, start = bytes(1 << 20), time.perf_counter()
    for _ in range(blocks):
        hashlib.sha256(block).digest()
    return time.perf_counter() - start


def _machine_ratio() -> float:
    """Return how much more two processes get done than one, of work that needs nothing but a core.

    What this machine can give at most: cores may be threads of one core, or have other work.
    """
    command = [sys.executable, "-m", "trilift.experiments.spark_scaling", "--spin"]
    alone = float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    pair = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    return 2 * alone / max(float(process.communicate()[0]) for process in pair)


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
    """Return the record: every case of :data:`CASES`, in turns.

    Args:
        rows, keys: of the events.
        rounds: how often each is measured.
        note: a sentence about the machine.
        kept: a file with a line for each process that is done; those that it has are not done again.
    """
    done: list[dict[str, Any]] = []
    if kept is not None and kept.exists():
        done = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    wanted = list(CASES) * rounds
    if [(one["workers"], one["cores"]) for one in done] != wanted[: len(done)]:
        raise SystemExit(f"{kept} has other runs than those that are wanted")
    ratio = _machine_ratio()
    if len(done) < len(wanted):
        with tempfile.TemporaryDirectory() as scratch:
            sizes = ["--rows", str(rows), "--keys", str(keys), "--data", str(Path(scratch, "events"))]
            _child([*sizes, "--write"])
            for number, (workers, cores) in enumerate(wanted[len(done) :]):
                load = os.getloadavg()[0]
                log = Path(scratch, f"log{number}")
                log.mkdir()
                case = ["--workers", str(workers), "--cores", str(cores), "--log", str(log)]
                done.append(json.loads(_child([*sizes, *case])) | {"load_before": load})
                if kept is not None:
                    atomic_write(kept, "".join(json.dumps(one) + "\n" for one in done).encode())
    return {
        "rows": rows,
        "keys": keys,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "machine_ratio": ratio,
        "processes": done,
        "same_values": len({run["values"] for one in done for run in one["runs"]}) == 1,
        "note": note,
    }


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
    parser.add_argument("--cores", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--spin", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    sizes = {"rows": given.rows, "keys": given.keys}
    if given.spin:
        print(_spun())
    elif given.write:
        _write_events(given.data, **sizes)
    elif given.workers is not None:
        case = {"workers": given.workers, "cores": given.cores}
        print(json.dumps(_measured(given.data, given.log, rows=given.rows, **case)))
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
