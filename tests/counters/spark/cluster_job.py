"""A batch on a cluster of two executors, each a process: prints whether a single machine gives the same.

The environment names the key (TRILIFT_TEST_KEY), and Spark's scripts want to know their Scala.
"""

import json
from typing import Any

import pandas as pd
from pyspark.sql import SparkSession
from trilift.counters.frames import private_cumsum
from trilift.counters.spark import spark_cumsum

ROWS = 600
OPTIONS: dict[str, Any] = {
    "epsilon": 1,
    "by": "ward",
    "groups": "observed",
    "order": "time",
    "horizon": 10_000,
    "key": "env:TRILIFT_TEST_KEY",
    "version": "cluster",
}


def main() -> None:
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    rows = [("big" if row % 2 else f"w{row % 10}", row * 7 % 601, row % 2) for row in range(ROWS)]
    frame = pd.DataFrame(rows, columns=["ward", "time", "falls"])
    source = spark.createDataFrame(frame).repartition(3)
    released = spark_cumsum(source, "falls", rows_per_task=100, **OPTIONS).collect()
    single = private_cumsum(frame, "falls", **OPTIONS).itertuples()
    wanted = sorted((row.ward, row.time, row.falls_private) for row in single)
    same = sorted((row.ward, row.time, row.falls_private) for row in released) == wanted
    print(json.dumps({"rows": len(released), "same": same, "master": spark.sparkContext.master}))
    spark.stop()


if __name__ == "__main__":
    main()
