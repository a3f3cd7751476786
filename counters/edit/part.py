"""Part: buckets that end when a noisy running sum of their inputs passes a noisy threshold.

Every bucket is a fresh run of the sparse vector technique (:mod:`trilift.counters.edit.svt`) on the sum of
its own inputs. A quiet stretch makes one long bucket, a busy one short ones, a stream without events none.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from trilift.counters.edit.svt import SVTNoise, SVTRule, ceil_log, first_top
from trilift.stream.keys import DigestBuilder, derive_key
from trilift.stream.laplace import SAMPLER_ID

__all__ = ["Part", "Thresholds", "part_rule"]

Integers = np.ndarray[Any, np.dtype[Any]]


class Thresholds(Protocol):
    """What :class:`trilift.counters.edit.rules.PartRule` says about thresholds, in largest inputs."""

    @property
    def tau(self) -> Fraction:
        """Threshold of the first bucket before drifts, > 0."""
        ...

    @property
    def scale0(self) -> Fraction:
        """Scale of Z0."""
        ...

    @property
    def scale_t(self) -> Fraction:
        """Scale of the noise of steps."""
        ...

    @property
    def bucket_drift(self) -> Fraction:
        """d_l >= 0, coefficient of ln l."""
        ...

    @property
    def clock_drift(self) -> Fraction:
        """d_t >= 0, coefficient of ln(t + shift)."""
        ...

    @property
    def shift(self) -> int:
        """c >= 1, with d_t <= 2c/3."""
        ...


def part_rule(rule: Thresholds, *, high: int) -> SVTRule:
    """Return the runs of a partition for inputs of at most ``high`` lattice steps."""
    return SVTRule.of_scales(
        rule.scale0, scale_t=rule.scale_t, factor=rule.clock_drift, offset=rule.shift, high=high
    )


class Part:
    """The partition of ECC: a run per bucket, the clock of thresholds starting again with each.

    Bucket l = 1, 2, ... starts from tau_l = ceil(D tau) + ceil(D d_l ln l) + 2 lattice points. For a good
    event {Z0 >= -g, Y <= g, Z_1 <= g} with g = ceil((D tau + D d_l ln l - D)/2), the two points (2^-20 of an
    input) make 2 g + D < tau_l <= th_1 hold whether thresholds drift or not: on it neither the first step is
    TOP nor one with the fresh noise Y of the shift lemma.

    Args:
        rule: public parameters, such as a :class:`trilift.counters.edit.rules.PartRule`.
        high: largest input in lattice steps.
        key: 32 secret bytes, the stream's.
        stream_id: 16 bytes.
        purpose: path that is unique per key.
    """

    def __init__(self, rule: Thresholds, *, high: int, key: bytes, stream_id: bytes, purpose: str) -> None:
        self._rule = rule
        self._svt = part_rule(rule, high=high)
        self._first = -(-self._svt.unit * rule.tau // 1) + 2
        digest = DigestBuilder("trilift/edit/part/1").add("sampler", SAMPLER_ID)
        for name in ("weight", "unit", "origin_scale", "step_scale", "offset"):
            digest.add(name, int(getattr(self._svt, name)))
        digest.add("factor", self._svt.factor)
        digest.add("tau", rule.tau).add("bucket drift", rule.bucket_drift)
        self.digest = digest.digest()
        derived = derive_key(key, stream_id=stream_id, purpose=purpose, digest=self.digest)
        self._noise = SVTNoise(self._svt, key=derived)

    def __repr__(self) -> str:
        return f"Part(tau={self._rule.tau}, noise secret)"

    @property
    def svt(self) -> SVTRule:
        """Lattice, scales and drift of the runs."""
        return self._svt

    def start(self, bucket: int) -> int:
        """Return tau_l in lattice points; ``bucket`` = l - 1."""
        if not self._rule.bucket_drift:
            return self._first
        return self._first + int(ceil_log(self._svt.unit * self._rule.bucket_drift, bucket + 1))

    def cuts(
        self, sums: Integers, *, bucket: int, clock: int, opened: int, most: int | None = None
    ) -> list[int]:
        """Return the indices of the steps that end a bucket, among k more steps. Secret.

        Args:
            sums: running sums of the stream after each of the k steps, in input lattice steps.
            bucket: number of buckets that have ended before.
            clock: steps taken in the bucket that is open.
            opened: running sum of the stream when that bucket began.
            most: no more than this many buckets end.
        """
        found: list[int] = []
        begin = 0
        while begin < len(sums) and (most is None or len(found) < most):
            index = first_top(
                self._svt,
                self._noise,
                sums[begin:],
                bucket=bucket + 1,
                clock=clock,
                threshold=self.start(bucket),
                opened=opened,
            )
            if index < 0:
                break
            found.append(begin + index)
            begin, opened = begin + index + 1, int(sums[begin + index])
            bucket, clock = bucket + 1, 0
        return found
