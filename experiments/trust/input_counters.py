"""Entries of the counters: constructors, and what is asked of a counter later on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from trilift.counters import BiasedCounter, Counter, GaussianCounter, chain_of, default_names
from trilift.counters.edit import (
    ECC,
    BotRule,
    EndingCounter,
    GaussianCC,
    HorizonGaussian,
    PartitionCC,
    SimECC,
    choose_design,
    make_design,
    variants,
)
from trilift.counters.turnstile import Budget, DistinctCounter, SecondMoment, TurnstileLedger, make_budget
from trilift.experiments.trust.input_entries import (
    Entry,
    Kept,
    Want,
    flag,
    maybe,
    number,
    steps,
    untried,
    whole,
    word,
)

__all__ = ["entries"]

_CHAIN = ("stage-max-9", "direct-max-4")
_STREAM: dict[str, Want] = {
    "epsilon": number(1),
    "horizon": maybe(whole(30)),
    "objective": maybe(word("max")),
    "growth": maybe(word()),
    "max_contributions": whole(2),
    "clip": flag(),
    "resolution": number(0.5),
    "output_resolution": maybe(number(0.25)),
    "dimension": maybe(whole(2)),
    "postprocess": maybe(word("nonnegative")),
    "simulation_seed": maybe(whole(7)),
    "state": untried(),
    "chain": maybe(untried()),
    "bounds": untried(),
    "norm_bound": maybe(untried()),
}


def _running() -> list[Entry]:
    """Counters of numbers."""
    toeplitz: dict[str, Any] = {
        "epsilon": 1,
        "delta": 0.001,
        "horizon": 30,
        "mechanism": "toeplitz",
        "simulation_seed": 5,
    }
    small: dict[str, Any] = {"epsilon": 1, "horizon": 30, "chain": _CHAIN, "simulation_seed": 5}
    delta: dict[str, Any] = {"delta": number(0.125), "mechanism": word("toeplitz")}
    found = [
        Entry(Counter, Counter, small, _STREAM),
        Entry(GaussianCounter, GaussianCounter, toeplitz, _STREAM | delta),
        Entry(
            BiasedCounter,
            BiasedCounter,
            toeplitz | {"base": "gaussian"},
            _STREAM | delta | {"base": word("gaussian"), "mechanism": maybe(word("toeplitz"))},
        ),
    ]
    vector: dict[str, Any] = {**small, "dimension": 2}
    found.append(Entry(Counter, Counter, vector, {"norm_bound": maybe(number(1)), "bounds": steps()}))
    unbounded = Kept(lambda: Counter(1, growth="tapered", simulation_seed=5))
    found += [
        _of(Counter.update, unbounded, {"x": 1}, x=steps(called="input"), step=maybe(whole(1))),
        _of(Counter.extend, unbounded, {}, values=untried()),
        _of(Counter.skip, unbounded, {}, steps=whole(1, called="step")),
        Entry(
            Counter.load,
            functools.partial(Counter.load, "nowhere"),
            {},
            {"path": untried(), "chain": untried(), "persist": flag()},
        ),
        _of(Counter.save, unbounded, {}, path=untried()),
    ]
    for make in (
        unbounded,
        Kept(lambda: BiasedCounter(**(toeplitz | {"base": "gaussian"}))),
        Kept(lambda: GaussianCounter(**toeplitz)),
    ):
        kind = type(make())
        found += [
            _of(kind.sd, make, {}, t=whole(2, called="step")),
            _of(
                kind.range_sd,
                make,
                {"start": 1, "stop": 3},
                start=whole(1, called="stop"),
                stop=whole(4, called="step"),
            ),
            _of(
                kind.interval,
                make,
                {"t": 2},
                t=whole(3, called="step"),
                confidence=number(0.5),
                simultaneous=flag(),
            ),
        ]
    biased = Kept(lambda: BiasedCounter(**(toeplitz | {"base": "gaussian"})))
    found.append(_of(BiasedCounter.bias, biased, {}, t=whole(2, called="step")))
    found.append(Entry(chain_of, chain_of, {"names": _CHAIN}, {"names": steps(), "norm": word("l1")}))
    found.append(
        Entry(
            default_names,
            default_names,
            {"horizon": 20, "objective": "max"},
            {"horizon": whole(20), "objective": word("max"), "norm": word("l1")},
        )
    )
    return found


def _of(method: Callable[..., Any], make: Callable[[], Any], fixed: dict[str, Any], **wants: Want) -> Entry:
    """Return the entry of a method, called on what ``make`` returns."""

    def call(**given: Any) -> Any:
        return getattr(make(), method.__name__)(**given)

    return Entry(method, call, fixed, wants)


_EDIT: dict[str, Want] = {
    "epsilon": number(1),
    "delta": number(0.125),
    "horizon": maybe(whole(50)),
    "high": number(2),
    "resolution": number(0.5),
    "clip": flag(),
    "simulation_seed": maybe(whole(7)),
    "state": untried(),
}
_DESIGNED = {
    "rate": maybe(number(0.25)),
    "base": word("gaussian"),
    "accounting": word("joint"),
    "display": word("latest"),
}


def _edit() -> list[Entry]:
    """Counters of edit neighbours."""
    fixed: dict[str, Any] = {"epsilon": 1, "delta": 1e-3, "horizon": 50, "simulation_seed": 5}
    designed: dict[str, Any] = {**fixed, "base": "chain", "accounting": "sharp"}
    found = [
        Entry(SimECC, SimECC, designed, _EDIT | _DESIGNED),
        Entry(ECC, ECC, designed, _EDIT | _DESIGNED),
        Entry(PartitionCC, PartitionCC, fixed, _EDIT | {"horizon": whole(50)}),
        Entry(GaussianCC, GaussianCC, fixed, _EDIT | {"output_resolution": maybe(number(0.25))}),
        Entry(
            HorizonGaussian,
            HorizonGaussian,
            fixed,
            _EDIT | {"horizon": whole(50), "output_resolution": maybe(number(0.25))},
        ),
        Entry(
            EndingCounter,
            EndingCounter,
            {"epsilon": 10, "delta": 1e-3, "accounting": "paper", "simulation_seed": 5},
            {
                "epsilon": number(10),
                "delta": number(0.125),
                "mechanism": word("simecc"),
                "simulation_seed": maybe(whole(7)),
                "state": untried(),
                "options": untried(),
            },
        ),
    ]
    ecc, prefix = Kept(lambda: ECC(**designed)), Kept(lambda: GaussianCC(**fixed))
    ending = Kept(lambda: EndingCounter(10, 1e-3, accounting="paper", simulation_seed=5))
    found += [
        _of(ECC.update, ecc, {"x": 1}, x=maybe(steps(called="input")), step=maybe(whole(1))),
        _of(ECC.extend, ecc, {}, values=untried()),
        _of(ECC.save, ecc, {}, path=untried()),
        _of(GaussianCC.update, prefix, {"x": 1}, x=maybe(steps(called="input")), step=maybe(whole(1))),
        _of(GaussianCC.extend, prefix, {}, values=untried()),
        _of(GaussianCC.sd, prefix, {}, t=steps(2, called="step")),
        _of(EndingCounter.update, ending, {}, x=maybe(steps(called="input"))),
        _of(EndingCounter.extend, ending, {}, values=untried()),
        Entry(ECC.load, functools.partial(ECC.load, "nowhere"), {}, {"path": untried(), "persist": flag()}),
    ]
    design = make_design(1, delta=1e-3, horizon=50, base="chain")
    seeded: dict[str, Any] = {"design": untried(), "simulation_seed": maybe(whole(7)), "state": untried()}
    found += [
        Entry(SimECC.of, SimECC.of, {"design": design, "simulation_seed": 5}, seeded),
        Entry(
            type(design).alphas,
            design.alphas,
            {"start": 1, "stop": 3},
            {"start": whole(1, called="stop"), "stop": whole(4, called="buckets")},
        ),
        Entry(
            type(design).predict,
            design.predict,
            {"horizon": 50},
            {"horizon": maybe(whole(50)), "rate": maybe(number(0.25))},
        ),
        Entry(
            PartitionCC.of,
            PartitionCC.of,
            {"design": PartitionCC(**fixed).design, "simulation_seed": 5},
            seeded,
        ),
        Entry(
            make_design,
            make_design,
            {"epsilon": 1, "delta": 1e-3, "horizon": 50, "base": "chain"},
            {
                name: want
                for name, want in (_EDIT | _DESIGNED).items()
                if name not in ("simulation_seed", "state")
            }
            | {"mechanism": word("ecc")},
        ),
    ]
    budget: dict[str, Any] = {
        "epsilon": number(1),
        "delta": number(0.125),
        "horizon": maybe(whole(50)),
        "rate": maybe(number(0.25)),
    }
    inputs: dict[str, Any] = {"inputs": untried()}
    found += [
        Entry(
            choose_design,
            choose_design,
            {"epsilon": 1, "delta": 1e-3, "horizon": 20, "mechanism": "ecc", "display": "latest"},
            budget | inputs | {"mechanism": maybe(word("ecc")), "display": maybe(word("latest"))},
        ),
        Entry(
            variants,
            variants,
            {
                "epsilon": 1,
                "delta": 1e-3,
                "horizon": 20,
                "accountings": ["sharp"],
                "bases": ["chain"],
                "displays": ["latest"],
            },
            budget | inputs | {"accountings": maybe(steps()), "bases": maybe(steps()), "displays": steps()},
        ),
        Entry(
            BotRule.make,
            BotRule.make,
            {"high": 1},
            {"high": number(2), "resolution": number(0.5), "clip": flag()},
        ),
    ]
    rule = BotRule.make()
    found += [
        Entry(BotRule.one, rule.one, {}, {"value": maybe(steps(called="input"))}),
        Entry(BotRule.many, rule.many, {}, {"values": untried()}),
        Entry(BotRule.from_record, BotRule.from_record, {}, {"record": untried()}),
    ]
    return found


_EVENTS: dict[str, Want] = {
    "epsilon": maybe(number(1)),
    "horizon": whole(60),
    "delta": maybe(number(0.125)),
    "rho": maybe(untried()),
    "base": word("chain"),
    "every": whole(2),
    "failure": number(0.125),
    "encode": untried(),
    "simulation_seed": maybe(whole(7)),
    "state": untried(),
}


def _turnstile() -> list[Entry]:
    """Counters of insertions and removals."""
    fixed: dict[str, Any] = {"epsilon": 1, "horizon": 60, "simulation_seed": 5}
    found = [
        Entry(
            DistinctCounter,
            DistinctCounter,
            fixed,
            _EVENTS
            | {
                "method": word("grouped"),
                "universe": maybe(whole(100)),
                "centre": flag(),
                "few_heavy": flag(),
                "closer": flag(),
                "narrow": flag(),
                "thresholds": word("weak"),
                "copies": maybe(whole(3)),
            },
        ),
        Entry(
            SecondMoment,
            SecondMoment,
            {**fixed, "rows": 3, "buckets": 4},
            _EVENTS
            | {
                "method": word("bucketed"),
                "accuracy": number(0.5),
                "rows": maybe(whole(3)),
                "buckets": maybe(whole(4)),
            },
        ),
    ]
    rho: dict[str, Any] = {"rho": 0.5, "horizon": 60, "simulation_seed": 5}
    found += [Entry(DistinctCounter, DistinctCounter, rho, {"rho": number(0.5)})]
    counter = Kept(lambda: DistinctCounter(**fixed))
    gaussian = DistinctCounter(**rho)
    found += [
        _of(
            DistinctCounter.update,
            counter,
            {"event": "a", "sign": 1},
            event=untried(),
            sign=whole(1),
            step=maybe(whole(1)),
        ),
        _of(DistinctCounter.extend, counter, {}, items=untried(), signs=untried()),
        _of(DistinctCounter.save, counter, {}, path=untried()),
        Entry(
            DistinctCounter.load,
            functools.partial(DistinctCounter.load, "nowhere"),
            {},
            {"path": untried(), "persist": flag(), "encode": untried()},
        ),
        Entry(
            make_budget,
            make_budget,
            {"epsilon": 1},
            {"epsilon": maybe(number(1)), "delta": maybe(number(0.125)), "rho": untried()},
        ),
        Entry(make_budget, make_budget, {"rho": 1}, {"rho": maybe(number(0.5))}),
        Entry(Budget.part, make_budget(1).part, {}, {"weight": number(0.5)}),
        Entry(TurnstileLedger.ln_delta, gaussian.ledger.ln_delta, {}, {"epsilon": number(1)}),
    ]
    return found


def entries() -> list[Entry]:
    """Return the entries of all counters."""
    return [*_running(), *_edit(), *_turnstile()]
