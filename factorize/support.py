"""The sparse support of a right factor: which entries a joint search may move (new).

Entries outside stay zero for good, so the support never grows while a search runs. It is stored row by row
(CSR), which is the order in which the product with it is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from trilift.lift.checks import finite, integer, numeric_array
from trilift.lift.errors import ParameterError
from trilift.lift.stage import FloatArray

__all__ = ["THRESHOLD", "Support", "support_of", "used_rows"]

IntArray = np.ndarray[Any, np.dtype[np.int64]]

THRESHOLD = 2e-4
"""Entries below this fraction of the largest of their row are taken for zeros."""

_UNUSED = 1e-5


@dataclass(frozen=True, eq=False)
class Support:
    """Positions of the entries that may differ from zero, row by row.

    Attributes:
        shape: (r, m) of the right factor.
        starts: shape (r + 1,): entries starts[i], ..., starts[i + 1] - 1 belong to row i.
        rows: shape (entries,), the row of each entry.
        columns: shape (entries,), the column of each entry, ascending within a row.
    """

    shape: tuple[int, int]
    starts: IntArray
    rows: IntArray
    columns: IntArray

    @property
    def entries(self) -> int:
        """Number of entries that may differ from zero."""
        return len(self.rows)

    @property
    def density(self) -> float:
        """Entries over r m."""
        return self.entries / (self.shape[0] * self.shape[1])

    def values_of(self, B: FloatArray) -> FloatArray:
        """Return the entries of a dense matrix on the support, shape (entries,)."""
        return np.ascontiguousarray(B[self.rows, self.columns], dtype=np.float64)

    def matrix(self, values: FloatArray) -> Any:
        """Return the sparse (CSR) matrix with these entries."""
        return sparse.csr_matrix((values, self.columns, self.starts), shape=self.shape)

    def dense(self, values: FloatArray) -> FloatArray:
        """Return the dense matrix with these entries, shape (r, m)."""
        B = np.zeros(self.shape)
        B[self.rows, self.columns] = values
        return B

    def column_sums(self, values: FloatArray) -> FloatArray:
        """Return the sums over each column, shape (m,)."""
        return np.asarray(np.bincount(self.columns, values, self.shape[1]), dtype=np.float64)


def support_of(matrix: Any, *, dilation: int = 0, threshold: float = THRESHOLD) -> Support:
    """Return the support of a right factor, widened within its rows.

    Args:
        matrix: shape (r, m), finite.
        dilation: how many neighbours on either side of every kept entry belong to the support too.
        threshold: entries of size at most this fraction of the largest of their row count as zero.

    Raises:
        ParameterError: not a finite matrix, or a column without any entry.

    >>> support_of([[0.0, 1.0, 0.0], [1.0, 0.0, 1e-9]], dilation=1).columns.tolist()
    [0, 1, 2, 0, 1]
    """
    B = numeric_array("matrix", matrix, ndim=2)
    width = integer("dilation", dilation, minimum=0)
    least = finite("threshold", threshold, minimum=0, maximum=1)
    size = np.abs(B)
    kept = (size > least * size.max(axis=1, keepdims=True, initial=0.0)) & (size > 0)
    for _ in range(min(width, B.shape[1])):
        wider = kept.copy()
        wider[:, 1:] |= kept[:, :-1]
        wider[:, :-1] |= kept[:, 1:]
        kept = wider
    if not kept.any(axis=0).all():
        column = int(np.flatnonzero(~kept.any(axis=0))[0])
        raise ParameterError(f"column {column} of the right factor has no entry")
    rows, columns = np.nonzero(kept)
    starts = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int64)
    return Support((B.shape[0], B.shape[1]), starts, rows, columns)


def used_rows(B: FloatArray) -> FloatArray:
    """Return a right factor without its rows of tiny entries only, such as completion adds."""
    largest = np.abs(B).max(axis=1)
    return np.ascontiguousarray(B[largest > _UNUSED * largest.max()])
