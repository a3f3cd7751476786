"""``trilift audit``: what does a mechanism really spend, at least?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from trilift.experiments.audit.engine import AuditResult

__all__ = ["NAME", "command"]

NAME = "audit"

ALL, LIST = "all", "list"


def command(
    *,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            "--mechanism",
            "-m",
            metavar="NAME",
            help="What is audited: a name, several (repeat the option), 'all', or 'list' for the names.",
        ),
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", "-e", help="The claim, and the budget that it runs with.")
    ] = None,
    delta: Annotated[
        str | None, typer.Option("--delta", help="The same for mechanisms with a delta. (default: 0.01)")
    ] = None,
    runs: Annotated[str, typer.Option("--runs", metavar="N", help="Runs of every stream.")] = "20000",
    confidence: Annotated[str, typer.Option(help="Of the bounds, together, for each mechanism.")] = "0.999",
    seed: Annotated[
        str | None, typer.Option(help="Decides all keys. (default: new ones from the operating system)")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object (a list for several).")] = False,
) -> None:
    """Audit shipped mechanisms: lower confidence bounds on the epsilon and delta that they really spend.

    Neighbouring streams are run many times through the shipped code; an event that is likelier for one of
    them than the claim allows refutes the claim. Exit code 1 if any claim is refuted. A bound below the claim
    proves nothing by itself: docs/audit.md says what an audit can see.
    """
    from trilift.arguments import number, whole
    from trilift.experiments.audit.engine import LEAST_RUNS, audit
    from trilift.experiments.audit.shipped import MECHANISMS, make_subject
    from trilift.lift.checks import fail, integer
    from trilift.lift.errors import ParameterError
    from trilift.output import print_json, progress, write

    loss = None if delta is None else number("delta", delta)
    if loss is not None and not 0 <= loss < 1:
        raise fail("delta", "a number >= 0 and < 1", delta)
    names = _names(mechanism, MECHANISMS, loss)
    if names is None:
        if json:
            print_json(list(MECHANISMS))
        else:
            write("".join(f"{name}\n" for name in MECHANISMS))
        return
    if epsilon is None:
        raise ParameterError("--epsilon is needed: the claim that is audited")
    claim = number("epsilon", epsilon, above=0)
    sure = number("confidence", confidence, above=0)
    if sure >= 1 or float(sure) >= 1:
        raise fail("confidence", "a number between 0 and 1", confidence)
    count = integer("runs", whole("runs", runs), minimum=LEAST_RUNS, maximum=MAX_RUNS)
    source = int.from_bytes(os.urandom(7), "big") if seed is None else integer("seed", whole("seed", seed))
    subjects = [make_subject(name, epsilon=claim, delta=_own(name, loss, len(names))) for name in names]
    found = []
    for subject in subjects:
        with progress(f"Auditing {subject.name}") as report:
            found.append(audit(subject, runs=count, seed=source, confidence=float(sure), progress=report))
        if not json:
            _show(found[-1])
    if json:
        records = [result.to_json() for result in found]
        print_json(records[0] if mechanism and len(mechanism) == 1 and ALL not in mechanism else records)
    if any(result.violated for result in found):
        raise typer.Exit(1)


MAX_RUNS = 10**9


def _names(asked: list[str] | None, known: Sequence[str], delta: Fraction | None) -> list[str] | None:
    """Return the names that are meant, None for the list of them."""
    from trilift.experiments.audit.shipped import resolved
    from trilift.lift.errors import ParameterError

    if not asked:
        raise ParameterError("--mechanism is needed: a name, 'all', or 'list' for the names")
    if LIST in asked:
        return None
    named = [name for given in asked for name in (known if given == ALL else (resolved(given, delta=delta),))]
    return list(dict.fromkeys(named))


def _own(name: str, delta: Fraction | None, count: int) -> Fraction | None:
    """Return the delta of a mechanism: among several, pure ones just have none."""
    from trilift.experiments.audit.shipped import PURE

    return None if name in PURE and count > 1 else delta


def _show(found: AuditResult) -> None:
    from trilift.output import print_pairs, write

    delta = f", delta {found.claimed_delta:.6g}" if found.claimed_delta else ""
    pairs: dict[str, Any] = {
        "mechanism": found.mechanism,
        "neighbours": found.neighbours,
        "claimed": f"epsilon {found.claimed_epsilon:.6g}{delta}",
        "spends": f"epsilon at least {found.epsilon_lower_bound:.6g} (confidence {found.confidence:g})",
        "shown by": f"{found.pair}: {found.event}",
        "runs": f"{found.runs} of each stream, {found.tested} of them judged; {found.pairs} pairs were tried",
    }
    if found.claimed_delta:
        pairs["delta"] = f"at least {found.delta_lower_bound:.6g} at the claimed epsilon"
    print_pairs(pairs)
    verdict = "violated: it spends more than it claims" if found.violated else "consistent with the claim"
    write(f"verdict     {verdict}\n\n")
