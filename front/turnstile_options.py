"""Options that ``trilift distinct`` and ``trilift f2`` share, and their texts as exact values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from trilift.arguments import number, whole

__all__ = ["collected"]

File = Annotated[
    str, typer.Argument(help="Text file with an item a line, a CSV (--item-column), or - for a pipe.")
]
ItemColumns = Annotated[
    list[str] | None,
    typer.Option("--item-column", help="Column of the item, for a CSV with a header; several make a tuple."),
]
SignColumn = Annotated[
    str | None,
    typer.Option(
        "--sign-column",
        help="Column with 1 (insertion), -1 (removal) or 0 (no event). (default: every row inserts)",
    ),
]
Delimiter = Annotated[str, typer.Option(help="What separates the fields of the CSV.")]
Horizon = Annotated[
    str | None, typer.Option("--horizon", "-n", metavar="N", help="Number of events planned for.")
]
Epsilon = Annotated[
    str | None, typer.Option("--epsilon", "-e", help="Privacy budget, such as 1: pure, or with --delta.")
]
Delta = Annotated[str | None, typer.Option(help="Such as 1e-6: Gaussian noise, (epsilon, delta).")]
Rho = Annotated[str | None, typer.Option(help="Privacy budget of zCDP: Gaussian noise.")]
Every = Annotated[
    str | None, typer.Option(metavar="K", help="Release a value after every K events. (default: 1)")
]
Base = Annotated[str | None, typer.Option(help="Noise: auto, chain or tree. (default: auto)")]
Failure = Annotated[
    str | None, typer.Option(help="Probability that some released interval is wrong. (default: 0.01)")
]
Out = Annotated[Path | None, typer.Option(help="Write the released rows to this new file.")]
State = Annotated[
    Path | None,
    typer.Option(help="Folder that keeps the counter: begun, or continued after whatever ended it."),
]
Key = Annotated[
    str | None,
    typer.Option(help="Keep the key apart from the state: env:NAME or file:PATH (64 hex digits)."),
]
Adopt = Annotated[
    int | None,
    typer.Option(
        metavar="STEP",
        help="The state is a copy, its original is gone, and no value after STEP was seen by anybody.",
    ),
]
Following = Annotated[
    bool,
    typer.Option("--following", help="The input holds what follows the last step, not all of it again."),
]
Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="Only say whether every line can be counted and, for a budget, what to expect: release nothing.",
    ),
]
Live = Annotated[
    bool,
    typer.Option("--live", help="Draw what is released, with its interval, as it comes, if in a terminal."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No privacy statement and no summary.")]
Json = Annotated[bool, typer.Option("--json", help="Print a JSON object a line.")]

_NUMBERS = ("epsilon", "delta", "rho", "failure", "accuracy")
_WHOLE = ("horizon", "every", "universe")


def collected(**texts: Any) -> dict[str, Any]:
    """Return the options that were given, numbers exact.

    Raises:
        ParameterError: a text that is no number of its kind.
    """
    given = {name: value for name, value in texts.items() if value is not None and value is not False}
    exact = {name: number(name, given[name], above=0) for name in _NUMBERS if name in given}
    return {**given, **exact, **{name: whole(name, given[name]) for name in _WHOLE if name in given}}
