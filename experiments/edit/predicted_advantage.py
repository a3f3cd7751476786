"""What the attack's advantage must be, by mathematics, for noise that does not look at the data.

Let y = s + N with Gaussian N independent of the stream. The statistic of the attack is linear in y, so

    S = [inserted] 2 theta + (noise of the inputs) + sum_t w_t N_t,   w_t = d_{t+1} - d_t,

with d_t = p_t - p_{t-1} for 2 <= t <= T and 0 elsewhere. Given the bit, S is Gaussian up to the inputs' part,
a sum of independent terms of variance d_t^2 p(1-p), which is treated as Gaussian too (an approximation where
it outweighs N). The guess is right with probability Phi(theta / sd of S), averaged over the two bits.

Source: new; the doubling counter is CC of "Edit-Neighboring Data Streams and Privacy under Continual
Observation" (Andersson, Chaturvedi, Henzinger, Safavi).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from trilift.experiments.edit.attack import attack_threshold, check_rates
from trilift.experiments.edit.float_noise import EpochNoise, IndependentNoise
from trilift.experiments.edit.mechanisms import NoisyCounter
from trilift.lift.checks import fail, finite

__all__ = [
    "doubling_noise_sd",
    "independent_noise_sd",
    "noise_weights",
    "predicted_advantage",
    "predicted_for",
]

Floats = NDArray[np.float64]


def noise_weights(rates: ArrayLike) -> Floats:
    """Return the weights w_t with which the noise of every step enters the statistic.

    Args:
        rates: rates p, shape (T,).

    Returns:
        w, shape (T,); it sums to 0, and so does w against any noise that is constant.

    >>> noise_weights([0.0, 1.0, 1.0])
    array([ 1., -1.,  0.])
    """
    changes = np.concatenate(([0.0], np.diff(check_rates(rates)), [0.0]))
    weights: Floats = np.diff(changes)
    return weights


def predicted_advantage(rates: ArrayLike, *, noise_sd: float) -> float:
    """Return the advantage of the attack on y = s + N.

    Args:
        rates: rates p, shape (T,).
        noise_sd: standard deviation of sum_t w_t N_t for the weights of :func:`noise_weights`.

    >>> round(predicted_advantage([0.1, 0.9] * 50, noise_sd=30.0), 4)
    0.7075
    """
    p = check_rates(rates)
    sd = finite("noise_sd", noise_sd, minimum=0)
    squares, spread = np.diff(p) ** 2, p * (1 - p)
    theta = attack_threshold(p)
    right = 0.0
    for inputs_se in (squares @ spread[1:], squares @ spread[:-1]):  # without and with the insertion
        total = math.hypot(sd, math.sqrt(inputs_se))
        right += math.erf(theta / (total * math.sqrt(2))) / 2 if total > 0 else 0.5
    return right


def independent_noise_sd(rates: ArrayLike, *, sds: ArrayLike) -> float:
    """Return the standard deviation of sum_t w_t N_t for independent noise.

    Args:
        rates: rates p, shape (T,).
        sds: standard deviation of every step's noise, shape (T,) or a number.

    >>> round(independent_noise_sd([0.0, 1.0, 1.0], sds=2.0), 6)
    2.828427
    """
    weights = noise_weights(rates)
    each = np.asarray(sds, dtype=np.float64)
    if each.shape not in ((), weights.shape) or not np.all(np.isfinite(each)) or np.any(each < 0):
        raise fail("sds", f"a number >= 0 or {weights.size} of them", sds)
    return float(np.linalg.norm(weights * each))


def doubling_noise_sd(rates: ArrayLike, *, sigma: float) -> float:
    """Return the standard deviation of sum_t w_t N_t for the doubling counter CC.

    Epoch j is the steps 2^j, ..., 2^(j+1) - 1, of length n. A step of it before the last has the noise of all
    earlier epochs' totals (sigma each) and sigma sqrt(S_n) sum_i r_{m-i} z_i; the last one has the totals
    alone, its own epoch's among them.

    Args:
        rates: rates p, shape (T,).
        sigma: the constant C(epsilon / 2, delta / 2) of the counter.

    >>> round(doubling_noise_sd([0.0, 1.0, 1.0], sigma=2.0), 6)  # z_1 - (z_1 + z' sqrt(S_2)), S_2 = 5/4
    2.236068
    """
    from scipy.signal import fftconvolve

    weights = noise_weights(rates)
    scale = finite("sigma", sigma, minimum=0)
    steps = weights.size
    ratios = 1 - 1 / (2 * np.arange(1.0, steps + 1))
    r = np.concatenate(([1.0], np.cumprod(ratios)))
    squares = 0.0
    start = 1  # the first step of the epoch, which has this length as well
    while start <= steps:
        inside = weights[start - 1 : 2 * start - 2]  # without the epoch's last step
        back = fftconvolve(inside[::-1], r[: inside.size])[: inside.size] if inside.size else inside
        squares += float(np.sum(r[:start] ** 2)) * float(back @ back)
        total = float(np.sum(weights[2 * start - 2 :]))  # the total's noise, from the epoch's last step on
        squares += total * total
        start *= 2
    return scale * math.sqrt(squares)


def predicted_for(mechanism: object, *, rates: ArrayLike) -> float | None:
    """Return the advantage of the attack on a simulated mechanism, or None where its noise looks at the data.

    Args:
        mechanism: one of :mod:`trilift.experiments.edit.mechanisms`.
        rates: rates p, shape (T,).

    >>> from trilift.experiments.edit.attack import block_rates
    >>> from trilift.experiments.edit.reference import base_cc
    >>> base = base_cc(1.0, ln_delta=math.log(1e-5))
    >>> round(predicted_for(base, rates=block_rates(10_000)), 3)
    0.578
    """
    if not isinstance(mechanism, NoisyCounter):
        return None
    if isinstance(mechanism.noise, EpochNoise):
        sd = doubling_noise_sd(rates, sigma=mechanism.noise.scale)
    elif isinstance(mechanism.noise, IndependentNoise):
        sd = independent_noise_sd(rates, sds=mechanism.noise.sd(np.size(rates)))
    else:
        return None
    return predicted_advantage(rates, noise_sd=sd)
