"""Fuzzing, counted: every reader on inputs made at random; in full also by atheris, guided by coverage.

    python -m trilift.experiments.trust.fuzz --seconds 60 --folder fuzz-output [TARGET...]

is what ``make fuzz`` does: inputs that reach something new stay in the folder for the next time, and so does
what was found. The exit status is 1 if something was.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from base64 import b64encode
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from trilift.experiments.trust.fuzz_found import FOUND
from trilift.experiments.trust.fuzz_targets import TARGETS, Target
from trilift.experiments.trust.mutation import mutants
from trilift.lift.errors import ParameterError

__all__ = ["PART", "attempts", "hunt", "main", "measure"]

PART = "fuzz"

SECONDS = 20
"""How long atheris takes a target."""
_FEW, _MANY = 60, 500
_SLOWEST = 20  # seconds: an input that takes longer is a finding
_MOST_MIB = 2048
_DONE = re.compile(r"stat::number_of_executed_units:\s*([0-9]+)")
_STOPPED = (72, 130, 143, -2, -9, -15)  # libFuzzer's status when it is told to end, and those of the signals
_SAID = re.compile(r"error|exception|alarm|badzip|signal", re.IGNORECASE)


def attempts(target: Target, *, count: int, seed: int = 1) -> tuple[int, list[tuple[bytes, str]]]:
    """Run a target on inputs found before, its seeds and ``count`` mutants; return (inputs, findings).

    A finding is an input and what it raised.
    """
    tried, findings = 0, []
    found = [made() for made in FOUND.get(target.name, {}).values()]
    for data in mutants([*found, *target.seeds()], count=count, seed=seed):
        tried += 1
        try:
            target.run(data)
        except Exception as error:
            findings.append((data, f"{type(error).__name__}: {error}"))
    return tried, findings


def hunt(name: str, *, seconds: int, corpus: Path) -> tuple[int, str]:
    """Let atheris look for inputs that a target fails on; return (executions, "" or what was found).

    Args:
        name: of a target.
        seconds: how long.
        corpus: a folder for inputs that reach something new; what was found lies beside it.

    Raises:
        ParameterError: atheris is not installed, did not start, or was stopped from outside: then nothing
            is known.
    """
    if find_spec("atheris") is None:
        raise ParameterError("fuzzing in full needs atheris: pip install 'trilift[fuzz]'")
    options = [
        f"-max_total_time={seconds}",
        f"-timeout={_SLOWEST}",
        f"-rss_limit_mb={_MOST_MIB}",
        "-max_len=65536",
        "-print_final_stats=1",
        f"-artifact_prefix={corpus}-found-",
    ]
    command = [sys.executable, "-m", "trilift.experiments.trust.fuzz_atheris", name, str(corpus), *options]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        cwd=corpus.parent,
        check=False,
    )
    if done.returncode in _STOPPED:
        raise ParameterError(f"atheris was stopped while it ran {name} (status {done.returncode})")
    stats = _DONE.search(done.stderr)
    if stats is None and done.returncode == 0:
        raise ParameterError(f"atheris did not run {name}: {done.stderr[-300:]!r}")
    if done.returncode == 0 and stats is not None:
        return int(stats[1]), ""
    lines = [line for line in done.stderr.splitlines() if not line.startswith("INFO:")]
    said = [line for line in lines if _SAID.search(line)]
    written = sorted(corpus.parent.glob(f"{corpus.name}-found-*"))
    what = (said[0] if said else done.stderr[-300:])[:300]
    shown = b64encode(written[0].read_bytes()[:1500]).decode() if written else "not written"
    names = ", ".join(path.name for path in written)  # they begin with what it was: crash, timeout, oom
    found = f"status {done.returncode}: {what}; {names or 'no file'}; input (base64): {shown}"
    return int(stats[1]) if stats else 1, found


def measure(*, full: bool, seed: int = 1, tell: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Fuzz every target.

    Args:
        full: with many mutants, and with atheris.
        seed: of the mutants.
        tell: is told every row.

    Raises:
        ParameterError: atheris is not there for ``full``.
    """
    rows = []

    def row(what: str, tried: int, failed: int, detail: str) -> None:
        rows.append({"what": what, "tried": tried, "held": tried - failed, "detail": detail})
        tell(f"{what}: {tried - failed} of {tried}")

    with tempfile.TemporaryDirectory() as folder:
        for name, target in TARGETS.items():
            tried, findings = attempts(target, count=_MANY if full else _FEW, seed=seed)
            known = len(FOUND.get(name, {}))
            detail = findings[0][1][:200] if findings else f"with {known} inputs that were findings once"
            row(f"{name}: seeded mutations", tried, len(findings), detail)
        for name in TARGETS if full else ():
            executions, found = hunt(name, seconds=SECONDS, corpus=Path(folder) / name)
            row(
                f"{name}: atheris",
                executions,
                bool(found),
                found or f"in {SECONDS} s, none failed",
            )
    note = (
        "Inputs are sound files, changed. A reader may take an input or refuse it by an error of trilift in "
        "one line; anything else is a failure"
        + (f", and so are more than {_SLOWEST} s or {_MOST_MIB} MiB" if full else "")
        + ". What the loader of artifacts takes, the standalone checker must be able to read."
    )
    return {"part": PART, "full": full, "rows": rows, "note": note}


def main(arguments: list[str] | None = None) -> int:
    """Let atheris look at targets one after the other; return the exit status."""
    parser = argparse.ArgumentParser(description="Fuzz every reader of files with atheris.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="for each target")
    parser.add_argument("--folder", type=Path, default=Path("fuzz-output"))
    options = parser.parse_args(arguments)
    unknown = set(options.targets) - set(TARGETS)
    if unknown:
        parser.error(f"no target {sorted(unknown)[0]}; there are {', '.join(TARGETS)}")
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    failed = False
    for name in options.targets or TARGETS:
        try:
            executions, found = hunt(name, seconds=options.seconds, corpus=folder / name)
        except ParameterError as error:
            print(error, file=sys.stderr)
            return 2
        failed = failed or bool(found)
        print(f"{name}: {executions} executions, {found or 'nothing found'}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
