"""The accountings: how each divides (epsilon, delta), and why its parts add up.

What they share. x and x' are insertion neighbours. There is an injective map P -> P' between the partitions
of x and x' that may occur with a good event E (:mod:`trilift.counters.edit.coupling`), with Pr[P, E | x] <=
e^c Pr[P' | x'], c the partition's cost, and Pr[not E] <= delta_E (:mod:`trilift.counters.edit.rules`); so
in both directions. Given P and P', what is released is a function of the counter of bucket sums, whose
inputs differ in at most four places, and of the release times, a counter of bucket lengths that differ in
at most two. If for every such pair and every set A Pr[A | P, x] <= e^g Pr[A | P', x'] + d, then Pr[A | x]
<= delta_E + sum_P Pr[P, E | x] (e^g Pr[A | P', x'] + d) <= e^(g + c) Pr[A | x'] + d + delta_E. The
conditional delta d is not multiplied by e^c (Andersson, Chaturvedi, Henzinger, Safavi use it multiplied,
which is allowed and costs more).

**Release times.** The ideal I_l = t_l + alpha_l + N2_l is post-processing of the noisy counter; released is
max(t_l, I_l). The paper charges (1 + e^g) eta for this, eta >= Pr[some I_l < t_l]: Pr[A] <= Pr[I in A] +
eta, and the same for x' with the factor e^g. **Sharper (new):** let G = {I_l >= t_l + 1 for all l}, not G
having probability at most eta, and note t'_l <= t_l + 1: on the set of outcomes G, max(t_l, .) is idle for
x and max(t'_l, .) for x'. So Pr[released in A | P, x] <= Pr[I in A and G | P, x] + eta <= e^g Pr[I in A and
G | P', x'] + d + eta <= e^g Pr[released in A | P', x'] + d + eta: eta is paid once. It needs alpha_l + N2_l
>= 1 where the paper's needs more than -1, a step or two of delay.

A capacity K changes nothing: let the mechanism go on for ever and release only its first K buckets.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from trilift.counters.edit.base import GAUSSIAN, KINDS, UNBOUNDED, BaseSpec
from trilift.counters.edit.design import DISPLAYS, MECHANISMS, Design
from trilift.counters.edit.inputs import BotRule
from trilift.counters.edit.ledger import EditLedger, LedgerPart
from trilift.counters.edit.predict import checked_rate
from trilift.counters.edit.reference import (
    HAIR,
    joint_design,
    paper_design,
    partition_reason,
    root_down,
    served,
)
from trilift.counters.edit.rules import PartRule, SimPartRule
from trilift.counters.edit.tune import Split, Task, best_split, capacity_of
from trilift.counters.edit.units import Unit, unit_of
from trilift.lift.checks import choice, fail, integer, written
from trilift.lift.errors import ParameterError
from trilift.stream.gdp import ln_delta_bounds, ln_of, mu_for

__all__ = ["ACCOUNTINGS", "build"]

ACCOUNTINGS = {
    "sharp": MECHANISMS,
    "joint": MECHANISMS,
    "joint-40-51": ("simecc",),
    "joint-40-9": ("simecc",),
    "paper": MECHANISMS,
    "paper-9": ("simecc",),
    "paper-42": ("ecc",),
    "paper-4/105": ("ecc",),
}
"""The accountings, and the mechanisms that they are for."""

PURE_FROM = 100
"""Least epsilon from which "auto" looks at pure bases too (they win from about 300 on)."""

_MU_BITS = 48
_MIN_EPSILON, _MAX_EPSILON = Fraction(1, 10**6), Fraction(10**6)


def build(
    epsilon: Any,
    *,
    delta: Any,
    mechanism: str,
    accounting: str,
    base: str,
    horizon: int | None,
    rate: float | None,
    rule: BotRule,
    display: str,
) -> Design:
    """Make a design: see :func:`trilift.counters.edit.design.make_design`."""
    asked = written("epsilon", epsilon, above=0)
    if not _MIN_EPSILON <= asked <= _MAX_EPSILON:
        raise fail("epsilon", "between 1e-6 and 1e6", epsilon)
    failure = written("delta", delta, above=0)
    if not Fraction(1, 10**100) <= failure <= Fraction(1, 2):
        raise fail("delta", "between 1e-100 and 1/2", delta)
    choice("mechanism", mechanism, MECHANISMS)
    choice("accounting", accounting, ACCOUNTINGS)
    choice("display", display, DISPLAYS)
    if mechanism not in ACCOUNTINGS[accounting]:
        raise ParameterError(f"accounting {accounting!r} is for {', '.join(ACCOUNTINGS[accounting])}")
    T = None if horizon is None else integer("horizon", horizon, minimum=1, maximum=1 << 48)
    r = 0.5 if rate is None else checked_rate(rate)
    choice("base", base, ("auto", *KINDS))
    common: dict[str, Any] = {"horizon": T, "rate": r, "rule": rule, "display": display}
    if accounting != "sharp":
        if base not in ("auto", "cc"):
            raise ParameterError(f"accounting {accounting!r} is of the paper's own base, 'cc', got {base!r}")
        maker = joint_design if accounting.startswith("joint") else paper_design
        return maker(asked, failure, mechanism=mechanism, accounting=accounting, **common)
    if base == "auto":
        kinds = auto_kinds(T, asked)
    elif (T is None) != (base in UNBOUNDED):
        kind = "a horizon" if T is None else "no horizon"
        raise ParameterError(f"base {base!r} needs {kind}: {', '.join(auto_kinds(T, asked))} would do")
    else:
        kinds = (base,)
    splits = {kind: _split(asked, failure, mechanism, kind, common) for kind in kinds}
    best = min(splits, key=lambda kind: splits[kind].rmse)
    return _sharp(asked, failure, splits[best], mechanism=mechanism, kind=best, **common)


def auto_kinds(horizon: int | None, epsilon: Fraction) -> tuple[str, ...]:
    """Return the bases that "auto" chooses among: pure ones lose to Gaussian ones but for large epsilons."""
    pure = epsilon >= PURE_FROM
    if horizon is None:
        return ("gaussian-tapered", "tapered") if pure else ("gaussian-tapered",)
    return ("toeplitz", "chain") if pure else ("toeplitz",)


# -- ours ---------------------------------------------------------------------------------------------


def _deltas(failure: Fraction, gaussian: bool) -> tuple[Fraction, Fraction, Fraction]:
    """Return (delta_G, eta, delta_E): for small deltas their proportions hardly matter."""
    usable = failure * HAIR
    shares = (
        (Fraction(1, 2), Fraction(3, 10), Fraction(1, 5))
        if gaussian
        else (Fraction(0), Fraction(3, 5), Fraction(2, 5))
    )
    return usable * shares[0], usable * shares[1], usable * shares[2]


def _split(epsilon: Fraction, failure: Fraction, mechanism: str, kind: str, common: dict[str, Any]) -> Split:
    gaussian = kind in GAUSSIAN
    noise, delays, partition = _deltas(failure, gaussian)
    return best_split(
        Task(
            mechanism=mechanism,
            epsilon=float(epsilon),
            ln_noise=float(ln_of(noise)[0]) if noise else None,
            ln_delays=float(ln_of(delays)[0]),
            ln_partition=float(ln_of(partition)[0]),
            kind=kind,
            horizon=common["horizon"],
            rate=common["rate"],
            display=common["display"],
        )
    )


def _sharp(
    epsilon: Fraction,
    failure: Fraction,
    split: Split,
    *,
    mechanism: str,
    kind: str,
    horizon: int | None,
    rate: float,
    rule: BotRule,
    display: str,
) -> Design:
    """Our accounting (new): partition cost + noise <= epsilon, delta_G + eta + delta_E <= delta.

    The partition has one law for all its buckets, so that delta_E is the failure of one bucket next to a
    fixed step (:class:`~trilift.counters.edit.rules.SimPartRule`,
    :class:`~trilift.counters.edit.rules.PartRule`); eta is paid once (this module). Noise: Gaussian,
    lambda_C^2 mu_C^2 + lambda_B^2 mu_B^2 <= mu(epsilon - c, delta_G)^2, since given P and P' the two
    counters together are one Gaussian mechanism; Laplace, lambda_C epsilon_C + lambda_B epsilon_B <=
    epsilon - c, and delta_G = 0. The lambdas are exact suprema for bounded bases
    (:mod:`trilift.counters.edit.coupling`).
    """
    gaussian = kind in GAUSSIAN
    noise, delays, partition = _deltas(failure, gaussian)
    cost = _dyadic(Fraction(split.partition), 40)
    ln_partition = ln_of(partition)[0]
    part: SimPartRule | PartRule
    if mechanism == "simecc":
        part = SimPartRule.renewal(cost, ln_failure=ln_partition)
    else:
        part = PartRule.constant(cost, ln_failure=ln_partition, horizon=horizon)
    unit = unit_of(kind, None if horizon is None else capacity_of(part, horizon))
    rest = epsilon - part.cost
    values, times, noise_part = _noise(unit, rest, noise, split.counts, change=rule.largest)
    ln_delays = ln_of(delays)
    parts = (
        LedgerPart("partition", part.cost, part.ln_failure, partition_reason(part)),
        noise_part,
        LedgerPart(
            "delays", Fraction(0), ln_delays[1], "a release time that its delay does not cover, paid once"
        ),
    )
    return Design(
        mechanism=mechanism,
        accounting="sharp",
        epsilon=epsilon,
        delta=failure,
        horizon=horizon,
        rate=rate,
        rule=rule,
        capacity=unit.capacity if horizon is not None else served(kind),
        part=part,
        values=values,
        times=times,
        ln_delays=ln_delays[0],
        tails="exact",
        display=display,
        ledger=EditLedger(epsilon, failure, parts),
    )


def _noise(
    unit: Unit, rest: Fraction, noise: Fraction, share: float, *, change: Fraction
) -> tuple[BaseSpec, BaseSpec, LedgerPart]:
    """Divide what is left of epsilon between counts and times; prove the division in rationals."""
    factors = unit.factors
    counts_share = Fraction(share).limit_denominator(1 << 20)
    if not unit.gaussian:
        first = _dyadic(counts_share * rest / factors.counts, _MU_BITS)
        second = _dyadic((rest - factors.counts * first) / factors.times, _MU_BITS)
        spent = factors.counts * first + factors.times * second
        reason = (
            f"counts {float(factors.counts):.4g} x {float(first):.6g} + release times "
            f"{float(factors.times):.4g} x {float(second):.6g} (suprema x epsilon of one input)"
        )
        part = LedgerPart("counts and release times", spent, None, reason)
    else:
        mu = mu_for(rest, ln_delta=ln_of(noise)[0])
        first = root_down(counts_share * mu * mu / factors.counts)
        second = root_down((mu * mu - factors.counts * first * first) / factors.times)
        total_sq = factors.counts * first**2 + factors.times * second**2
        if total_sq > mu * mu:
            raise ParameterError("the division of mu does not add up")
        reason = (
            f"{float(factors.counts):.4g} x {float(first):.6g}^2 + {float(factors.times):.4g} x "
            f"{float(second):.6g}^2 <= mu^2, mu = {float(mu):.6g} (suprema x mu^2 of one input)"
        )
        part = LedgerPart("counts and release times", rest, ln_delta_bounds(rest, mu=mu)[1], reason)
    return unit.spec(first, change=change), unit.spec(second), part


def _dyadic(value: Fraction, bits: int) -> Fraction:
    """Round down to about this many binary digits."""
    size = value.numerator.bit_length() - value.denominator.bit_length()
    unit = Fraction(2) ** (size - bits)
    return (value // unit) * unit
