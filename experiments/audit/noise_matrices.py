"""The public matrices of a noise process: L, R and the scales of the draws, chains and epochs alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from trilift.lift.dense import materialise
from trilift.stream.chain_noise import ChainNoise
from trilift.stream.epochs import EpochNoise
from trilift.stream.gaussian_ledger import GaussianLedger
from trilift.stream.rounded import RoundedOnce
from trilift.stream.toeplitz_noise import ToeplitzNoise

__all__ = ["Matrices", "chain_matrices", "covariance", "matrices"]

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Matrices:
    """Noise L z with measurements R x + z.

    Attributes:
        L: shape (n, q).
        R: shape (q, n).
        scales: shape (q,): parameter of the Laplace law, or standard deviation.
        gaussian: the law of z.
    """

    L: Floats
    R: Floats
    scales: Floats
    gaussian: bool


def matrices(process: Any, horizon: int) -> Matrices:
    """Return the matrices of a chain, a Toeplitz square root or epochs, for the first ``horizon`` steps.

    Raises:
        TypeError: another kind of process.
    """
    if isinstance(process, ChainNoise):
        return chain_matrices(process.chain, process.ledger, horizon)
    if isinstance(process, ToeplitzNoise):
        from trilift.stream.toeplitz_factor import left_floats

        column = left_floats(process.horizon)[:horizon]
        at = np.subtract.outer(np.arange(horizon), np.arange(horizon))
        L = np.where(at >= 0, column[np.abs(at)], 0.0)
        return Matrices(
            L,
            np.asarray(np.linalg.solve(L, np.tri(horizon)), dtype=np.float64),
            np.full(horizon, float(process.sigma)),
            True,
        )
    if isinstance(process, EpochNoise):
        return _epochs(process, horizon)
    raise TypeError(f"no matrices are known of {type(process).__name__}")


def covariance(process: Any, horizon: int) -> Floats:
    """Return the covariance of what a process releases at the first ``horizon`` steps, rounding included."""
    whole = process.fine if isinstance(process, RoundedOnce) else process
    known = matrices(whole, horizon)
    variances = known.scales**2 * (1.0 if known.gaussian else 2.0)
    rounding = np.eye(horizon) * 4.0**-process.places / 12
    return np.asarray((known.L * variances) @ known.L.T + rounding)


def chain_matrices(chain: Any, ledger: Any, horizon: int) -> Matrices:
    """Return the matrices of a chain under a ledger, Laplace or Gaussian, for the first ``horizon`` steps."""
    dense = materialise(chain, horizon)
    scales = np.array([float(s) for s in ledger.scales])[dense.level]
    L, R = dense.L.to_float(), dense.R.to_float()
    used = np.abs(L).max(axis=0) > 0
    return Matrices(L[:, used], R[used], scales[used], isinstance(ledger, GaussianLedger))


def _epochs(process: EpochNoise, horizon: int) -> Matrices:
    """Epochs side by side: counters see their epoch's inputs, totals their sum."""
    layout, rows = process.layout, [process.parts(step) for step in range(horizon)]
    keys = list(dict.fromkeys(part[:2] for row in rows for part in row))
    left, right, scales, gaussian = [], [], [], False
    for kind, epoch in keys:
        start, length = layout.start(epoch), layout.length(epoch)
        own = matrices(process.process(kind, epoch), 1 if kind == "total" else length)
        L, R = np.zeros((horizon, own.scales.size)), np.zeros((own.scales.size, horizon))
        for step, row in enumerate(rows):
            for k, e, local in row:
                if (k, e) == (kind, epoch):
                    L[step] = own.L[local]
        inside = slice(start, min(start + length, horizon))
        R[:, inside] = own.R if kind == "total" else own.R[:, : inside.stop - inside.start]
        left.append(L)
        right.append(R)
        scales.append(own.scales)
        gaussian = own.gaussian
    return Matrices(np.hstack(left), np.vstack(right), np.concatenate(scales), gaussian)
