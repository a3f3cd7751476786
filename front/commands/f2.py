"""``trilift f2``: the second moment of the items present, privately, while items come and go."""

from __future__ import annotations

from typing import Annotated

import typer
from trilift import turnstile_options as o

__all__ = ["NAME", "command"]

NAME = "f2"


def command(
    file: o.File,
    *,
    item_column: o.ItemColumns = None,
    sign_column: o.SignColumn = None,
    delimiter: o.Delimiter = ",",
    horizon: o.Horizon = None,
    epsilon: o.Epsilon = None,
    delta: o.Delta = None,
    rho: o.Rho = None,
    method: Annotated[str | None, typer.Option(help="bucketed or rows. (default: bucketed)")] = None,
    every: o.Every = None,
    accuracy: Annotated[
        str | None,
        typer.Option(help="Relative part of the error; less takes more memory. (default: 0.5)"),
    ] = None,
    base: o.Base = None,
    failure: o.Failure = None,
    out: o.Out = None,
    state: o.State = None,
    key: o.Key = None,
    adopt: o.Adopt = None,
    following: o.Following = False,
    check: o.Check = False,
    live: o.Live = False,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Release the sum of the items' squared frequencies, with an interval, under differential privacy.

    The frequency of an item is the sum of its signs. Rows step,estimate,low,high go to standard output (or
    --out) as they come; what is guaranteed is printed to standard error first.
    """
    from trilift.keeping import keeping
    from trilift.turnstile_running import Source, run_turnstile

    given = o.collected(
        horizon=horizon,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        method=method,
        every=every,
        accuracy=accuracy,
        base=base,
        failure=failure,
    )
    source = Source(file, tuple(item_column or ()), sign_column, delimiter)
    kept = keeping(state, key=key, adopt=adopt, following=following, check=check)
    run_turnstile(
        NAME, given, source=source, out=out, kept=kept, check=check, live=live, quiet=quiet, json=json
    )
