"""A streaming job that is killed and started again releases the same values, those of a single machine."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from trilift.counters.frames import private_cumsum

JOB = Path(__file__).with_name("streaming_job.py")
FILES, ROWS = 5, 24
KILLED_AT = 2
START = datetime(2026, 11, 1, 5, 30, tzinfo=UTC)  # New York sets its clocks back half an hour later


def visits() -> pd.DataFrame:
    """Return rows in time; half of them are of one ward, one ward has no name."""
    rows = []
    for index in range(FILES * ROWS):
        ward = "big" if index % 2 else [None, "B", "C"][index // 2 % 3]
        when = START + timedelta(minutes=3 * (index // 3), microseconds=index // 3)
        day = date(2026, 11, 1 + (index // 60))
        rows.append((ward, day, when, index % 3, index * 7 % 5))
    return pd.DataFrame(rows, columns=["ward", "day", "at", "bed", "falls"])


def write_files(folder: Path) -> None:
    """Write a file for each micro-batch; within files rows are in disorder."""
    frame = visits()
    for number in range(FILES):
        part = frame.iloc[number * ROWS : (number + 1) * ROWS].sample(frac=1, random_state=number)
        lines = [
            json.dumps(
                {
                    "ward": row.ward,
                    "day": row.day.isoformat(),
                    "at": row.at.isoformat(timespec="microseconds"),
                    "bed": row.bed,
                    "falls": row.falls,
                }
            )
            for row in part.astype({"ward": object}).itertuples()
        ]
        path = folder / f"{number}.json"
        path.write_text("\n".join(lines).replace("NaN", "null"), encoding="utf-8")
        os.utime(path, (1_700_000_000 + number,) * 2)  # the order in which the engine takes them


def run(arguments: list[Any], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(JOB), *map(str, arguments)]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, start_new_session=True
    )


def released(folder: Path) -> dict[int, list[Any]]:
    return {int(path.stem): json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")}


@pytest.mark.slow
def test_killed_and_restarted(
    tmp_path: Path, spark_env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, checkpoint, first, second = (tmp_path / name for name in ("in", "checkpoint", "first", "second"))
    for folder in (source, first, second):
        folder.mkdir()
    write_files(source)
    killed = run([source, checkpoint, first, KILLED_AT], spark_env)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
    before = released(first)
    assert sorted(before) == list(range(KILLED_AT + 1))
    done = run([source, checkpoint, second], spark_env)
    assert done.returncode == 0, done.stderr[-3000:]
    after = released(second)
    assert sorted(after) == list(range(KILLED_AT, FILES))  # the one that was not committed runs again
    assert after[KILLED_AT] == before[KILLED_AT]

    monkeypatch.setenv("TRILIFT_TEST_KEY", spark_env["TRILIFT_TEST_KEY"])
    spec = importlib.util.spec_from_file_location("streaming_job", JOB)
    assert spec is not None
    assert spec.loader is not None
    job = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(job)
    frame = visits()
    single = private_cumsum(frame, "falls", **job.OPTIONS)
    micros = [
        round((when - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1)) for when in frame["at"]
    ]
    wanted = [
        [None if pd.isna(row.ward) else row.ward, row.day.isoformat(), at, row.bed, row.falls_private]
        for row, at in zip(single.itertuples(), micros, strict=True)
    ]
    everything = [row for number in range(FILES) for row in {**before, **after}[number]]
    assert len(everything) == FILES * ROWS
    assert sorted(everything, key=repr) == sorted(wanted, key=repr)

    # Another key, or another mechanism, does not continue the stream.
    write_late = source / "late.json"
    write_late.write_text((source / "4.json").read_text(encoding="utf-8"), encoding="utf-8")
    other = run([source, checkpoint, second], {**spark_env, "TRILIFT_TEST_KEY": "77" * 32})
    assert other.returncode == 1
    assert "was begun under another key, version or mechanism" in other.stderr
    late = run([source, checkpoint, second], spark_env)
    assert late.returncode == 1
    assert "belongs at or before a place that was released" in late.stderr
    assert sorted(released(second)) == sorted(after)
