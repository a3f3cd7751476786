"""Results are shared for as long as the objects live, and forgotten with them."""

import gc

import numpy as np
import pytest
from trilift.lift import Dyadic, Stage
from trilift.lift.remembered import remembered
from trilift.lift.windows import row_grams, top_grams


class Thing:
    pass


def test_pairs_are_told_apart_and_forgotten() -> None:
    calls: list[tuple[Thing, Thing]] = []

    @remembered
    def order(a: Thing, b: Thing) -> int:
        calls.append((a, b))
        return len(calls)

    a, b = Thing(), Thing()
    assert [order(a, b), order(b, a), order(a, a), order(a, b), order(b, a)] == [1, 2, 3, 1, 2]
    calls.clear()
    del b
    gc.collect()
    assert order(a, Thing()) == 1
    assert order(a, a) == 3


def test_errors_are_not_kept() -> None:
    tries: list[int] = []

    @remembered
    def fails_once(thing: Thing) -> str:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("once")
        return "done"

    thing = Thing()
    with pytest.raises(ValueError, match="once"):
        fails_once(thing)
    assert fails_once(thing) == fails_once(thing) == "done"
    assert len(tries) == 2


def test_what_stages_share_cannot_be_changed() -> None:
    ones = Stage.plain(np.tril(np.ones((4, 4))), np.eye(4))
    shared = [ones.column_norms(), ones.column_norms_sq(), ones.row_norms_sq(), top_grams(ones, 3)]
    shared.append(row_grams(ones))
    for array in shared:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7.0
    exact = Stage.plain(Dyadic([[1, 0], [1, 1]]), Dyadic([[1, 0], [0, 1]]))
    assert exact.to_float() is exact.to_float()


def test_grams_are_the_products_of_the_rows() -> None:
    """Windows of a stage and of a top against rows that are written out."""
    rng = np.random.default_rng(5)
    for m in (2, 3, 7):
        r = m + 1
        A, g, w = rng.normal(size=(m, r)), rng.normal(size=r), rng.random(m)
        stage = Stage(A, rng.normal(size=(r, m)), w, g)
        rows = np.zeros((3 * m, 3 * r))  # three blocks of the stream
        for t in range(3 * m):
            block, i = divmod(t, m)
            rows[t, block * r : (block + 1) * r] = A[i]
            if block:
                rows[t, (block - 1) * r : block * r] = (1 - w[i]) * g
        window = np.concatenate([np.zeros((2, 3 * r)), rows])
        for t in range(3 * m):
            block, i = divmod(t, m)
            gram = window[t : t + 3] @ window[t : t + 3].T
            np.testing.assert_allclose(row_grams(stage)[block, i], gram, atol=1e-12)
        top = Stage.plain(A, stage.B)
        padded = np.concatenate([np.zeros((2, r)), A, np.zeros((1, r))])
        grams = [padded[j : j + 3] @ padded[j : j + 3].T for j in range(m + 1)]
        np.testing.assert_allclose(top_grams(top, m + 1), grams, atol=1e-12)
        np.testing.assert_array_equal(top_grams(top, 2), top_grams(top, m + 1)[:2])
