"""Processes that are killed with SIGKILL at random instants; run by itself, so that one thread forks.

    python -m trilift.experiments.trust.kill_runs '{"kind": "GaussianCC", "points": 20, "seed": 1}'

Prints {"tried", "held", "steps"} as JSON. A kill point is held if what the killed process had shown is what
an uninterrupted counter of the same key shows, no step was taken twice, and the next process could go on.
"""

from __future__ import annotations

import ast
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from trilift.counters import Counter, GaussianCounter
from trilift.counters.durable import DurableCounter
from trilift.counters.edit import ECC, GaussianCC, HorizonGaussian, PartitionCC, SimECC
from trilift.counters.turnstile import DistinctCounter, SecondMoment
from trilift.experiments.trust.program import command, part_of_program

__all__ = ["COMMAND", "MAKERS", "killed_command", "killed_counter"]

MAKERS: dict[str, Callable[[], Any]] = {
    "GaussianCC": lambda: GaussianCC(10, 1e-5, simulation_seed=1),
    "HorizonGaussian": lambda: HorizonGaussian(10, 1e-5, horizon=1 << 20, simulation_seed=1),
    "PartitionCC": lambda: PartitionCC(1000, 1e-5, horizon=1 << 12, simulation_seed=1),
    "SimECC": lambda: SimECC(10, 1e-5, horizon=1 << 12, base="toeplitz", simulation_seed=3),
    "ECC": lambda: ECC(1000, 1e-5, horizon=1 << 12, base="toeplitz", simulation_seed=3),
    "Counter": lambda: Counter(1, horizon=1 << 12, simulation_seed=1),
    "GaussianCounter": lambda: GaussianCounter(1, 1e-6, horizon=1 << 12, simulation_seed=1),
    "DistinctCounter": lambda: DistinctCounter(rho=10**5, horizon=1 << 12, simulation_seed=1),
    "SecondMoment": lambda: SecondMoment(rho=1, horizon=1 << 12, simulation_seed=1),
}
"""Counters that are killed; their noise can be made again, so that an uninterrupted one can be compared."""

COMMAND = "trilift count"
_LINES, _BATCH = 400, 7
_EVENTS = {"DistinctCounter", "SecondMoment"}
_ROOM = 1 << 11  # steps after which a new folder is begun


def _given(kind: str, step: int) -> tuple[Any, ...]:
    mixed = (step * 2654435761) % (1 << 32)
    if kind in _EVENTS:
        return f"item {mixed % 37}", (1, 1, 0, -1)[mixed >> 20 & 3]
    return (mixed >> 16 & 1,)


def _many(kind: str, first: int, count: int) -> tuple[Any, ...]:
    rows = [_given(kind, step) for step in range(first, first + count)]
    return tuple([row[place] for row in rows] for place in range(len(rows[0])))


def _child(act: Callable[[], None]) -> int:
    """Fork a process that does something, until it is killed; exit code 0 if it comes to its end."""
    child = os.fork()
    if child:
        return child
    try:
        act()
    except BaseException as error:  # nothing may go on in the fork
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(1)
    os._exit(0)


def _killed(act: Callable[[], None], delay: float) -> int:
    """Kill a process that does something after so many seconds; return its status: -9, or its exit code."""
    child = _child(act)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _count_on(kind: str, folder: Path, seen: Path, seed: int) -> None:
    """Count by updates and extends, and write down what was shown: a line "step value" each."""
    sizes = random.Random(seed)
    if DurableCounter.is_at(folder):
        counter = DurableCounter.open(folder, journal_bytes=4000)
    else:
        counter = DurableCounter(folder, MAKERS[kind](), journal_bytes=4000)
    handle = os.open(seen, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    while counter.step < 2 * _ROOM - 40:
        first, count = counter.step + 1, sizes.choice((1, 1, 1, 7, 30))
        if count == 1:
            values = [counter.update(*_given(kind, first))]
        else:
            values = list(counter.extend(*_many(kind, first, count)))
        lines = [f"{step} {_plain(value)!r}\n" for step, value in enumerate(values, first)]
        os.write(handle, "".join(lines).encode())
    signal.pause()  # all that is compared is counted: it is killed here


def _plain(value: Any) -> Any:
    if hasattr(value, "estimate"):
        return (value.step, value.estimate, value.low, value.high)
    return value.item() if hasattr(value, "item") else value


def _first_seen(kind: str, folder: Path, seen: Path) -> float:
    """Return the seconds that a process takes until it shows something; it is killed then."""
    start = time.monotonic()
    child = _child(lambda: _count_on(kind, folder, seen, 0))
    while not seen.exists() and time.monotonic() < start + 120:
        time.sleep(0.002)
    taken = time.monotonic() - start
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return taken


def killed_counter(kind: str, *, points: int, seed: int) -> dict[str, Any]:
    """Kill a process that counts by ``update`` and ``extend``, so many times.

    Args:
        kind: one of :data:`MAKERS`.
        points: how often.
        seed: of the instants and sizes.
    """
    instants, held, steps, tried = random.Random(seed), 0, 0, 0
    seen = Path("seen")
    reach = 2 * _first_seen(kind, Path("trial"), seen)
    values = [_plain(value) for value in MAKERS[kind]().extend(*_many(kind, 1, 2 * _ROOM))]
    seen.unlink(missing_ok=True)
    folder, last, runs = Path("kept-0"), 0, 0
    while tried < points and runs < 3 * points + 20:
        runs += 1
        act = partial(_count_on, kind, folder, seen, seed + runs)
        status = _killed(act, instants.uniform(0, reach))
        tried += status == -signal.SIGKILL
        lines = seen.read_text().splitlines() if seen.exists() else []
        seen.unlink(missing_ok=True)
        pairs = [
            (int(number), ast.literal_eval(text)) for number, _, text in (x.partition(" ") for x in lines)
        ]
        numbers = [number for number, _ in pairs]
        fits = numbers == list(range(last + 1, last + 1 + len(numbers))) or (
            bool(numbers) and numbers[0] > last and numbers == list(range(numbers[0], numbers[-1] + 1))
        )
        fits = fits and all(value == values[number - 1] for number, value in pairs)
        last = numbers[-1] if numbers else last
        if DurableCounter.is_at(folder):
            with DurableCounter.open(folder) as counter:
                fits = fits and counter.step >= last
                again = counter.released(max(1, counter.step - 2)) if counter.step else []
                fits = fits and all(_plain(value) == values[number - 1] for number, value in again)
                steps, full = steps + len(pairs), counter.step >= _ROOM
        else:
            fits, full = fits and not last, False
        held += fits and status == -signal.SIGKILL
        if full:
            folder, last = Path(f"kept-{runs}"), 0
    return {"tried": tried, "held": held, "steps": steps}


def killed_command(*, points: int, seed: int) -> dict[str, Any]:
    """Kill ``trilift count FILE --state DIR --out OUT``, so many times; the last run of each is not."""
    counting, program = part_of_program("counting"), command()
    instants, held, tried, steps = random.Random(seed), 0, 0, 0
    inputs = [_given("", step)[0] for step in range(1, _LINES + 1)]
    Path("in.csv").write_text("\n".join(["x", *map(str, inputs), ""]))
    make = MAKERS["HorizonGaussian"]
    values = make().extend(inputs).tolist()
    rows = [f"{step},{counting.value_text(value)}" for step, value in enumerate(values, 1)]
    whole = "\n".join(["step,released", *rows, ""]).encode()
    reach, life = 0.0, 0
    while tried < points and life < points + 20:
        life += 1
        out, folder = Path(f"out-{life}.csv"), Path(f"kept-{life}")
        DurableCounter(folder, make(), journal_bytes=2000).close()

        def run(out: Path = out, folder: Path = folder) -> None:
            counting._BATCH = _BATCH
            arguments = ["count", "in.csv", "--column", "x", "-q", "--state", str(folder), "--out", str(out)]
            os.dup2(os.open("said", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
            code = program(arguments)
            if code:
                raise RuntimeError(f"exit code {code}")

        if not reach:
            start = time.monotonic()
            os.waitpid(_child(run), 0)
            reach = 1.1 * (time.monotonic() - start)
            continue  # this one was not killed
        here, fits = 0, True
        for _ in range(min(8, points - tried)):
            status = _killed(run, instants.uniform(0, reach))
            here += status == -signal.SIGKILL
            fits = fits and status in (0, -signal.SIGKILL)
            fits = fits and (not out.exists() or whole.startswith(out.read_bytes()))
        code = os.waitstatus_to_exitcode(os.waitpid(_child(run), 0)[1])
        fits = fits and code == 0 and out.read_bytes() == whole
        tried, held, steps = tried + here, held + (here if fits else 0), steps + _LINES
    return {"tried": tried, "held": held, "steps": steps}


def main() -> None:
    """Do what the argument says, in a folder that is removed after."""
    asked = json.loads(sys.argv[1])
    kind, points, seed = asked["kind"], asked["points"], asked["seed"]
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        if kind == COMMAND:
            done = killed_command(points=points, seed=seed)
        else:
            done = killed_counter(kind, points=points, seed=seed)
        os.chdir(before)
    print(json.dumps(done))


if __name__ == "__main__":
    main()
