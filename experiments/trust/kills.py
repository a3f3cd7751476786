"""Kill points: processes that count are killed at random instants, journals are cut, bits are flipped."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from trilift.experiments.trust.kill_tails import cut, flipped

__all__ = ["PART", "PLAN", "measure"]

PART = "kills"

PLAN = {
    "trilift count": (300, 6),
    "GaussianCC": (150, 6),
    "HorizonGaussian": (80, 0),
    "PartitionCC": (80, 0),
    "Counter": (80, 0),
    "GaussianCounter": (70, 0),
    "SimECC": (60, 2),
    "ECC": (60, 0),
    "DistinctCounter": (60, 0),
    "SecondMoment": (60, 0),
}
"""Kill points: all of them (1,000), and in the small version."""

_SIDE_BY_SIDE, _SHARE = (
    6,
    50,
)  # so many kill points to a process; processes mostly wait: for instants, and for the disk

_NOTE = (
    "A process that counts is killed with SIGKILL at a random instant: while it makes or opens its folder, "
    "appends, writes a snapshot or shows values. A kill point is held if everything that was shown, then and "
    "later, is what an uninterrupted counter of the same key shows, and no shown step was lost or taken "
    "twice; for trilift count, if after at most eight kills and a last run the file of --out is, byte for "
    "byte, that of an uninterrupted run. Journals are cut after every byte, and bits of every file flipped: "
    "held if the folder is refused, or opens with the very same steps and values."
)


def measure(*, full: bool, seed: int = 1, tell: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Kill, cut and flip; see :data:`PLAN`.

    Args:
        full: all of it (minutes), or a small version.
        seed: of the instants.
        tell: is told how far it is.
    """
    plan = {kind: sizes[0 if full else 1] for kind, sizes in PLAN.items()}
    plan = {kind: points for kind, points in plan.items() if points}
    rows = []
    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        runs = {
            kind: [
                pool.submit(_killed, kind, min(_SHARE, points - first), seed + first)
                for first in range(0, points, _SHARE)
            ]
            for kind, points in plan.items()
        }
        for kind, shares in runs.items():
            counts = [share.result() for share in shares]
            done = {name: sum(one[name] for one in counts) for name in ("tried", "held", "steps")}
            what = f"{kind} killed" + (", and run again" if kind == "trilift count" else "")
            rows.append(_row(what, done["tried"], done["held"], f"{done['steps']:,} steps shown"))
            tell(f"{kind}: {done['held']} of {done['tried']}")
    every = 1 if full else 197
    with tempfile.TemporaryDirectory() as folder:
        ends = cut(Path(folder) / "cut", every=1 if full else 31)
        rows.append(_row("journal cut, its steps marked", *ends["marked"], "refused unless whole"))
        rows.append(_row("journal cut, mark older", *ends["back"], "goes on after the steps that are whole"))
        for name, (tried, held) in flipped(Path(folder) / "flipped", every=every, tell=tell).items():
            rows.append(_row(f"bit flipped: {name}", tried, held, "refused, or harmless"))
    return {"part": PART, "full": full, "rows": rows, "note": _NOTE}


def _row(what: str, tried: int, held: int, detail: str) -> dict[str, Any]:
    return {"what": what, "tried": tried, "held": held, "detail": detail}


def _killed(kind: str, points: int, seed: int) -> dict[str, Any]:
    asked = json.dumps({"kind": kind, "points": points, "seed": seed})
    command = [sys.executable, "-m", "trilift.experiments.trust.kill_runs", asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{kind}: {done.stderr.strip()[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result
