"""How a stream is cut into buckets: lengths that read no data (SimPart), or thresholds on running sums (Part).

Buckets are numbered 0, 1, ... in arrays (bucket l = 1 of the papers is index 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.counters.edit.exact_logs import ceil_scaled_log, log_times
from trilift.lift.checks import choice, integer, rational

__all__ = ["FAILURES", "PartRule", "SimPartRule"]

IntArray = np.ndarray[Any, np.dtype[np.int64]]

FAILURES = ("drift", "uniform", "renewal")
"""How the failure of the good event is divided among buckets: 1/l^2, over K buckets, or not at all."""


@dataclass(frozen=True)
class SimPartRule:
    """Lengths of buckets for streams of any kind: raw = nominal + Z, Z discrete Laplace of scale 2/eps_p.

    Attributes:
        epsilon: eps_p.
        base: the nominal length mu of the first bucket.
        drift: coefficient d >= 0 of the drift: bucket l = 1, 2, ... has nominal length mu + ceil(d ln l).
        folded: what becomes of raw lengths below 1: 1 (False, the paper's max(1, raw)) or 1 - raw (True).
        ln_failure: an upper bound on ln Pr[the coupling's good event fails].
    """

    epsilon: Fraction
    base: int
    drift: Fraction
    folded: bool
    ln_failure: float

    @property
    def scale(self) -> Fraction:
        """b = 2 / eps_p, the scale of Z."""
        return 2 / self.epsilon

    def nominal(self, start: int, stop: int) -> IntArray:
        """Return the nominal lengths of buckets start..stop-1 (0-based), int64."""
        raise NotImplementedError

    def lengths(self, start: int, draws: Any) -> Any:
        """Return the lengths >= 1 of buckets start, start+1, ... from their draws Z."""
        raise NotImplementedError


@dataclass(frozen=True)
class PartRule:
    """Thresholds of a partition by noisy running sums: bucket l ends at local step t once v + Z_t >= th_l(t) + Z0.

    th_l(t) = tau + d_l ln(l) + d_t ln(t + shift), in units of events; Z0 is discrete Laplace of scale 2/eps_p and
    Z_t of scale 4/eps_p.

    Attributes:
        epsilon: eps_p.
        tau: threshold of the first bucket before its clock drift.
        bucket_drift: d_l (0 or 16/eps_p).
        clock_drift: d_t (8/eps_p, or 0 for a threshold that does not move).
        shift: c = ceil(12/eps_p).
        ln_failure: an upper bound on ln Pr[the coupling's good event fails].
    """

    epsilon: Fraction
    tau: Fraction
    bucket_drift: Fraction
    clock_drift: Fraction
    shift: int
    ln_failure: float
