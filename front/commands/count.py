"""``trilift count``: a private running count of a stream of numbers."""

from __future__ import annotations

import sys
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from trilift.counting import Tally

__all__ = ["NAME", "command"]

NAME = "count"


def command(
    file: Annotated[
        str, typer.Argument(help="Text file with a number a line, a CSV (--column), or - for a pipe.")
    ],
    *,
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", "-e", help="Privacy budget, such as 1, 0.1 or 1/3.")
    ] = None,
    horizon: Annotated[
        str | None, typer.Option("--horizon", "-n", metavar="N", help="Most inputs that there will ever be.")
    ] = None,
    column: Annotated[str | None, typer.Option(help="Column to count, for a CSV with a header.")] = None,
    delimiter: Annotated[str, typer.Option(help="What separates the fields of the CSV.")] = ",",
    out: Annotated[Path | None, typer.Option(help="Write the released values to this new file.")] = None,
    objective: Annotated[
        str | None, typer.Option(help="max or mean: which squared error to make small. (default: max)")
    ] = None,
    bounds: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="LOW HIGH", help="Least and largest input; noise grows with HIGH - LOW. (default: 0 1)"
        ),
    ] = None,
    clip: Annotated[
        bool | None,
        typer.Option("--clip", help="Move inputs outside the bounds to them, instead of refusing."),
    ] = None,
    resolution: Annotated[
        str | None, typer.Option(help="1 for integers, or 1/2, 1/4, ...: the lattice of decimal inputs.")
    ] = None,
    neighbours: Annotated[
        str | None,
        typer.Option(help="swap: one input differs; edit: one is inserted, others shift. (default: swap)"),
    ] = None,
    delta: Annotated[
        str | None, typer.Option(help="Such as 1e-6: for edit neighbours, or Gaussian noise.")
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(
            help="Edit neighbours: auto, simecc, ecc, gaussian. With --delta alone: chain, toeplitz."
        ),
    ] = None,
    unbounded: Annotated[
        bool | None, typer.Option("--unbounded", help="No horizon: count for as long as data come.")
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            help="Edit neighbours: a public guess of what a step counts on average, at most 1. (default: 1/2)"
        ),
    ] = None,
    display: Annotated[
        str | None,
        typer.Option(
            help="Edit: what to show between counts: latest, or extrapolated at the mean rate. "
            "(default: latest)"
        ),
    ] = None,
    max_contributions: Annotated[
        int | None,
        typer.Option(help="Inputs that one person may contribute; noise grows with it. (default: 1)"),
    ] = None,
    chain: Annotated[
        list[str] | None,
        typer.Option(help="Artifact of the chain, finest first, the top last; repeat the option."),
    ] = None,
    postprocess: Annotated[str | None, typer.Option(help="nonnegative or monotone.")] = None,
    state: Annotated[
        Path | None,
        typer.Option(help="Folder that keeps the counter: begun, or continued after whatever ended it."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(help="Keep the key apart from the state: env:NAME or file:PATH (64 hex digits)."),
    ] = None,
    adopt: Annotated[
        int | None,
        typer.Option(
            metavar="STEP",
            help="The state is a copy, its original is gone, and no value after STEP was seen by anybody.",
        ),
    ] = None,
    following: Annotated[
        bool,
        typer.Option("--following", help="The input holds what follows the last step, not all of it again."),
    ] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Only say whether every line can be counted: release and save nothing."),
    ] = False,
    live: Annotated[
        bool,
        typer.Option("--live", help="Draw what is released, with its error, as it comes, if in a terminal."),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No privacy statement and no summary.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object a line.")] = False,
) -> None:
    """Release the running sum of a stream after every input, under differential privacy.

    Released values go to standard output (or --out) as they come: a value a line, or for a CSV the columns
    step,released. What is guaranteed is printed to standard error first.
    """
    from trilift.arguments import new_file, number, whole
    from trilift.counting import Sink, check_stream, count_stream
    from trilift.counting_kinds import begun, continued
    from trilift.counting_plain import lasting
    from trilift.keeping import keeping
    from trilift.lift.errors import ParameterError
    from trilift.live import LiveView, band_of, silent
    from trilift.live import live as drawn
    from trilift.output import note
    from trilift.reading import reader

    given = {
        "epsilon": None if epsilon is None else number("epsilon", epsilon, above=0),
        "horizon": None if horizon is None else whole("horizon", horizon),
        "objective": objective,
        "bounds": None if bounds is None else tuple(number("bounds", bound) for bound in bounds),
        "clip": clip,
        "resolution": None if resolution is None else number("resolution", resolution, above=0),
        "max_contributions": max_contributions,
        "chain": chain if state is None else [lasting(name) for name in chain or []],
        "postprocess": postprocess,
        "neighbours": neighbours,
        "delta": None if delta is None else number("delta", delta, above=0),
        "mechanism": mechanism,
        "unbounded": unbounded,
        "display": display,
        "rate": None if rate is None else number("rate", rate, above=0),
    }
    given = {name: value for name, value in given.items() if value is not None and value != []}
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ParameterError(f"delimiter must be one character, got {delimiter!r}")
    if live and check:
        raise ParameterError("--live is of no use with --check, which releases nothing: leave it out")
    kept = keeping(state, key=key, adopt=adopt, following=following, check=check)
    with ExitStack() as stack:
        source: Any = sys.stdin.buffer if file == "-" else stack.enter_context(open(file, "rb"))
        stack.enter_context(nullcontext() if check else kept.lock())
        if out is not None and not (kept.whole or kept.single):
            new_file("--out", out)
        if kept.begun:
            tally = continued(given, kept=kept)
            note(kept.says(tally.step))
        else:
            tally = begun(given, state=state, check=check)
        stack.callback(tally.close)
        again = tally.counter.again() if kept.whole else None
        lines, numbers = reader(
            source,
            column=column,
            integers=tally.integers,
            delimiter=delimiter,
            no_event=tally.no_event,
        )
        if check:
            _say_fine(check_stream(tally, numbers, again=again), json)
            return
        _say_guarantee(tally, state, quiet=quiet)
        form = "json" if json else "plain" if column is None else "csv"
        view = None
        if live:
            title = f"trilift count, epsilon {tally.epsilon}"
            view = LiveView(title, horizon=tally.horizon, band=band_of(tally.counter))
        options: dict[str, Any] = {"append": kept.single, "mend": kept.whole}
        sink = stack.enter_context(Sink(form, path=out, view=view, silent=silent(view), **options))
        stack.enter_context(drawn(view))
        count = count_stream(
            tally,
            lines,
            numbers,
            sink,
            lambda: tally.save(state) if kept.single and state is not None else None,
            begin=kept.beginner(tally),
            again=again,
            advice="" if file == "-" else " (check with --check first)",
        )
    if count == 0:
        if again is None:
            raise ParameterError(_EMPTY)
        note(f"trilift: nothing follows step {tally.step}: no value is new")
    elif not quiet:
        note(f"Released {count} values, up to step {tally.step}{tally.summary()}.")


_EMPTY = "the input holds no numbers"
_LOOSE = 1e-3
_WEAK = 20  # e^20 is half a billion: at such an epsilon, a guarantee is one in name only


def _say_fine(count: int, json: bool) -> None:
    from trilift.lift.errors import ParameterError
    from trilift.output import print_json, write

    if count == 0:
        raise ParameterError(_EMPTY)
    if json:
        print_json({"rows": count})
    else:
        write(f"{count} row{'s'[: count != 1]}, fine\n")


def _say_guarantee(tally: Tally, state: Path | None, *, quiet: bool) -> None:
    """Say what is guaranteed, and warn of what is easily overlooked."""
    from trilift.output import note

    statement = tally.statement()
    if not quiet:
        note(statement)
    elif statement.startswith("SIMULATION"):
        note("trilift: warning: the state belongs to a simulation: what is released protects nobody")
    if tally.epsilon > _WEAK:
        note(f"trilift: warning: epsilon is above {_WEAK}, which protects little")
    if tally.delta is not None and tally.delta > _LOOSE:
        note(f"trilift: warning: delta is above {_LOOSE:g}: with about that probability nothing is protected")
    if state is None:
        delta = "" if tally.delta is None else f" and {float(tally.delta):.6g} of delta"
        note(
            "trilift: warning: without --state nothing is remembered: counting the same data again "
            f"spends another {tally.epsilon} of epsilon{delta}"
        )
