"""``trilift plan --neighbours edit``: prices of edit-private mechanisms, as JSON or as a table and words."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from trilift.edit_plan import ASSUMED_HORIZON, Variant, edit_variants
from trilift.lift.checks import finite
from trilift.lift.errors import ParameterError
from trilift.output import print_json, print_pairs, print_table, write

__all__ = ["plan_edit"]

_RATE = Fraction(1, 2)


def plan_edit(
    epsilon: Fraction,
    *,
    delta: Fraction | None,
    horizon: int | None,
    unbounded: bool,
    rate: Fraction | None,
    display: str | None,
    json: bool,
) -> None:
    """Price all mechanisms for edit neighbours, and print them.

    Args:
        epsilon: > 0.
        delta: in (0, 1); needed.
        horizon: number of steps planned for; with ``unbounded`` the number over which errors are predicted.
        unbounded: mechanisms without a horizon.
        rate: expected events a step, of the largest size; 1/2 when left out.
        display: "latest" or "extrapolated".
        json: print JSON.

    Raises:
        ParameterError: an argument that is missing or not acceptable.
    """
    if delta is None:
        raise ParameterError("--delta is needed for edit neighbours, such as 1e-6")
    if horizon is None and not unbounded:
        raise ParameterError("--horizon is needed, or --unbounded")
    steps = ASSUMED_HORIZON if horizon is None else horizon
    events = finite("rate", _RATE if rate is None else rate, above=0, maximum=1)
    variants = edit_variants(
        epsilon,
        delta=delta,
        horizon=None if unbounded else horizon,
        steps=steps,
        rate=events,
        display="latest" if display is None else display,
    )
    if json:
        records = [variant.record() for variant in variants]
        about = {"neighbours": "edit", "epsilon": str(epsilon), "delta": str(delta)}
        place = {"horizon": None if unbounded else horizon, "steps": steps, "rate": events}
        print_json({**about, **place, "variants": records, "chosen": records[0]})
        return
    endless = " of a stream without end" if unbounded else ""
    title = (
        f"Edit neighbours, {steps} steps{endless}, epsilon {epsilon}, delta {float(delta):.6g}, "
        f"{events:g} events a step; the best one first"
    )
    _show(variants, title)
    length = "--unbounded" if unbounded else f"--horizon {horizon}"
    options = f"--neighbours edit --epsilon {epsilon} --delta {float(delta):g} {length}"
    _show_use(variants[0], options, rate=rate, display=display)


def _show(variants: list[Variant], title: str) -> None:
    columns = ["mechanism", "noise", "accounting", "error", "first update", "events"]
    rows = [
        [
            variant.mechanism,
            variant.base,
            variant.accounting,
            f"{variant.predicted_rmse:.4g}",
            f"step {variant.first_update_steps:.0f}",
            f"{variant.first_update_events:.0f}",
        ]
        for variant in variants
    ]
    print_table(title, columns, rows, left=("mechanism", "noise", "accounting"))
    write("error: predicted, root mean square over all steps. Until about the first update, 0 is shown.\n\n")
    for variant in _told(variants):
        write(f"{variant.mechanism} ({variant.accounting}, {variant.base}): {' '.join(variant.words)}\n")
    write("\n")


def _told(variants: list[Variant]) -> list[Variant]:
    """Return the best variant of each mechanism, and the paper's ECC, whose first threshold is large."""
    best = {variant.mechanism: variant for variant in reversed(variants)}
    paper = [one for one in variants if (one.mechanism, one.accounting) == ("ecc", "paper")]
    told = [*best.values(), *paper]
    return [variant for variant in variants if variant in told]


def _show_use(chosen: Variant, options: str, *, rate: Fraction | None, display: str | None) -> None:
    designed: dict[str, Any] = {"rate": rate, "display": display} if chosen.mechanism != "gaussian" else {}
    more = "".join(f" --{name} {value}" for name, value in designed.items() if value is not None)
    print_pairs({"use": f"trilift count FILE --mechanism {chosen.mechanism} {options}{more}"})
