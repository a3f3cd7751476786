"""The objective of a search, its gradient in closed form, and the exact cost it approximates.

A search moves a square matrix V (m x m) and weights v in [0, 1]^m. With every column of V divided by its
l1 norm,

    B = V / n,   L = T_m B^-1,   g = B^-T v,   s = last row of L,   d = s - g,
    w_i = clip((L_i . d + |g|^2) / (|d|^2 + |g|^2), 0, 1),   A = L - w d^T,
    q_i = |A_i|^2 + (1 - w_i)^2 |g|^2,

so that T_m = A B + w (1 - v)^T, v = B^T g, and the sensitivity of B is 1: every point is a valid stage. The
objective is the logarithm of the power mean of q with exponent p (p = 1: the mean; p large: the maximum).
While searching, |x| is smoothed to sqrt(x^2 + mu^2). Moving v and projecting it, rather than moving g under
a penalty, needs no annealed weight and ends in better minima. Source: new (bridge lift).

Only ``exact_cost``, which has no smoothing, decides what is kept.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

__all__ = ["Annealed", "Kind", "exact_cost", "objective", "objective_and_gradient"]

Kind = Literal["two-sided", "one-sided", "direct"]
"""What is searched: a stage, a stage with g = 0, or a plain factorisation of T_m (w = 0 and g = 0)."""


class Annealed(NamedTuple):
    """The annealed numbers of one step (float64 scalars)."""

    smoothing: jax.Array  # mu, in units of V's entries
    exponent: jax.Array  # p


class _Forward(NamedTuple):
    """What the gradient needs from the forward pass; matrices are m x m, the others have length m."""

    B: jax.Array
    slope: jax.Array  # derivative of the smoothed |V|
    norms: jax.Array  # smoothed column norms of V
    inverse: jax.Array  # of B
    L: jax.Array
    A: jax.Array
    w: jax.Array
    q: jax.Array
    g: jax.Array


def _factors(L: jax.Array, g: jax.Array, kind: Kind) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Best w for given L and g, with the resulting A and q."""
    g_sq = g @ g
    d = L[-1] - g
    if kind == "direct":
        w = jnp.zeros(L.shape[0], L.dtype)
    else:
        w = jnp.clip((L @ d + g_sq) / (d @ d + g_sq), 0.0, 1.0)
    A = L - w[:, None] * d
    return w, A, jnp.sum(A * A, axis=1) + (1.0 - w) ** 2 * g_sq


def _forward(V: jax.Array, v: jax.Array, smoothing: jax.Array | float, kind: Kind) -> _Forward:
    absolute = jnp.sqrt(V * V + smoothing**2)
    norms = jnp.sum(absolute, axis=0)
    B = V / norms
    inverse = jnp.linalg.inv(B)
    g = v @ inverse if kind == "two-sided" else jnp.zeros_like(v)
    L = jnp.cumsum(inverse, axis=0)
    w, A, q = _factors(L, g, kind)
    return _Forward(B, V / absolute, norms, inverse, L, A, w, q, g)


def _log_power_mean(q: jax.Array, exponent: jax.Array) -> jax.Array:
    top = jnp.max(q)
    return jnp.log(top) + jnp.log(jnp.mean((q / top) ** exponent)) / exponent


def objective(V: jax.Array, v: jax.Array, annealed: Annealed, *, kind: Kind) -> jax.Array:
    """Value of the annealed objective (log of a squared error at sensitivity 1) at V (m x m), v (m)."""
    return _log_power_mean(_forward(V, v, annealed.smoothing, kind).q, annealed.exponent)


def objective_and_gradient(
    V: jax.Array, v: jax.Array, annealed: Annealed, *, kind: Kind
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    """Value and gradient by V and v, with one inverse and two products of m x m matrices.

    w minimises every q_i over [0, 1], so its own derivative never enters (envelope theorem). From
    dL = -L dB B^-1 and dg = -B^-T dB^T g + B^-T dv, gradients G by L and h by g become
    -L^T G B^-T - g (B^-1 h)^T by B, and B^-1 h by v.
    """
    f = _forward(V, v, annealed.smoothing, kind)
    # by q: p-th power weights, written so that a row with q = 0 (the last one, where g = 0) is harmless
    top = jnp.max(f.q)
    ratio = f.q / top
    by_q = ratio ** (annealed.exponent - 1.0) / (top * jnp.sum(ratio**annealed.exponent))
    by_A = 2.0 * by_q[:, None] * f.A
    by_d = -(f.w @ by_A)
    by_L = by_A.at[-1].add(by_d)
    by_B = -(f.L.T @ by_L) @ f.inverse.T
    by_v = jnp.zeros_like(v)
    if kind == "two-sided":
        by_g = 2.0 * jnp.sum(by_q * (1.0 - f.w) ** 2) * f.g - by_d
        by_v = f.inverse @ by_g
        by_B = by_B - f.g[:, None] * by_v
    by_V = (by_B - jnp.sum(by_B * f.B, axis=0) * f.slope) / f.norms
    return _log_power_mean(f.q, annealed.exponent), (by_V, by_v)


def exact_cost(V: jax.Array, v: jax.Array, *, kind: Kind, largest: bool) -> jax.Array:
    """(max or mean q) * |B|^2 without smoothing; v must lie in [0, 1]."""
    q = _forward(V, v, 0.0, kind).q
    return jnp.max(q) if largest else jnp.mean(q)
