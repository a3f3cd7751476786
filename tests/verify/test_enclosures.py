"""Directed rounding against decimal arithmetic of higher precision."""

import math
import sys
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trilift.lift.errors import ParameterError
from trilift.verify import float_down, float_up, kappa_up, log2_enclosure, sqrt_down, sqrt_up

positive = st.fractions(min_value=Fraction(1, 10**12), max_value=10**12)


def log2_decimal(number):
    with localcontext() as context:
        context.prec = 80
        return Fraction(Decimal(number).ln() / Decimal(2).ln())


@given(st.integers(2, 10**30), st.sampled_from([8, 64, 128]))
def test_log2_is_enclosed(number, bits):
    low, high = log2_enclosure(number, bits=bits)
    exact = log2_decimal(number)
    error = Fraction(1, 10**70)
    assert low <= exact + error
    assert high >= exact - error
    assert high - low <= Fraction(2, 1 << bits)


@pytest.mark.parametrize("k", [0, 1, 2, 7, 100])
def test_powers_of_two_are_exact(k):
    assert log2_enclosure(2**k) == (k, k)


@pytest.mark.parametrize("number", [2**100 - 1, 2**100 + 1, 3, 129])
def test_enclosure_is_strict_otherwise(number):
    low, high = log2_enclosure(number)
    # 2**(low*2**64) < number**(2**64) is too big to write; a coarse run decides the same exactly
    low, high = log2_enclosure(number, bits=6)
    power = number**64
    assert 2 ** int(low * 64) <= power < 2 ** int(high * 64)


def test_finer_enclosures_are_nested():
    for number in range(3, 400):
        coarse, fine = log2_enclosure(number, bits=64), log2_enclosure(number, bits=128)
        assert coarse[0] <= fine[0] <= fine[1] <= coarse[1]


@pytest.mark.parametrize("number", [0, -1, 2.0, True, "8"])
def test_log2_refuses(number):
    with pytest.raises(ParameterError):
        log2_enclosure(number)


@given(positive)
def test_floats_are_the_neighbours(value):
    low, high = float_down(value), float_up(value)
    assert Fraction(low) <= value <= Fraction(high)
    assert high in (low, math.nextafter(low, math.inf))


@pytest.mark.parametrize("sign", [1, -1])
def test_floats_beyond_the_range(sign):
    value = sign * Fraction(10) ** 400
    assert float_down(value) <= value <= float_up(value)
    assert sorted(abs(x) for x in (float_down(value), float_up(value))) == [sys.float_info.max, math.inf]


@given(positive, st.sampled_from([4, 100]))
def test_square_roots_are_enclosed(value, bits):
    low, high = sqrt_down(value, bits=bits), sqrt_up(value, bits=bits)
    assert low * low <= value <= high * high
    assert high - low <= Fraction(1, 1 << bits)


def test_square_roots_of_squares_are_exact():
    assert sqrt_up(Fraction(25, 16)) == sqrt_down(Fraction(25, 16)) == Fraction(5, 4)


def test_square_root_of_a_negative_number():
    with pytest.raises(ParameterError):
        sqrt_up(Fraction(-1))


@given(positive, positive, st.integers(2, 5000))
def test_kappa_is_rounded_up_and_tight(q, b, size):
    with localcontext() as context:
        context.prec = 60
        exact = 2 * q * b**2 / log2_decimal(size) ** 3
    value = Fraction(kappa_up(q, sensitivity=b, size=size))
    assert exact * (1 - Fraction(1, 10**40)) <= value
    assert value <= exact * (1 + Fraction(1, 2**50))


def test_kappa_needs_two_steps():
    with pytest.raises(ParameterError):
        kappa_up(Fraction(1), sensitivity=Fraction(1), size=1)
