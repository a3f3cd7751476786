"""For tests only: what a mechanism hides, of a simulated counter.

Nothing in the library imports this module. Real counters refuse: their checkpoints are as secret as the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from trilift.counters.edit.counter import EditCounter
from trilift.counters.edit.position import EditPosition
from trilift.counters.position import running_sums
from trilift.lift.errors import StateError

__all__ = ["Trace", "position", "trace"]

Integers = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Trace:
    """Everything about the buckets of a stream.

    Attributes:
        ends: t_l, true checkpoints (steps from 1).
        sums: s at the checkpoints, in lattice steps.
        times: that_l.
        values: vhat_l, in lattice steps.
    """

    ends: Integers
    sums: Integers
    times: Integers
    values: Integers


def _simulated(counter: EditCounter) -> EditCounter:
    if not counter._simulated:
        raise StateError("internals are shown of simulated counters only")
    return counter


def position(counter: EditCounter) -> EditPosition:
    """Return where a simulated counter stands.

    Raises:
        StateError: a real counter.
    """
    return _simulated(counter)._now


def trace(counter: EditCounter, values: Any) -> Trace:
    """Return the buckets of a whole stream under the noise of a simulated counter, which is not moved.

    Raises:
        StateError: a real counter.
        ParameterError: inputs that are not acceptable.
    """
    numbers, _ = _simulated(counter).rule.many(values)
    start = EditPosition.start()
    if len(numbers) == 0:
        return Trace(numbers, numbers, numbers, numbers)
    sums = running_sums(start.log.counts, numbers[:, np.newaxis])[:, 0]
    cuts, pairs = counter._ended(start, sums)
    return Trace(cuts + 1, sums[cuts], pairs.time, pairs.value)
