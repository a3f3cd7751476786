"""The stage: one level of a chain, and with w = 0 and g = 0 a plain factorisation of T_m."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from trilift.lift.checks import choice, integer, numeric_array
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import ParameterError
from trilift.lift.remembered import remembered

__all__ = ["FloatArray", "Stage", "lower_ones"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
Array = FloatArray | Dyadic


_LARGEST = 1 << 14


def lower_ones(size: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return T_m, the lower-triangular all-ones matrix, as integers of shape (size, size).

    Raises:
        ParameterError: not an integer from 0 to 16384.

    >>> lower_ones(2).tolist()
    [[1, 0], [1, 1]]
    """
    m = integer("size", size, minimum=0, maximum=_LARGEST)
    return np.tril(np.ones((m, m), dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Stage:
    """A stage (A, B, w, g) with T_m = A B + w (1 - v)^T and v = B^T g (new: the bridge lift).

    A query at position i of a block sees the coarse prefix of the block before with weight 1 - w_i and
    of its own block with weight w_i; an input at position i counts, one level up, with weight 1 - v_i
    in its own block and v_i in the next one.

    Attributes:
        A: shape (m, r).
        B: shape (r, m).
        w: shape (m,), entries in [0, 1].
        g: shape (r,); v = B^T g has entries in [0, 1].

    All four are float64 arrays, or all four are :class:`Dyadic` (then the stage is exact).

    Raises:
        ParameterError: shapes that do not fit, mixed kinds, NaN or infinities.
    """

    A: Any
    B: Any
    w: Any
    g: Any

    def __post_init__(self) -> None:
        parts = (self.A, self.B, self.w, self.g)
        exact = [isinstance(part, Dyadic) for part in parts]
        if any(exact) and not all(exact):
            raise ParameterError("A, B, w and g must be all float arrays or all Dyadic")
        if not all(exact):
            for name, ndim in (("A", 2), ("B", 2), ("w", 1), ("g", 1)):
                array = numeric_array(name, getattr(self, name), ndim=ndim).astype(np.float64)
                array.flags.writeable = False
                object.__setattr__(self, name, array)
        m, r = self.A.shape if self.A.ndim == 2 else (0, 0)
        if m == 0 or r == 0 or (self.B.shape, self.w.shape, self.g.shape) != ((r, m), (m,), (r,)):
            shapes = ", ".join(f"{n} {getattr(self, n).shape}" for n in "ABwg")
            raise ParameterError(f"shapes must be A (m, r), B (r, m), w (m,), g (r,), got {shapes}")

    @classmethod
    def plain(cls, C: Any, D: Any) -> Stage:
        """Return the factorisation C D = T_k as a stage with w = 0 and g = 0 (a chain's top)."""
        if isinstance(C, Dyadic):
            return cls(C, D, Dyadic.zeros(C.shape[0]), Dyadic.zeros(C.shape[1]))
        C = np.asarray(C)
        return cls(C, D, np.zeros(C.shape[:1]), np.zeros(C.shape[-1:]))

    @property
    def size(self) -> int:
        """Number of steps m in a block."""
        return int(self.A.shape[0])

    @property
    def inner(self) -> int:
        """Number of measurements r in a block."""
        return int(self.A.shape[1])

    @property
    def is_exact(self) -> bool:
        """Whether the entries are exact dyadic numbers."""
        return isinstance(self.A, Dyadic)

    @property
    def v(self) -> Any:
        """Weights v = B^T g with which an input counts in the next block, shape (m,)."""
        return self.B.T @ self.g

    @property
    def one_sided(self) -> bool:
        """Whether g = 0, so that inputs stay in their own block."""
        return not np.any(self.g.num if self.is_exact else self.g)

    @property
    def is_plain(self) -> bool:
        """Whether the stage is a plain factorisation of T_m (w = 0 and g = 0)."""
        return self.one_sided and not np.any(self.w.num if self.is_exact else self.w)

    @property
    def tail(self) -> int:
        """Number of leading zeros of w: steps that may follow the last whole block (see lift.chain)."""
        nonzero = np.flatnonzero(self.w.num if self.is_exact else self.w)
        return int(nonzero[0]) if nonzero.size else 0

    def to_float(self) -> Stage:
        """Return the stage with entries rounded to the nearest float64."""
        return _rounded(self) if self.is_exact else self

    def defect(self) -> Any:
        """Return T_m - A B - w (1 - v)^T, shape (m, m): zero for a stage that holds exactly."""
        target = lower_ones(self.size)
        if self.is_exact:
            ones = Dyadic(np.ones(self.size, dtype=np.int64))
            rank_one = self.w[:, None] * (ones - self.v)[None, :]
            return Dyadic(target) - self.A @ self.B - rank_one
        return target - self.A @ self.B - np.outer(self.w, 1.0 - self.v)

    def residual(self) -> float | Fraction:
        """Return the largest absolute entry of the defect."""
        defect = abs(self.defect())
        return defect.max() if isinstance(defect, Dyadic) else float(defect.max())

    def column_norms(self) -> Any:
        """Return the l1 norms of B's columns, shape (m,) (floats, or Dyadic when exact)."""
        return _column_norms(self)

    def sensitivity(self) -> float | Fraction:
        """Return b = largest l1 norm of a column of B (a Fraction when exact)."""
        norms = self.column_norms()
        return norms.max() if isinstance(norms, Dyadic) else float(norms.max())

    def column_norms_sq(self) -> Any:
        """Return the squared l2 norms of B's columns, shape (m,) (floats, or Dyadic when exact)."""
        return _column_norms_sq(self)

    def sensitivity_sq(self) -> float | Fraction:
        """Return b^2, b the largest l2 norm of a column of B (a Fraction when exact): for Gaussian noise.

        Squares are rational where norms are not, so squares are what is carried and charged.
        """
        norms = self.column_norms_sq()
        return norms.max() if isinstance(norms, Dyadic) else float(norms.max())

    def row_norms_sq(self) -> Any:
        """Return q_i = |A_i|^2 + (1 - w_i)^2 |g|^2, shape (m,) (floats, or Dyadic when exact)."""
        return _row_norms_sq(self)

    def cost_third(self, objective: str) -> float:
        """Return (b^2 q)^(1/3) with q the largest or the mean row norm: what adds up along a chain."""
        norms = self.to_float().row_norms_sq()
        q = norms.max() if choice("objective", objective, ("max", "mean")) == "max" else norms.mean()
        return float((float(self.sensitivity()) ** 2 * q) ** (1 / 3))

    def gamma(self, objective: str) -> float:
        """Return sqrt(q) b, b the l2 sensitivity: what adds up along a chain under Gaussian noise."""
        norms = self.to_float().row_norms_sq()
        q = norms.max() if choice("objective", objective, ("max", "mean")) == "max" else norms.mean()
        return float(np.sqrt(q * float(self.sensitivity_sq())))

    def kappa(self, objective: str) -> float:
        """Return 2 q b^2 / log2(m)^3, the leading constant of the stage repeated for ever (an estimate).

        Raises:
            ParameterError: a stage of size 1.
        """
        if self.size < 2:
            raise ParameterError("kappa needs a size of at least 2: log2(1) = 0")
        return float(2.0 * (self.cost_third(objective) / np.log2(self.size)) ** 3)


@remembered
def _rounded(stage: Stage) -> Stage:
    return Stage(*(part.to_float() for part in (stage.A, stage.B, stage.w, stage.g)))


def _shared(norms: Any) -> Any:
    """Make an array fit to be remembered (Dyadic arrays are read-only anyway)."""
    if not isinstance(norms, Dyadic):
        norms.flags.writeable = False
    return norms


@remembered
def _column_norms(stage: Stage) -> Any:
    return _shared(stage.B.abs_sum(axis=0) if stage.is_exact else np.abs(stage.B).sum(axis=0))


@remembered
def _column_norms_sq(stage: Stage) -> Any:
    return _shared((stage.B * stage.B).sum(axis=0) if stage.is_exact else (stage.B**2).sum(axis=0))


@remembered
def _row_norms_sq(stage: Stage) -> Any:
    if stage.is_exact:
        rest = Dyadic(np.ones(stage.size, dtype=np.int64)) - stage.w
        return (stage.A * stage.A).sum(axis=1) + rest * rest * (stage.g * stage.g).sum()
    return _shared((stage.A**2).sum(axis=1) + (1.0 - stage.w) ** 2 * (stage.g @ stage.g))
