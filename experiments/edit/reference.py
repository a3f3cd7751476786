"""The mechanisms with the paper's constants, and with the accountings that it can be compared by.

FOR SIMULATION ONLY. Everything is a float computed from the formulas alone, apart from the ledgers that
calibrate releases; tests compare the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from trilift.experiments.edit.float_noise import EpochNoise, Floats, IndependentNoise
from trilift.experiments.edit.mechanisms import EditCounter, NoisyCounter, SegmentCounter
from trilift.experiments.edit.paper_constants import gaussian_constant, privacy_mu
from trilift.experiments.edit.partitions import RandomLengths, SparseThreshold

__all__ = [
    "base_cc",
    "ecc",
    "gaussian_cc",
    "gaussian_rmse",
    "gaussian_scales",
    "horizon_gaussian",
    "partition_cc",
    "simecc",
    "simecc_joint",
]


def base_cc(epsilon: float, *, ln_delta: float) -> NoisyCounter:
    """Return the paper's unbounded counter, swap-private: half the budget in epochs, half for totals."""
    return NoisyCounter(_epochs(epsilon, ln_delta))


def _epochs(epsilon: float, ln_delta: float) -> EpochNoise:
    return EpochNoise(gaussian_constant(epsilon / 2, ln_delta=ln_delta - math.log(2)))


def gaussian_cc(epsilon: float, *, ln_delta: float, steps: int) -> NoisyCounter:
    """Return GaussianCC: independent noise of deviation 1.85 sqrt(t) ln(t+1) / mu, edit-private for ever."""
    return NoisyCounter(IndependentNoise(gaussian_scales(epsilon, ln_delta=ln_delta, steps=steps)))


def gaussian_scales(epsilon: float, *, ln_delta: float, steps: int) -> Floats:
    """Return the standard deviations of GaussianCC's noise, shape (T,)."""
    return _growing(steps) / privacy_mu(epsilon, ln_delta=ln_delta)


def _growing(steps: int) -> Floats:
    t = np.arange(1, steps + 1)
    return np.asarray(1.85 * np.sqrt(t) * np.log1p(t))


def gaussian_rmse(epsilon: float, *, ln_delta: float, steps: int) -> float:
    """Return the root mean square error of GaussianCC in closed form.

    >>> round(gaussian_rmse(150.0, ln_delta=math.log(1e-5), steps=10_000), 2)
    83.79
    """
    squares = float(np.mean(_growing(steps) ** 2))
    return math.sqrt(squares) / privacy_mu(epsilon, ln_delta=ln_delta)


def horizon_gaussian(epsilon: float, *, ln_delta: float, steps: int) -> NoisyCounter:
    """Return independent noise of deviation sqrt(T) / mu at every step: edit-private for T steps."""
    scale = math.sqrt(steps) / privacy_mu(epsilon, ln_delta=ln_delta)
    return NoisyCounter(IndependentNoise(np.full(steps, scale)))


def partition_cc(epsilon: float, *, ln_delta: float, steps: int) -> SegmentCounter:
    """Return PartitionCC, (epsilon, delta)-swap-private, in the setting that gives the paper's figures."""
    rule = SparseThreshold(6 * math.log(steps) / epsilon, 0.0, 0.0, 0, 2 / epsilon, 2 / epsilon)
    return SegmentCounter(rule, _epochs(epsilon / 2, ln_delta))


def _offsets(noise: EpochNoise, ln_eta: float) -> Callable[[int], Floats]:
    """The paper's alpha: sd sqrt(2 ln(2 / eta_l)) with eta_l = 6 eta / (pi^2 l^2)."""

    def alphas(count: int) -> Floats:
        l = np.arange(1, count + 1)
        tail = math.log(2) - ln_eta + math.log(math.pi**2 / 6) + 2 * np.log(l)
        return np.asarray(noise.sd(count) * np.sqrt(2 * tail))

    return alphas


def _paper_noise(epsilon: float, ln_delta: float) -> tuple[EpochNoise, EpochNoise, Callable[[int], Floats]]:
    """The paper's budget: CC and BCC at eps' = 4 eps / 27 and d' = e^(-19 eps / 27) delta / 16."""
    part = 4 * epsilon / 27
    ln_part = -19 * epsilon / 27 + ln_delta - math.log(16)
    times = _epochs(part, ln_part - math.log(2))
    ln_eta = ln_part - math.log(2) - np.logaddexp(0.0, part)
    return _epochs(part, ln_part), times, _offsets(times, float(ln_eta))


def simecc(epsilon: float, *, ln_delta: float) -> EditCounter:
    """Return SimECC with the paper's budget, calibrated exactly."""
    values, times, alphas = _paper_noise(epsilon, ln_delta)
    nominal = 3 + math.ceil(102 * (math.log(2 * math.pi**2 / 3) - ln_delta) / epsilon)
    return EditCounter(_lengths(epsilon / 51, nominal), values, times, alphas)


def _lengths(part: float, nominal: int) -> RandomLengths:
    return RandomLengths(nominal, drift=4 / part, scale=2 / part)


def simecc_joint(epsilon: float, *, ln_delta: float, share: int, norm_sq: float = 40.0) -> EditCounter:
    """Return SimECC with one Gaussian account for both counters.

    C = sqrt(norm_sq) / mu(8 eps / 9, delta / 8), eta = delta / (4 (1 + e^eps)), lengths at eps / share with
    failure delta / 8.

    Args:
        epsilon: total epsilon.
        ln_delta: ln delta.
        share: 51 as in the paper, or 9, which the accounting leaves free.
        norm_sq: 40 by the group rule, 12 by the sharper one.
    """
    mu = privacy_mu(8 * epsilon / 9, ln_delta=ln_delta - math.log(8))
    noise = EpochNoise(math.sqrt(norm_sq) / mu)
    ln_eta = ln_delta - math.log(4) - float(np.logaddexp(0.0, epsilon))
    part = epsilon / share
    nominal = 3 + math.ceil(2 / part * (math.log(2 * math.pi**2 / 3) - ln_delta))
    return EditCounter(_lengths(part, nominal), noise, noise, _offsets(noise, ln_eta))


def ecc(epsilon: float, *, ln_delta: float) -> EditCounter:
    """Return ECC with the paper's budget, calibrated exactly."""
    values, times, alphas = _paper_noise(epsilon, ln_delta)
    part = epsilon / 51
    tau = 1 + 408 * (math.log(math.pi**2 / 2) - ln_delta) / epsilon
    rule = SparseThreshold(tau, 16 / part, 8 / part, math.ceil(12 / part), 2 / part, 4 / part)
    return EditCounter(rule, values, times, alphas)
