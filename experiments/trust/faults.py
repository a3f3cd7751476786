"""Planted faults: is each of them found by the audit, and is the mechanism without it found consistent?"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from fractions import Fraction
from typing import Any

from trilift.experiments.audit.engine import CONFIDENCE, AuditResult, audit
from trilift.experiments.audit.planted import FAULTS, Fault
from trilift.experiments.audit.shipped import make_subject

__all__ = ["PART", "measure", "tried"]

PART = "faults"

_QUICK = ("half-even", "coarse-lattice")


def tried(fault: Fault, *, planted: bool, runs: int, seed: int) -> AuditResult:
    """Audit a fault's mechanism at epsilon 1, with the fault or as it is shipped."""
    with fault.planted() if planted else nullcontext():
        subject = make_subject(fault.mechanism, epsilon=Fraction(1))
        return audit(subject, runs=runs, seed=seed)


def measure(*, full: bool, seed: int = 1, tell: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Plant every fault (a few that show quickly unless ``full``)."""
    rows = []
    for name in FAULTS if full else _QUICK:
        fault = FAULTS[name]
        tell(f"fault: {fault.what}")
        runs = fault.runs * (2 if full else 1)
        bad = tried(fault, planted=True, runs=runs, seed=seed)
        good = tried(fault, planted=False, runs=runs, seed=seed)
        rows.append(
            {
                "what": fault.what,
                "tried": 1,
                "held": int(bad.violated and not good.violated),
                "detail": f"{fault.mechanism} claims epsilon 1 and spends at least"
                f" {bad.epsilon_lower_bound:.3g}: {bad.pair}; without the fault"
                f" at least {good.epsilon_lower_bound:.3g}",
                "fault": name,
                "bound": bad.epsilon_lower_bound,
                "bound_without": good.epsilon_lower_bound,
                "runs": bad.runs,
            }
        )
    note = (
        "Each fault is put into the shipped code from outside, and the mechanism is audited at a claim of"
        f" epsilon 1. A fault counts as caught if the claim is refuted (confidence {CONFIDENCE:g}), and the"
        " same audit without the fault finds the claim consistent."
    )
    return {"part": PART, "full": full, "rows": rows, "note": note}
