"""The paper's accountings and the notes', on the paper's own counters: references for the sharp one."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Any

from trilift.counters.edit.base import BaseSpec
from trilift.counters.edit.design import Design
from trilift.counters.edit.inputs import BotRule
from trilift.counters.edit.ledger import EditLedger, LedgerPart
from trilift.counters.edit.rules import PartRule, SimPartRule
from trilift.counters.edit.toeplitz_epochs import LAYOUTS
from trilift.lift.errors import ParameterError
from trilift.stream.balls import ball, narrow
from trilift.stream.gdp import ln_delta_bounds, ln_of, mu_for

__all__ = ["HAIR", "joint_design", "paper_design", "partition_reason", "root_down", "served"]

HAIR = 1 - Fraction(1, 1 << 40)
"""Part of delta that is divided; the rest is for the roundings of logarithms."""

_MU_BITS = 48


def served(kind: str) -> int | None:
    """Return how many buckets an unbounded kind serves, None for as many as there may be."""
    return LAYOUTS[kind].ends[-1] if kind in LAYOUTS else None


def root_down(square: Fraction) -> Fraction:
    """Return a square root, rounded down to about 48 binary digits."""
    size = (square.numerator.bit_length() - square.denominator.bit_length()) // 2
    unit = Fraction(2) ** (size - _MU_BITS)
    scaled = square / unit**2
    return isqrt(scaled.numerator // scaled.denominator) * unit


def partition_reason(part: SimPartRule | PartRule) -> str:
    """Return what a ledger says about a partition."""
    if isinstance(part, SimPartRule):
        return "one bucket longer and one shorter by a step; delta: the shorter one could not be"
    return (
        "3/b0 + 4/b1 of two buckets with other sums and two shifted ones; delta: a shifted one is a step long"
    )


# -- the notes' ---------------------------------------------------------------------------------------


def joint_design(
    epsilon: Fraction,
    failure: Fraction,
    *,
    mechanism: str,
    accounting: str,
    horizon: int | None,
    rate: float,
    rule: BotRule,
    display: str,
) -> Design:
    """Joint Gaussian accounting of the paper's counters (the notes' items 8, 10 and 11).

    Given P and P' the two counters, each of two independent halves with noise C, are one Gaussian mechanism
    of squared sensitivity 12 / C^2 (:data:`~trilift.counters.edit.coupling.EPOCH_FACTORS`: 8 and 4), so C =
    sqrt(12) / mu with mu = mu(8 epsilon / 9, delta_G). The partition costs epsilon / 9: SimPart at epsilon
    / 9, Part at 4 epsilon / 105. delta = delta_G + (1 + e^(8 epsilon/9)) eta + delta_E with shares 1/2,
    1/4, 1/4.

    "joint-40-9" and "joint-40-51" are references: group privacy in place of the supremum, C = sqrt(40) / mu
    (2 (16 + 4) / C^2), mu(8 epsilon/9, delta/8), eta = delta / (4 (1 + e^epsilon)), delta_E = delta / 8,
    SimPart at epsilon / 9 or epsilon / 51, delays by the paper's formula. In all at most delta / 2.
    """
    reference = accounting.startswith("joint-40")
    share = Fraction(8, 9) * epsilon
    usable = failure * HAIR
    noise, delta_E = (usable / 8, usable / 8) if reference else (usable / 2, usable / 4)
    ln_partition = ln_of(delta_E)[0]
    part: SimPartRule | PartRule
    if mechanism == "ecc":
        part = PartRule.paper(4 * epsilon / 105, ln_failure=ln_partition)
    elif reference:
        denominator = 51 if accounting.endswith("51") else 9
        part = SimPartRule.paper(epsilon / denominator, ln_failure=ln_partition)
    else:
        part = SimPartRule.paper(epsilon / 9, ln_failure=ln_partition, least=2)
    mu = mu_for(share, ln_delta=ln_of(noise)[0])
    each = root_down(mu * mu / (20 if reference else 6))  # a counter's two halves have C = sqrt(2) / each
    delays = usable / 4
    ln_eta = narrow(lambda: _over_one_plus_exp(delays, epsilon if reference else share), bits=64)[0]
    parts = (
        LedgerPart("partition", part.cost, part.ln_failure, partition_reason(part)),
        LedgerPart(
            "counts and release times",
            share,
            ln_delta_bounds(share, mu=mu)[1],
            f"({'2 (16 + 4)' if reference else '8 + 4'}) / C^2 <= mu^2, mu = {float(mu):.6g}",
        ),
        LedgerPart(
            "delays", Fraction(0), ln_of(delays)[1], "(1 + e^epsilon) eta: a delay fails on either side"
        ),
    )
    return Design(
        mechanism=mechanism,
        accounting=accounting,
        epsilon=epsilon,
        delta=failure,
        horizon=horizon,
        rate=rate,
        rule=rule,
        capacity=served("cc"),
        part=part,
        values=BaseSpec("cc", None, mu=each, change=rule.largest),
        times=BaseSpec("cc", None, mu=each),
        ln_delays=ln_eta,
        tails="paper" if reference else "exact",
        display=display,
        ledger=EditLedger(epsilon, failure, parts),
    )


def _over_one_plus_exp(value: Fraction, exponent: Fraction) -> Any:
    """ln(value / (1 + e^exponent)) as a ball."""
    return ball(value).log() - ball(exponent) - (1 + (-ball(exponent)).exp()).log()


# -- the paper's --------------------------------------------------------------------------------------


def paper_design(
    epsilon: Fraction,
    failure: Fraction,
    *,
    mechanism: str,
    accounting: str,
    horizon: int | None,
    rate: float,
    rule: BotRule,
    display: str,
) -> Design:
    """The paper's budget: epsilon' = 4 epsilon / 27, delta' = e^(-19 epsilon/27) delta / 16 for CC and BCC.

    Group privacy over four and two changed inputs: CC costs 4 epsilon' and 4 e^(4 epsilon') delta', BCC 2
    epsilon' and 2 e^(2 epsilon') delta', the partition epsilon / 9, by whose e^(epsilon/9) the deltas are
    multiplied: delta/4 and e^(-8 epsilon/27) delta/8. CC(epsilon', delta') gives half of both to its
    counters and half to its totals, C = C(epsilon'/2, delta'/2). BCC gives half of delta' to its counter,
    C(epsilon'/2, delta'/4), and half to eta = delta' / (2 (1 + e^epsilon')).

    Partition: Part at epsilon/51 with 17/3 of it spent (1 + 3/2 + 7/6 + 1 + 1), tau = 1 + 408 ln(pi^2/(2
    delta)) / epsilon, delta_E = delta/2; SimPart with 3 + ceil(102 ln(2 pi^2/(3 delta)) / epsilon), delta_E
    = delta/8.

    Tighter on the same proof: "paper-9", SimPart at epsilon/9 (it spends epsilon_p only); "paper-42", Part
    at epsilon/42 (at most four of the five kinds of buckets occur, 14/3); "paper-4/105", Part at 4
    epsilon/105 (35/12, the notes' item 10).
    """
    scale = Fraction(4, 27)
    each = scale * epsilon
    usable = failure * HAIR
    divisor = {"paper-9": Fraction(9), "paper-42": Fraction(42), "paper-4/105": Fraction(105, 4)}
    eps_p = epsilon / divisor.get(accounting, Fraction(51))
    part: SimPartRule | PartRule
    if mechanism == "simecc":
        part = SimPartRule.paper(eps_p, ln_failure=ln_of(usable / 8)[0])
        reason = "Part's 17/3 of epsilon/51, of which SimPart needs 3/17" if accounting == "paper" else ""
    else:
        part = PartRule.paper(eps_p, ln_failure=ln_of(usable / 2)[0])
        reason = {"paper": "17/3 of epsilon/51", "paper-42": "14/3 of epsilon/42"}.get(accounting, "")
    exponent = Fraction(19, 27) * epsilon
    ln_prime = ln_of(usable / 16)[0] - exponent
    halved, quartered = (ln_of(usable / n)[0] - exponent for n in (32, 64))
    # two halves with noise C = 1 / mu_for(...) each are one counter with twice the mu^2
    mu_counts = root_down(2 * mu_for(each / 2, ln_delta=halved) ** 2)
    mu_times = root_down(2 * mu_for(each / 2, ln_delta=quartered) ** 2)
    half_prime = ln_of(usable / 32)[0] - exponent

    def ln_eta() -> Any:
        return ball(half_prime) - ball(each) - (1 + (-ball(each)).exp()).log()

    parts = (
        LedgerPart("partition", epsilon / 9, part.ln_failure, reason or partition_reason(part)),
        LedgerPart(
            "counts",
            4 * each,
            ln_of(usable / 4)[1],
            "four changed inputs of CC(epsilon', delta'): 4 epsilon', e^(epsilon/9) 4 e^(4 epsilon') delta'",
        ),
        LedgerPart(
            "release times",
            2 * each,
            ln_of(usable / 8)[1] - 2 * each,
            "two changed inputs of BCC(epsilon', delta'), delays too: e^(epsilon/9) 2 e^(2 epsilon') delta'",
        ),
    )
    if ln_prime > 0:
        raise ParameterError("delta is too large for the paper's budget")
    return Design(
        mechanism=mechanism,
        accounting=accounting,
        epsilon=epsilon,
        delta=failure,
        horizon=horizon,
        rate=rate,
        rule=rule,
        capacity=served("cc"),
        part=part,
        values=BaseSpec("cc", None, mu=mu_counts, change=rule.largest),
        times=BaseSpec("cc", None, mu=mu_times),
        ln_delays=narrow(ln_eta, bits=64)[0],
        tails="paper",
        display=display,
        ledger=EditLedger(epsilon, failure, parts),
    )
