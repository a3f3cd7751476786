"""``trilift count``: a private running count of a stream of numbers."""

from __future__ import annotations

import sys
from contextlib import ExitStack, nullcontext
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from trilift.counters import Counter

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
        str | None, typer.Option("--horizon", "-n", metavar="N", help="Number of steps planned for.")
    ] = None,
    column: Annotated[str | None, typer.Option(help="Column to count, for a CSV with a header.")] = None,
    delimiter: Annotated[str, typer.Option(help="What separates the fields of the CSV.")] = ",",
    out: Annotated[Path | None, typer.Option(help="Write the released values to this new file.")] = None,
    objective: Annotated[
        str | None, typer.Option(help="max or mean: which squared error to make small. (default: max)")
    ] = None,
    bounds: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="LOW HIGH", help="Least and largest input. (default: 0 1)"),
    ] = None,
    clip: Annotated[
        bool | None,
        typer.Option("--clip", help="Move inputs outside the bounds to them, instead of refusing."),
    ] = None,
    resolution: Annotated[
        str | None, typer.Option(help="1 for integers, or 1/2, 1/4, ...: the lattice of decimal inputs.")
    ] = None,
    max_contributions: Annotated[
        int | None, typer.Option(help="Inputs that one person may contribute. (default: 1)")
    ] = None,
    chain: Annotated[
        list[str] | None,
        typer.Option(help="Artifact of the chain, finest first, the top last; repeat the option."),
    ] = None,
    postprocess: Annotated[str | None, typer.Option(help="nonnegative or monotone.")] = None,
    state: Annotated[
        Path | None, typer.Option(help="Continue the counter saved in this file (or begin one), and save it.")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No privacy statement and no summary.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object a line.")] = False,
) -> None:
    """Release the running sum of a stream after every input, under pure differential privacy.

    Released values go to standard output (or --out) as they come: a value a line, or for a CSV the columns
    step,released. What is guaranteed is printed to standard error first.
    """
    from trilift.arguments import new_file, number, whole
    from trilift.counting import Sink, count_stream, exclusive
    from trilift.lift.errors import ParameterError
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
        "chain": chain if state is None else [_lasting(name) for name in chain or []],
        "postprocess": postprocess,
    }
    given = {name: value for name, value in given.items() if value is not None and value != []}
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ParameterError(f"delimiter must be one character, got {delimiter!r}")
    with ExitStack() as stack:
        source: Any = sys.stdin.buffer if file == "-" else stack.enter_context(open(file, "rb"))
        stack.enter_context(nullcontext() if state is None else exclusive(state))
        continued = state is not None and state.exists()
        if out is not None and not continued:
            new_file("--out", out)
        counter = _continued(state, given) if state is not None and continued else _new(given, state)
        if continued:
            note(f"trilift: continuing after step {counter.step}: the input must hold what follows")
        statement = counter.privacy_statement()
        if not quiet:
            note(statement)
        elif statement.startswith("SIMULATION"):
            note("trilift: warning: the state belongs to a simulation: what is released protects nobody")
        if state is None:
            note(
                "trilift: warning: without --state nothing is remembered: counting the same data again "
                f"spends another {counter.epsilon} of epsilon"
            )
        form = "json" if json else "plain" if column is None else "csv"
        sink = stack.enter_context(Sink(form, path=out, append=continued))
        lines, numbers = reader(
            source, column=column, integers=counter.setup.rule.places == 0, delimiter=delimiter
        )
        count = count_stream(
            counter, lines, numbers, sink, lambda: None if state is None else counter.save(state)
        )
    if count == 0:
        raise ParameterError("the input holds no numbers")
    if not quiet:
        note(
            f"Released {count} values, up to step {counter.step} of {counter.horizon}; the standard "
            f"deviation of the last one is {counter.sd(counter.step):.6g}."
        )


def _lasting(name: str) -> str:
    """Return an artifact's name as a state keeps it: files by their whole path, good from everywhere."""
    return str(Path(name).resolve()) if name.endswith(".npz") else name


def _new(given: dict[str, Any], state: Path | None) -> Counter:
    from trilift.counters import Counter
    from trilift.lift.errors import ParameterError

    missing = [name for name in ("epsilon", "horizon") if name not in given]
    if missing:
        why = "" if state is None else f" (there is no saved state {state} yet)"
        raise ParameterError(f"--{missing[0]} is needed{why}")
    if state is not None and not state.parent.is_dir():
        raise ParameterError(f"--state {state}: the folder {state.parent} does not exist")
    counter = Counter(given.pop("epsilon"), **given)
    _prove(given.get("chain", []))
    return counter


def _prove(names: list[str]) -> None:
    """Refuse artifacts that are not proved: if T = L R fails, so does what the noise is to guarantee."""
    from trilift.artifacts import catalogue
    from trilift.verify import require_proof

    paths = {entry.name: entry.path for entry in catalogue()} if names else {}
    for name in dict.fromkeys(names):
        require_proof(Path(name) if name.endswith(".npz") else paths[name])


def _continued(state: Path, given: dict[str, Any]) -> Counter:
    """Load a counter, and refuse options that say something else than its state."""
    from trilift.counters import Counter
    from trilift.lift.errors import ReplayError, StateError

    counter = Counter.load(state)
    setup = counter.setup
    if setup.dimension is not None:
        raise StateError(f"{state} is a counter of vectors: continue it with trilift.Counter.load")
    unit = Fraction(1, 1 << setup.rule.places)
    saved = {
        "epsilon": setup.epsilon,
        "horizon": setup.horizon,
        "objective": setup.objective,
        "bounds": (setup.rule.low * unit, setup.rule.high * unit),
        "clip": setup.rule.clip,
        "resolution": unit,
        "max_contributions": setup.max_contributions,
        "chain": None if setup.names is None else list(setup.names),
        "postprocess": setup.postprocess,
    }
    for name, value in given.items():
        if value != saved[name]:
            option = name.replace("_", "-")
            raise ReplayError(f"--{option} differs from that of the saved state {state}: leave it out")
    return counter
