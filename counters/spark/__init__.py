"""Private running sums on Apache Spark (extra ``spark``): those of ``frames``, for data past one machine."""

from trilift.counters.spark.cumsum import SparkCumsum, spark_cumsum

__all__ = ["SparkCumsum", "spark_cumsum"]
