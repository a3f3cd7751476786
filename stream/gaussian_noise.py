"""Keyed correlated Gaussian noise: a pure function of (key, stream, purpose, mechanism, step)."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from trilift.lift.chain import Chain
from trilift.lift.errors import StateError
from trilift.stream.chain_noise import ChainNoise, chain_digest
from trilift.stream.evaluate import DrawSource
from trilift.stream.gaussian import SAMPLER_ID, GaussianDraws, GaussianRows
from trilift.stream.gaussian_ledger import GaussianLedger, check_gaussian_ledger
from trilift.stream.keystream import Keystream
from trilift.stream.reals import RealEvaluator, RealSource

__all__ = ["GaussianNoise", "GaussianReals", "gaussian_digest"]

IntArray = np.ndarray[Any, np.dtype[np.int64]]


def gaussian_digest(chain: Chain, ledger: GaussianLedger, *, places: int) -> bytes:
    """Return SHA-256 of everything the noise depends on besides key, stream and purpose.

    As :func:`trilift.stream.noise.mechanism_digest`, with the sampler of rounded Gaussians, and mu.
    """
    digest = chain_digest(chain, ledger, sampler=SAMPLER_ID, places=places)
    return digest.add("mu", ledger.mu).digest()


class _RealDraws:
    """Gaussians of some blocks of a level, as reals."""

    def __init__(self, draws: GaussianDraws) -> None:
        self._draws = draws

    @property
    def float_error(self) -> NDArray[np.float64]:
        return self._draws.real_error

    def to_float(self) -> NDArray[np.float64]:
        return self._draws.to_real()

    def block(self, index: int) -> list[int]:
        raise StateError(f"the draws of block {index} are real numbers: take them from a finer lattice")


class _FinerSource:
    def __init__(self, source: GaussianReals, bits: int) -> None:
        self._reals, self._bits = source, bits

    def draws(self, level: int, blocks: IntArray) -> GaussianDraws:
        return self._reals.sample(level, blocks).finer(self._bits)


class GaussianReals:
    """The real draws sigma N of a mechanism under one derived key.

    Args:
        rows: the sampling plan of every level.
        key: 32 bytes, used for nothing else.
    """

    def __init__(self, rows: list[GaussianRows], key: bytes) -> None:
        self._stream = Keystream(key)
        self._rows = rows

    def sample(self, level: int, blocks: IntArray) -> GaussianDraws:
        """Return the draws of the given blocks, rounded to the rows' own lattices or to any other."""
        return self._rows[level].sample(self._stream, level, blocks)

    def draws(self, level: int, blocks: IntArray) -> _RealDraws:
        """Return the draws of the given blocks, as reals in units of the rows' lattices."""
        return _RealDraws(self.sample(level, blocks))

    def finer(self, bits: int) -> _FinerSource:
        """Return the source of the same draws as integers on lattices finer by 2^-bits."""
        return _FinerSource(self, bits)


class GaussianNoise(ChainNoise[GaussianLedger]):
    """Gaussian noise N = L z of a chain, rounded to the output lattice, at any step, range or set of steps.

    Neighbours: two streams that differ in one input, by at most ``ledger.change``. Guarantee: adding
    ``noise.at(t)`` to every exact prefix sum is mu-GDP for mu = ``ledger.mu`` (Dong, Roth, Su 2022), hence
    (epsilon, delta)-differentially private for every epsilon >= 0 with delta = delta(epsilon, mu) of Balle
    and Wang (2018), :func:`trilift.stream.gdp.ln_delta_bounds`, and mu^2/2-zCDP; for all steps together.
    Given ideal random bits: with ChaCha20 as the source of bits, against adversaries that cannot break it.

    Theorem: z is a vector of independent real Gaussians of the ledger's scales, and the sensitivity of Rx is
    at most mu in units of those scales, so Rx + z is mu-GDP, and Tx + Lz is a function of it since L R = T
    exactly. Adaptively chosen inputs: this Gaussian matrix mechanism stays exactly as private when inputs
    depend on earlier outputs (Denisov, McMahan, Rush, Smith, Thakurta 2022, theorem 2.1), although rows of R
    look ahead: L z has the law of L' z' for a lower triangular L', by a rotation. Every released value is the
    rounding floor(u + 1/2) of one value of Tx + Lz (in units of h; Tx is an integer there), so it is
    post-processing as they come. This is why the sum Lz is rounded, once, and not each z: rounded Gaussians
    have no rotations, and rows of R that look ahead would leave adaptive inputs without a proof.
    Composition: independent noises of mu_1, mu_2, ... are mu-GDP together for mu^2 = sum mu_i^2.

    **One key serves one version of one stream.** The same key over changed data reveals the change exactly,
    because the noise is the same. Corrected data need a new key and a new budget.

    Args:
        chain: exact chain, best one made for the l2 norm (:func:`trilift.artifacts.load_stage_l2`).
        ledger: its budget split (:func:`trilift.stream.gaussian_ledger.make_gaussian_ledger`).
        horizon: number of steps n <= chain.capacity.
        key: 32 secret bytes (:func:`trilift.stream.keys.new_key`).
        stream_id: 16 bytes drawn together with the key.
        purpose: path that is unique per key, such as "counter".
        places: binary places of the output lattice h = 2^-places; at least the ledger's input places (the
            default), at most 256.

    Raises:
        ParameterError: arguments out of range, or a ledger that does not prove its mu for this chain.
        HorizonError: a horizon past the chain's capacity.
    """

    _DRAW_VARIANCE = 1.0

    def _check(self) -> None:
        check_gaussian_ledger(self.chain, self.ledger)

    def _digest(self) -> bytes:
        return gaussian_digest(self.chain, self.ledger, places=self.places)

    def _plans(self) -> list[GaussianRows]:
        return [GaussianRows(entry.row_scales) for entry in self.ledger.levels]

    def _source(self, key: bytes) -> RealSource:
        return GaussianReals(self._rows, key)

    def _make_evaluator(self, source: DrawSource) -> RealEvaluator:
        return RealEvaluator(self.chain, self.ledger, cast(RealSource, source))

    def _budget_text(self) -> str:
        return f"mu={float(self.ledger.mu):.6g}"
