"""One local Spark with two workers, where Spark and Java are installed; else a visible skip."""

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

KEY = "5a" * 32


def java_home() -> str | None:
    """Return where Java is: JAVA_HOME, or the one on the path."""
    if os.environ.get("JAVA_HOME"):
        return os.environ["JAVA_HOME"]
    found = shutil.which("java")
    return None if found is None else str(Path(found).resolve().parents[1])


@pytest.fixture(scope="session")
def java() -> str:
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("Spark is not installed: pip install 'trilift[test-spark]', then make spark-test")
    home = java_home()
    if home is None:
        pytest.skip("Java is not installed: set JAVA_HOME, such as to that of openjdk-17-jre-headless")
    return home


@pytest.fixture(scope="session")
def spark_env(java: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of a process that uses Spark: Java, this Python, and the key of the tests."""
    return {
        **os.environ,
        "JAVA_HOME": java,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(tmp_path_factory.mktemp("spark")),
        "TRILIFT_TEST_KEY": KEY,
    }


@pytest.fixture(scope="session")
def spark(spark_env: dict[str, str]) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    before = dict(os.environ)
    os.environ.update(spark_env)
    engine = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.sql.adaptive.coalescePartitions.enabled", "false")
        .getOrCreate()
    )
    engine.sparkContext.setLogLevel("ERROR")
    yield engine
    engine.stop()
    os.environ.clear()
    os.environ.update(before)
