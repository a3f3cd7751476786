"""Random stages and chains for the tests of the lift room, in floats and exactly.

An exact stage starts from a unimodular integer B, whose inverse is an integer matrix, so that g = B^-T v and
A = (T - w (1 - v)^T) B^-1 are dyadic when v and w are.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from trilift.lift.chain import Chain
from trilift.lift.dyadic import Dyadic
from trilift.lift.stage import Stage, lower_ones

Array = np.ndarray[Any, np.dtype[Any]]


class Maker:
    """Factory of random stages (two-sided unless asked otherwise) and of chains of them."""

    def weights(self, rng: np.random.Generator, count: int, zeros: int) -> Array:
        """Random weights in [0, 1], the extremes included, with ``zeros`` leading zeros and no more."""
        values = rng.random(count)
        values[rng.random(count) < 0.2] = rng.integers(0, 2)
        values[:zeros] = 0.0
        if zeros < count:
            values[zeros] = max(values[zeros], 0.25)
        return values

    def float_stage(
        self,
        rng: np.random.Generator,
        m: int,
        *,
        extra: int = 0,
        one_sided: bool = False,
        zeros: int = 0,
        plain: bool = False,
    ) -> Stage:
        """A stage with r = m + extra; its residual is a rounding error."""
        B = np.concatenate([np.eye(m), np.zeros((extra, m))]) + 0.4 * rng.normal(size=(m + extra, m)) / m
        w = np.zeros(m) if plain else self.weights(rng, m, zeros)
        v = np.zeros(m) if plain or one_sided else self.weights(rng, m, 0)
        inverse = np.linalg.pinv(B)
        free = np.eye(m + extra) - B @ inverse  # what B does not see
        g = v @ inverse
        A = (lower_ones(m) - np.outer(w, 1.0 - v)) @ inverse
        if extra and not plain:
            A = A + 0.3 * rng.normal(size=A.shape) @ free
            g = g if one_sided else g + 0.3 * rng.normal(size=g.shape) @ free
        return Stage(A, B, w, g)

    def float_top(self, rng: np.random.Generator, k: int, *, extra: int = 0) -> Stage:
        return self.float_stage(rng, k, extra=extra, plain=True)

    def unimodular(self, rng: np.random.Generator, m: int, moves: int) -> tuple[Array, Array]:
        """A product of elementary integer matrices and its inverse."""
        B, inverse = np.eye(m, dtype=np.int64), np.eye(m, dtype=np.int64)
        for _ in range(moves if m > 1 else 0):
            i, j = rng.choice(m, size=2, replace=False)
            c = int(rng.choice([-1, 1]))
            B[i] += c * B[j]
            inverse[:, j] -= c * inverse[:, i]
        return B, inverse

    def exact_stage(
        self,
        rng: np.random.Generator,
        m: int,
        *,
        extra: int = 0,
        one_sided: bool = False,
        zeros: int = 0,
        plain: bool = False,
        bits: int = 3,
    ) -> Stage:
        """A stage that holds exactly, with r = m + extra; weights have ``bits`` binary places."""
        square, inverse = self.unimodular(rng, m, m)
        shift = int(rng.integers(0, 3))
        P, P_inverse = Dyadic(square, shift), Dyadic(inverse).scaled(shift)
        Q = Dyadic(rng.integers(-2, 3, size=(extra, m)), 1)
        w = Dyadic.zeros(m) if plain else Dyadic.round(self.weights(rng, m, zeros), bits)
        v = Dyadic.zeros(m) if plain or one_sided else Dyadic.round(self.weights(rng, m, 0), bits)
        h = Dyadic.zeros(extra) if plain or one_sided else Dyadic(rng.integers(-1, 2, size=extra), 1)
        Y = Dyadic(rng.integers(-1, 2, size=(m, extra)), 1)
        one = Dyadic(np.ones(m, dtype=np.int64))
        target = Dyadic(lower_ones(m)) - w[:, None] * (one - v)[None, :]
        A = Dyadic.concatenate([(target - Y @ Q) @ P_inverse, Y], axis=1)
        g = Dyadic.concatenate([P_inverse.T @ (v - Q.T @ h), h])
        return Stage(A, Dyadic.concatenate([P, Q]), w, g)

    def exact_top(self, rng: np.random.Generator, k: int, *, extra: int = 0) -> Stage:
        return self.exact_stage(rng, k, extra=extra, plain=True)

    def chain(self, seed: int, sizes: Sequence[int], top: int, *, exact: bool = False) -> Chain:
        """A chain of random stages of the given sizes, one- and two-sided, with tails and extra rows."""
        rng = np.random.default_rng(seed)
        make = self.exact_stage if exact else self.float_stage
        stages = [
            make(
                rng,
                m,
                extra=int(rng.integers(0, 2)),
                one_sided=bool(rng.random() < 0.3),
                zeros=int(rng.integers(0, m)) if rng.random() < 0.5 else 0,
            )
            for m in sizes
        ]
        make_top = self.exact_top if exact else self.float_top
        return Chain(make_top(rng, top, extra=int(rng.integers(0, 2))), stages)

    def level_rows(self, dense: Any, levels: int) -> Array:
        """Squared row norms of a dense float L, level by level: shape (levels, n)."""
        return np.stack([(dense.L[:, dense.level == i] ** 2).sum(axis=1) for i in range(levels)])

    def level_columns(self, dense: Any, levels: int) -> Array:
        """Column l1 norms of a dense float R, level by level: shape (levels, n)."""
        return np.stack([np.abs(dense.R[dense.level == i]).sum(axis=0) for i in range(levels)])


@pytest.fixture(scope="session")
def make() -> Maker:
    return Maker()
