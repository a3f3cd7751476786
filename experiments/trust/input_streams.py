"""Hostile streams for every counter: refused without a trace, or taken as the plain numbers that they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import finalize

import numpy as np
from trilift.counters import BiasedCounter, Counter, GaussianCounter
from trilift.counters.durable import DurableCounter
from trilift.counters.edit import ECC, EndingCounter, GaussianCC, HorizonGaussian, PartitionCC
from trilift.counters.turnstile import DistinctCounter, SecondMoment
from trilift.lift.errors import TriliftError

__all__ = ["COUNTERS", "Kind", "faults", "tried"]

HORIZON = 6
_LONG = 400


class SourceError(Exception):
    """What breaks a source half-way."""


def _broken(first: list[Any]) -> Iterator[Any]:
    yield from first
    raise SourceError("the source broke")


@dataclass(frozen=True)
class Kind:
    """A counter.

    Attributes:
        make: makes one, always the same.
        items: whether it takes items instead of numbers.
        missing: whether None and masked entries mean "no event".
        endless: whether a stream may have any length.
    """

    make: Callable[[], Any]
    items: bool = False
    missing: bool = False
    endless: bool = False


def _durable() -> DurableCounter:
    """Return a counter in a folder that goes with it."""
    home = TemporaryDirectory()
    counter = DurableCounter(Path(home.name) / "kept", Counter(1, chain=_CHAIN, **_SEEDED))
    finalize(counter, home.cleanup)
    return counter


_SEEDED: dict[str, Any] = {"horizon": HORIZON, "simulation_seed": 3}
_CHAIN = ("stage-max-9", "direct-max-4")

COUNTERS: dict[str, Kind] = {
    "Counter": Kind(lambda: Counter(1, chain=_CHAIN, **_SEEDED)),
    "Counter of halves": Kind(lambda: Counter(1, chain=_CHAIN, resolution=0.5, **_SEEDED)),
    "GaussianCounter": Kind(lambda: GaussianCounter(1, 0.01, mechanism="toeplitz", **_SEEDED)),
    "BiasedCounter": Kind(lambda: BiasedCounter(1, 0.01, base="gaussian", mechanism="toeplitz", **_SEEDED)),
    "ECC": Kind(lambda: ECC(1, 0.01, base="chain", **_SEEDED), missing=True),
    "PartitionCC": Kind(lambda: PartitionCC(1, 0.01, **_SEEDED), missing=True),
    "GaussianCC": Kind(lambda: GaussianCC(1, 0.01, **_SEEDED), missing=True),
    "HorizonGaussian": Kind(lambda: HorizonGaussian(1, 0.01, **_SEEDED), missing=True),
    "EndingCounter": Kind(
        lambda: EndingCounter(10, 0.01, accounting="paper", simulation_seed=3), missing=True, endless=True
    ),
    "DurableCounter": Kind(_durable),
    "DistinctCounter": Kind(lambda: DistinctCounter(1, **_SEEDED), items=True),
    "SecondMoment": Kind(lambda: SecondMoment(1, rows=3, buckets=4, **_SEEDED), items=True),
}


def _bad_numbers() -> dict[str, Callable[[], Any]]:
    """Streams that no counter of numbers within [0, 1] takes."""
    return {
        "nan": lambda: [0, float("nan")],
        "nan in an array": lambda: np.array([0, np.nan]),
        "inf": lambda: np.array([np.inf]),
        "2^53 + 1": lambda: [0, 2**53 + 1],
        "2^53 + 1 as a float": lambda: np.array([0, 2.0**53 + 1]),
        "uint64 largest": lambda: np.array([0, 2**64 - 1], dtype=np.uint64),
        "negative": lambda: np.array([0, -1], dtype=np.int8),
        "10^400": lambda: [10**400],
        "objects": lambda: np.array([0, "x"], dtype=object),
        "strings": lambda: np.array(["0", "1"]),
        "complex": lambda: np.array([0j, 1j]),
        "dates": lambda: np.array(["2020-01-01"], dtype="datetime64[D]"),
        "durations": lambda: np.array([1], dtype="timedelta64[s]"),
        "truth values": lambda: np.array([True, False]),
        "a truth value among numbers": lambda: [0, True],
        "records": lambda: np.zeros(2, dtype=[("a", int)]),
        "two dimensions": lambda: np.zeros((2, 1), dtype=int),
        "no dimensions": lambda: np.array(1),
        "nested": lambda: [0, [1]],
        "a string": lambda: "01",
        "bytes": lambda: b"01",
        "a mapping": lambda: {0: 1},
        "a set": lambda: {0, 1},
        "a number": lambda: 1,
        "None": lambda: None,
        "an object": object,
        "a generator that breaks": lambda: _broken([1, 0]),
        "too long": lambda: [0] * (HORIZON + 1),
        "too long, an array": lambda: np.zeros(HORIZON + 1, dtype=int),
        "too long, a generator": lambda: iter([0] * (HORIZON + 1)),
    }


_NO_EVENTS: dict[str, Callable[[], Any]] = {
    "None within": lambda: [0, None],
    "masked": lambda: np.ma.array([0, 1], mask=[False, True]),
    "masked nowhere": lambda: np.ma.array([0, 1]),
    "a masked entry": lambda: [0, np.ma.masked],
}

_GOOD_NUMBERS: dict[str, Callable[[], Any]] = {
    "int8": lambda: np.array([1, 0, 1], dtype=np.int8),
    "uint64": lambda: np.array([1, 0, 1], dtype=np.uint64),
    "float16": lambda: np.array([1, 0, 1], dtype=np.float16),
    "long double": lambda: np.array([1, 0, 1], dtype=np.longdouble),
    "byte-swapped": lambda: np.array([1, 0, 1], dtype=">i4").astype(np.dtype("<i4").newbyteorder()),
    "big end first": lambda: np.array([1, 0, 1], dtype=">f8"),
    "every second entry": lambda: np.array([1, 9, 0, 9, 1, 9])[::2],
    "backwards": lambda: np.array([1, 0, 1])[::-1],
    "read-only": lambda: np.frombuffer(bytes([1, 0, 1]), dtype=np.uint8),
    "a column of a matrix": lambda: np.array([[1, 5], [0, 5], [1, 5]])[:, 0],
    "tuple": lambda: (1, 0, 1),
    "generator": lambda: (x for x in (1, 0, 1)),
    "numpy numbers": lambda: [np.int64(1), np.float32(0), np.uint8(1)],
    "-0.0": lambda: [1.0, -0.0, 1.0],
}

_BAD_EVENTS: dict[str, Callable[[], Any]] = {
    "signs of 2": lambda: (["a", "b"], [1, 2]),
    "signs of nan": lambda: (["a", "b"], [1, float("nan")]),
    "signs as floats": lambda: (["a", "b"], np.array([1.0, 1.0])),
    "signs as truth values": lambda: (["a", "b"], [True, False]),
    "signs as strings": lambda: (["a", "b"], ["1", "1"]),
    "signs masked": lambda: (["a", "b"], np.ma.array([1, 1])),
    "signs uint64 largest": lambda: (["a", "b"], np.array([1, 2**64 - 1], dtype=np.uint64)),
    "signs None within": lambda: (["a", "b"], [1, None]),
    "fewer signs": lambda: (["a", "b"], [1]),
    "more signs": lambda: (iter(["a", "b"]), iter([1, 1, 1])),
    "items nan": lambda: (["a", float("nan")], None),
    "items None": lambda: (["a", None], None),
    "items truth values": lambda: (["a", True], None),
    "items floats": lambda: (np.array([0.5, 1.5]), None),
    "items lists": lambda: (["a", ["b"]], None),
    "items objects": lambda: (["a", object()], None),
    "items masked": lambda: (np.ma.array([0, 1], mask=[False, True]), None),
    "items in two dimensions": lambda: (np.zeros((2, 2), dtype=int), None),
    "a string for items": lambda: ("ab", None),
    "a number for items": lambda: (1, None),
    "items that break": lambda: (_broken(["a", "b"]), None),
    "items too many": lambda: (["a"] * (HORIZON + 1), None),
    "items too many, a generator": lambda: (iter(["a"] * (HORIZON + 1)), None),
}


def _cases(kind: Kind) -> dict[str, tuple[Callable[[], Any], bool]]:
    """Return what a counter is given, and whether it must refuse it."""
    if kind.items:
        return {name: (make, True) for name, make in _BAD_EVENTS.items()}
    bad = _bad_numbers() | ({} if kind.missing else _NO_EVENTS)
    if kind.endless:
        bad = {name: make for name, make in bad.items() if not name.startswith("too long")}
    return {name: (make, True) for name, make in bad.items()} | {
        name: (make, False) for name, make in _GOOD_NUMBERS.items()
    }


def tried(kind: Kind) -> int:
    """Return how many calls a counter is tried with."""
    return len(_cases(kind))


def _state(counter: Any, path: Path) -> bytes:
    """Return the bytes of the saved state, where there is one, else where the counter stands."""
    if not hasattr(counter, "save"):
        return repr(counter).encode()
    path.unlink(missing_ok=True)
    counter.save(path)
    return path.read_bytes()


def _given(kind: Kind, value: Any) -> tuple[Any, ...]:
    return value if kind.items else (value,)


def faults(kind: Kind) -> list[str]:
    """Give a counter everything that it must refuse or take as plain numbers, and return what went wrong.

    Two counters with different histories are given the same: their messages must be the same, so that they
    tell nothing of the private inputs before. Afterwards both states are what they were, byte by byte, and
    the next value is that of a counter to which nothing of this has happened.
    """
    found = []
    histories: list[list[Any]] = [["a", "b"], ["c", "c"]] if kind.items else [[1, 1], [0, 1]]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "state"
        counters = [kind.make() for _ in histories]
        for counter, history in zip(counters, histories, strict=True):
            counter.extend(history)
        before = [_state(counter, path) for counter in counters]
        for name, (make, bad) in _cases(kind).items():
            if not bad:
                plain = kind.make().extend([1, 0, 1])
                if not np.array_equal(kind.make().extend(make()), plain):
                    found.append(f"{name}: is not taken as plain numbers")
                continue
            messages = [_refusal(counter, _given(kind, make())) for counter in counters]
            if messages[0] != messages[1]:
                found.append(f"{name}: the message depends on the inputs before")
            found += [f"{name}: {message[1:]}" for message in messages[:1] if message.startswith("!")]
        after = [_state(counter, path) for counter in counters]
        if after != before:
            found.append("a refused stream changed the state")
        for counter, history in zip(counters, histories, strict=True):
            undisturbed = kind.make()
            undisturbed.extend(history)
            if [*counter.extend(history[:1])] != [*undisturbed.extend(history[:1])]:
                found.append("a refused stream changed what is released next")
    return found


def _refusal(counter: Any, given: tuple[Any, ...]) -> str:
    """Return the message with which a stream is refused; after "!" what is wrong with it."""
    try:
        counter.extend(*given)
    except SourceError as error:
        return str(error)
    except TriliftError as error:
        text = str(error)
        return text if "\n" not in text and len(text) <= _LONG else f"!a long message: {text[:80]}"
    except Exception as error:
        return f"!{type(error).__name__}: {str(error)[:100]}"
    return "!accepted"
