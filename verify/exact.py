"""Exact products of integer matrices: sympy's DomainMatrix over ZZ on python-flint."""

from __future__ import annotations

from typing import Any

import numpy as np
from sympy import ZZ
from sympy.polys.matrices import DomainMatrix
from trilift.lift.dyadic import Dyadic

__all__ = ["domain_matrix", "product"]


def domain_matrix(values: Dyadic) -> Any:
    """Return the numerators of a two-dimensional Dyadic as a dense DomainMatrix over ZZ."""
    rows = values.num.tolist()  # Python integers, whatever the array's type
    return DomainMatrix(rows, values.shape, ZZ, fmt="dense")


def product(left: Dyadic, right: Dyadic) -> Dyadic:
    """Return ``left @ right`` of two matrices exactly, by the integer product of their numerators.

    >>> product(Dyadic([[1, 2]], 1), Dyadic([[3], [4]])).fractions().tolist()
    [[Fraction(11, 2)]]
    """
    exact = domain_matrix(left) * domain_matrix(right)
    num = np.empty((left.shape[0], right.shape[1]), dtype=object)
    num[...] = [[int(entry) for entry in row] for row in exact.to_list()]
    return Dyadic(num, left.exp + right.exp)
