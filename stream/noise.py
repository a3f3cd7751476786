"""Keyed correlated noise: a pure function of (key, stream, purpose, mechanism, step)."""

from __future__ import annotations

from typing import Any

import numpy as np
from trilift.lift.chain import Chain
from trilift.stream.chain_noise import ChainNoise, chain_digest
from trilift.stream.evaluate import DrawSource
from trilift.stream.keystream import Keystream
from trilift.stream.laplace import SAMPLER_ID, LaplaceBlocks, LaplaceRows
from trilift.stream.ledger import Ledger, check_ledger

__all__ = ["Noise", "mechanism_digest"]

IntArray = np.ndarray[Any, np.dtype[np.int64]]


def mechanism_digest(chain: Chain, ledger: Ledger, *, places: int) -> bytes:
    """Return SHA-256 of everything the noise depends on besides key, stream and purpose.

    Bound are the label, the sampler and its version, every level's arrays with their exponents, every row's
    lattice and scale, the input and the output lattice, chi and epsilon. A change of any of them gives other
    noise, so a saved state that does not match its mechanism is refused instead of silently drawn afresh.
    """
    digest = chain_digest(chain, ledger, sampler=SAMPLER_ID, places=places)
    return digest.add("epsilon", ledger.epsilon).digest()


class _KeyedSource:
    """The draws of a mechanism under one derived key."""

    def __init__(self, rows: list[LaplaceRows], key: bytes) -> None:
        self._stream = Keystream(key)
        self._rows = rows

    def draws(self, level: int, blocks: IntArray) -> LaplaceBlocks:
        return LaplaceBlocks(self._rows[level], self._stream, level, blocks)


class Noise(ChainNoise[Ledger]):
    """Noise N = L z of a chain, rounded to the output lattice, at any step, range or set of steps.

    Neighbours: two streams that differ in one input, by at most ``ledger.change``. Guarantee: adding
    ``noise.at(t)`` to every exact prefix sum is (epsilon, 0)-differentially private for epsilon =
    ``ledger.epsilon``, for all steps together and for adaptively chosen inputs, given ideal random bits (with
    ChaCha20 as the source of bits, against adversaries that cannot break it). Composition: R x + z is one
    release of discrete Laplace mechanisms, one a row of R, whose costs add up to at most
    ``ledger.spent <= epsilon``; the released values are a function of it because L R = T holds exactly and
    floor(u + k) = floor(u) + k for integers k (post-processing).

    **One key serves one version of one stream.** The same key over changed data reveals the change exactly,
    because the noise is the same. Corrected data need a new key and a new epsilon.

    Args:
        chain: exact chain.
        ledger: its budget split (:func:`trilift.stream.ledger.make_ledger`).
        horizon: number of steps n <= chain.capacity.
        key: 32 secret bytes (:func:`trilift.stream.keys.new_key`).
        stream_id: 16 bytes drawn together with the key.
        purpose: path that is unique per key, such as "counter".
        places: binary places of the output lattice h = 2^-places; at least the ledger's input places (the
            default), at most 256.

    Raises:
        ParameterError: arguments out of range, or a ledger that does not prove its epsilon for this chain.
        HorizonError: a horizon past the chain's capacity.
    """

    _DRAW_VARIANCE = 2.0
    _PURE = True

    def _check(self) -> None:
        check_ledger(self.chain, self.ledger)

    def _digest(self) -> bytes:
        return mechanism_digest(self.chain, self.ledger, places=self.places)

    def _plans(self) -> list[LaplaceRows]:
        return [LaplaceRows(entry.row_scales) for entry in self.ledger.levels]

    def _source(self, key: bytes) -> DrawSource:
        return _KeyedSource(self._rows, key)

    def _budget_text(self) -> str:
        return f"epsilon={self.ledger.epsilon}"
