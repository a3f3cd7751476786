"""The objective of a search, its gradient in closed form, and the exact cost it approximates.

A search moves a square matrix V (m x m) and a vector g (m). With every column of V divided by its l1 norm,

    B = V / n,   L = T_m B^-1,   s = last row of L,   d = s - g,   v = B^T g,
    w_i = clip((L_i . d + |g|^2) / (|d|^2 + |g|^2), 0, 1),   A = L - w d^T,
    q_i = |A_i|^2 + (1 - w_i)^2 |g|^2,

so that T_m = A B + w (1 - v)^T and the sensitivity of B is 1. The objective is the logarithm of the power
mean of q with exponent p (p = 1: the mean; p large: the maximum) plus a penalty that keeps v in [0, 1].
While searching, |x| is smoothed to sqrt(x^2 + mu^2). Source: new (bridge lift).

Only ``exact_cost`` decides what is kept: it has no smoothing, no penalty and v clipped into [0, 1].
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

__all__ = ["Annealed", "Kind", "exact_cost", "objective", "objective_and_gradient"]

Kind = Literal["two-sided", "one-sided", "direct"]
"""What is searched: a stage, a stage with g = 0, or a plain factorisation of T_m (w = 0 and g = 0)."""

_OVERSHOOT_SLOPE = 0.01  # weight of the linear part of the penalty, which makes v end exactly in [0, 1]


class Annealed(NamedTuple):
    """The annealed numbers of one step (all float64 scalars)."""

    smoothing: jax.Array  # mu, in units of V's entries
    exponent: jax.Array  # p
    penalty: jax.Array  # lambda


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
    v: jax.Array


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


def _forward(V: jax.Array, g: jax.Array, smoothing: jax.Array, kind: Kind) -> _Forward:
    if kind != "two-sided":
        g = jnp.zeros_like(g)
    absolute = jnp.sqrt(V * V + smoothing**2)
    norms = jnp.sum(absolute, axis=0)
    B = V / norms
    inverse = jnp.linalg.inv(B)
    L = jnp.cumsum(inverse, axis=0)
    w, A, q = _factors(L, g, kind)
    return _Forward(B, V / absolute, norms, inverse, L, A, w, q, g @ B)


def _value(q: jax.Array, v: jax.Array, annealed: Annealed) -> jax.Array:
    p = annealed.exponent
    top = jnp.max(q)
    over = jnp.maximum(v - 1.0, 0.0) + jnp.maximum(-v, 0.0)
    penalty = jnp.sum(over * over) + _OVERSHOOT_SLOPE * jnp.sum(over)
    return jnp.log(top) + jnp.log(jnp.mean((q / top) ** p)) / p + annealed.penalty * penalty


def objective(V: jax.Array, g: jax.Array, annealed: Annealed, *, kind: Kind) -> jax.Array:
    """Value of the annealed objective (log of a squared error at sensitivity 1) at V (m x m), g (m)."""
    f = _forward(V, g, annealed.smoothing, kind)
    return _value(f.q, f.v, annealed)


def objective_and_gradient(
    V: jax.Array, g: jax.Array, annealed: Annealed, *, kind: Kind
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    """Value and gradient by V and g, with one inverse and two products of m x m matrices.

    w minimises every q_i over [0, 1], so its own derivative never enters (envelope theorem). From
    dL = -L dB B^-1, a gradient G by L becomes -L^T G B^-T by B.
    """
    f = _forward(V, g, annealed.smoothing, kind)
    value = _value(f.q, f.v, annealed)
    # by q: p-th power weights, written so that a row with q = 0 (the last one, where g = 0) is harmless
    top = jnp.max(f.q)
    ratio = f.q / top
    by_q = ratio ** (annealed.exponent - 1.0) / (top * jnp.sum(ratio**annealed.exponent))
    by_A = 2.0 * by_q[:, None] * f.A
    by_d = -(f.w @ by_A)
    by_L = by_A.at[-1].add(by_d)
    by_B = -(f.L.T @ by_L) @ f.inverse.T
    if kind == "two-sided":
        over, under = jnp.maximum(f.v - 1.0, 0.0), jnp.maximum(-f.v, 0.0)
        kink = _OVERSHOOT_SLOPE * (jnp.sign(over) - jnp.sign(under))
        by_v = annealed.penalty * (2.0 * (over - under) + kink)
        by_B = by_B + g[:, None] * by_v
        by_g = -by_d + 2.0 * jnp.sum(by_q * (1.0 - f.w) ** 2) * g + f.B @ by_v
    else:
        by_g = jnp.zeros_like(g)
    by_V = (by_B - jnp.sum(by_B * f.B, axis=0) * f.slope) / f.norms
    return value, (by_V, by_g)


def exact_cost(V: jax.Array, g: jax.Array, *, kind: Kind, largest: bool) -> jax.Array:
    """(max or mean q) * |B|^2 without smoothing, for the feasible point nearest to (V, g).

    v = B^T g is clipped into [0, 1] and g recomputed from it, so the number belongs to a valid stage.
    """
    B = V / jnp.sum(jnp.abs(V), axis=0)
    inverse = jnp.linalg.inv(B)
    g = jnp.clip(g @ B, 0.0, 1.0) @ inverse if kind == "two-sided" else jnp.zeros_like(g)
    _, _, q = _factors(jnp.cumsum(inverse, axis=0), g, kind)
    return jnp.max(q) if largest else jnp.mean(q)
