"""The paper's lift: matrices, stage form, tail, powers, and the paper's streaming recursion as an oracle."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.lift.chain import Chain
from trilift.lift.dense import bridge, materialise
from trilift.lift.diamond import best_alpha, diamond, diamond_chain, diamond_power, diamond_stage
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import ParameterError
from trilift.lift.stage import Stage, lower_ones

seeds = st.integers(0, 10**6)
sizes = st.integers(1, 4)
objectives = st.sampled_from(["max", "mean"])


def pair(make: Any, seed: int, size: int, extra: int = 0) -> tuple[Any, Any]:
    top = make.float_top(np.random.default_rng(seed), size, extra=extra)
    return top.A, top.B


def cost_third(L: Any, R: Any, objective: str) -> float:
    """(|L|^2 ||R||^2)^(1/3): the cost to the power 2/3."""
    rows = (L**2).sum(axis=1)
    q = rows.max() if objective == "max" else rows.mean()
    return float((q * np.abs(R).sum(axis=0).max() ** 2) ** (1 / 3))


@settings(max_examples=40, deadline=None)
@given(seed=seeds, n=sizes, k=sizes, alpha=st.floats(0.1, 10))
def test_the_diamond_factors_the_lower_ones(make: Any, seed: int, n: int, k: int, alpha: float) -> None:
    (A, B), (C, D) = pair(make, seed, n, extra=1), pair(make, seed + 1, k)
    L, R = diamond((A, B), (C, D), alpha=alpha)
    N = 2 * k * n + n + k
    assert L.shape == R.T.shape == (N, (2 * k + 1) * (n + 1) + k)
    np.testing.assert_allclose(L @ R, lower_ones(N), atol=1e-9)
    # the norms of the paper: exact for the columns and the largest row, an upper bound for the mean
    rows, a, c = (L**2).sum(axis=1), (A**2).sum(axis=1), (C**2).sum(axis=1)
    assert rows.max() == pytest.approx(a.max() + alpha**2 * c.max())
    assert rows.mean() == pytest.approx(((2 * k + 1) * a.sum() + (2 * n + 1) * alpha**2 * c.sum()) / N)
    assert rows.mean() < a.mean() + alpha**2 * c.mean()
    b, d = np.abs(B).sum(axis=0), np.abs(D).sum(axis=0)
    assert np.abs(R).sum(axis=0).max() == pytest.approx(b.max() + d.max() / alpha)


@settings(max_examples=40, deadline=None)
@given(seed=seeds, n=sizes, k=sizes, objective=objectives)
def test_the_inequality_of_the_paper(make: Any, seed: int, n: int, k: int, objective: str) -> None:
    first, second = pair(make, seed, n), pair(make, seed + 1, k, extra=1)
    alpha = best_alpha(first, second, objective=objective)
    L, R = diamond(first, second, alpha=alpha)
    limit = cost_third(*first, objective) + cost_third(*second, objective)
    assert cost_third(L, R, objective) <= limit * (1 + 1e-12)
    if objective == "max":
        assert cost_third(L, R, objective) == pytest.approx(limit)
        for factor in (0.9, 1.1):  # alpha is best: the cost is larger on both sides
            assert cost_third(*diamond(first, second, alpha=factor * alpha), objective) > limit
    n_rows = len(L) - 1  # truncation keeps the largest row's bound
    assert cost_third(L[:n_rows], R[:, :n_rows], "max") <= cost_third(L, R, "max") * (1 + 1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=seeds, n=sizes, k=sizes, alpha=st.floats(0.1, 10))
def test_the_diamond_is_a_one_sided_stage(make: Any, seed: int, n: int, k: int, alpha: float) -> None:
    first, second = pair(make, seed, n, extra=1), pair(make, seed + 1, k)
    L, R = diamond(first, second, alpha=alpha)
    stage = diamond_stage(Stage.plain(*first))
    assert (stage.size, stage.tail, stage.one_sided) == (2 * n + 1, n, True)
    chain = Chain(Stage.plain(*second), [stage])
    assert chain.capacity == 2 * k * n + n + k == len(L)
    for steps in range(1, len(L) + 1):  # every truncation
        mine, columns = materialise(chain, steps).scaled([1.0, alpha])
        np.testing.assert_allclose(mine @ mine.T, (L @ L.T)[:steps, :steps], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(np.abs(columns).sum(axis=0), np.abs(R).sum(axis=0)[:steps], rtol=1e-9)
    lifted, _ = bridge(stage, *second)
    assert len(lifted) == len(L)


@settings(max_examples=20, deadline=None)
@given(seed=seeds, n=sizes, k=sizes)
def test_exact_bases_give_exact_stages(make: Any, seed: int, n: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    base, top = make.exact_top(rng, n, extra=1), make.exact_top(rng, k)
    stage = diamond_stage(base)
    assert stage.is_exact
    assert stage.residual() == 0
    chain = Chain(top, [stage])
    dense = materialise(chain, chain.capacity)
    assert (dense.L @ dense.R).equals(Dyadic(lower_ones(2 * k * n + n + k)))
    floats = diamond_stage(base.to_float())
    np.testing.assert_allclose(floats.A, stage.A.to_float())
    np.testing.assert_allclose(floats.B, stage.B.to_float())


@pytest.mark.parametrize(("k", "power"), [(1, 1), (1, 4), (2, 2), (2, 3), (3, 3), (4, 2)])
@pytest.mark.parametrize("objective", ["max", "mean"])
def test_powers(make: Any, k: int, power: int, objective: str) -> None:
    base = pair(make, 10 * k + power, k, extra=1)
    L, R = diamond_power(base, power, objective=objective)
    N = ((2 * k + 1) ** power - 1) // 2
    r = k + 1
    assert L.shape[0] == R.shape[1] == N
    assert (
        2 * k * L.shape[1] == r * (2 * k + 1) ** power - r
    )  # width r, then 2k+1 copies and r more each time
    np.testing.assert_allclose(L @ R, lower_ones(N), atol=1e-8)
    limit = power * cost_third(*base, objective)
    assert cost_third(L, R, objective) <= limit * (1 + 1e-12)
    chain = diamond_chain(Stage.plain(*base), power)
    assert chain.capacity == N
    # The chain has a scale a level in place of the alphas, which multiply up: the coarsest level is the last.
    alphas, grown = [], base
    for _ in range(power - 1):
        alphas.append(best_alpha(grown, base, objective=objective))
        grown = diamond(grown, base, alpha=alphas[-1])
    mine, columns = materialise(chain, N).scaled([1.0, *alphas])
    np.testing.assert_allclose(mine @ mine.T, L @ L.T, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(np.abs(columns).sum(axis=0), np.abs(R).sum(axis=0), rtol=1e-8)
    cut = diamond_power(base, power, objective=objective, steps=max(N - 3, 1))
    assert np.array_equal(cut[0], L[: max(N - 3, 1)])
    assert np.array_equal(cut[1], R[:, : max(N - 3, 1)])


# The recursion in which the paper streams the noise (its Algorithms 1 and 2), written down independently:
# a p-fold product is k+1 forward copies of the (p-1)-fold one, with k reversed copies between them, the
# latter subtracted and followed by one step with no local noise, over k coarse values.


class Streams:
    def __init__(self, A: Any, alphas: list[float]) -> None:
        self.A, self.alphas = A, alphas
        self.k, self.r = A.shape

    def width(self, p: int) -> int:
        return self.r if p == 1 else (2 * self.k + 1) * self.width(p - 1) + self.r

    def split(self, p: int, z: Any) -> tuple[list[Any], Any]:
        count = self.width(p - 1)
        locals_ = [z[i * count : (i + 1) * count] for i in range(2 * self.k + 1)]
        return locals_, self.alphas[p - 2] * (self.A @ z[-self.r :])

    def forward(self, p: int, z: Any) -> list[float]:
        if p == 1:
            return list(self.A @ z)
        parts, coarse = self.split(p, z)
        out = self.forward(p - 1, parts[0])
        for i in range(self.k):
            out += [coarse[i] - x for x in self.backward(p - 1, parts[2 * i + 1])]
            out += [coarse[i]]
            out += [coarse[i] + x for x in self.forward(p - 1, parts[2 * i + 2])]
        return out

    def backward(self, p: int, z: Any) -> list[float]:
        if p == 1:
            return list((self.A @ z)[::-1])
        parts, coarse = self.split(p, z)
        out: list[float] = []
        for i in reversed(range(self.k)):
            out += [coarse[i] + x for x in self.backward(p - 1, parts[2 * i + 2])]
            out += [coarse[i]]
            out += [coarse[i] - x for x in self.forward(p - 1, parts[2 * i + 1])]
        return out + self.backward(p - 1, parts[0])


@pytest.mark.parametrize(("k", "power"), [(1, 1), (1, 2), (1, 4), (2, 2), (2, 3), (3, 3), (5, 2)])
def test_streaming_recursion_gives_the_same_noise(make: Any, k: int, power: int) -> None:
    base = pair(make, k, k, extra=1)
    alphas, (L, R) = [], base
    for _ in range(power - 1):
        alphas.append(best_alpha((L, R), base, objective="max"))
        L, R = diamond((L, R), base, alpha=alphas[-1])
    streams = Streams(base[0], alphas)
    assert streams.width(power) == L.shape[1]
    z = np.random.default_rng(power).laplace(size=L.shape[1])
    np.testing.assert_allclose(streams.forward(power, z), L @ z, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(streams.backward(power, z), (L @ z)[::-1], rtol=1e-10, atol=1e-10)


def test_a_diamond_needs_a_plain_base(make: Any) -> None:
    stage = make.float_stage(np.random.default_rng(0), 3)
    with pytest.raises(ParameterError, match="plain factorisation"):
        diamond_stage(stage)
    with pytest.raises(ParameterError, match="plain factorisation"):
        diamond_chain(stage, 2)


def test_arguments_that_are_refused(make: Any) -> None:
    base = pair(make, 1, 2)
    for alpha in (0, -1.0, float("nan"), float("inf"), True, "1", None):
        with pytest.raises(ParameterError, match="alpha must be a finite number > 0"):
            diamond(base, base, alpha=alpha)
    for objective in ("median", None, 1):
        with pytest.raises(ParameterError, match="objective must be one of"):
            best_alpha(base, base, objective=objective)  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="objective must be one of"):
            diamond_power(base, 2, objective=objective)  # type: ignore[arg-type]
    for power in (0, -1, 1.0, True, "2", None):
        with pytest.raises(ParameterError, match="power must be an integer >= 1"):
            diamond_power(base, power, objective="max")  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="power must be an integer >= 1"):
            diamond_chain(Stage.plain(*base), power)  # type: ignore[arg-type]
    for steps in (0, 13, 2.0, True):
        with pytest.raises(ParameterError, match="steps must be an integer >= 1 and <= 12"):
            diamond_power(base, 2, objective="max", steps=steps)  # type: ignore[arg-type]


def test_exact_diamond_equals_its_stage_form_exactly() -> None:
    """With alpha a power of two the matrices are exact, and so is the comparison with the chain."""
    B = Dyadic([[1, 0, 1], [0, 1, 0], [0, 0, 1]])
    A = Dyadic([[1, 0, -1], [1, 1, -1], [1, 1, 0]])
    C, D = Dyadic([[1, 0], [1, 1]]), Dyadic([[1, 0], [0, 1]])
    L, R = diamond((A, B), (C, D), alpha=0.5)
    assert (L @ R).equals(Dyadic(lower_ones(L.shape[0])))
    chain = Chain(Stage.plain(C, D), [diamond_stage(Stage.plain(A, B))])
    dense = materialise(chain, chain.capacity)
    top = dense.level == 1
    used = Dyadic.concatenate([dense.L[:, ~top], dense.L[:, top].scaled(-1)], axis=1)
    assert (used @ used.T).equals(L @ L.T)
    columns = dense.R[~top].abs_sum(axis=0) + dense.R[top].scaled(1).abs_sum(axis=0)
    assert columns.equals(R.abs_sum(axis=0))


def test_exact_diamond_needs_a_power_of_two() -> None:
    one = (Dyadic([[1]]), Dyadic([[1]]))
    with pytest.raises(ParameterError, match="power of two"):
        diamond(one, one, alpha=0.75)
