"""What a turnstile counter will be good for, from its public part: noise, thresholds, floors, intervals.

Nothing here depends on data or on a key, so it may be looked at before a budget is spent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from trilift.counters.turnstile.blueprint import Blueprint, Common
from trilift.counters.turnstile.reading import Reading
from trilift.counters.turnstile.sketch import Sketch

__all__ = ["Expected", "expected"]

_KEY, _STREAM = bytes(32), bytes(16)  # hashes and noises of nobody: none is looked at


@dataclass(frozen=True)
class Expected:
    """What the last released value will be like.

    Attributes:
        method: the estimator.
        step: number of events before it.
        counters: number of counters that are kept.
        sd: standard deviation of the noise of one counter.
        threshold: sum above which a counter is detected, or None for the second moment.
        nothing: what is shown where nothing is present and the noise is as on average.
        factor: the interval reaches from D_hat / 16 (general-maps: / 20) to factor D_hat, D_hat the estimate
            before it is centred; or None.
        informative: number of distinct items from which the low end is above 0, whatever their frequencies;
            or None.
        relative: relative half width of the interval of a large second moment, or None.
        block: hybrid: number of events between releases of the count, or None.
        error: hybrid: by how much a fresh release of the count can be off, or None.
    """

    method: str
    step: int
    counters: int
    sd: float
    threshold: int | None
    nothing: Reading
    factor: float | None
    informative: float | None
    relative: float | None
    block: int | None
    error: float | None

    def record(self) -> dict[str, Any]:
        """Return all of it as values that JSON knows."""
        none = self.nothing
        return {
            "method": self.method,
            "step": self.step,
            "counters": self.counters,
            "sd": self.sd,
            "threshold": self.threshold,
            "nothing": {"estimate": none.estimate, "low": none.low, "high": none.high},
            "factor": self.factor,
            "informative": self.informative,
            "relative": self.relative,
            "block": self.block,
            "error": self.error,
        }

    def as_text(self) -> str:
        """Return it in words, one line for each matter."""
        none = self.nothing
        lines = [
            f"At event {self.step}: {self.counters} counters, each with noise of standard deviation "
            f"{self.sd:.4g}.",
            f"With nothing present it shows about {none.estimate:.4g}, in [{none.low:.4g}, {none.high:.4g}].",
        ]
        if self.block is not None and self.error is not None:
            lines.append(
                f"The count is released after every {self.block} events, then right within {self.error:.4g}, "
                "and one worse after every further event: below twice that, it says little."
            )
        elif self.factor is not None:
            lines.append(
                f"A counter is detected above {self.threshold}; what is detected is known up to a factor of "
                f"{self.factor:.4g}. Below about {self.informative:.4g} items of small frequencies the low"
                " end may be 0."
            )
        if self.relative is not None:
            lines.append(
                f"A second moment far above {none.high:.4g} is known within about {self.relative:.2g} of"
                " itself; one far below is not told from 0."
            )
        return "\n".join(lines)


def expected(blueprint: Blueprint) -> Expected:
    """Return what a counter's last released value will be like.

    Args:
        blueprint: the public part of a counter.

    >>> from trilift.counters.turnstile import SecondMoment
    >>> counter = SecondMoment(rho=1, horizon=1000, every=100)
    >>> words = expected(counter.blueprint)
    >>> words.step, words.nothing.low, words.threshold
    (1000, 0.0, None)
    """
    common, error, block = blueprint.common, None, None
    if blueprint.quantity == "SecondMoment":
        from trilift.counters.turnstile.second_moment import moment_sketch

        sketch = moment_sketch(blueprint, key=_KEY, stream_id=_STREAM)
    elif blueprint.method == "hybrid":
        from trilift.counters.turnstile.hybrid import hybrid_mechanism

        hybrid = hybrid_mechanism(blueprint, key=_KEY, stream_id=_STREAM)
        error, block = hybrid.error, hybrid.block
        half = replace(common, failure=common.failure / 2)
        sketch = _distinct(blueprint, "grouped", half)
    else:
        sketch = _distinct(blueprint, blueprint.method, common)
    last = np.array([common.ticks - 1], dtype=np.int64)
    tables = sketch.tables(last)
    steps = (last + 1) * common.every
    moment = blueprint.quantity == "SecondMoment"
    # squares of noise are E N^2 on average, which the second moment takes off; what is detected is of 0 mean
    level = math.sqrt(float(tables[0, 0])) if moment else 0.0
    nothing = sketch.read(np.full((1, sketch.width), level), tables, steps=steps)[0]
    if error is not None:  # a release of 0 with an error of at most this
        high = min(nothing.high, error)
        nothing = Reading(nothing.step, min(nothing.estimate, high), nothing.low, high)
    threshold = factor = informative = relative = None
    if moment:
        relative = _relative(sketch)
    else:
        threshold = int(tables[0, 1])
        maps = blueprint.method == "general-maps"
        factor = float((2.0 if maps else 4.0) * tables[0, 2])
        informative = factor * float(getattr(sketch, "groups", 1))
    return Expected(
        method=blueprint.method,
        step=int(steps[0]),
        counters=sketch.width,
        sd=float(np.sqrt(blueprint.bases[0].variance(last)[0])),
        threshold=threshold,
        nothing=nothing,
        factor=factor,
        informative=informative,
        relative=relative,
        block=block,
        error=error,
    )


def _distinct(blueprint: Blueprint, method: str, common: Common) -> Sketch:
    from trilift.counters.turnstile.distinct import make_sketch

    return make_sketch(
        method,
        base=blueprint.bases[0],
        common=common,
        options=dict(blueprint.options),
        key=_KEY,
        stream_id=_STREAM,
    )


def _relative(sketch: Sketch) -> float:
    """Return alpha: of rows as planned; of a table sqrt(2 / (w p)), see the module of bounds."""
    plan: Any = getattr(sketch, "plan", None)
    if plan is not None:
        return float(plan.accuracy)
    table: Any = sketch
    return math.sqrt(2.0 / (table.buckets * table.share))
