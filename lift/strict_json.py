"""JSON from files that nobody vouches for: what parsers disagree about, or choke on, is refused."""

from __future__ import annotations

import json
import math
import re
from typing import Any

__all__ = ["parse_json"]

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text in ASCII, read as all parsers would read it.

    Refused are, besides what is no JSON: names that stand twice in an object, NaN and infinities (written
    out, or as numbers beyond the floats), integers of more than 4300 digits (unless the interpreter was told
    to read them), halves of surrogate pairs, and nesting that does not fit the interpreter's stack.

    Raises:
        ValueError: one of these.

    >>> parse_json('{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    >>> parse_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ValueError: a name stands twice
    """
    if isinstance(text, bytes):
        text = text.decode("ascii")
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_finite)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")  # fails for a half of a pair
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a name stands twice")
    return record


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number beyond the floats")
    return value
