"""Soak: counters over very many steps, in flat memory, against integers evaluated directly at random steps.

    python -m trilift.experiments.trust.soak --folder FOLDER  # goes on where it was stopped

The stream is a pure function of seed and step, so that what was taken and released is known at every step
without being kept. Every so many steps the counter is saved, thrown away, loaded and continued, as if the
process had ended there. At random steps the released value is compared with the true sum plus the noise that
the chain gives at that step alone, in integers without floats, and with ``noise.at``.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from trilift.counters import Counter, GaussianCounter
from trilift.experiments.trust.parts import save_result
from trilift.lift.errors import ArtifactFormatError
from trilift.lift.files import atomic_write

__all__ = ["PART", "Soak", "main", "measure"]

PART = "soak"

_BLOCK = 1 << 17
_GROWTH = 48 << 20
"""Bytes by which the process may grow after the first tenth of a full run."""

_LOADING = 256 << 20
"""The same in a small run, whose first tenth is so short that libraries and chains are loaded after it."""

_COUNTERS: dict[str, Callable[[int], Any]] = {
    "Counter": lambda steps: Counter(1, horizon=steps, simulation_seed=1),
    "Counter without horizon": lambda steps: Counter(1, simulation_seed=1),
    "GaussianCounter": lambda steps: GaussianCounter(1, 1e-6, horizon=steps, simulation_seed=1),
}
_CLASSES: dict[str, Any] = {
    "Counter": Counter,
    "Counter without horizon": Counter,
    "GaussianCounter": GaussianCounter,
}
_PLAN = {
    "Counter": (10**8, 3 * (1 << 17)),
    "Counter without horizon": (10**7, 1 << 18),
    "GaussianCounter": (10**7, 1 << 18),
}
"""Steps: all of them, and in the small version."""


def resident() -> int:
    """Return the memory of this process in bytes, or 0 where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


@dataclass
class Soak:
    """A run over a stream that can be stopped and gone on with.

    Attributes:
        name: of the kind of counter.
        steps: in all.
        points: random steps that are compared.
        seed: of the stream and of the random steps.
        folder: where counter and position are kept.
    """

    name: str
    steps: int
    points: int
    seed: int
    folder: Path
    done: int = 0
    total: int = 0
    agreed: int = 0
    compared: int = 0
    resumed: int = 0
    memory: list[int] = field(default_factory=list)
    counter: Any = None

    def __post_init__(self) -> None:
        rng = np.random.default_rng([self.seed, 1])
        drawn = rng.choice(self.steps, size=min(self.points, self.steps), replace=False)
        self.chosen = np.unique(np.concatenate([drawn, [0, self.steps - 1]]))

    @property
    def _record(self) -> Path:
        return self.folder / f"{self.name.replace(' ', '-')}.json"

    @property
    def _state(self) -> Path:
        return self.folder / f"{self.name.replace(' ', '-')}.state"

    def start(self) -> None:
        """Make the counter, or go on with the kept one.

        Raises:
            ArtifactFormatError: the folder holds another run.
        """
        if self._record.is_file():
            record = json.loads(self._record.read_text(encoding="utf-8"))
            if record["run"] != [self.name, self.steps, self.points, self.seed]:
                raise ArtifactFormatError(
                    f"{self._record}: is of another run: remove the folder, or name another"
                )
            self.counter = _CLASSES[self.name].load(self._state)
            for key in ("done", "total", "agreed", "compared", "resumed", "memory"):
                setattr(self, key, record[key])
            if self.counter.step != self.done:
                raise ArtifactFormatError(
                    f"{self._state}: stands at step {self.counter.step}, not {self.done}"
                )
            self.resumed += 1
        else:
            self.counter = _COUNTERS[self.name](self.steps)

    def keep(self) -> None:
        """Save counter and position. Stopped between the two, the run refuses to go on."""
        keys = ("done", "total", "agreed", "compared", "resumed", "memory")
        record = {"run": [self.name, self.steps, self.points, self.seed]}
        self.counter.save(self._state)
        text = json.dumps(record | {key: getattr(self, key) for key in keys})
        atomic_write(self._record, f"{text}\n".encode())

    def advance(self) -> None:
        """Take the next block of steps, and compare the chosen ones."""
        start, stop = self.done, min(self.done + _BLOCK, self.steps)
        rng = np.random.default_rng([self.seed, 2, start // _BLOCK])
        values = rng.integers(0, 2, size=stop - start)
        released = self.counter.extend(values)
        sums = self.total + np.cumsum(values)
        for step in self.chosen[np.searchsorted(self.chosen, start) : np.searchsorted(self.chosen, stop)]:
            self.compared += 1
            self.agreed += self._agrees(int(step), int(sums[step - start]), int(released[step - start]))
        self.done, self.total = stop, int(sums[-1])
        self.memory.append(resident())

    def _agrees(self, step: int, true: int, released: int) -> bool:
        noise = self.counter._noises[0]
        if released - true != int(noise.at([step])[0]):
            return False
        evaluator = getattr(noise, "_evaluator", None)
        if evaluator is not None:
            return released - true == int(evaluator.round_exact(step, places=noise.places))
        return released - true == _epochs_exactly(noise, step)

    def run(self, *, every: int, tell: Callable[[int], None]) -> None:
        """Take all steps; every so many of them go on from what is on the disk."""
        self.start()
        while self.done < self.steps:
            self.advance()
            tell(self.done)
            if self.done % every < _BLOCK and self.done < self.steps:
                self.keep()
                self.counter = None
                self.start()

    @property
    def growth(self) -> int:
        """Bytes that the process grew by after the first tenth."""
        later = self.memory[len(self.memory) // 10 :]
        return max(later) - later[0]

    @property
    def late(self) -> int:
        """Bytes that the process grew by after the first half."""
        later = self.memory[len(self.memory) // 2 :]
        return max(later) - later[0]

    def row(self, seconds: float, *, most: int) -> dict[str, Any]:
        """Return the row of the result; ``most`` is how many bytes of growth count as flat."""
        flat = self.growth <= most
        return {
            "what": f"{self.name}, {self.steps:,} steps",
            "tried": self.compared + 1,
            "held": self.agreed + flat,
            "detail": f"{self.agreed} of {self.compared} random steps agree exactly; saved, loaded and"
            f" continued {self.resumed} times; memory grew by {self.growth / 2**20:.1f} MiB after the first"
            f" tenth (allowed: {most >> 20} MiB) and by {self.late / 2**20:.1f} MiB after the first half",
            "steps": self.steps,
            "growth_bytes": self.growth,
            "memory_bytes": max(self.memory),
            "seconds": round(seconds, 1),
        }


def _epochs_exactly(noise: Any, step: int) -> int:
    """Return the noise of a counter without horizon at one step: its parts, each in integers alone."""
    total = 0
    for kind, epoch, local in noise.parts(step):
        process = noise.process(kind, epoch)
        total += int(process._evaluator.round_exact(local, places=process.places))
    return total


def measure(
    *, full: bool, seed: int = 1, tell: Callable[[str], None] = lambda text: None, folder: Path | None = None
) -> dict[str, Any]:
    """Run the soak.

    Args:
        full: 10^8 steps, in minutes; or a small version.
        seed: of the stream and of the random steps.
        tell: is told how far it is.
        folder: keeps what is done, to go on with; a folder for the time being by default.

    Raises:
        ArtifactFormatError: the folder holds another run.
        OSError: it cannot be written.
    """
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary) if folder is None else folder
        rows = []
        for name, (all_steps, few) in _PLAN.items():
            steps = all_steps if full else few
            soak = Soak(name, steps, 1000 if full else 40, seed, home)
            begun = time.monotonic()
            said = [0]

            def told(done: int, name: str = name, steps: int = steps, said: list[int] = said) -> None:
                if 20 * done // steps > said[0]:
                    said[0] = 20 * done // steps
                    tell(f"{name}: {done:,} of {steps:,} steps")

            soak.run(every=max(steps // 10, _BLOCK), tell=told)
            rows.append(soak.row(time.monotonic() - begun, most=_GROWTH if full else _LOADING))
    return {
        "part": PART,
        "full": full,
        "seed": seed,
        "rows": rows,
        "note": "Inputs are fair bits. Values are compared at random steps, the first and the last, with "
        "noise evaluated there alone, in integers. One more case a row is memory.",
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the soak in full, with a bar; stopped, it goes on from its folder."""
    from rich.progress import Progress

    parser = argparse.ArgumentParser(description="Counters over very many steps, against exact evaluation.")
    parser.add_argument("--folder", type=Path, required=True, help="keeps what is done, to go on with")
    parser.add_argument("--small", action="store_true", help="the small version")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    with Progress(transient=True) as bar:
        task = bar.add_task("soak", total=None)
        result = measure(
            full=not chosen.small,
            seed=chosen.seed,
            tell=lambda text: bar.update(task, description=text),
            folder=chosen.folder,
        )
    save_result(result, measurements=chosen.folder)
    print(json.dumps(result, indent=1))
    return int(any(row["tried"] != row["held"] for row in result["rows"]))


if __name__ == "__main__":
    raise SystemExit(main())
