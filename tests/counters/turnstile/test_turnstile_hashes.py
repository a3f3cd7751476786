"""Items, fingerprints, hash families, groups and levels."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.counters.turnstile.grouped import group_of
from trilift.counters.turnstile.items import Fingerprints, encoded
from trilift.counters.turnstile.minhash import levels_of
from trilift.counters.turnstile.polynomials import PRIME, Polynomials, multiply
from trilift.lift.errors import ParameterError

scalars = st.one_of(st.text(max_size=8), st.binary(max_size=8), st.integers())
items = st.recursive(scalars, lambda inner: st.tuples(inner, inner) | st.tuples(inner), max_leaves=6)


def typed(item: Any) -> Any:
    """Items with their types, since 1 == True elsewhere."""
    return (type(item).__name__, tuple(map(typed, item)) if isinstance(item, tuple) else item)


@given(items, items)
@settings(deadline=None)
def test_different_items_are_written_differently(first: Any, second: Any) -> None:
    assert (encoded(first) == encoded(second)) == (typed(first) == typed(second))


def test_numpy_scalars_are_their_values() -> None:
    assert encoded(np.int32(-7)) == encoded(-7)
    assert encoded(np.uint64(2**64 - 1)) == encoded(2**64 - 1)
    assert encoded(np.str_("ä")) == encoded("ä")
    assert encoded(np.bytes_(b"a")) == encoded(b"a")


def test_limits_of_items() -> None:
    limit = 1 << 20
    assert len(encoded("x" * limit)) == limit + 9
    for item in ("x" * (limit + 1), b"x" * (limit + 1), 1 << (8 * limit), ("x" * limit, "y")):
        with pytest.raises(ParameterError, match="bytes each"):
            encoded(item)


def test_fingerprints_depend_on_the_key() -> None:
    one, two = Fingerprints(bytes(32)), Fingerprints(bytes(31) + b"\1")
    assert not np.array_equal(one.many([1, 2]), two.many([1, 2]))
    assert "hidden" in repr(one)
    assert one.many([]).shape == (0, 2)
    assert np.array_equal(one.many(np.array([1, 2])), one.many([1, 2]))
    assert np.array_equal(one.many(np.array(["a"])), one.many(["a"]))


@given(st.integers(0, PRIME - 1), st.integers(0, PRIME - 1))
@settings(deadline=None)
def test_products_modulo_the_prime(x: int, y: int) -> None:
    assert int(multiply(np.array([x], dtype=np.uint64), np.array([y], dtype=np.uint64))[0]) == x * y % PRIME


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5), st.integers(0, 2**64 - 1))
@settings(deadline=None)
def test_polynomials_by_horner_in_integers(words: list[int], point: int) -> None:
    family = Polynomials.drawn(np.array([words], dtype=np.uint64))
    wanted = 0
    for word in words:
        wanted = (wanted * (point % PRIME) + word % PRIME) % PRIME
    value = family.values(np.array([point], dtype=np.uint64))
    assert int(value[0, 0]) == wanted
    signs = family.signs(np.array([point], dtype=np.uint64), rows=61)
    assert [int(sign) for sign in signs[0]] == [-1 if wanted >> k & 1 else 1 for k in range(61)]


@given(st.integers(0, PRIME - 1), st.integers(2, 40))
@settings(deadline=None)
def test_levels_are_trailing_zeros(value: int, levels: int) -> None:
    wanted = levels - 1 if value == 0 else min((value & -value).bit_length() - 1, levels - 1)
    assert int(levels_of(np.array([value], dtype=np.uint64), levels=levels)[0]) == wanted


def test_levels_and_groups_are_fair_and_independent() -> None:
    """60,000 items; chi-square of (group, level) and of levels over copies: false alarms below 1e-5."""
    count, groups, levels = 60_000, 5, 6
    prints = Fingerprints(b"k" * 32).many(range(count))
    level = levels_of(prints[:, 1], levels=levels)
    group = group_of(prints[:, 0], groups=groups)
    share = np.array([2.0 ** -(k + 1) for k in range(levels - 1)] + [2.0 ** -(levels - 1)])
    expected = count / groups * share[None, :]
    table = np.zeros((groups, levels))
    np.add.at(table, (group, level), 1)
    assert chi_square_is_plausible(table, np.broadcast_to(expected, table.shape))
    sign = (prints[:, 0] & np.uint64(1)).astype(int)
    signed = np.zeros((2, groups, levels))
    np.add.at(signed, (sign, group, level), 1)
    assert chi_square_is_plausible(signed, np.broadcast_to(expected / 2, signed.shape))
    rng = np.random.default_rng(5)
    family = Polynomials.drawn(rng.integers(0, 2**64, size=(7, 2), dtype=np.uint64))
    for column in levels_of(family.values(prints[:, 0]), levels=levels).T:
        found = np.bincount(column, minlength=levels)
        assert chi_square_is_plausible(found, count * share)


def chi_square_is_plausible(found: Any, expected: Any) -> bool:
    degrees = np.size(found) - 1
    value = float(((found - expected) ** 2 / expected).sum())
    return abs(value - degrees) < 5.5 * np.sqrt(2 * degrees) + 8


def test_pairs_are_independent_over_linear_polynomials() -> None:
    """Over all a, b of a small field the pair (a x + b, a y + b) takes every value once."""
    p = 7
    for x, y in itertools.combinations(range(p), 2):
        pairs = {((a * x + b) % p, (a * y + b) % p) for a in range(p) for b in range(p)}
        assert len(pairs) == p * p
