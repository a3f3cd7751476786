"""Thousands of counters of one design, each used for a moment: what need not be done anew for each of them.

Each counter plans how noise of its scales is drawn from a keystream, which takes longer than to draw it; a
plan holds scales, which are public, and no key. Here a plan that was made for the same scales before is
handed out again. Besides, edit counters read the noise of 64 buckets ahead and remember the last 1024 steps
for retries; here they read that of as many as are needed, and remember one step. Nothing else changes: keys,
keystreams and released values are those of the shipped code (a test compares them).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import groupby
from typing import Any
from unittest.mock import patch

from trilift.counters.edit import simpart, svt
from trilift.stream import bank, gaussian_noise, noise, toeplitz_noise

__all__ = ["shared_plans"]

_WHERE = {
    "LaplaceRows": (bank, noise, simpart, svt),
    "GaussianRows": (bank, gaussian_noise, toeplitz_noise),
}
_MOST = 64
_plans: OrderedDict[Any, Any] = OrderedDict()


def _shared(kind: Any, scales: Any) -> Any:
    runs = [(scale, len(list(group))) for scale, group in groupby(scales)]
    key = kind, tuple((type(scale), scale, count) for scale, count in runs)
    if key not in _plans:
        _plans[key] = kind(scales)
        while len(_plans) > _MOST:
            _plans.popitem(last=False)
    _plans.move_to_end(key)
    return _plans[key]


@contextmanager
def shared_plans(*, page: int = 64) -> Iterator[None]:
    """Let the shipped code share the plans of equal scales for as long as the block lasts.

    Args:
        page: buckets whose noise edit counters read at once.
    """
    with ExitStack() as stack:
        stack.enter_context(patch("trilift.counters.edit.pages._PAGE", page))
        stack.enter_context(patch("trilift.counters.position.REMEMBERED", 1))
        for name, modules in _WHERE.items():
            for module in modules:
                there = getattr(module, name)  # a planted fault, perhaps
                stack.enter_context(patch.object(module, name, partial(_shared, there)))
        yield
