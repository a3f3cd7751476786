"""``trilift distinct``: how many distinct items are present, privately, while items come and go."""

from __future__ import annotations

from typing import Annotated

import typer
from trilift import turnstile_options as o

__all__ = ["NAME", "command"]

NAME = "distinct"


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
    method: Annotated[
        str | None,
        typer.Option(help="grouped, minhash, general, general-maps or hybrid. (default: grouped)"),
    ] = None,
    every: o.Every = None,
    universe: Annotated[
        str | None, typer.Option(metavar="N", help="How many different items there can be, if known.")
    ] = None,
    few_heavy: Annotated[
        bool, typer.Option("--few-heavy", help="Better estimates of few but frequent items.")
    ] = False,
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
    """Release how many distinct items are present, with an interval, under differential privacy.

    An item is present while its insertions and removals do not add up to zero. Rows step,estimate,low,high go
    to standard output (or --out) as they come; what is guaranteed is printed to standard error first.
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
        universe=universe,
        few_heavy=few_heavy,
        base=base,
        failure=failure,
    )
    source = Source(file, tuple(item_column or ()), sign_column, delimiter)
    kept = keeping(state, key=key, adopt=adopt, following=following, check=check)
    run_turnstile(
        NAME, given, source=source, out=out, kept=kept, check=check, live=live, quiet=quiet, json=json
    )
