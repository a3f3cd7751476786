"""The membership attack on edit neighbours: was somebody inserted in front of everybody else?

Source: "Edit-Neighboring Data Streams and Privacy under Continual Observation" (Andersson, Chaturvedi,
Henzinger, Safavi), experiments. Inputs x_t are independent Bernoulli(p_t). A fair bit decides whether the
mechanism sees x itself or (1, x_1, ..., x_{T-1}), an insertion neighbour that is shifted by one step. Who
knows the rates p compares the released increments with them:

    S = sum_{t=2}^T (p_t - (y_t - y_{t-1})) (p_t - p_{t-1}),   theta = 1/2 sum_{t=2}^T (p_t - p_{t-1})^2,

and says "inserted" if S > theta. For outputs without bias S has mean 0 without the insertion and 2 theta
with it. The advantage is 2 Pr[correct] - 1: 0 for guessing, 1 for knowing.

Everything here measures mechanisms in simulation: nothing is released with any guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from trilift.lift.checks import integer, numeric_array, rational
from trilift.lift.errors import ParameterError

__all__ = [
    "AttackResult",
    "Releasing",
    "attack_threshold",
    "block_rates",
    "check_rates",
    "clopper_pearson",
    "draw_run",
    "run_attack",
    "statistic",
    "summarise",
]

Floats = NDArray[np.float64]
Report = Callable[[int, int], None]
"""Called as report(runs done, runs in all)."""

CONFIDENCE = 0.95
_CELLS = 1 << 22
"""Inputs of a batch at most: 32 MB as floats."""
_INSERTED = 1
_MAX_RUNS = 10**9


class Releasing(Protocol):
    """What can be attacked: a mechanism that is run on a whole stream.

    An object may also have ``release_many(streams, seed)`` with an array (runs, T), which returns an array of
    the same shape with independent noise in every row; it is used where it is there.
    """

    def release(self, stream: NDArray[np.int64], seed: int, /) -> ArrayLike:
        """Return the T released values for a stream of T inputs 0 and 1; the seed decides all noise."""


@dataclass(frozen=True)
class AttackResult:
    """What an attack found.

    Attributes:
        steps: length T of the streams.
        runs: number of independent runs.
        correct: runs in which the guess was right.
        advantage: 2 correct / runs - 1.
        ci_low: lower end of the 95 % Clopper-Pearson interval of the success rate q, mapped by 2 q - 1.
        ci_high: its upper end.
        rmse: mean over the runs of sqrt(mean_t (y_t - s_t)^2).
        rmse_se: standard error of that mean (0 for a single run).
        threshold: theta.
        inserted: the bits, shape (runs,).
        statistics: the values of S, shape (runs,).
    """

    steps: int
    runs: int
    correct: int
    advantage: float
    ci_low: float
    ci_high: float
    rmse: float
    rmse_se: float
    threshold: float
    inserted: NDArray[np.bool_]
    statistics: Floats

    def to_json(self) -> dict[str, Any]:
        """Return the figures without the arrays."""
        names = ("runs", "correct", "advantage", "ci_low", "ci_high", "rmse", "rmse_se", "threshold")
        return {"T": self.steps} | {name: getattr(self, name) for name in names}


def check_rates(rates: ArrayLike) -> Floats:
    """Return rates as a float array of shape (T,).

    Raises:
        ParameterError: fewer than two steps, a rate outside [0, 1], or rates that never change (the attack
            looks at nothing but their changes).

    >>> check_rates([0, 1, 0.5])
    array([0. , 1. , 0.5])
    """
    array = numeric_array("rates", rates, ndim=1).astype(np.float64)
    if array.size < 2:
        raise ParameterError(f"rates must hold at least two steps, got {array.size}")
    outside = (array < 0) | (array > 1)
    if outside.any():
        at = int(np.argmax(outside))
        raise ParameterError(f"rates must lie in [0, 1], got {array[at]} at index {at}")
    if np.all(array == array[0]):
        raise ParameterError("rates must change somewhere: the attack looks at nothing but their changes")
    return array


def block_rates(steps: int, *, block: int = 10, low: float = 0.1, high: float = 0.9) -> Floats:
    """Return the paper's rates: blocks of ``low`` and ``high`` in turn, from ``low``.

    Args:
        steps: number of steps T.
        block: length of a block.
        low: rate of the first, third, ... block.
        high: rate of the others.

    Raises:
        ParameterError: as :func:`check_rates`; fewer than one step a block.

    >>> block_rates(5, block=2)
    array([0.1, 0.1, 0.9, 0.9, 0.1])
    >>> round(attack_threshold(block_rates(10_000)), 2)
    319.68
    """
    length = integer("block", block, minimum=1)
    at = np.arange(integer("steps", steps, minimum=2)) // length
    rates = [float(rational(name, value)) for name, value in (("low", low), ("high", high))]
    return check_rates(np.where(at % 2 == 0, *rates))


def attack_threshold(rates: ArrayLike) -> float:
    """Return theta = 1/2 sum (p_t - p_{t-1})^2 for rates of shape (T,).

    >>> attack_threshold([0.0, 1.0])
    0.5
    """
    changes = np.diff(check_rates(rates))
    return float(changes @ changes) / 2


def statistic(outputs: ArrayLike, *, rates: ArrayLike) -> Floats:
    """Return S for released values.

    Args:
        outputs: released values, shape (..., T).
        rates: rates p, shape (T,).

    Returns:
        shape (...).

    >>> float(statistic([1.0, 1.0, 2.0], rates=[0.0, 1.0, 0.0]))  # the changes of the rates are 1 and -1
    2.0
    """
    p = check_rates(rates)
    values = np.asarray(outputs, dtype=np.float64)
    if values.shape[-1:] != p.shape:
        raise ParameterError(f"outputs must have {p.size} steps in their last dimension, got {values.shape}")
    changes = np.diff(p)
    found: Floats = np.asarray(p[1:] @ changes - np.diff(values, axis=-1) @ changes)
    return found


def draw_run(rates: ArrayLike, *, seed: int, run: int) -> tuple[bool, NDArray[np.int64], int]:
    """Return the bit, the stream of shape (T,) and the mechanism's seed of one run.

    A run depends on (seed, run) alone, so that runs can be resumed and shared out in any way.

    >>> inserted, stream, noise_seed = draw_run([0.0, 1.0, 0.0], seed=1, run=0)
    >>> inserted, stream.tolist()
    (False, [0, 1, 0])
    """
    p = np.asarray(rates, dtype=np.float64)
    source = np.random.default_rng([integer("seed", seed, minimum=0), integer("run", run, minimum=0)])
    inserted = bool(source.integers(2))
    noise_seed = int(source.integers(1 << 63))
    stream = (source.random(p.size) < p).astype(np.int64)
    if inserted:
        stream = np.concatenate(([_INSERTED], stream[:-1]))
    return inserted, stream, noise_seed


def clopper_pearson(correct: int, *, trials: int) -> tuple[float, float]:
    """Return the 95 % Clopper-Pearson interval of 2 q - 1 for ``correct`` of ``trials`` guesses.

    Raises:
        ParameterError: not 0 <= correct <= trials, trials < 1.

    >>> low, high = clopper_pearson(75, trials=100)
    >>> round(low, 3), round(high, 3)
    (0.307, 0.662)
    """
    from scipy.stats import binomtest

    count = integer("trials", trials, minimum=1)
    interval = binomtest(integer("correct", correct, minimum=0, maximum=count), count).proportion_ci(
        CONFIDENCE, method="exact"
    )
    return 2 * float(interval.low) - 1, 2 * float(interval.high) - 1


def summarise(
    inserted: ArrayLike, *, statistics: ArrayLike, errors: ArrayLike, rates: ArrayLike
) -> AttackResult:
    """Make an attack's result of what its runs left.

    Args:
        inserted: the bits, shape (runs,).
        statistics: the values of S, shape (runs,).
        errors: root mean square error of each run, shape (runs,).
        rates: rates p, shape (T,).
    """
    p = check_rates(rates)
    bits = np.asarray(inserted, dtype=np.bool_)
    values = np.asarray(statistics, dtype=np.float64)
    rmse = np.asarray(errors, dtype=np.float64)
    runs, theta = bits.size, attack_threshold(p)
    if runs == 0 or bits.shape != values.shape or bits.shape != rmse.shape or bits.ndim != 1:
        raise ParameterError("inserted, statistics and errors must be vectors of one length > 0")
    correct = int(np.count_nonzero((values > theta) == bits))
    low, high = clopper_pearson(correct, trials=runs)
    return AttackResult(
        steps=p.size,
        runs=runs,
        correct=correct,
        advantage=2 * correct / runs - 1,
        ci_low=low,
        ci_high=high,
        rmse=float(rmse.mean()),
        rmse_se=float(rmse.std(ddof=1)) / math.sqrt(runs) if runs > 1 else 0.0,
        threshold=theta,
        inserted=bits,
        statistics=values,
    )


def run_attack(
    rates: ArrayLike,
    *,
    mechanism: Releasing,
    runs: int,
    seed: int = 0,
    progress: Report | None = None,
) -> AttackResult:
    """Attack a mechanism.

    Args:
        rates: rates p, shape (T,), each in [0, 1].
        mechanism: what is attacked: see :class:`Releasing`.
        runs: number of independent runs.
        seed: decides inputs and the mechanism's seeds.
        progress: called with (runs done, runs in all).

    Raises:
        ParameterError: rates as in :func:`check_rates`; a mechanism whose release is not T finite numbers.

    >>> class Exact:
    ...     def release(self, stream, seed):
    ...         return stream.cumsum()
    >>> found = run_attack(block_rates(200), mechanism=Exact(), runs=20)
    >>> found.advantage, found.rmse
    (1.0, 0.0)
    """
    p = check_rates(rates)
    count = integer("runs", runs, minimum=1, maximum=_MAX_RUNS)
    integer("seed", seed, minimum=0)
    many = getattr(mechanism, "release_many", None)
    if not callable(many) and not callable(getattr(mechanism, "release", None)):
        raise ParameterError(f"the mechanism ({_kind(mechanism)}) has no method release(stream, seed)")
    batch = max(1, _CELLS // p.size) if callable(many) else 1
    bits, found, errors = np.empty(count, dtype=np.bool_), np.empty(count), np.empty(count)
    if progress is not None:
        progress(0, count)
    for first in range(0, count, batch):
        drawn = [draw_run(p, seed=seed, run=run) for run in range(first, min(first + batch, count))]
        streams = np.array([stream for _, stream, _ in drawn])
        part = slice(first, first + len(drawn))
        if callable(many):
            outputs = _released(many(streams.copy(), drawn[0][2]), streams.shape, "release_many")
        else:
            # a copy: the mechanism may do what it likes with its input
            outputs = _released(mechanism.release(streams[0].copy(), drawn[0][2]), p.shape, "release")[None]
        bits[part] = [inserted for inserted, _, _ in drawn]
        found[part] = statistic(outputs, rates=p)
        errors[part] = np.sqrt(np.mean((outputs - streams.cumsum(axis=1)) ** 2, axis=1))
        if progress is not None:
            progress(part.start + len(drawn), count)
    return summarise(bits, statistics=found, errors=errors, rates=p)


def _kind(value: object) -> str:
    return value.__name__ if isinstance(value, type) else type(value).__name__


def _released(outputs: Any, shape: tuple[int, ...], method: str) -> Floats:
    """Return what a mechanism released as floats, or refuse it by what is wrong with it."""
    refusal = ParameterError(f"the mechanism's {method} did not return numbers")
    try:
        array = np.asarray(outputs)
        if array.dtype.kind not in "iufO" or (array.dtype.kind == "O" and None in array):
            raise refusal
        values = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise refusal from None
    if values.shape != shape:
        wanted = f"{shape[0]} values" if len(shape) == 1 else f"an array of shape {shape}"
        got = f"{values.size} values" if values.ndim == 1 else f"an array of shape {values.shape}"
        raise ParameterError(f"the mechanism's {method} must return {wanted}, a value a step, got {got}")
    bad = ~np.isfinite(values)
    if bad.any():
        at = int(np.argwhere(bad)[0][-1])
        raise ParameterError(f"the mechanism's {method} returned {values[bad][0]} at step {at + 1}")
    return values
