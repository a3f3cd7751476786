"""``trilift attack``: how well does somebody who knows the rates see an insertion through a mechanism?"""

from __future__ import annotations

import math
import sys
from contextlib import ExitStack
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from trilift.experiments.edit.attack import AttackResult, Releasing

__all__ = ["NAME", "command"]

NAME = "attack"


def command(
    file: Annotated[
        str,
        typer.Argument(
            metavar="RATES",
            help="The rate of an event at every step: a number a line, a CSV, or - for a pipe.",
        ),
    ],
    *,
    mechanism: Annotated[
        str,
        typer.Option(
            "--mechanism",
            "-m",
            help="module:object or file.py:object with release(stream, seed), or a name: BaseCC, "
            "PartitionCC, GaussianCC, HorizonGaussian, SimECC or ECC (needs --epsilon and --delta).",
        ),
    ],
    runs: Annotated[str, typer.Option("--runs", metavar="N", help="Number of independent runs.")] = "1000",
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", "-e", help="Privacy budget of a mechanism given by its name.")
    ] = None,
    delta: Annotated[str | None, typer.Option("--delta", help="Its delta, such as 1e-5.")] = None,
    column: Annotated[
        str | None, typer.Option(help="Column of a CSV with a header. (default: its only one, 'rate' or 'p')")
    ] = None,
    delimiter: Annotated[str, typer.Option(help="What separates the fields of the CSV.")] = ",",
    seed: Annotated[str, typer.Option(help="Decides the streams and the seeds of the mechanism.")] = "0",
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Attack a mechanism: can released values tell that somebody was inserted before everybody else?

    Streams of events with the given rates are released as they are, or with an event inserted in front that
    moves all others by one step. The advantage is 2 Pr[the guess is right] - 1, with its 95 % interval. This
    is a simulation: it runs code that you name, and nothing that it makes is private.
    """
    from trilift.arguments import whole
    from trilift.attacking import read_rates
    from trilift.experiments.edit.attack import check_rates, run_attack
    from trilift.lift.checks import integer
    from trilift.lift.errors import ParameterError
    from trilift.output import print_json, progress

    count = integer("runs", whole("runs", runs), minimum=1, maximum=MAX_RUNS)
    source = integer("seed", whole("seed", seed), minimum=0)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ParameterError(f"delimiter must be one character, got {delimiter!r}")
    with ExitStack() as stack:
        opened: Any = sys.stdin.buffer if file == "-" else stack.enter_context(open(file, "rb"))
        rates = check_rates(read_rates(opened, column=column, delimiter=delimiter))
    target, about = _target(mechanism, rates, epsilon=epsilon, delta=delta)
    with progress(f"Attacking {mechanism}") as report:
        found = run_attack(rates, mechanism=target, runs=count, seed=source, progress=report)
    record = {"mechanism": mechanism, **about, **found.to_json(), "seed": source}
    record["epsilon_at_least"] = _least_epsilon(found.ci_low)
    if json:
        print_json(record)
    else:
        _show(record, found)


MAX_RUNS = 10**9


def _target(
    name: str, rates: NDArray[np.float64], *, epsilon: str | None, delta: str | None
) -> tuple[Releasing, dict[str, Any]]:
    """Return what is attacked, and what is to be said of it."""
    from trilift.arguments import number
    from trilift.attacking import load_mechanism
    from trilift.experiments.edit.predicted_advantage import predicted_for
    from trilift.experiments.edit.simulated import SIMULATED, simulated
    from trilift.lift.checks import fail, finite
    from trilift.lift.errors import ParameterError

    if name not in SIMULATED:
        if ":" not in name:
            names = ", ".join(SIMULATED)
            raise ParameterError(f"--mechanism {name}: neither module:object nor one of {names}")
        if epsilon is not None or delta is not None:
            raise ParameterError("--epsilon and --delta are for mechanisms given by their names")
        return load_mechanism(name), {"epsilon": None, "ln_delta": None, "predicted_advantage": None}
    if epsilon is None or delta is None:
        raise ParameterError(f"--{'epsilon' if epsilon is None else 'delta'} is needed for {name}")
    budget = finite("epsilon", number("epsilon", epsilon, above=0), above=0)
    loss = number("delta", delta, above=0)
    if loss >= 1:
        raise fail("delta", "a number > 0 and < 1", delta)
    ln_delta = _ln(loss)
    target = simulated(name, epsilon=budget, ln_delta=ln_delta, horizon=rates.size)
    predicted = predicted_for(target.mechanism, rates=rates)
    return target, {"epsilon": budget, "ln_delta": ln_delta, "predicted_advantage": predicted}


def _ln(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


def _least_epsilon(advantage: float) -> float:
    """Return the epsilon below which no edit-private mechanism (delta 0) has such an advantage."""
    return max(0.0, math.log1p(advantage) - math.log1p(-advantage))


def _show(record: dict[str, Any], found: AttackResult) -> None:
    from trilift.output import print_pairs, write

    pairs = {
        "runs": f"{found.runs} of {found.steps} steps",
        "advantage": f"{found.advantage:.4f} (95 % interval {found.ci_low:.4f} to {found.ci_high:.4f})",
        "RMSE": f"{found.rmse:.6g} ± {found.rmse_se:.2g}",
    }
    if record["predicted_advantage"] is not None:
        pairs["predicted"] = f"{record['predicted_advantage']:.4f} by the covariance of the noise"
    if found.ci_low > 0:
        pairs["epsilon"] = f"at least {record['epsilon_at_least']:.4g} for edit neighbours (at delta 0)"
    print_pairs(pairs)
    write(f"{_verdict(found)}\n")


def _verdict(found: AttackResult) -> str:
    if found.ci_low > 0:
        return "The released values tell that somebody was inserted."
    if found.ci_high < 0:
        return "The guesses are worse than chance: the released values move the other way, or late."
    return "This attack finds nothing (another one may)."
