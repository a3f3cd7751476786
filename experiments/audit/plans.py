"""Sampling plans are made once for all runs: they hold scales, which are public, and no key.

An audit makes thousands of counters of one design. Each of them plans anew how noise of its scales is drawn
from a keystream, which takes longer than to draw it. Here a plan that was made for the same scales before is
handed out again. Nothing else changes: keys, keystreams and released values are those of the shipped code (a
test compares them).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import groupby
from typing import Any
from unittest.mock import patch

from trilift.stream.gaussian import GaussianRows
from trilift.stream.laplace import LaplaceRows

__all__ = ["shared_plans"]

_WHERE = {
    LaplaceRows: ("stream.bank", "stream.noise", "counters.edit.simpart", "counters.edit.svt"),
    GaussianRows: ("stream.bank", "stream.gaussian_noise", "stream.toeplitz_noise"),
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
def shared_plans() -> Iterator[None]:
    """Let the shipped code share the plans of equal scales for as long as the block lasts."""
    with ExitStack() as stack:
        for kind, modules in _WHERE.items():

            def made(scales: Any, kind: Any = kind) -> Any:
                return _shared(kind, scales)

            for module in modules:
                stack.enter_context(patch(f"trilift.{module}.{kind.__name__}", made))
        yield
