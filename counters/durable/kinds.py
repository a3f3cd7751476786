"""What a durable counter must know of each kind of counter: checked inputs, steps, secrets of its state."""

from __future__ import annotations

import dataclasses
import importlib
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from trilift.counters import state as plain_states
from trilift.counters.edit import ending_state as ending_states
from trilift.counters.edit import gaussian_state as gaussian_states
from trilift.counters.edit import state as edit_states
from trilift.counters.edit.counter import EditCounter
from trilift.counters.edit.gaussian_cc import PrefixGaussian
from trilift.counters.edit.padding import EndingCounter
from trilift.counters.released import as_array
from trilift.counters.running import RunningCounter
from trilift.counters.turnstile import state as turnstile_states
from trilift.counters.turnstile.counter import TurnstileCounter
from trilift.counters.turnstile.events import BATCH, batches, one_event
from trilift.counters.turnstile.reading import Readings
from trilift.lift.errors import ArtifactFormatError, ParameterError
from trilift.lift.integers import shrink

__all__ = ["CLASSES", "Kind", "class_named", "kind_of"]

Integers = np.ndarray[Any, np.dtype[Any]]

CLASSES = {
    "Counter": "trilift.counters.counter",
    "GaussianCounter": "trilift.counters.gaussian_counter",
    "BiasedCounter": "trilift.counters.biased_counter",
    "SimECC": "trilift.counters.edit.mechanism",
    "ECC": "trilift.counters.edit.mechanism",
    "PartitionCC": "trilift.counters.edit.partition_cc",
    "GaussianCC": "trilift.counters.edit.gaussian_cc",
    "HorizonGaussian": "trilift.counters.edit.gaussian_cc",
    "EndingCounter": "trilift.counters.edit.padding",
    "DistinctCounter": "trilift.counters.turnstile.distinct",
    "SecondMoment": "trilift.counters.turnstile.second_moment",
}
"""The counters that can be kept, and where each is."""


class Kind(Protocol):
    """How to handle a counter; the counter's lock is the caller's business."""

    def one(self, counter: Any, given: tuple[Any, ...]) -> tuple[Integers, ...]:
        """Return the arguments of ``update`` as checked arrays of one row."""

    def many(self, counter: Any, given: tuple[Any, ...]) -> tuple[Integers, ...]:
        """Return the arguments of ``extend`` as checked arrays."""

    def take(self, counter: Any, arrays: tuple[Integers, ...]) -> Any:
        """Take k >= 1 checked steps, and return what ``extend`` would."""

    def single(self, counter: Any, released: Any) -> Any:
        """Return what ``update`` would, of what :meth:`take` returned for one step."""

    def pairs(self, step: int, released: Any) -> list[tuple[int, Any]]:
        """Return (number of the step, value) of what :meth:`take` returned after so many steps."""

    def write(self, counter: Any, path: Path, key: bytes | None) -> None:
        """Save the counter, with another key in the place of its own unless that is None."""

    def rekey(self, counter: Any, key: bytes) -> None:
        """Give a loaded counter the key that its state did not hold."""

    def restart(self, counter: Any, key: bytes) -> None:
        """Put a counter back to its first step, under a key."""

    def finish(self, counter: Any) -> Any:
        """End the stream, and return what is released then."""


class _Sums:
    """Counters of numbers."""

    _states: Any

    def single(self, counter: Any, released: Any) -> Any:
        value = released[-1]
        return value.item() if isinstance(value, np.generic) else value

    def pairs(self, step: int, released: Any) -> list[tuple[int, Any]]:
        values = released.tolist() if released.ndim == 1 else list(released)
        return list(enumerate(values, step + 1))

    def write(self, counter: Any, path: Path, key: bytes | None) -> None:
        snapshot = counter._snapshot(counter._now)
        self._states.write(path, snapshot if key is None else dataclasses.replace(snapshot, key=key))

    def rekey(self, counter: Any, key: bytes) -> None:
        now = counter._now
        self.restart(counter, key)
        counter._now = now

    def restart(self, counter: Any, key: bytes) -> None:
        raise NotImplementedError

    def finish(self, counter: Any) -> Any:
        raise ParameterError(f"a {type(counter).__name__} has no end to be shown")


class _Plain(_Sums):
    _states = plain_states

    def one(self, counter: Any, given: tuple[Any, ...]) -> tuple[Integers, ...]:
        (x,) = given
        return (shrink(counter.setup.one(x))[None, :],)

    def many(self, counter: Any, given: tuple[Any, ...]) -> tuple[Integers, ...]:
        (values,) = given
        return (counter.setup.many(values),)

    def take(self, counter: Any, arrays: tuple[Integers, ...]) -> Any:
        shown = as_array(counter._advance(arrays[0]), counter.setup.output_places)
        return shown if counter.setup.dimension is not None else shown[:, 0]

    def single(self, counter: Any, released: Any) -> Any:
        return released[-1] if counter.setup.dimension is not None else super().single(counter, released)

    def restart(self, counter: Any, key: bytes) -> None:
        made = counter._made
        epochs = {} if made is None else dict(made.records)
        counter._start(counter._setup, key, counter._stream_id, counter._simulated, epochs)


class _Edit(_Sums):
    _states = edit_states

    def one(self, counter: Any, given: tuple[Any, ...]) -> tuple[Integers, ...]:
        (x,) = given
        number, bot = counter.rule.one(x)
        return (np.array([[number, bot]], dtype=np.int64 if number < 1 << 63 else object),)

    def many(self, counter: Any, given: tuple[Any, ...]) -> tuple[Integers, ...]:
        (values,) = given
        numbers, bots = counter.rule.many(values)
        return (np.stack([numbers, bots.astype(numbers.dtype)], axis=1),)

    def take(self, counter: Any, arrays: tuple[Integers, ...]) -> Any:
        return as_array(counter._advance(arrays[0]), counter.rule.places)

    def restart(self, counter: Any, key: bytes) -> None:
        counter._start(counter._design, key, counter._stream_id, counter._simulated)


class _Ending(_Edit):
    def write(self, counter: Any, path: Path, key: bytes | None) -> None:
        snapshot = counter._snapshot(counter._now)
        if key is not None:
            snapshot = dataclasses.replace(snapshot, inner=dataclasses.replace(snapshot.inner, key=key))
        ending_states.write(path, snapshot)

    def restart(self, counter: Any, key: bytes) -> None:
        counter._start(counter._ending, key, counter._stream_id, counter._simulated)

    def finish(self, counter: Any) -> Any:
        return counter._finish()


class _Prefix(_Edit):
    _states = gaussian_states

    def take(self, counter: Any, arrays: tuple[Integers, ...]) -> Any:
        return as_array(counter._advance(arrays[0]), counter.setup.output_places)

    def restart(self, counter: Any, key: bytes) -> None:
        counter._start(counter._setup, key, counter._stream_id, counter._simulated)


class _Turnstile(_Sums):
    """Events: fingerprints of the items, which are all that a counter reads of them, and signs."""

    _states = turnstile_states

    def one(self, counter: Any, given: tuple[Any, ...]) -> tuple[Integers, ...]:
        item, sign = one_event(given[0], given[1] if len(given) > 1 else None)
        return counter._prints.many([item]), np.array([sign], dtype=np.int64)

    def many(self, counter: Any, given: tuple[Any, ...]) -> tuple[Integers, ...]:
        prints, signs = [np.zeros((0, 2), dtype=np.uint64)], [np.zeros(0, dtype=np.int64)]
        for items, their in batches(given[0], given[1] if len(given) > 1 else None):
            prints.append(counter._prints.many(items))
            signs.append(their.astype(np.int64))
        return np.concatenate(prints), np.concatenate(signs)

    def take(self, counter: Any, arrays: tuple[Integers, ...]) -> Any:
        prints, signs = arrays[0], arrays[1].astype(np.int8)
        now, parts = counter._now, []
        for start in range(0, len(signs), BATCH):
            now, readings = counter._after(now, prints[start : start + BATCH], signs[start : start + BATCH])
            parts.append(readings)
        counter._move(now)
        return Readings.joined(parts)

    def single(self, counter: Any, released: Any) -> Any:
        return released[0] if len(released) else None

    def pairs(self, step: int, released: Any) -> list[tuple[int, Any]]:
        return [(reading.step, reading) for reading in released]

    def restart(self, counter: Any, key: bytes) -> None:
        counter._start(counter._blueprint, key, counter._stream_id, counter._seed, counter._encode)


def kind_of(counter: Any) -> Kind:
    """Return how to handle a counter.

    Raises:
        ParameterError: no counter that can be kept.
    """
    if CLASSES.get(type(counter).__name__) == type(counter).__module__:
        for base, kind in _KINDS:
            if isinstance(counter, base):
                return kind
    raise ParameterError(f"counter must be one of {', '.join(CLASSES)}, got a {type(counter).__name__}")


_KINDS: tuple[tuple[type, Kind], ...] = (
    (RunningCounter, _Plain()),
    (EditCounter, _Edit()),
    (EndingCounter, _Ending()),
    (PrefixGaussian, _Prefix()),
    (TurnstileCounter, _Turnstile()),
)


def class_named(name: Any) -> Any:
    """Return the class of a name of :data:`CLASSES`.

    Raises:
        ArtifactFormatError: an unknown name.
    """
    if not isinstance(name, str) or name not in CLASSES:
        raise ArtifactFormatError("the folder keeps a counter that this library does not know")
    return getattr(importlib.import_module(CLASSES[name]), name)
