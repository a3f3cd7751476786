"""Counters that go on from the count of another: what was released of the same inputs adds up.

A fork takes over number of steps and exact sum, and nothing else: its noise has a key of its own. Its noise
of a step is that of this step in its own mechanism, so what it releases is a part of what its mechanism would
release for the whole stream, the steps of the other one included: its guarantee needs no new proof. But
inputs before the fork are in both releases (and later ones, if both go on), so that by basic composition the
budgets of both add up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.counters.edit.gaussian_cc import PrefixGaussian
from trilift.counters.position import Position
from trilift.counters.running import RunningCounter
from trilift.counters.state_file import boolean, exact_number, whole
from trilift.lift.errors import ParameterError

__all__ = ["Release", "continue_from", "release_of", "told", "total"]

_AGAIN = "make a new counter and count the whole stream again; the budgets of both add up"


@dataclass(frozen=True)
class Release:
    """One release of the inputs of a stream.

    Attributes:
        kind: class of the counter.
        step: step after which the ways part.
        epsilon, delta: its budget, exact.
        simulated: whether its noise protects nobody.
    """

    kind: str
    step: int
    epsilon: Fraction
    delta: Fraction
    simulated: bool

    def record(self) -> dict[str, Any]:
        """Return it as JSON can say it."""
        exact = {"epsilon": str(self.epsilon), "delta": str(self.delta)}
        return {"kind": self.kind, "step": self.step, **exact, "simulated": self.simulated}

    @classmethod
    def read(cls, record: Any) -> Release:
        """Return what :meth:`record` wrote.

        Raises:
            KeyError, TypeError, ValueError: it is damaged.
        """
        numbers = exact_number(record["epsilon"]), exact_number(record["delta"])
        return cls(str(record["kind"]), whole(record["step"]), *numbers, boolean(record["simulated"]))


def release_of(counter: Any, *, step: int) -> Release:
    """Return what a counter releases, for a fork after a step."""
    delta = getattr(counter, "delta", None)
    name, simulated = type(counter).__name__, bool(counter._simulated)
    return Release(name, step, Fraction(counter.epsilon), Fraction(delta or 0), simulated)


def continue_from(counter: Any, other: Any) -> None:
    """Let a new counter go on after the last step of another one, with its exact sum.

    Args:
        counter: without a step.
        other: what it is a fork of.

    Raises:
        ParameterError: counters that do not take the same inputs, or whose states depend on their keys.
    """
    for one in (other, counter):
        if not isinstance(one, RunningCounter | PrefixGaussian):
            name = type(one).__name__
            raise ParameterError(f"fork: a {name} cannot be forked, its state is made with its key: {_AGAIN}")
    if isinstance(counter, RunningCounter) != isinstance(other, RunningCounter):
        raise ParameterError(f"fork: the neighbours of the two counters are not the same: {_AGAIN}")
    if _inputs(counter) != _inputs(other):
        raise ParameterError(
            "fork: the new counter must take the same inputs (bounds, resolution, dimension, norm_bound, "
            "max_contributions) as the one that it goes on from"
        )
    if counter.horizon is not None and counter.horizon <= other.step:
        raise ParameterError(
            f"fork: horizon must be above {other.step}, the steps so far (steps are not counted anew)"
        )
    start = Position.start(len(other._now.counts))
    counter._now = replace(start, step=other.step, counts=np.array(other._now.counts))


def _inputs(counter: Any) -> tuple[Any, ...]:
    if isinstance(counter, PrefixGaussian):
        rule = counter.rule
        return rule.high, rule.places
    setup = counter.setup
    rule = setup.rule
    return rule.low, rule.high, rule.places, setup.dimension, setup.norm_bound, setup.max_contributions


def total(counter: Any, others: Iterable[Release]) -> tuple[Fraction, Fraction]:
    """Return the sums of all budgets, epsilon and delta, that of a counter included.

    Raises:
        ParameterError: some are simulated and others are not: those protect nobody, and nothing bounds all.
    """
    every = [release_of(counter, step=counter.step), *others]
    if len({one.simulated for one in every}) > 1:
        raise ParameterError("a simulated counter has released these inputs, and its noise protects nobody")
    zero = Fraction(0)
    return sum((one.epsilon for one in every), zero), sum((one.delta for one in every), zero)


def told(counter: Any, before: tuple[Release, ...], after: tuple[Release, ...]) -> str:
    """Return what a counter's statement must add, where its inputs are in other releases too."""
    lines = [f"It goes on from {_named(one)}, after step {one.step}." for one in before]
    lines += [f"Forked after step {one.step}: {_named(one)} goes on from there." for one in after]
    try:
        epsilon, delta = total(counter, before + after)
        together = f"epsilon = {epsilon}, delta = {delta} (basic composition)."
    except ParameterError as error:
        together = f"NOT PRIVATE: {error}."
    return (
        "\nForks: other counters have released the same inputs under keys of their own.\n"
        + "\n".join(lines)
        + f"\nAll of these releases together: {together}"
    )


def _named(one: Release) -> str:
    mark = ", SIMULATION" if one.simulated else ""
    return f"a {one.kind} of epsilon = {one.epsilon}, delta = {one.delta}{mark}"
