"""How far the noise of a step may lie from zero: tails of any process, part by part.

A step's noise is the sum of one part (a bounded process) or of several (epochs), each rounded on its own.
Parts of Laplace noise go through :mod:`trilift.counters.tails`; those of Gaussian noise add up to one
Gaussian, and the rounding of their draws, half a lattice step each at most, is added to the width.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from trilift.counters.tails import half_width
from trilift.lift.rows import row_entries
from trilift.stream.epochs import EpochNoise
from trilift.stream.noise import Noise
from trilift.stream.process import NoiseProcess

__all__ = ["coefficients", "draw_rounding", "pieces", "step_half_width"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

_TOEPLITZ_LATTICE = 2.0**-32


def pieces(noise: NoiseProcess, position: int) -> list[tuple[Any, int]]:
    """Return the bounded processes, each with its local step, whose rounded noises add up to a step's."""
    if isinstance(noise, EpochNoise):
        return [(noise.process(kind, epoch), local) for kind, epoch, local in noise.parts(position)]
    return [(noise, position)]


def coefficients(process: Any, position: int) -> tuple[FloatArray, float]:
    """Return a step's noise of a chain as sum a_i X_i / sigma_i: all a_i, and the sum of |a_i| / sigma_i."""
    found, lattice = [], 0.0
    rows = row_entries(process.chain, position)
    for entry, row in zip(process.ledger.levels, rows, strict=True):
        steps = np.array([math.ldexp(1.0, -p) if p >= 0 else 0.0 for p in entry.places])
        for block in row.values():
            found.append(float(entry.scale) * block)
            lattice += float(np.abs(block) @ steps)
    return np.concatenate(found), lattice


def draw_rounding(process: Any, position: int) -> float:
    """Return how far the noise of rounded Gaussian draws lies from that of unrounded ones, at most."""
    if hasattr(process, "chain"):
        return 0.5 * coefficients(process, position)[1]
    return (2.0 * math.sqrt(position + 1) + 1.0) * 0.5 * _TOEPLITZ_LATTICE


def step_half_width(noise: NoiseProcess, position: int, failure: float) -> float:
    """Return x with Pr[|noise of the step| > x] <= failure, the rounding of released values included.

    Args:
        noise: a process of Laplace or of Gaussian noise.
        position: 0-based step.
        failure: in (0, 1).
    """
    parts = pieces(noise, position)
    rounding = len(parts) * math.ldexp(0.5, -noise.places)
    if all(isinstance(process, Noise) for process, _ in parts):
        found = [coefficients(process, local) for process, local in parts]
        together = np.concatenate([a for a, _ in found])
        return half_width(together, failure, lattice=sum(lattice for _, lattice in found)) + rounding
    from scipy.special import ndtri

    sd = math.sqrt(float(noise.variance([position])[0]))
    draws = sum(draw_rounding(process, local) for process, local in parts)
    return float(-ndtri(failure / 2.0)) * sd * (1.0 + 1e-9) + draws + rounding
