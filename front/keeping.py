"""Where the command line keeps its counters: in folders; single files are continued where there are some."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trilift.counters.durable import DurableCounter
from trilift.counters.durable.outside import read_key
from trilift.counters.lock import exclusive
from trilift.lift.errors import ParameterError, StateError

__all__ = ["COMMANDS", "Keeping", "check_command", "keeping"]

COMMANDS = {
    "Counter": "count",
    "GaussianCounter": "count",
    "SimECC": "count",
    "ECC": "count",
    "GaussianCC": "count",
    "HorizonGaussian": "count",
    "DistinctCounter": "distinct",
    "SecondMoment": "f2",
}
"""Which command continues which class of counters."""


@dataclass(frozen=True, repr=False)
class Keeping:
    """What the options --state, --key, --adopt and --following say; see :func:`keeping`.

    Attributes:
        path: the state, or None.
        key: the key that is kept apart, or None.
        adopt: last step that was seen, or None.
        following: whether the input holds only what follows.
        single: whether the state is a single file.
        begun: whether the state is there, to be continued.
    """

    path: Path | None
    key: Any = None
    adopt: int | None = None
    following: bool = False
    single: bool = False
    begun: bool = False

    @property
    def state(self) -> Path:
        """The state's path.

        Raises:
            StateError: none was named.
        """
        if self.path is None:
            raise StateError("no state is named")
        return self.path

    @property
    def whole(self) -> bool:
        """Whether the input must begin with what was counted before."""
        return self.begun and not self.single and not self.following

    def lock(self) -> AbstractContextManager[None]:
        """Return the lock of a single file, for a ``with`` block; folders lock themselves."""
        return exclusive(self.path) if self.single and self.path is not None else nullcontext()

    def says(self, step: int) -> str:
        """Return what people are told about a state that is continued after a step."""
        what = "begin with what was counted, which is compared" if self.whole else "hold what follows"
        return f"trilift: continuing after step {step}: the input must {what}"

    def opened(self, command: str) -> DurableCounter:
        """Open the folder, for a command.

        Raises:
            TriliftError, OSError: as :meth:`trilift.counters.durable.DurableCounter.open`; another command
                continues it.
        """
        check_command(DurableCounter.kind_at(self.state), command, self.state)
        return DurableCounter.open(self.state, key=self.key, adopt=self.adopt)

    def beginner(self, tally: Any) -> Callable[[], None]:
        """Return what begins the folder of a tally's counter, the first time that it is called."""

        def begin() -> None:
            if not self.begun and self.path is not None and not isinstance(tally.counter, DurableCounter):
                tally.counter = DurableCounter(self.path, tally.counter, key=self.key)

        return begin


def keeping(
    state: Path | None, *, key: str | None, adopt: int | None, following: bool, check: bool = False
) -> Keeping:
    """Read the options about the state.

    Raises:
        ParameterError: options that contradict each other or what is there; no such key.
        StateError: the folder holds other things.
    """
    if state is None:
        for name, value in (("key", key), ("adopt", adopt), ("following", following or None)):
            if value is not None:
                raise ParameterError(f"--{name} is of no use without --state")
        return Keeping(None)
    if check and adopt is not None:
        raise ParameterError("--adopt is written into the state, and --check saves nothing: leave out one")
    single = state.exists() and not state.is_dir()
    begun = single or DurableCounter.is_at(state)
    if single and (key is not None or adopt is not None):
        raise ParameterError(f"--key and --adopt are for states that are folders, {state} is a file")
    if not begun and adopt is not None:
        raise ParameterError(f"--adopt: no counter was begun in {state}")
    source = key if key is None or key.startswith(("env:", "file:")) else ""
    if source == "":
        raise ParameterError("--key must be env:NAME or file:PATH")  # a key itself would be seen by others
    return Keeping(
        state, None if source is None else bytes(read_key(source)), adopt, following, single, begun
    )


def check_command(kind: str, command: str, state: Path) -> None:
    """Check that a command continues a class of counters.

    Raises:
        ParameterError: another one does, or none.
    """
    wanted = COMMANDS.get(kind)
    if wanted == command:
        return
    if wanted is None:
        raise ParameterError(f"{state} keeps a {kind}: continue it from Python")
    raise ParameterError(f"{state} keeps a {kind}: continue it with trilift {wanted}")
