"""SimPart: buckets of random lengths that read no data.

Bucket l has the length that :class:`~trilift.counters.edit.rules.SimPartRule` makes of an exact discrete
Laplace variate of scale 2/eps_p. That scale is a fraction; the sampler takes it as it is, so tails and
probability ratios are those of the rule's proof without any rounding. Edit neighbours make one bucket longer
and one shorter by a step; each costs eps_p/2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from trilift.counters.edit.rules import SimPartRule
from trilift.lift.errors import HorizonError
from trilift.stream.keys import DigestBuilder, derive_key
from trilift.stream.keystream import Keystream
from trilift.stream.laplace import SAMPLER_ID, LaplaceRows

__all__ = ["SimPart"]

Integers = np.ndarray[Any, np.dtype[Any]]

_PAGE = 64
_MOST_PAGES = 64
_LIMIT = 1 << 48


class SimPart:
    """The partition of SimECC. Reads no input.

    Args:
        rule: public parameters.
        key: 32 secret bytes, the stream's: lengths are as secret as the data, since their true values would
            show how a neighbour's buckets moved.
        stream_id: 16 bytes.
        purpose: path that is unique per key.
    """

    def __init__(self, rule: SimPartRule, *, key: bytes, stream_id: bytes, purpose: str) -> None:
        self._rule = rule
        digest = DigestBuilder("trilift/edit/simpart/1").add("sampler", SAMPLER_ID).add("scale", rule.scale)
        digest.add("base", rule.base).add("drift", rule.drift).add("folded", int(rule.folded))
        self.digest = digest.digest()
        derived = derive_key(key, stream_id=stream_id, purpose=purpose, digest=self.digest)
        self._stream = Keystream(derived)
        self._rows = LaplaceRows([rule.scale] * _PAGE)
        self._page: tuple[int, Integers] | None = None

    def __repr__(self) -> str:
        return f"SimPart(epsilon={self._rule.epsilon}, noise secret)"

    def lengths(self, start: int, stop: int) -> Integers:
        """Return the lengths of buckets start .. stop-1, numbered from 0. Secret."""
        if stop > _LIMIT:
            raise HorizonError("2^48 buckets are used up")
        first, last = start // _PAGE, -(-stop // _PAGE)
        if last - first == 1:  # single steps read a page again and again
            if self._page is None or self._page[0] != first:
                self._page = (first, self._drawn(first, last))
            pages = self._page[1]
        else:
            pages = self._drawn(first, last)
        return pages[start - first * _PAGE : stop - first * _PAGE]

    def _drawn(self, first: int, last: int) -> Integers:
        blocks = np.arange(first, last, dtype=np.uint64)
        draws = self._rows.sample(self._stream, 0, blocks).to_int64().ravel()
        return np.asarray(self._rule.lengths(first * _PAGE, draws))

    def cuts(
        self, sums: Integers, *, bucket: int, clock: int, opened: int = 0, most: int | None = None
    ) -> list[int]:
        """Return the indices of the steps that end a bucket; of ``sums`` only the length is used.

        Arguments as in :meth:`trilift.counters.edit.part.Part.cuts`.
        """
        found: list[int] = []
        end, pages, steps = -clock, 1, len(sums)
        while end < steps and (most is None or len(found) < most):
            stop = (bucket // _PAGE + pages) * _PAGE
            ends = end + np.cumsum(self.lengths(bucket, stop))
            inside = ends[ends <= steps]
            found += (inside - 1).tolist()
            if inside.size < ends.size:
                break
            end, bucket, pages = int(ends[-1]), stop, min(2 * pages, _MOST_PAGES)
        return found if most is None else found[:most]
