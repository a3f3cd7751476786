"""A cipher that is stuck: all bits zeros, or all ones, or one word again and again.

With such bits noise would be none, or the largest there is, at every step. Every counter must end, and must
refuse to release anything.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from trilift.experiments.trust.kinds import KINDS, Kind
from trilift.lift.errors import StateError
from trilift.stream.keystream import Keystream

__all__ = ["STUCK", "stuck", "stuck_cases"]

STUCK = {"all zeros": 0, "all ones": 0xFFFFFFFF, "one word": 0x9E3779B9}
"""What the word is that comes again and again."""


class _Stuck:
    """In place of a cipher: the same word for ever."""

    def __init__(self, word: int) -> None:
        self._word = struct.pack("<I", word)

    def update(self, data: bytes) -> bytes:
        return self._word * (len(data) // 4)

    def update_into(self, data: bytes, buffer: Any) -> int:
        buffer[: len(data)] = self.update(data)
        return len(data)

    def reset_nonce(self, where: Any) -> None:
        """There is nothing to reset."""


@contextmanager
def stuck(word: int) -> Iterator[None]:
    """Let every keystream repeat a word as long as the ``with`` block lasts."""
    with patch.object(Keystream, "_encryptor", lambda self, where: _Stuck(word)):
        yield


def stuck_cases(kinds: Iterable[Kind] = KINDS) -> Iterator[tuple[Kind, str, bool, str]]:
    """Yield kind, the bits, whether nothing was released, and what was said."""
    for kind in kinds:
        for name, word in STUCK.items():
            yield kind, name, *_tried(kind, word)


def _tried(kind: Kind, word: int) -> tuple[bool, str]:
    with stuck(word):
        try:
            counter = kind.make(1, 1)
        except StateError as error:  # some draw noise when they are made
            return True, str(error)
        try:
            released = kind.feed(counter)
        except StateError as error:
            return counter.step == 0, str(error)
    return False, f"released {released[:3]}"
