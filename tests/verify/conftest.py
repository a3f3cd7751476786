"""Stages with known numbers, and the definitions spelt out entry by entry in Fractions."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from trilift.lift import Dyadic, Stage


@pytest.fixture(scope="session")
def stages():
    """Stages solved by hand: T_2, the binary tree of 4, one one-sided and one two-sided stage of size 2."""
    C = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    D = [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [1, 1, 1, 1]]
    two = Dyadic([[1, 0], [0, 1]])
    return SimpleNamespace(
        T2=Stage.plain(Dyadic([[1, 0], [1, 1]]), two),
        tree=Stage.plain(Dyadic(C), Dyadic(D)),
        one_sided=Stage(Dyadic([[1], [0]]), Dyadic([[1, 0]]), Dyadic([0, 1]), Dyadic([0])),
        two_sided=Stage(Dyadic([[2, -1], [0, 2]], 2), two, Dyadic([1, 2], 1), Dyadic([0, 1], 1)),
    )


def spelt_out(stage):
    """Every number of a certificate by its definition, in Fractions; None where the stage does not hold."""
    A, B, w, g = (getattr(stage, name).fractions() for name in "ABwg")
    m, r = A.shape
    v = [sum(B[k, i] * g[k] for k in range(r)) for i in range(m)]
    for i in range(m):
        for j in range(m):
            if sum(A[i, k] * B[k, j] for k in range(r)) + w[i] * (1 - v[j]) != (j <= i):
                return None
    if not all(0 <= x <= 1 for x in [*w, *v]):
        return None
    q = [sum(x * x for x in A[i]) + (1 - w[i]) ** 2 * sum(x * x for x in g) for i in range(m)]

    # three blocks of the lattice, so that the block in the middle has both neighbours
    rows, columns = [], []
    for block in range(1, 4):
        for i in range(m):
            row = [Fraction(0)] * (4 * r)
            row[block * r : (block + 1) * r] = list(A[i])
            row[(block - 1) * r : block * r] = [(1 - w[i]) * x for x in g]
            rows.append(row)
            column = [Fraction(0)] * (4 * r)
            column[block * r : (block + 1) * r] = list(B[:, i])
            columns.append(column)
    q_bar, b_bar = [], []
    for i in range(m):
        for j in range(m, 2 * m):
            q_bar.append(
                sum(((1 - w[i]) * x + w[i] * y) ** 2 for x, y in zip(rows[j - 1], rows[j], strict=True))
            )
            b_bar.append(
                sum(abs((1 - v[i]) * x + v[i] * y) for x, y in zip(columns[j], columns[j + 1], strict=True))
            )
    return {
        "sensitivity": max(sum(abs(x) for x in B[:, j]) for j in range(m)),
        "max_row_norm_sq": max(q),
        "mean_row_norm_sq": sum(q) / m,
        "interior_sensitivity": max(b_bar),
        "interior_max_row_norm_sq": max(q_bar),
        "interior_mean_row_norm_sq": sum(q_bar) / (m * m),
    }


@pytest.fixture(scope="session")
def by_definition():
    return spelt_out


@pytest.fixture(scope="session")
def random_B():
    """Random invertible matrices with columns of l1 norm 1, and a random g with v in (0, 1)."""

    def make(seed, size, *, spread=0.5):
        rng = np.random.default_rng(seed)
        V = np.eye(size) + spread * rng.standard_normal((size, size)) / np.sqrt(size)
        B = V / np.abs(V).sum(axis=0)
        return B, np.linalg.solve(B.T, rng.uniform(0.05, 0.95, size))

    return make
