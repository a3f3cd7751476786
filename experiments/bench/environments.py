"""Pinned environments of the peers, and their scripts run in them.

An environment is made once, by venv and pip, in a folder of the user's cache (or one named on the command
line), and made again when its pins change. A script reads a list of requests as JSON from its standard input
and prints {"version", "answers"}. Peers run on one core, each in a process of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trilift.experiments.bench.pins import PINS
from trilift.lift.errors import TriliftError

__all__ = ["ONE_CORE", "PeerError", "ask", "default_folder", "interpreter", "prepare", "script"]

ONE_CORE = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "TRILIFT_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "PYTHONHASHSEED": "0",
}
"""Set for every process that is measured, ours too."""

_DONE = "trilift-pins.txt"
_SHOWN = 300


class PeerError(TriliftError):
    """A peer could not be installed, or its code failed."""


def default_folder() -> Path:
    """Return where environments are kept: in the user's cache."""
    from platformdirs import user_cache_path

    return user_cache_path("trilift") / "bench"


def script(peer: str) -> Path:
    """Return the script of a peer, which its own interpreter runs."""
    return Path(__file__).with_name(f"peer_{peer}.py")


def interpreter(peer: str, folder: Path) -> Path | None:
    """Return the Python of a peer's environment, or None if it has not been made with these pins."""
    home = _home(peer, folder)
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    try:
        whole = (home / _DONE).read_text(encoding="utf-8") == _text(peer)
    except OSError:
        return None
    return python if whole and python.exists() else None


def prepare(peer: str, folder: Path, *, timeout: float = 1800.0) -> Path:
    """Return the Python of a peer's environment; make it if it is not there.

    Args:
        peer: a name of :data:`~trilift.experiments.bench.pins.PINS`.
        folder: where environments lie.
        timeout: seconds for each step.

    Raises:
        PeerError: venv or pip failed (no network, say); nothing half made is left.
    """
    found = interpreter(peer, folder)
    if found is not None:
        return found
    home = _home(peer, folder)
    shutil.rmtree(home, ignore_errors=True)
    home.parent.mkdir(parents=True, exist_ok=True)
    try:
        _run([sys.executable, "-m", "venv", str(home)], timeout=timeout)
        python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        _run([*pip, *PINS[peer]], timeout=timeout)
        (home / _DONE).write_text(_text(peer), encoding="utf-8")
    except PeerError:
        shutil.rmtree(home, ignore_errors=True)
        raise
    return python


def ask(command: Sequence[str], requests: Sequence[Mapping[str, Any]], *, timeout: float) -> dict[str, Any]:
    """Run a script on requests; return its version and its answers.

    Args:
        command: the interpreter and the script.
        requests: what is asked, passed as JSON.
        timeout: seconds.

    Raises:
        PeerError: the process failed, took too long, or printed something else.
    """
    said = _run(command, timeout=timeout, text=json.dumps(list(requests)))
    try:
        reply = json.loads(said.splitlines()[-1])
        answers = reply["answers"]
        version = str(reply["version"])
    except (ValueError, KeyError, TypeError, IndexError):
        raise PeerError(f"{Path(command[-1]).name} printed no JSON answer") from None
    if len(answers) != len(requests):
        raise PeerError(f"{Path(command[-1]).name} gave {len(answers)} answers to {len(requests)} requests")
    return {"version": version, "answers": answers}


def _run(command: Sequence[str], *, timeout: float, text: str = "") -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    try:
        done = subprocess.run(
            list(command),
            input=text,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=timeout,
            env=environment | ONE_CORE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PeerError(f"{Path(command[0]).name} took more than {timeout:.0f} s") from None
    except OSError as error:
        raise PeerError(f"{command[0]}: {error.strerror or error}") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise PeerError(f"exit code {done.returncode}: {last[:_SHOWN]}")
    return done.stdout


def _home(peer: str, folder: Path) -> Path:
    digest = hashlib.sha256(_text(peer).encode()).hexdigest()[:12]
    return folder / f"{peer}-{digest}"


def _text(peer: str) -> str:
    version = ".".join(str(part) for part in sys.version_info[:2])
    return "\n".join([f"python {version}", *PINS[peer]]) + "\n"
