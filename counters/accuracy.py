"""How accurate released values are: standard deviations and intervals, from public numbers alone."""

from __future__ import annotations

import math
import sys
from typing import Any

from trilift.counters.part_tails import step_half_width
from trilift.lift.checks import flag, integer, rational, show
from trilift.lift.errors import HorizonError, ParameterError
from trilift.stream.epoch_layout import LAST_STEP

__all__ = ["Accuracy"]

_SQUARES = 0.6079271  # a little below 6 / pi^2: the failures 6 / (pi t)^2 add up to 1 over all steps


class Accuracy:
    """What a counter can say about its released values; nothing here looks at the data."""

    _setup: Any
    _noises: list[Any]

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
            simultaneous: hold for all steps of the horizon together: the failure is divided among them
                evenly, or without a horizon in proportion to 1 / t^2, 6 / (pi t)^2 of it for step t.

        The width comes from the tail of the weighted sum of Laplace variates
        (:mod:`trilift.counters.tails`, which also says what covers the drawn noise being discrete), or from
        that of a Gaussian, plus h / 2 for the rounding of every part. Clipping at zero never widens an error.
        A running maximum may show the value of an earlier step: what holds for it is the widest of the
        simultaneous intervals up to t.
        """
        level = rational("confidence", confidence, above=0)
        if level >= 1:
            raise ParameterError(f"confidence must be a number between 0 and 1, got {show(confidence)}")
        position = self._position(t)
        failure = float(1 - level)
        if flag("simultaneous", simultaneous):
            failure /= self._setup.width
            if self._setup.horizon is None:
                failure *= _SQUARES / (position + 1.0) ** 2
            else:
                failure /= self._setup.horizon
        if failure < sys.float_info.min:
            raise ParameterError("confidence is closer to 1 than floats can tell")
        return step_half_width(self._noises[0], position, failure)

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
        last = LAST_STEP if self._setup.horizon is None else self._setup.horizon
        if step > last:
            raise HorizonError(f"step {show(step)} is past the horizon {last}")
        return step - 1
