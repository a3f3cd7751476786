"""How accurate released values are: standard deviations and intervals, from public numbers alone."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from trilift.counters.setup import Setup
from trilift.counters.tails import half_width
from trilift.lift.checks import flag, integer, rational
from trilift.lift.errors import HorizonError, ParameterError
from trilift.lift.rows import row_entries
from trilift.stream.noise import Noise

__all__ = ["Accuracy"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]


class Accuracy:
    """What a counter can say about its released values; nothing here looks at the data."""

    _setup: Setup
    _noises: list[Noise]

    def sd(self, t: int) -> float:
        """Return the standard deviation of the released value of step t, 1 <= t <= horizon.

        From the exact noise scales and row norms, in the unit of the inputs; rounding counts as h^2 / 12.
        """
        return math.sqrt(float(self._noises[0].variance([self._position(t)])[0]))

    def interval(self, t: int, confidence: float = 0.95, *, simultaneous: bool = False) -> float:
        """Return w such that the true sum of step t lies within released value +- w with this confidence.

        Args:
            t: step, 1 <= t <= horizon.
            confidence: strictly between 0 and 1.
            simultaneous: hold for all steps of the horizon together (the failure is divided among them).

        The width comes from the tail of the weighted sum of Laplace variates
        (:mod:`trilift.counters.tails`, which also says what covers the drawn noise being discrete), plus
        h / 2 for the rounding. Clipping at zero never widens an error. A running maximum may show the value
        of an earlier step: what holds for it is the widest of the simultaneous intervals up to t.
        """
        level = rational("confidence", confidence, above=0)
        if level >= 1:
            raise ParameterError(f"confidence must be a number between 0 and 1, got {confidence!r}")
        steps = self._setup.horizon if flag("simultaneous", simultaneous) else 1
        failure = float((1 - level) / (steps * self._setup.width if simultaneous else 1))
        if failure < sys.float_info.min:
            raise ParameterError("confidence is closer to 1 than floats can tell")
        coefficients, lattice = self._coefficients(self._position(t))
        width = half_width(coefficients, failure, lattice=lattice)
        return width + math.ldexp(0.5, -self._setup.output_places)

    def range_sd(self, start: int, stop: int) -> float:
        """Return the standard deviation of (released at stop) - (released at start): the sum of a range.

        Args:
            start: step, 0 <= start; 0 stands for the beginning, where the sum is known to be 0.
            stop: step, start < stop <= horizon.
        """
        first = integer("start", start, minimum=0)
        last = integer("stop", stop, minimum=first + 1)
        if first == 0:
            return self.sd(last)
        a, b = self._position(first), self._position(last)
        variances = self._noises[0].variance([a, b])
        return math.sqrt(max(float(variances.sum()) - 2.0 * self._noises[0].covariance(a, b), 0.0))

    def _position(self, t: Any) -> int:
        step = integer("t", t, minimum=1)
        if step > self._setup.horizon:
            raise HorizonError(f"step {step} is past the horizon {self._setup.horizon}")
        return step - 1

    def _coefficients(self, position: int) -> tuple[FloatArray, float]:
        """Return the noise of a step as sum a_i X_i / sigma_i: all a_i, and the sum of |a_i| / sigma_i."""
        coefficients, lattice = [], 0.0
        rows = row_entries(self._setup.chain, position)
        for entry, row in zip(self._setup.ledger.levels, rows, strict=True):
            steps = np.array([math.ldexp(1.0, -p) if p >= 0 else 0.0 for p in entry.places])
            for block in row.values():
                coefficients.append(float(entry.scale) * block)
                lattice += float(np.abs(block) @ steps)
        return np.concatenate(coefficients), lattice
