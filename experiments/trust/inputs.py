"""The part "inputs": hostile parameters, streams and texts, and how many of them are handled as they should.

Handled is: refused by a trilift error in one line that names what was wrong, with nothing changed and nothing
released of it, or taken as exactly the number that it is. The tables are those that the tests run over.
"""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from trilift.experiments.trust import input_counters, input_library, input_neighbours, input_texts
from trilift.experiments.trust.input_entries import Entry
from trilift.experiments.trust.input_parameters import faults, tried
from trilift.experiments.trust.input_streams import COUNTERS
from trilift.experiments.trust.input_streams import faults as stream_faults
from trilift.experiments.trust.input_streams import tried as streams_tried
from trilift.experiments.trust.program import command

__all__ = ["PART", "every_of", "measure", "parameter_entries"]

PART = "inputs"

_COSTLY = ("SimECC", "ECC", "DistinctCounter", "SecondMoment", "variants", "choose_design", "make_design")

_Row = dict[str, Any]


def parameter_entries() -> dict[str, list[Entry]]:
    """Return what is called with hostile parameters, by subject."""
    return {
        "parameters of counters": input_counters.entries(),
        "parameters of lifting, noise and proofs": input_library.entries(),
        "parameters of neighbours": input_neighbours.entries(),
    }


def every_of(entry: Entry) -> int:
    """Return of how many values one is tried where not all of them are: more where a call is slow."""
    return 90 if entry.name.rpartition(".")[2] in _COSTLY else 8


def measure(*, full: bool, seed: int = 1, tell: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Count the cases that are tried and handled, by kind.

    Args:
        full: try every value at every parameter (minutes); else some at each.
        seed: nothing is random here.
        tell: is told which kind is tried.
    """
    rows = [*_parameters(full, tell), *_streams(tell), *_texts(tell)]
    return {
        "part": PART,
        "full": full,
        "rows": rows,
        "note": "Handled: refused in one line that names it, with the state as it was; or taken as exactly"
        " the number that it is. The tests run over the same tables.",
    }


def _row(what: str, cases: int, found: list[str], detail: str) -> _Row:
    shown = detail if not found else "; ".join(found[:3])
    return {"what": what, "tried": cases, "held": cases - min(len(found), cases), "detail": shown}


def _parameters(full: bool, tell: Callable[[str], None]) -> Iterator[_Row]:
    for subject, entries in parameter_entries().items():
        tell(subject)
        cases, found, seen = 0, [], set()
        for entry in entries:
            every = 1 if full else every_of(entry)
            cases += tried(entry, every=every)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found += [str(fault) for fault in faults(entry, every=every)]
            seen |= {(entry.name, name) for name, want in entry.wants.items() if want.kind != "untried"}
        yield _row(
            subject, cases, found, f"{len(seen)} parameters of {len({name for name, _ in seen})} callables"
        )


def _streams(tell: Callable[[str], None]) -> Iterator[_Row]:
    tell("streams")
    cases, found = 0, []
    for name, kind in COUNTERS.items():
        cases += streams_tried(kind)
        found += [f"{name}: {what}" for what in stream_faults(kind)]
    detail = (
        f"{len(COUNTERS)} counters; messages equal for two histories, states equal byte by byte afterwards"
    )
    yield _row("streams", cases, found, detail)


def _texts(tell: Callable[[str], None]) -> Iterator[_Row]:
    tell("texts")
    program = command()
    found = input_texts.faults(lambda case: _outcome(program, case))
    yield _row("texts", len(input_texts.CASES), found, "count, distinct, f2 and attack, as installed")


def _outcome(program: Callable[[list[str]], int], case: input_texts.TextCase) -> input_texts.Outcome:
    """Run a command with a text as its standard input."""
    out, err = io.StringIO(), io.StringIO()
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(case.data))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = program(list(case.command))
    finally:
        sys.stdin = before
    return code, out.getvalue(), err.getvalue()
