"""Entries of the library under the counters: lifting, noise, artifacts, proofs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from trilift import artifacts, lift, stream, verify
from trilift.counters import chain_of
from trilift.experiments.trust.input_entries import (
    Entry,
    Want,
    entry,
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
_MAX = {"objective": word("max")}
_NORM = {"norm": word("l1")}


def _lift() -> list[Entry]:
    chain = chain_of(_CHAIN)
    stage, top = chain.stages[0], chain.top
    cost = lift.chain_cost(chain, 30, objective="max")
    cost_l2 = lift.chain_cost(chain, 30, objective="max", norm="l2")
    small = lift.Stage.plain(np.array([[1, 0], [1, 1]]), np.array([[1, 0], [0, 1]]))
    pair = (np.array([[1.0, 0.0], [1.0, 1.0]]), np.eye(2))
    half = lift.Dyadic([1, 2], 1)
    horizon: dict[str, Any] = {"chain": chain, "horizon": 30}
    at: dict[str, Want] = {"chain": untried(), "horizon": whole(30, called="step")}
    found = [
        entry(lift.Chain, {"top": top}, top=untried(), stages=untried()),
        Entry(lift.Chain.check_horizon, chain.check_horizon, {}, {"horizon": whole(30)}),
        Entry(lift.Chain.level_charges, chain.level_charges, {}, _NORM),
        *(
            Entry(method, method.__get__(cost), {}, {"epsilon": number(0.5)})
            for method in (
                lift.ChainCost.bound_max_se,
                lift.ChainCost.bound_mean_se,
                lift.ChainCost.max_se,
                lift.ChainCost.mean_se,
            )
        ),
        Entry(lift.ChainCost.kappa, cost.kappa, {}, _MAX),
        Entry(lift.ChainCost.gamma, cost_l2.gamma, {}, _MAX),
        Entry(
            lift.ChainCost.gaussian_se,
            cost_l2.gaussian_se,
            {"objective": "max", "rho": 1},
            {**_MAX, "rho": number(0.5)},
        ),
        *(
            Entry(m, m.__get__(stage), {}, _MAX)
            for m in (lift.Stage.cost_third, lift.Stage.gamma, lift.Stage.kappa)
        ),
        entry(
            lift.Stage,
            {"A": np.eye(2), "B": np.eye(2), "w": np.ones(2), "g": np.zeros(2)},
            A=steps(called="shapes"),
            B=steps(called="shapes"),
            w=steps(called="shapes"),
            g=steps(called="shapes"),
        ),
        entry(
            lift.Stage.plain,
            {"C": np.eye(2), "D": np.eye(2)},
            C=steps(called="shapes|A must"),
            D=steps(called="shapes|B must"),
        ),
        entry(lift.Dyadic, {"num": [1, 2]}, num=steps(called="numerators"), exp=whole(1)),
        Entry(lift.Dyadic.abs_sum, lift.Dyadic([[1]]).abs_sum, {}, {"axis": maybe(whole(0))}),
        Entry(lift.Dyadic.sum, lift.Dyadic([[1]]).sum, {}, {"axis": maybe(whole(0))}),
        entry(lift.Dyadic.concatenate, {"parts": [half, half]}, parts=untried(), axis=whole(0)),
        entry(lift.Dyadic.exact, {}, values=steps()),
        entry(lift.Dyadic.round, {"values": [0.5], "bits": 3}, values=steps(), bits=whole(3)),
        entry(lift.Dyadic.zeros, {}, shape=steps()),
        Entry(lift.Dyadic.numerators, half.numerators, {}, {"exp": whole(3)}),
        Entry(lift.Dyadic.scaled, half.scaled, {}, {"power": whole(3)}),
        entry(lift.chain_cost, {**horizon, "objective": "max"}, **at, **_MAX, **_NORM, scales=maybe(steps())),
        entry(
            lift.best_scales,
            {"charges": [1.0, 2.0], "row_norms_sq": [1.0, 2.0]},
            charges=steps(),
            row_norms_sq=steps(),
            **_NORM,
        ),
        entry(
            lift.best_alpha,
            {"first": pair, "second": pair, "objective": "max"},
            first=untried(),
            second=untried(),
            **_MAX,
        ),
        entry(
            lift.bridge,
            {"stage": small, "C": np.eye(2), "D": np.eye(2), "steps": 2},
            stage=untried(),
            C=steps(),
            D=steps(),
            steps=maybe(whole(2)),
        ),
        *(
            entry(f, {"chain": chain, "steps": [1, 2]}, chain=untried(), steps=steps(called="step"))
            for f in (lift.column_norms, lift.column_norms_sq, lift.row_norms_sq)
        ),
        entry(
            lift.compose,
            {"fine": small, "coarse": small},
            fine=untried(),
            coarse=untried(),
            ratio=number(0.5),
        ),
        entry(
            lift.diamond,
            {"first": pair, "second": pair, "alpha": 1},
            first=untried(),
            second=untried(),
            alpha=number(0.5),
        ),
        entry(lift.diamond_chain, {"base": top, "power": 1}, base=untried(), power=whole(1)),
        entry(
            lift.diamond_power,
            {"base": pair, "power": 1, "objective": "max"},
            base=untried(),
            power=whole(1),
            **_MAX,
            steps=maybe(whole(2)),
        ),
        entry(lift.horizon_scales, {**horizon, "objective": "max"}, **at, **_MAX, **_NORM),
        entry(lift.level_max_row_norms_sq, horizon, **at),
        entry(lift.lower_ones, {}, size=whole(3)),
        entry(lift.materialise, horizon, **at),
        entry(lift.max_column_charge, {**horizon, "scales": [1.0, 1.0]}, **at, scales=steps(), **_NORM),
        entry(lift.max_row_norm_sq, {**horizon, "scales": [1.0, 1.0]}, **at, scales=steps()),
        entry(lift.mean_row_norms_sq, horizon, **at, blended=flag()),
        entry(
            lift.plan,
            {"candidates": {"a": stage, "b": top}, "horizon": 30},
            candidates=untried(),
            horizon=whole(30),
            **_MAX,
            **_NORM,
            keep=whole(2),
        ),
        entry(lift.shape_of, {"stage": stage, "name": "a"}, stage=untried(), name=untried(), **_NORM),
        entry(
            lift.screen,
            {
                "shapes": [lift.shape_of(stage, name="a"), lift.shape_of(top, name="b")],
                "horizon": 30,
                "objective": "max",
            },
            shapes=untried(),
            horizon=whole(30),
            **_MAX,
            keep=whole(2),
        ),
        Entry(lift.Dense.scaled, lift.materialise(chain, 5).scaled, {}, {"scales": steps()}),
    ]
    return found


def _stream() -> list[Entry]:
    chain = chain_of(_CHAIN)
    scales = lift.horizon_scales(chain, 30, objective="max")
    ledger = stream.make_ledger(chain, 1, scales=scales)
    secret: dict[str, Any] = {"key": stream.simulation_key(1), "stream_id": bytes(16), "purpose": "trial"}
    noise = stream.Noise(chain, ledger, horizon=30, **secret)
    wants: dict[str, Any] = {
        "chain": untried(),
        "ledger": untried(),
        "horizon": whole(30),
        "key": untried(),
        "stream_id": untried(),
        "places": maybe(whole(2)),
    }
    budget: dict[str, Any] = {
        "chain": untried(),
        "scales": steps(),
        "change": number(2),
        "input_places": whole(2),
    }
    return [
        entry(stream.simulation_key, {}, seed=whole(7), name=untried()),
        entry(
            stream.make_ledger,
            {"chain": chain, "epsilon": 1, "scales": scales},
            **budget,
            epsilon=number(0.5),
        ),
        entry(
            stream.make_gaussian_ledger, {"chain": chain, "mu": 1, "scales": scales}, **budget, mu=number(0.5)
        ),
        entry(
            stream.Noise,
            {"chain": chain, "ledger": ledger, "horizon": 30, **secret},
            **wants,
            purpose=untried(),
        ),
        entry(
            stream.Noise.family,
            {
                "chain": chain,
                "ledger": ledger,
                "horizon": 30,
                "key": secret["key"],
                "stream_id": bytes(16),
                "purposes": ["a"],
            },
            **wants,
            purposes=untried(),
        ),
        Entry(type(noise).under, noise.under, secret, {"purpose": untried()}),
        Entry(type(noise).at, noise.at, {}, {"steps": steps(called="step")}),
        Entry(
            type(noise).range,
            noise.range,
            {"start": 1, "stop": 3},
            {"start": whole(1, called="stop"), "stop": whole(4, called="step")},
        ),
        Entry(type(noise).variance, noise.variance, {}, {"steps": steps(called="step")}),
        Entry(
            type(noise).covariance,
            noise.covariance,
            {"first": 1, "second": 2},
            {"first": whole(1, called="step"), "second": whole(2, called="step")},
        ),
        entry(
            stream.GaussianNoise,
            {
                "chain": chain,
                "ledger": stream.make_gaussian_ledger(chain, 1, scales=scales),
                "horizon": 30,
                **secret,
            },
            **wants,
            purpose=untried(),
        ),
        entry(stream.LaplaceRows, {}, scales=steps(called="scale")),
        entry(stream.GaussianRows, {}, scales=steps(called="scale")),
    ]


def _proofs() -> list[Entry]:
    stage = chain_of(_CHAIN).stages[0]
    half = Fraction(1, 2)
    square = lift.lower_ones(3)
    provenance = artifacts.Provenance(objective="max", size=9)
    name: dict[str, Any] = {"name": word()}
    where: dict[str, Any] = {"path": untried()}
    return [
        *(
            entry(f, {}, **name)
            for f in (artifacts.find, artifacts.find_l2, artifacts.load_stage, artifacts.load_stage_l2)
        ),
        *(
            entry(f, {"path": "nowhere"}, **where, verify_hash=flag())
            for f in (artifacts.load, artifacts.load_l2)
        ),
        *(entry(f, {}, artifact=untried(), path=untried()) for f in (artifacts.save, artifacts.save_l2)),
        *(
            entry(c.from_json, {}, record=steps(called="certificate"))
            for c in (artifacts.Certificate, artifacts.L2Certificate)
        ),
        entry(artifacts.Provenance.from_json, {}, record=steps(called="provenance")),
        entry(
            verify.from_search,
            {"result": stage, "objective": "max", "provenance": provenance},
            result=untried(),
            **_MAX,
            provenance=untried(),
            bits=untried(),
            interior=flag(),
        ),
        entry(
            verify.from_l2_search,
            {"result": stage, "objective": "max", "provenance": provenance},
            result=untried(),
            **_MAX,
            provenance=untried(),
            bits=untried(),
        ),
        entry(
            verify.certify, {"stage": stage, "objective": "max"}, stage=untried(), **_MAX, kind=maybe(word())
        ),
        entry(
            verify.certify_l2,
            {"stage": stage, "objective": "max"},
            stage=untried(),
            **_MAX,
            kind=maybe(word()),
        ),
        entry(verify.binary_lower_bound, {"size": 4, "objective": "max"}, size=whole(4), **_MAX),
        entry(verify.factorisation_lower_bound, {}, size=whole(4)),
        entry(verify.kappa_lower_bound, {}, size=whole(4)),
        entry(verify.float_down, {}, value=number(half)),
        entry(verify.float_up, {}, value=number(half)),
        entry(
            verify.gamma_up,
            {"row_norm_sq": half, "sensitivity_sq": half},
            row_norm_sq=number(half),
            sensitivity_sq=number(half),
        ),
        entry(
            verify.kappa_up,
            {"row_norm_sq": half, "sensitivity": half, "size": 4},
            row_norm_sq=number(half),
            sensitivity=number(half),
            size=whole(4),
        ),
        entry(verify.log2_enclosure, {"number": 3}, number=whole(3), bits=whole(20)),
        entry(verify.sqrt_down, {"value": half}, value=number(half), bits=whole(20)),
        entry(verify.sqrt_up, {"value": half}, value=number(half), bits=whole(20)),
        entry(
            verify.loss,
            {"stage": stage, "reference": stage, "objective": "max"},
            stage=untried(),
            reference=untried(),
            **_MAX,
            **_NORM,
        ),
        entry(verify.certify_right_factor, {"R": square}, R=steps(), places=whole(20)),
        entry(verify.right_factor_record, {}, R=steps()),
        entry(
            verify.complete,
            {"B": np.eye(2)},
            B=steps(),
            g=maybe(steps()),
            w=maybe(steps()),
            bits=untried(),
            plain=flag(),
            objective=maybe(word()),
            **_NORM,
        ),
        entry(verify.best_stage, {"B": np.eye(2)}, B=steps(), g=maybe(steps()), plain=flag()),
        entry(
            verify.from_factors,
            {"R": square, "provenance": artifacts.Provenance(objective="max", size=3)},
            R=steps(called="size"),
            left=maybe(steps(called="L must")),
            objective=word("max"),
            kind=word("direct"),
            provenance=untried(),
        ),
        *(
            entry(f, {}, path=untried())
            for f in (verify.refutation, verify.require_proof, verify.verification_report)
        ),
    ]


def entries() -> list[Entry]:
    """Return the entries of lifting, noise, artifacts and proofs."""
    return [*_lift(), *_stream(), *_proofs()]
