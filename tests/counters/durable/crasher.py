"""Counts in processes that are killed, for the tests: prints how often that succeeded.

python crasher.py FOLDER LOG KIND random COUNT SEED    kill -9 at random times, COUNT times
python crasher.py FOLDER LOG KIND calls COUNT SEED     die at each of the first COUNT calls that change a file

What a process saw is in LOG, a line "step value" each.
"""

import itertools
import os
import random
import signal
import sys
import time
import traceback
from typing import Any

from trilift.counters import BiasedCounter, Counter, GaussianCounter
from trilift.counters.durable import DurableCounter
from trilift.counters.edit import ECC, EndingCounter, GaussianCC, HorizonGaussian, PartitionCC, SimECC
from trilift.counters.turnstile import DistinctCounter, SecondMoment

CHAIN = (*6 * ("stage-max-9",), "direct-max-4")
MAKERS: dict[str, Any] = {
    "Counter": lambda: Counter(1, horizon=2_000_000, chain=CHAIN, simulation_seed=1),
    "endless": lambda: Counter(1, horizon=None, simulation_seed=1),
    "vectors": lambda: Counter(1, horizon=5000, dimension=3, resolution=0.5, simulation_seed=1),
    "GaussianCounter": lambda: GaussianCounter(1, 1e-6, horizon=5000, simulation_seed=1),
    "BiasedCounter": lambda: BiasedCounter(1, 1e-6, horizon=5000, simulation_seed=1),
    "SimECC": lambda: SimECC(10, 1e-5, horizon=1000, base="toeplitz", simulation_seed=3),
    "ECC": lambda: ECC(1000, 1e-5, horizon=1000, base="toeplitz", simulation_seed=3),
    "PartitionCC": lambda: PartitionCC(1000, 1e-5, horizon=1000, simulation_seed=1),
    "GaussianCC": lambda: GaussianCC(10, 1e-5, simulation_seed=1),
    "HorizonGaussian": lambda: HorizonGaussian(10, 1e-5, horizon=1000, simulation_seed=1),
    "EndingCounter": lambda: EndingCounter(2000, 1e-5, mechanism="ecc", base="cc", simulation_seed=3),
    "DistinctCounter": lambda: DistinctCounter(rho=10**5, horizon=1000, every=3, simulation_seed=1),
    "hybrid": lambda: DistinctCounter(rho=10**5, horizon=1000, method="hybrid", simulation_seed=1),
    "SecondMoment": lambda: SecondMoment(rho=1, horizon=1000, every=5, simulation_seed=1),
}
EVENTS = {"DistinctCounter", "hybrid", "SecondMoment"}
EDIT = {"SimECC", "ECC", "PartitionCC", "EndingCounter", "GaussianCC", "HorizonGaussian"}


def given(kind: str, step: int) -> tuple[Any, ...]:
    """The arguments of ``update`` for a step (from 1)."""
    mixed = (step * 2654435761) % 2**32
    if kind in EVENTS:
        return f"item {mixed % 37}", (1, 1, 0, -1)[mixed >> 20 & 3]
    if kind == "vectors":
        return ([mixed & 1, (mixed >> 9 & 1) / 2, mixed >> 5 & 1],)
    if kind in EDIT and mixed >> 18 & 3 == 0:
        return (None,)
    return (mixed >> 16 & 1,)


def many(kind: str, first: int, count: int) -> tuple[Any, ...]:
    """The arguments of ``extend``."""
    rows = [given(kind, step) for step in range(first, first + count)]
    return tuple([row[place] for row in rows] for place in range(len(rows[0])))


def count_on(folder: str, log: str, kind: str, seed: int, size: int) -> None:
    """Go on counting, and write down what is seen."""
    random_numbers = random.Random(seed)
    if any(name.startswith("state.") and name[6:].isdigit() for name in os.listdir(folder)):
        counter = DurableCounter.open(folder, journal_bytes=size)
    else:
        counter = DurableCounter(folder, MAKERS[kind](), journal_bytes=size)
    seen = REAL["open"](log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with counter:
        while True:
            first, count = counter.step + 1, random_numbers.choice((1, 1, 1, 7, 40))
            if count == 1:
                values = [counter.update(*given(kind, first))]
            else:
                values = list(counter.extend(*many(kind, first, count)))
            lines = "".join(f"{step} {value!r}\n" for step, value in enumerate(map(plain, values), first))
            REAL["write"](seen, lines.encode())


def plain(value: Any) -> Any:
    """A released value as plain Python numbers."""
    return value.tolist() if hasattr(value, "tolist") else value


CALLS = ("open", "write", "fsync", "replace", "pwrite", "ftruncate", "unlink", "mkdir", "chmod")
REAL = {name: getattr(os, name) for name in CALLS}


def die_at(number: int) -> None:
    """Let the process die at a call that changes a file: before it, or in the middle of a write."""
    made = itertools.count()

    def dying(name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            if next(made) == number:
                if name == "write":
                    handle, data = arguments
                    REAL["write"](handle, data[: len(data) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return REAL[name](*arguments, **options)

        return call

    for name in CALLS:
        setattr(os, name, dying(name))


def wait_for_more(log: str, child: int) -> None:
    """Wait until a child has seen something, for a minute at most."""
    before = os.path.getsize(log) if os.path.exists(log) else 0
    for _ in range(60_000):
        if os.path.exists(log) and os.path.getsize(log) > before:
            return
        time.sleep(0.001)
    raise TimeoutError(f"process {child} counts nothing")


def main() -> None:
    """Kill as often as asked."""
    folder, log, kind, way = sys.argv[1:5]
    count, seed = int(sys.argv[5]), int(sys.argv[6])
    random_numbers = random.Random(seed)
    os.makedirs(folder, exist_ok=True)
    MAKERS[kind]()  # loads what is needed before the first fork
    killed = 0
    for point in range(count):
        child = os.fork()
        if child == 0:
            try:
                if way == "calls":
                    die_at(point)
                count_on(folder, log, kind, seed + point, 700 if way == "calls" else 3000)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        if way == "random":
            if point % 4:
                wait_for_more(log, child)  # else it may die while it makes or opens the folder
            time.sleep(random_numbers.uniform(0.0, 0.05))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed += os.WIFSIGNALED(status)
    print(killed)


if __name__ == "__main__":
    main()
