"""``trilift plan --neighbours edit``: prices of edit-private mechanisms, as JSON or as a table and words."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from trilift.counters.edit.choose import Choice
from trilift.counters.edit.design import DISPLAYS
from trilift.counters.edit.predict import checked_rate
from trilift.counters.edit.tune import NOMINAL_HORIZON
from trilift.edit_plan import Variant, edit_variants
from trilift.lift.checks import choice
from trilift.lift.errors import ParameterError
from trilift.output import print_json, print_pairs, print_table, write

__all__ = ["plan_edit"]

_RATE = Fraction(1, 2)
_COLUMNS = """\
error: predicted for a constant rate, root mean square over all steps; 0 is shown until about the first
update, after so many events (what counts 0 is none). Where the rate changes a lot, 'extrapolated' can do
worse.

"""


def plan_edit(
    epsilon: Fraction,
    *,
    delta: Fraction | None,
    horizon: int | None,
    unbounded: bool,
    rate: Fraction | None,
    display: str | None,
    html: Path | None,
    json: bool,
) -> None:
    """Price all mechanisms for edit neighbours, and print them.

    Args:
        epsilon: > 0.
        delta: in (0, 1); needed.
        horizon: number of steps planned for; with ``unbounded`` the number over which errors are predicted.
        unbounded: mechanisms without a horizon.
        rate: expected events a step, of the largest size; 1/2 when left out.
        display: "latest" or "extrapolated"; both are priced when left out.
        html: file of a report, or None.
        json: print JSON.

    Raises:
        ParameterError: an argument that is missing or not acceptable.
    """
    if delta is None:
        raise ParameterError("--delta is needed for edit neighbours, such as 1e-6")
    if horizon is None and not unbounded:
        raise ParameterError("--horizon is needed, or --unbounded")
    steps = NOMINAL_HORIZON if horizon is None else horizon
    events = checked_rate(_RATE if rate is None else rate)
    variants = edit_variants(
        epsilon,
        delta=delta,
        horizon=None if unbounded else horizon,
        steps=steps,
        rate=events,
        displays=DISPLAYS if display is None else (choice("display", display, DISPLAYS),),
    )
    length = "--unbounded" if unbounded else f"--horizon {horizon}"
    options = f"--neighbours edit --epsilon {epsilon} --delta {float(delta):g} {length}"
    use = _use(variants[0].choice, options, rate)
    records = [variant.record() for variant in variants]
    about = {"neighbours": "edit", "epsilon": str(epsilon), "delta": str(delta)}
    place = {"horizon": None if unbounded else horizon, "steps": steps, "rate": events}
    record = {**about, **place, "variants": records, "chosen": records[0]}
    if html is not None:
        from trilift.reports import edit_report, written

        written(edit_report(record, use=use), html)
    if json:
        print_json(record)
        return
    endless = " of a stream without end" if unbounded else ""
    title = (
        f"Edit neighbours, {steps} steps{endless}, epsilon {epsilon}, delta {float(delta):.6g}, "
        f"{events:g} events a step; the best one first"
    )
    _show(variants, title)
    print_pairs({"use": use})


def _show(variants: list[Variant], title: str) -> None:
    columns = ["mechanism", "noise", "accounting", "shows", "error", "first update", "events"]
    rows = [
        [
            variant.choice.mechanism,
            variant.choice.base,
            variant.choice.accounting,
            variant.choice.display,
            f"{variant.predicted_rmse:.4g}",
            f"step {variant.choice.first_update_steps:.0f}",
            f"{variant.first_update_events:.0f}",
        ]
        for variant in variants
    ]
    print_table(title, columns, rows, left=columns[:4])
    write(_COLUMNS)
    for variant in _told(variants):
        about = f"{variant.choice.mechanism} ({variant.choice.accounting}, {variant.choice.display})"
        write(f"{about}: {' '.join(variant.words)}\n")
    write("\n")


def _told(variants: list[Variant]) -> list[Variant]:
    """Return the best variant of each mechanism, and the paper's ECC, whose first threshold is large."""
    told: dict[tuple[str, bool], Variant] = {}
    for variant in variants:
        paper = (variant.choice.mechanism, variant.choice.accounting) == ("ecc", "paper")
        told.setdefault((variant.choice.mechanism, paper), variant)
    return list(told.values())


def _use(chosen: Choice, options: str, rate: Fraction | None) -> str:
    """Return the command that counts with the best mechanism."""
    name, more = "gaussian", ""
    if chosen.design is not None:
        name = chosen.mechanism
        more = f" --display {chosen.display}" + ("" if rate is None else f" --rate {rate}")
    return f"trilift count FILE --mechanism {name} {options}{more}"
