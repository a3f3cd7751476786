"""Where the time of a job on Spark goes: its stages by the engine's event log, and processor time by thread.

The event log says for every task when it ran, how long, and what it read and wrote. Processor time is read
from /proc (Linux), since the engine counts neither its compiler nor the Python workers.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["KINDS", "processor_seconds", "settings", "stages"]

KINDS = ("count and sample", "send rows to tasks", "totals of parts", "sort, sum, noise", "everything else")

_PYTHON_ROWS = "data sent to Python workers"


def settings(folder: Path) -> dict[str, str]:
    """Return the engine's settings that write its event log to a folder, as plain lines."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.resolve().as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }


def stages(folder: Path, *, begin: float, end: float) -> list[dict[str, Any]]:
    """Return what tasks did between two times, by kind of stage, in the order of :data:`KINDS`.

    Args:
        folder: with the event log of one engine, which is closed.
        begin, end: in seconds since the epoch; a task belongs by when it was launched.

    Returns:
        For each kind its tasks, their seconds together and of the longest, and bytes of shuffles.
    """
    tasks: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    (log,) = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".crc"))
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            if event["Event"] != "SparkListenerTaskEnd" or not event.get("Task Metrics"):
                continue
            if begin <= event["Task Info"]["Launch Time"] / 1000 < end:
                tasks[event["Stage ID"]].append(event)
    found = {kind: {"kind": kind, "tasks": 0, "seconds": 0.0, "longest": 0.0, "bytes": 0} for kind in KINDS}
    most = max((_records(events, "Shuffle Write Metrics") for events in tasks.values()), default=0)
    for events in tasks.values():
        entry: dict[str, Any] = found[_kind(events, most)]
        seconds = [
            (event["Task Info"]["Finish Time"] - event["Task Info"]["Launch Time"]) / 1000 for event in events
        ]
        entry["tasks"] += len(events)
        entry["seconds"] += sum(seconds)
        entry["longest"] = max(entry["longest"], *seconds)
        entry["bytes"] += sum(_written(event, "Shuffle Bytes Written") for event in events)
    return list(found.values())


def _written(event: Mapping[str, Any], name: str) -> int:
    return int(event["Task Metrics"]["Shuffle Write Metrics"][name])


def _records(events: list[Mapping[str, Any]], metrics: str) -> int:
    return sum(int(event["Task Metrics"][metrics]["Shuffle Records Written"]) for event in events)


def _kind(events: list[Mapping[str, Any]], most: int) -> str:
    """Return what a stage does, by what its tasks read, wrote and sent to Python."""
    python = any(
        entry.get("Name") == _PYTHON_ROWS for event in events for entry in event["Task Info"]["Accumulables"]
    )
    reads = any(event["Task Metrics"]["Input Metrics"]["Records Read"] for event in events)
    if python:
        return KINDS[2] if reads else KINDS[3]
    if reads:
        return KINDS[1] if _records(events, "Shuffle Write Metrics") == most else KINDS[0]
    return KINDS[4]


def processor_seconds() -> dict[str, float]:
    """Return processor seconds so far of this process and those it started, by what they are.

    Returns:
        "engine" (tasks and the rest of the JVM), "compiler" (its just-in-time compiler), "collector" (of its
        garbage), and "python" (workers and driver). Threads and processes that have ended are not in it.
    """
    seconds = dict.fromkeys(("engine", "compiler", "collector", "python"), 0.0)
    for process in _tree(os.getpid()):
        for thread in Path(f"/proc/{process}/task").iterdir():
            try:
                name, used = _used(thread / "stat")
            except OSError:  # it has just ended
                continue
            seconds[_what(name, _name(process))] += used
    return seconds


def _what(thread: str, process: str) -> str:
    if process != "java":
        return "python"
    if thread.startswith(("C1 Comp", "C2 Comp")):
        return "compiler"
    return "collector" if thread.startswith(("GC Thread", "G1 ", "VM Thread")) else "engine"


def _fields(path: Path) -> tuple[str, list[str]]:
    text = path.read_text(encoding="utf-8", errors="replace")
    begin, end = text.index("("), text.rindex(")")
    return text[begin + 1 : end], text[end + 2 :].split()


def _used(path: Path) -> tuple[str, float]:
    name, fields = _fields(path)
    return name, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _name(process: int) -> str:
    try:
        return _fields(Path(f"/proc/{process}/stat"))[0]
    except OSError:
        return ""


def _tree(root: int) -> list[int]:
    """Return a process and all that it started, directly or not."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                children[int(_fields(entry / "stat")[1][1])].append(int(entry.name))
            except OSError:
                continue
    found, todo = [], [root]
    while todo:
        process = todo.pop()
        found.append(process)
        todo += children[process]
    return found
