"""Keyed correlated noise: a pure function of (key, stream, purpose, mechanism, step)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from trilift.lift.chain import Chain
from trilift.lift.checks import integer, numeric_array
from trilift.lift.costs import row_norms_sq
from trilift.lift.errors import HorizonError, ParameterError, StateError
from trilift.lift.rows import row_covariance
from trilift.stream.draws import Draws
from trilift.stream.evaluate import Evaluator
from trilift.stream.keys import NOISE_LABEL, DigestBuilder, derive_key
from trilift.stream.keystream import Keystream
from trilift.stream.laplace import SAMPLER_ID, LaplaceRows
from trilift.stream.ledger import MAX_PLACES, Ledger, check_ledger

__all__ = ["Noise", "mechanism_digest"]

IntArray = np.ndarray[Any, np.dtype[np.int64]]

_CHUNK = 1 << 16


def mechanism_digest(chain: Chain, ledger: Ledger, *, places: int) -> bytes:
    """Return SHA-256 of everything the noise depends on besides key, stream and purpose.

    Bound are the label, the sampler and its version, every level's arrays with their exponents, every row's
    lattice and scale, the input and the output lattice, chi and epsilon. A change of any of them gives other
    noise, so a saved state that does not match its mechanism is refused instead of silently drawn afresh.
    """
    digest = DigestBuilder(NOISE_LABEL.decode())
    digest.add("sampler", SAMPLER_ID)
    digest.add("levels", len(chain.levels))
    for stage, entry in zip(chain.levels, ledger.levels, strict=True):
        for name in ("A", "B", "w", "g"):
            part = getattr(stage, name).normalized()  # the values count, not how they are held
            digest.add(name, part.num).add(name + " exponent", part.exp)
        digest.add("row lattices", entry.places).add("row scales", entry.row_scales)
    digest.add("input places", ledger.input_places).add("output places", places)
    digest.add("change", ledger.change).add("epsilon", ledger.epsilon)
    return digest.digest()


class _KeyedSource:
    """The draws of a mechanism under one derived key."""

    def __init__(self, rows: list[LaplaceRows], key: bytes) -> None:
        self._stream = Keystream(key)
        self._rows = rows

    def draws(self, level: int, blocks: IntArray) -> Draws:
        return self._rows[level].sample(self._stream, level, blocks)


class Noise:
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

    def __init__(
        self,
        chain: Chain,
        ledger: Ledger,
        *,
        horizon: int,
        key: bytes,
        stream_id: bytes,
        purpose: str,
        places: int | None = None,
    ) -> None:
        self.chain = chain
        self.ledger = ledger
        self.horizon = chain.check_horizon(horizon)
        wanted = ledger.input_places if places is None else places
        self.places = integer("places", wanted, minimum=ledger.input_places, maximum=MAX_PLACES)
        check_ledger(chain, ledger)
        self.digest = mechanism_digest(chain, ledger, places=self.places)
        derived = derive_key(key, stream_id=stream_id, purpose=purpose, digest=self.digest)
        self._rows = [LaplaceRows(entry.row_scales) for entry in ledger.levels]
        self._evaluator = Evaluator(chain, ledger, _KeyedSource(self._rows, derived))
        self._floats: Chain | None = None

    @classmethod
    def family(
        cls,
        chain: Chain,
        ledger: Ledger,
        *,
        horizon: int,
        key: bytes,
        stream_id: bytes,
        purposes: Sequence[str],
        places: int | None = None,
    ) -> list[Self]:
        """Return independent noises of one mechanism, one a purpose, as the constructor would make them.

        The ledger is checked and the factors are prepared once for all of them.

        Raises:
            ParameterError, HorizonError: as the constructor; no purpose, or the same one twice.
        """
        if not purposes or len(set(purposes)) != len(purposes):
            raise ParameterError("purposes must be at least one, all different")
        first = cls(
            chain,
            ledger,
            horizon=horizon,
            key=key,
            stream_id=stream_id,
            purpose=purposes[0],
            places=places,
        )
        members = [first]
        for purpose in purposes[1:]:
            derived = derive_key(key, stream_id=stream_id, purpose=purpose, digest=first.digest)
            member = cls.__new__(cls)  # not by copying, which is refused
            member.__dict__.update(first.__dict__)
            member._evaluator = first._evaluator.drawing_from(_KeyedSource(first._rows, derived))
            members.append(member)
        return members

    def __repr__(self) -> str:
        return f"Noise(sizes={self.chain.sizes}, horizon={self.horizon}, epsilon={self.ledger.epsilon})"

    def __reduce__(self) -> Any:
        raise StateError(
            "noise is not copied or pickled, because it holds its key: make it again from the key"
        )

    def range(self, start: int, stop: int) -> np.ndarray[Any, np.dtype[Any]]:
        """Return floor(N_t / h + 1/2) for t = start..stop-1 (0-based): integers in units of h.

        int64, or Python integers (dtype object) where they do not fit.

        Raises:
            ParameterError: not integers, start < 0, or stop < start.
            HorizonError: steps past horizon-1.
        """
        first = integer("start", start, minimum=0)
        last = integer("stop", stop, minimum=first)
        if last > self.horizon:
            raise HorizonError(f"step {last} is past the horizon {self.horizon}")
        chunks = [np.arange(a, min(a + _CHUNK, last)) for a in range(first, last, _CHUNK)]
        return self._rounded(chunks)

    def at(self, steps: Any) -> np.ndarray[Any, np.dtype[Any]]:
        """Return floor(N_t / h + 1/2) at the given 0-based steps, in any order, repetitions allowed.

        The same step always gets the same noise: adding it to prefix sums of changed data reveals the
        change exactly. Meant for engines that compute exact prefix sums of *one* version of a stream.

        Raises:
            ParameterError: steps that are not integers.
            HorizonError: steps outside 0..horizon-1.
        """
        array = numeric_array("steps", steps)
        if array.dtype.kind not in "iu" and array.size:
            raise ParameterError(f"steps must be integers, got dtype {array.dtype}")
        flat = array.ravel()
        if flat.size and (flat.min() < 0 or flat.max() >= self.horizon):
            bad = int(flat.min()) if flat.min() < 0 else int(flat.max())
            raise HorizonError(f"step {bad} lies outside 0..{self.horizon - 1}")
        unique, where = np.unique(flat.astype(np.int64), return_inverse=True)
        chunks = [unique[a : a + _CHUNK] for a in range(0, unique.size, _CHUNK)]
        return np.asarray(self._rounded(chunks)[where]).reshape(array.shape)

    def _rounded(self, chunks: list[IntArray]) -> np.ndarray[Any, np.dtype[Any]]:
        parts = [self._evaluator.rounded(chunk, places=self.places) for chunk in chunks]
        if not parts:
            return np.zeros(0, dtype=np.int64)
        if any(part.dtype == object for part in parts):
            parts = [part.astype(object) for part in parts]
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def variance(self, steps: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the variance of the released values at 0-based steps, in squared units of the count.

        2 sum_l s_l^2 |row_t on level l|^2 from the exact scales, plus h^2 / 12 for the rounding (right when
        the noise is well above h; released values with less noise than that vary by less).
        """
        norms = row_norms_sq(self._float_chain(), steps)
        squares = np.array([float(scale) ** 2 for scale in self.ledger.scales])
        return np.asarray(2.0 * squares @ norms + np.ldexp(1.0, -2 * self.places) / 12.0)

    def covariance(self, first: int, second: int) -> float:
        """Return the covariance of the noise of two 0-based steps (before rounding)."""
        scales = [float(scale) for scale in self.ledger.scales]
        return 2.0 * row_covariance(self._float_chain(), first, second, scales=scales)

    def _float_chain(self) -> Chain:
        if self._floats is None:
            self._floats = self.chain.to_float()
        return self._floats
