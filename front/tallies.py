"""Counters as the command line sees them: those of numbers, and those of steps that may be "no event"."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from trilift.lift.errors import ParameterError
from trilift.reading import Value

__all__ = ["Edit", "Plain"]

_INT64_SAFE = 1 << 62
_FLOAT_SAFE = 1 << 53


class Plain:
    """A counter whose inputs are numbers: a :class:`Tally`."""

    def __init__(self, counter: Any) -> None:
        self.counter = counter
        self._rule = counter.setup.rule

    @property
    def step(self) -> int:
        """Number of steps so far."""
        return int(self.counter.step)

    @property
    def horizon(self) -> int | None:
        """Number of steps that can be released; None for any number."""
        horizon: int | None = self.counter.horizon
        return horizon

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that was asked for."""
        return Fraction(self.counter.epsilon)

    @property
    def delta(self) -> Fraction | None:
        """The delta that was asked for, None for pure differential privacy."""
        delta: Fraction | None = getattr(self.counter, "delta", None)
        return delta

    @property
    def no_event(self) -> bool:
        """A line may not hold "no event"."""
        return False

    @property
    def integers(self) -> bool:
        """Whether inputs are integers, not decimals."""
        return bool(self._rule.places == 0)

    def checked(self, number: int, value: Value | None) -> int:
        """Return an input in lattice steps.

        Raises:
            ParameterError: outside the bounds.
        """
        rule = self._rule
        if rule.places == 0 and isinstance(value, int) and rule.low <= value <= rule.high:
            return value
        try:
            return int(rule.one(value))
        except ParameterError:
            unit = Fraction(1, 1 << rule.places)
            bounds = f"[{rule.low * unit}, {rule.high * unit}]"
            raise ParameterError(
                f"line {number}: outside the bounds {bounds} (see --bounds and --clip)"
            ) from None

    def arguments(self, inputs: list[int]) -> tuple[Any, ...]:
        """Return inputs given in lattice steps as ``extend`` takes them: as an array where that is exact."""
        rule = self._rule
        largest = max(abs(rule.low), abs(rule.high))
        if rule.places == 0 and largest < _INT64_SAFE:
            return (np.array(inputs, dtype=np.int64),)
        if rule.places and largest < _FLOAT_SAFE:
            return (np.ldexp(np.array(inputs, dtype=np.float64), -rule.places),)
        return ([Fraction(step, 1 << rule.places) for step in inputs],)

    def advance(self, inputs: list[int]) -> list[Any]:
        """Count inputs given in lattice steps."""
        released: list[Any] = self.counter.extend(*self.arguments(inputs)).tolist()
        return released

    def save(self, path: Path) -> None:
        """Save the counter's state."""
        self.counter.save(path)

    def close(self) -> None:
        """Give the counter's state free."""
        self.counter.close()

    def statement(self) -> str:
        """Return what is guaranteed."""
        return str(self.counter.privacy_statement())

    def summary(self) -> str:
        """Return how exact the last value is."""
        counter, last = self.counter, self.step
        of = "" if self.horizon is None else f" of {self.horizon}"
        # a running maximum may show the value of an earlier step, of another width
        plain = counter.setup.postprocess != "monotone"
        within = f", its 95 % interval is ± {counter.interval(last):.6g}" if plain else ""
        return f"{of}; the standard deviation of the last one is {counter.sd(last):.6g}{within}"


class Edit:
    """A counter of edit-neighbouring streams: a :class:`trilift.counting.Tally`.

    Args:
        counter: a SimECC, ECC, GaussianCC or HorizonGaussian of :mod:`trilift.counters.edit`.
    """

    def __init__(self, counter: Any) -> None:
        self.counter = counter
        self._rule = counter.rule

    @property
    def step(self) -> int:
        """Number of steps so far."""
        return int(self.counter.step)

    @property
    def horizon(self) -> int | None:
        """Number of steps that can be released; None for any number."""
        horizon: int | None = self.counter.horizon
        return horizon

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that was asked for."""
        return Fraction(self.counter.epsilon)

    @property
    def delta(self) -> Fraction | None:
        """The delta that was asked for."""
        return Fraction(self.counter.delta)

    @property
    def no_event(self) -> bool:
        """A line may hold "no event"."""
        return True

    @property
    def integers(self) -> bool:
        """Whether inputs are integers, not decimals."""
        return bool(self._rule.places == 0)

    def checked(self, number: int, value: Value | None) -> int | None:
        """Return an input in lattice steps, or None for no event.

        Raises:
            ParameterError: outside the bounds.
        """
        if value is None:
            return None
        try:
            return int(self._rule.one(value)[0])
        except ParameterError:
            bounds = f"[0, {self._rule.largest}]"
            raise ParameterError(
                f"line {number}: outside the bounds {bounds} (see --bounds and --clip)"
            ) from None

    def arguments(self, inputs: list[int | None]) -> tuple[Any, ...]:
        """Return checked inputs as ``extend`` takes them: as a masked array where that is exact."""
        places = self._rule.places
        if self._rule.high >= _FLOAT_SAFE:
            return ([None if steps is None else Fraction(steps, 1 << places) for steps in inputs],)
        mask = [steps is None for steps in inputs]
        numbers = np.array([steps or 0 for steps in inputs], dtype=np.int64)
        values = np.ldexp(numbers.astype(np.float64), -places) if places else numbers
        return (np.ma.MaskedArray(values, mask=mask),)

    def advance(self, inputs: list[int | None]) -> list[Any]:
        """Count checked inputs."""
        released: list[Any] = self.counter.extend(*self.arguments(inputs)).tolist()
        return released

    def save(self, path: Path) -> None:
        """Save the counter's state."""
        self.counter.save(path)

    def close(self) -> None:
        """Give the counter's state free."""
        self.counter.close()

    def statement(self) -> str:
        """Return what is guaranteed, and in words what the mechanism will do."""
        describe = getattr(self.counter, "describe", None)
        will = "" if describe is None else f"\nWhat it will do: {' '.join(describe().splitlines())}"
        return f"{self.counter.privacy_statement()}{will}"

    def summary(self) -> str:
        """Return how exact the last value is, where that is a matter of noise alone."""
        of = "" if self.horizon is None else f" of {self.horizon}"
        sd = getattr(self.counter, "sd", None)
        return of if sd is None else f"{of}; the standard deviation of the last one is {sd(self.step):.6g}"
