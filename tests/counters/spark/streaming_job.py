"""A streaming job: private sums of files as they come. It can be told to be killed in the middle.

    python streaming_job.py SOURCE CHECKPOINT OUT [KILLED_AT]

Every micro-batch takes one file; what it releases is written to OUT as BATCH.json. With KILLED_AT, the
process and Spark's die by SIGKILL when that micro-batch has released its values, but is not yet committed.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from trilift.counters.spark import spark_cumsum

OPTIONS: dict[str, Any] = {
    "epsilon": 1,
    "by": ["ward", "day"],
    "groups": "observed",
    "order": ["at", "bed"],
    "horizon": 1000,
    "bounds": (0, 5),
    "version": "stream",
    "key": "env:TRILIFT_TEST_KEY",
}
SCHEMA = "ward string, day date, at timestamp, bed int, falls int"


def main(source: str, checkpoint: str, out: Path, killed_at: int | None) -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    spark.sparkContext.setLogLevel("ERROR")
    files = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(source)

    def keep(batch: Any, number: int) -> None:
        rows = [[r.ward, r.day.isoformat(), r.micros, r.bed, r.falls_private] for r in batch.collect()]
        (out / f"{number}.json").write_text(json.dumps(sorted(rows, key=repr)), encoding="utf-8")
        if number == killed_at:
            os.killpg(0, signal.SIGKILL)

    private = spark_cumsum(files, "falls", **OPTIONS).selectExpr("*", "unix_micros(at) as micros")
    query = private.writeStream.foreachBatch(keep).option("checkpointLocation", checkpoint)
    query.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else None)
