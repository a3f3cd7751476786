"""What ``trilift distinct`` and ``trilift f2`` do: check a stream of events, or release as it comes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trilift.arguments import new_file
from trilift.counters.durable.replay import Again
from trilift.counters.turnstile.budget import Budget
from trilift.counters.turnstile.expected import Expected, expected
from trilift.counting import check_stream, count_stream
from trilift.counting_turnstile import begun, continued
from trilift.keeping import Keeping
from trilift.lift.errors import ParameterError
from trilift.live import LiveView, silent
from trilift.live import live as drawn
from trilift.output import note, print_json, write
from trilift.reading_events import Event, event_reader
from trilift.tallies_turnstile import ReadingSink, Turnstile

__all__ = ["Source", "run_turnstile"]

_EMPTY = "the input holds no events"
_WEAK_EPSILON, _WEAK_RHO, _LOOSE = 20, 10, 1e-3


@dataclass(frozen=True)
class Source:
    """Where events come from.

    Attributes:
        file: path, or "-" for standard input.
        items: columns of the item, none for an item a line.
        sign: column of the sign, or None.
        delimiter: of the CSV.
    """

    file: str
    items: tuple[str, ...]
    sign: str | None
    delimiter: str


class _Unmade:
    """Stands for a counter that is not made: it accepts every event, up to a horizon if there is one."""

    step = 0

    def __init__(self, horizon: int | None) -> None:
        self.horizon = horizon

    def checked(self, number: int, value: Event) -> Event:
        return value

    def arguments(self, inputs: list[Event]) -> tuple[Any, ...]:
        raise NotImplementedError

    def advance(self, inputs: list[Event]) -> list[Any]:
        raise NotImplementedError

    def save(self, path: Path) -> None:
        raise NotImplementedError

    def statement(self) -> str:
        raise NotImplementedError


def run_turnstile(
    command: str,
    given: dict[str, Any],
    *,
    source: Source,
    out: Path | None,
    kept: Keeping,
    check: bool,
    quiet: bool,
    json: bool,
    live: bool = False,
) -> None:
    """Run a command.

    Args:
        command: "distinct" or "f2".
        given: options of the counter, those alone that were given.
        source: the events.
        kept: where the counter is kept.
        out, check, quiet, json, live: as the options of these names.

    Raises:
        TriliftError, OSError: see ``docs/cli.md``; what was released before stays released.
    """
    if len(source.delimiter) != 1 or source.delimiter in '"\r\n':
        raise ParameterError(f"delimiter must be one character, got {source.delimiter!r}")
    if live and check:
        raise ParameterError("--live is of no use with --check, which releases nothing: leave it out")
    with ExitStack() as stack:
        raw: Any = sys.stdin.buffer if source.file == "-" else stack.enter_context(open(source.file, "rb"))
        stack.enter_context(nullcontext() if check else kept.lock())
        if out is not None and not (kept.whole or kept.single):
            new_file("--out", out)
        lines, events = event_reader(raw, items=source.items, sign=source.sign, delimiter=source.delimiter)
        tally = Turnstile(continued(command, given, kept=kept)) if kept.begun else None
        again = None
        if tally is not None:
            note(kept.says(tally.step))
            stack.callback(tally.close)
            again = tally.counter.again() if kept.whole else None
        if check:
            _check(command, given, events, tally, again=again, json=json)
            return
        if tally is None:
            tally = Turnstile(begun(command, given, state=kept.path))
            stack.callback(tally.close)
        _say_guarantee(tally, kept.path, source, quiet=quiet)
        form = "json" if json else "csv"
        view = LiveView(_title(command, tally), horizon=tally.horizon, readings=True) if live else None
        options: dict[str, Any] = {"append": kept.single, "mend": kept.whole}
        sink = stack.enter_context(ReadingSink(form, path=out, view=view, silent=silent(view), **options))
        stack.enter_context(drawn(view))
        count = count_stream(
            tally,
            lines,
            events,
            sink,
            lambda: tally.save(kept.path) if kept.single and kept.path is not None else None,
            begin=kept.beginner(tally),
            again=again,
            advice="" if source.file == "-" else " (check with --check first)",
        )
    if count == 0:
        if again is None:
            raise ParameterError(_EMPTY)
        note(f"trilift: nothing follows step {tally.step}: no value is new")
    elif not quiet:
        note(_summary(tally, count, sink))


def _title(command: str, tally: Turnstile) -> str:
    budget: Budget = tally.counter.budget
    spent = f"rho {budget.rho}" if budget.epsilon is None else f"epsilon {budget.epsilon}"
    return f"trilift {command}, {spent}, a value every {tally.counter.every} events"


def _summary(tally: Turnstile, count: int, sink: ReadingSink) -> str:
    last = sink.last
    shown = (
        f"none before step {tally.counter.every}"
        if last is None
        else f"the last is {last.estimate:.6g}, in [{last.low:.6g}, {last.high:.6g}]"
    )
    return (
        f"Took {count} events, up to step {tally.step} of {tally.horizon}; released {sink.written}: {shown}."
    )


def _check(
    command: str,
    given: dict[str, Any],
    events: Iterator[tuple[int, Event]],
    tally: Turnstile | None,
    *,
    again: Again | None,
    json: bool,
) -> None:
    """Say whether all lines can be counted, and what to expect of the counter if it is known which."""
    counter = None if tally is None else tally.counter
    if counter is None and "horizon" in given and ("rho" in given or "epsilon" in given):
        counter = begun(command, given, state=None)
    taker = _Unmade(given.get("horizon")) if counter is None else Turnstile(counter)
    rows = check_stream(taker, events, again=again)
    if rows == 0:
        raise ParameterError(_EMPTY)
    if counter is None and ("rho" in given or "epsilon" in given):
        counter = begun(command, {**given, "horizon": rows}, state=None)
    words: Expected | None = None if counter is None else expected(counter.blueprint)
    if json:
        print_json({"rows": rows, "expected": None if words is None else words.record()})
        return
    write(f"{rows} row{'s'[: rows != 1]}, fine\n")
    if words is None:
        note("trilift: with --rho or --epsilon, --check also says what to expect")
    else:
        write(words.as_text() + "\n")


def _say_guarantee(tally: Turnstile, state: Path | None, source: Source, *, quiet: bool) -> None:
    """Say what is guaranteed, and warn of what is easily overlooked."""
    statement = tally.statement()
    if not quiet:
        note(statement)
        if source.sign is None:
            note("Every line inserts: no --sign-column is given.")
    elif statement.startswith("SIMULATION"):
        note("trilift: warning: the state belongs to a simulation: what is released protects nobody")
    budget: Budget = tally.counter.budget
    if budget.epsilon is not None and budget.epsilon > _WEAK_EPSILON:
        note(f"trilift: warning: epsilon is above {_WEAK_EPSILON}, which protects little")
    if budget.epsilon is None and budget.amount > _WEAK_RHO:
        note(f"trilift: warning: rho is above {_WEAK_RHO}, which protects little")
    if budget.delta is not None and budget.delta > _LOOSE:
        note(f"trilift: warning: delta is above {_LOOSE:g}: with about that probability nothing is protected")
    if state is None:
        spent = f"{budget.epsilon} of epsilon" if budget.epsilon is not None else f"{budget.rho} of rho"
        delta = "" if budget.delta is None else f" and {float(budget.delta):.6g} of delta"
        note(
            "trilift: warning: without --state nothing is remembered: counting the same data again "
            f"spends another {spent}{delta}"
        )
