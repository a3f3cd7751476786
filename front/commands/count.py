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
    check: Annotated[
        bool,
        typer.Option("--check", help="Only say whether every line can be counted: release and save nothing."),
    ] = False,
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
    from trilift.counting import Plain, Sink, check_stream, count_stream, exclusive
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
        stack.enter_context(nullcontext() if state is None or check else exclusive(state))
        continued = state is not None and state.exists()
        if out is not None and not continued:
            new_file("--out", out)
        if check:
            given.setdefault("epsilon", Fraction(1))  # not needed: nothing is released
        counter = _continued(state, given) if state is not None and continued else _new(given, state)
        if continued:
            note(f"trilift: continuing after step {counter.step}: the input must hold what follows")
        tally = Plain(counter)
        lines, numbers = reader(source, column=column, integers=tally.integers, delimiter=delimiter)
        if check:
            _say_fine(check_stream(tally, numbers), json)
            return
        _say_guarantee(counter, state, quiet=quiet)
        form = "json" if json else "plain" if column is None else "csv"
        sink = stack.enter_context(Sink(form, path=out, append=continued))
        count = count_stream(
            tally,
            lines,
            numbers,
            sink,
            lambda: None if state is None else counter.save(state),
            advice="" if file == "-" else " (check with --check first)",
        )
    if count == 0:
        raise ParameterError(_EMPTY)
    if not quiet:
        last = counter.step
        # a running maximum may show the value of an earlier step, of another width
        plain = counter.setup.postprocess != "monotone"
        within = f", its 95 % interval is ± {counter.interval(last):.6g}" if plain else ""
        note(
            f"Released {count} values, up to step {last} of {counter.horizon}; the standard deviation of the "
            f"last one is {counter.sd(last):.6g}{within}."
        )


_EMPTY = "the input holds no numbers"
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


def _say_guarantee(counter: Counter, state: Path | None, *, quiet: bool) -> None:
    """Say what is guaranteed, and warn of what is easily overlooked."""
    from trilift.output import note

    statement = counter.privacy_statement()
    if not quiet:
        note(statement)
    elif statement.startswith("SIMULATION"):
        note("trilift: warning: the state belongs to a simulation: what is released protects nobody")
    if counter.epsilon > _WEAK:
        note(f"trilift: warning: epsilon is above {_WEAK}, which protects little")
    if state is None:
        note(
            "trilift: warning: without --state nothing is remembered: counting the same data again "
            f"spends another {counter.epsilon} of epsilon"
        )


def _lasting(name: str) -> str:
    """Return an artifact's name as a state keeps it: files by their whole path, good from everywhere."""
    return str(Path(name).resolve()) if name.endswith(".npz") else name


def _new(given: dict[str, Any], state: Path | None) -> Counter:
    from trilift.counters import Counter
    from trilift.lift.errors import HorizonError, ParameterError

    missing = [name for name in ("epsilon", "horizon") if name not in given]
    if missing:
        why = "" if state is None else f" (there is no saved state {state} yet)"
        raise ParameterError(f"--{missing[0]} is needed{why}")
    if state is not None and not state.parent.is_dir():
        raise ParameterError(f"--state {state}: the folder {state.parent} does not exist")
    names = given.get("chain", [])
    remedy = (
        "add a direct-... artifact as the top (see: trilift plan "
        f"-n {given['horizon']} -e {given['epsilon']} {' '.join(f'--artifact {name}' for name in names)})"
    )
    _check_chain(names, remedy)
    try:
        return Counter(given.pop("epsilon"), **given)
    except HorizonError as error:
        raise HorizonError(f"{error}: {remedy}" if names else str(error)) from None


def _check_chain(names: list[str], remedy: str) -> None:
    """Refuse artifacts that are not proved: if T = L R fails, so does what the noise is to guarantee."""
    from trilift.arguments import readable_artifact
    from trilift.lift.errors import ParameterError
    from trilift.verify import require_proof

    kinds = []
    for name in names:
        path, claims = readable_artifact(name)
        require_proof(path)
        kinds.append(claims.kind)
    if kinds and kinds[-1] != "direct":
        raise ParameterError(f"--chain {names[-1]}: the last one must be a plain factorisation: {remedy}")


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
