"""What the noise of a chain is whatever its law: keyed, at any steps, bound to a digest of its mechanism."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from trilift.lift.chain import Chain
from trilift.lift.checks import integer
from trilift.lift.costs import row_norms_sq
from trilift.lift.errors import ParameterError, StateError
from trilift.lift.rows import row_covariance
from trilift.stream.evaluate import DrawSource, Evaluator
from trilift.stream.keys import NOISE_LABEL, DigestBuilder, derive_key
from trilift.stream.levels import MAX_PLACES, ChainLedger
from trilift.stream.stepwise import Stepwise

__all__ = ["ChainNoise", "chain_digest"]

IntArray = np.ndarray[Any, np.dtype[np.int64]]

LedgerT = TypeVar("LedgerT", bound=ChainLedger)


def chain_digest(chain: Chain, ledger: ChainLedger, *, sampler: str, places: int) -> DigestBuilder:
    """Start the digest of everything the noise of a chain depends on besides key, stream and purpose.

    Bound are the label, the sampler and its version, every level's arrays with their exponents, every row's
    lattice and scale, the input and the output lattice, and chi; the caller adds its budget.
    """
    digest = DigestBuilder(NOISE_LABEL.decode())
    digest.add("sampler", sampler)
    digest.add("levels", len(chain.levels))
    for stage, entry in zip(chain.levels, ledger.levels, strict=True):
        for name in ("A", "B", "w", "g"):
            part = getattr(stage, name).normalized()  # the values count, not how they are held
            digest.add(name, part.num).add(name + " exponent", part.exp)
        digest.add("row lattices", entry.places).add("row scales", entry.row_scales)
    digest.add("input places", ledger.input_places).add("output places", places)
    return digest.add("change", ledger.change)


class ChainNoise(Stepwise, Generic[LedgerT]):
    """Noise N = L z of a chain, rounded to the output lattice; subclasses say what law z has.

    The constructor and its arguments are described by :class:`trilift.stream.Noise` and
    :class:`trilift.stream.GaussianNoise`.
    """

    _DRAW_VARIANCE: ClassVar[float]
    """Variance of a draw over the square of its scale."""

    horizon: int

    def __init__(
        self,
        chain: Chain,
        ledger: LedgerT,
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
        self._check()
        self.digest = self._digest()
        derived = derive_key(key, stream_id=stream_id, purpose=purpose, digest=self.digest)
        self._rows = self._plans()
        self._evaluator = self._make_evaluator(self._source(derived))
        self._floats: Chain | None = None

    @abstractmethod
    def _check(self) -> None:
        """Prove that the ledger spends at most its budget for this chain."""

    @abstractmethod
    def _digest(self) -> bytes:
        """Return the digest of the mechanism."""

    @abstractmethod
    def _plans(self) -> Any:
        """Return the sampling plan of every level."""

    @abstractmethod
    def _source(self, key: bytes) -> DrawSource:
        """Return the draws under a derived key."""

    def _make_evaluator(self, source: DrawSource) -> Evaluator:
        return Evaluator(self.chain, self.ledger, source)

    @abstractmethod
    def _budget_text(self) -> str:
        """Return the budget, for ``repr``."""

    @classmethod
    def family(
        cls,
        chain: Chain,
        ledger: LedgerT,
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
        again = [first.under(key=key, stream_id=stream_id, purpose=purpose) for purpose in purposes[1:]]
        return [first, *again]

    def under(self, *, key: bytes, stream_id: bytes, purpose: str) -> Self:
        """Return the noise of the same mechanism under another key, as the constructor would make it.

        The ledger is checked and the factors are prepared once for all of them.

        Raises:
            ParameterError: as the constructor.
        """
        derived = derive_key(key, stream_id=stream_id, purpose=purpose, digest=self.digest)
        member = type(self).__new__(type(self))  # not by copying, which is refused
        member.__dict__.update(self.__dict__)
        member._evaluator = self._evaluator.drawing_from(self._source(derived))
        return member

    def __repr__(self) -> str:
        budget = self._budget_text()
        return f"{type(self).__name__}(sizes={self.chain.sizes}, horizon={self.horizon}, {budget})"

    def __reduce__(self) -> Any:
        raise StateError(
            "noise is not copied or pickled, because it holds its key: make it again from the key"
        )

    def _rounded(self, steps: IntArray) -> np.ndarray[Any, np.dtype[Any]]:
        return self._evaluator.rounded(steps, places=self.places)

    def variance(self, steps: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the variance of the released values at 0-based steps, in squared units of the count.

        sum_l c s_l^2 |row_t on level l|^2 from the exact scales, c = 2 for Laplace and 1 for Gaussian noise,
        plus h^2 / 12 for the rounding (right when the noise is well above h; released values with less noise
        than that vary by less).
        """
        norms = row_norms_sq(self._float_chain(), steps)
        squares = np.array([float(scale) ** 2 for scale in self.ledger.scales])
        return np.asarray(self._DRAW_VARIANCE * squares @ norms + np.ldexp(1.0, -2 * self.places) / 12.0)

    def covariance(self, first: int, second: int) -> float:
        """Return the covariance of the noise of two 0-based steps (before rounding)."""
        first, second = (integer("step", step, minimum=0) for step in (first, second))
        scales = [float(scale) for scale in self.ledger.scales]
        return self._DRAW_VARIANCE * row_covariance(self._float_chain(), first, second, scales=scales)

    def _float_chain(self) -> Chain:
        if self._floats is None:
            self._floats = self.chain.to_float()
        return self._floats
