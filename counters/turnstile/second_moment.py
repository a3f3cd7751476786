"""The second moment of a turnstile stream, F2 = sum of squared frequencies, released at every k-th step."""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from trilift.counters.state_file import exact_number
from trilift.counters.turnstile.bases import make_base, restored_base
from trilift.counters.turnstile.blueprint import (
    Blueprint,
    Common,
    Mechanism,
    check_common,
    hash_words,
    restored_terms,
)
from trilift.counters.turnstile.budget import Budget, LedgerPart, TurnstileLedger, make_budget
from trilift.counters.turnstile.counter import TurnstileCounter
from trilift.counters.turnstile.moment import RowSketch, TableSketch
from trilift.counters.turnstile.moment_bounds import row_plan, table_shape
from trilift.counters.turnstile.sketch import Linear, Sketch
from trilift.lift.checks import choice, integer, written
from trilift.lift.errors import ParameterError
from trilift.stream.keys import Secret

__all__ = ["METHODS", "SecondMoment", "moment_sketch"]

METHODS = ("bucketed", "rows")
_MOST_ROWS = 1 << 13
_MOST_BUCKETS = 1 << 20
_MOST_COUNTERS = 1 << 22

_LINES = {
    "bucketed": "median of rows of signed buckets, the noise's own second moment taken off",
    "rows": "mean square of signed sums, the noise's own second moment taken off",
}


class SecondMoment(TurnstileCounter):
    """Private second moment F2 = sum over items of x_j^2, x_j the sum of the signs of item j's events.

    Neighbours: streams that differ in one event, whose pair (item, sign) is another one; nothing shifts.
    Guarantee: all released values together are pure epsilon-DP (``epsilon``), rho-zCDP (``rho``), or
    (epsilon, delta)-DP (``epsilon`` and ``delta``), for adaptively chosen events. Composition: every row of
    counters is changed by an event by 2 in l1 and in l2 norm at most, so that s rows have l1 sensitivity 2 s
    and squared l2 sensitivity 4 s; each is given epsilon / s or rho / s, exactly, in rationals
    (:mod:`trilift.counters.turnstile.budget`). Theorems: the Laplace mechanism on the chain's R x, or
    Gaussian differential privacy (Dong, Roth, Su 2022), sums rounded once, as in
    :class:`trilift.stream.bank.NoiseBank`; what is read off the noisy counters, the subtraction of the
    noise's second moment among it, is post-processing. The guarantee holds for every hash function.

    F2 itself has no bounded sensitivity: after T insertions of one item an event changes it by 4 T - 4. The
    relative part of the error, ``accuracy``, is what makes up for that. Negative frequencies are allowed:
    neither privacy nor accuracy assumes a strict stream, and no error depends on it (no timing is
    promised). Random bits come from ChaCha20 under a key drawn from the operating system; ideal ones are
    assumed.

    The interval contains F2 at all released steps together but for ``failure``, if the stream does not depend
    on the hash functions (an oblivious stream); :mod:`trilift.counters.turnstile.moment_bounds` has the
    proofs. Estimates are clamped to 0..t^2, which F2 never leaves. Before that rows are unbiased; their
    median is not quite (on an empty stream too low by 2/3 of one counter's noise variance).

    With ``every=k`` values are released after k, 2k, ... events only. The counters then take the sums of k
    events in one step. Neighbours differ in one such sum, by as much as the event itself, so the guarantee is
    the same; there is less noise, and T / k steps of it are drawn instead of T.

    Args:
        epsilon: budget of pure differential privacy; with ``delta`` of (epsilon, delta).
        delta: in (0, 1), for Gaussian noise.
        rho: budget of zCDP, for Gaussian noise.
        horizon: T, number of events.
        method: "bucketed" (A4s: s rows of w buckets, an event costs O(s)), "rows" (A4: m sums over all items,
            an event costs O(m)). At equal numbers of counters Gaussian noise is the same for both; Laplace
            noise is m / s times less for "bucketed".
        base: "auto" or "chain" (certified artifacts), "tree" (binary), "toeplitz" (simulations only).
        every: a value is released after every so many events.
        failure: bound on the probability that some released interval is wrong.
        accuracy: alpha in (0, 1), the relative part of the error that the size of the sketch allows.
        rows: number of rows: s, odd, or m. Chosen for ``accuracy`` by default.
        buckets: w, a power of two ("bucketed").
        encode: turns an item into str, bytes, int or a tuple of them.
        simulation_seed: a public seed in place of a key: for tests and simulations, it protects nobody.
        state: file that keeps the state after every call; it must not exist.

    Raises:
        ParameterError: an argument that is not acceptable.
        StateError, OSError: the state exists, is in use, or cannot be written.

    >>> moment = SecondMoment(rho=1, horizon=2000, every=500, simulation_seed=1)
    >>> seen = moment.extend(["one item"] * 2000, [1] * 2000)
    >>> bool((seen.low <= seen.step**2.0).all() and (seen.step**2.0 <= seen.high).all())
    True
    """

    def __init__(
        self,
        epsilon: Any = None,
        *,
        horizon: int,
        delta: Any = None,
        rho: Any = None,
        method: str = "bucketed",
        base: str = "auto",
        every: int = 1,
        failure: Any = Fraction(1, 100),
        accuracy: Any = Fraction(1, 2),
        rows: int | None = None,
        buckets: int | None = None,
        encode: Callable[[Any], Any] | None = None,
        simulation_seed: int | None = None,
        state: str | os.PathLike[str] | None = None,
    ) -> None:
        seed = None if simulation_seed is None else integer("simulation_seed", simulation_seed)
        budget = make_budget(epsilon, delta=delta, rho=rho)
        common = check_common(horizon=horizon, every=every, universe=None, failure=failure)
        chosen = choice("method", method, METHODS)
        options = _options(chosen, budget, common, accuracy=accuracy, rows=rows, buckets=buckets)
        blueprint = _blueprint(chosen, budget, common, options, kind=base, seed=seed)
        self._begin(blueprint, seed=seed, state=state, encode=encode)

    @classmethod
    def _restored(cls, record: dict[str, Any], seed: int | None) -> Blueprint:
        budget, common = restored_terms(record)
        method = choice("method", record["method"], METHODS)
        saved = record["options"]
        options = _options(
            method,
            budget,
            common,
            accuracy=exact_number(saved["accuracy"]),
            rows=saved["rows"],
            buckets=saved["buckets"],
        )
        return _blueprint(method, budget, common, options, saved=record["bases"], seed=seed)

    def _mechanism(self, blueprint: Blueprint, key: bytes, stream_id: bytes) -> Mechanism:
        return Linear(
            moment_sketch(blueprint, key=key, stream_id=stream_id),
            blueprint.bases[0],
            every=blueprint.common.every,
            key=key,
            stream_id=stream_id,
            purpose="turnstile/second moment",
        )


def _options(
    method: str, budget: Budget, common: Common, *, accuracy: Any, rows: Any, buckets: Any
) -> dict[str, Any]:
    """Return the shape of the sketch: given, or chosen."""
    alpha = written("accuracy", accuracy, above=0)
    if not Fraction(1, 100) <= alpha < 1:
        raise ParameterError("accuracy must be at least 0.01 and less than 1")
    options: dict[str, Any] = {"accuracy": str(alpha), "rows": rows, "buckets": buckets}
    wanted = None if rows is None else integer("rows", rows, minimum=1, maximum=_MOST_ROWS)
    failure = float(common.failure)
    if method == "rows":
        if buckets is not None:
            raise ParameterError("buckets are for method='bucketed'")
        plan = row_plan(common.ticks, failure=failure, accuracy=float(alpha), rows=wanted)
        if plan.rows > _MOST_ROWS:
            raise ParameterError(
                f"accuracy {float(alpha):.3g} needs {plan.rows} rows, more than {_MOST_ROWS}"
            )
        return options | {"rows": wanted}
    least = table_shape(budget.law, reads=common.ticks, failure=failure, accuracy=float(alpha))
    s = least[0] if wanted is None else wanted
    w = least[1] if buckets is None else integer("buckets", buckets, minimum=2, maximum=_MOST_BUCKETS)
    if s % 2 == 0 or w & (w - 1):
        raise ParameterError("rows must be odd and buckets a power of two")
    if s * w > _MOST_COUNTERS:
        raise ParameterError(f"rows times buckets must be at most 2^22, got {s * w}")
    return options | {"rows": s, "buckets": w}


def _blueprint(
    method: str,
    budget: Budget,
    common: Common,
    options: dict[str, Any],
    *,
    kind: str = "auto",
    saved: list[Any] | None = None,
    seed: int | None,
) -> Blueprint:
    banks = _plan(common, options).rows if method == "rows" else options["rows"]
    share = budget.part(Fraction(1, banks))
    if saved is None:
        base = make_base(kind, budget=share, ticks=common.ticks, seed=seed)
    else:
        base = restored_base(saved[0], budget=share, ticks=common.ticks, seed=seed)
    part = LedgerPart.of(f"rows of {method}", banks=banks, spent_by_one=base.spent, proof=base.as_text())
    shape = f"{banks} rows" if method == "rows" else f"{banks} rows of {options['buckets']} buckets"
    return Blueprint(
        quantity="SecondMoment",
        method=method,
        budget=budget,
        common=common,
        options=options,
        bases=(base,),
        ledger=TurnstileLedger(budget, (part,)),
        lines=(f"Mechanism: {_LINES[method]}; {shape}; {base.as_text()}.",),
    )


def _plan(common: Common, options: Any) -> Any:
    return row_plan(
        common.ticks,
        failure=float(common.failure),
        accuracy=float(Fraction(options["accuracy"])),
        rows=options["rows"],
    )


def moment_sketch(blueprint: Blueprint, *, key: bytes, stream_id: bytes) -> Sketch:
    """Return the sketch of a blueprint, its hash functions drawn from a key of their own.

    Args:
        blueprint: of a :class:`SecondMoment`.
        key, stream_id: of the counter.

    Raises:
        ParameterError: so few rows or buckets that no interval is proved.
    """
    words: dict[str, Any] = {"key": Secret(key), "stream_id": stream_id, "purpose": "turnstile/moment hashes"}
    (base,), common, options = blueprint.bases, blueprint.common, blueprint.options
    failure = float(common.failure)
    if blueprint.method == "rows":
        plan = _plan(common, options)
        return RowSketch(base, plan, hash_words(shape=RowSketch.shape(plan), **words), failure=failure)
    rows, buckets = options["rows"], options["buckets"]
    return TableSketch(
        base,
        rows=rows,
        buckets=buckets,
        words=hash_words(shape=TableSketch.shape(rows), **words),
        reads=common.ticks,
        failure=failure,
    )
