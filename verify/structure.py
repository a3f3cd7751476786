"""Structure of the costs c_2 and c_F: their values for T_2, and what would follow if they were norms.

c_2(T_2) = sqrt(2) and c_F(T_2) = sqrt(3/2) (Arkhipov and Kalinin, section 5), attained by T_2 = T_2 I. Both
lie above what the triangle inequality allows, so neither is a norm. For a matrix norm gamma with
gamma(s t^T) = 1 for all sign vectors, gamma(T_n) <= ceil(log2 n) + 1, by a decomposition of T_n into that
many averages of such products, built here.

The proofs that T_2 costs no less are new. The paper's lemma 5.1 lets us take inner dimension 2. Turn the
plane by 45 degrees and scale R to |R|_(1->1) = 1: its columns become u / sqrt(2) and v / sqrt(2) with u =
(a, b) and v = (c, d) in the square [-1, 1]^2. With w = u - v and D = det(u, v), the rows of L = T_2 R^-1
have squared norms 2 |v|^2 / D^2 and 2 |w|^2 / D^2. So

    c_2^2 >= 2    says    max(|v|^2, |w|^2) >= D^2,
    c_F^2 >= 3/2  says    F := 2 |v|^2 + 2 |w|^2 - 3 D^2 >= 0.

*First claim.* If u.v <= 0 then |w|^2 >= |u|^2 + |v|^2 >= 2 |u| |v| >= 2 |D| >= D^2, as |D| <= 2; likewise
with v and w exchanged if u.w <= 0. Else v has coordinates 0 < x < |u| along u and h = |D| / |u| across. If
the claim failed, x and |u| - x would both be below h q, q^2 = |u|^2 - 1. By symmetry 1 >= a >= b >= 0. On
one side of u the square gives x a + h b <= |u| < x + h q, hence b < q (2 - a), against b^2 - q^2 (2 - a)^2
>= 0 (step "one side"); on the other x b + h a <= |u|, hence a < q (2 - b), against a^2 - q^2 (2 - b)^2 >= 0
(step "other side").

*Second claim.* With v = u/2 + y, F = |u|^2 + 4 |y|^2 - 3 det(u, y)^2 (step "centre"): positive if |u|^2 <=
4/3, and else concave across u, so that v may be taken on the border of the square, by symmetry with d = 1
and c >= 0. There F is a convex quadratic in c (step "convex"), of discriminant rising in a^2 (step
"rising"), which at a^2 = 1 is 8e (3e^3 - 6e^2 + 5e - 6), e = 1 - b (step "discriminant"). Where this is
positive e > 17/10, so b < 0. If a <= 0, F is least at c = 0 and positive. If a > 0 and F is least beyond c
= 1, then F >= F(1), concave in a, which is positive at a = 0 and (3 - b)(1 + b) at a = 1 (step "corner").
Else a (2 - 3b) < 4 - 3b^2, and the discriminant is negative (step "inside").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy
from trilift.lift.checks import choice, integer
from trilift.lift.errors import CertificateError

__all__ = [
    "SignAverage",
    "TriangleFailure",
    "TwoStepCost",
    "norm_bound",
    "sign_averages",
    "triangle_failure",
    "two_step_cost",
]


@dataclass(frozen=True)
class TwoStepCost:
    """The exact cost of T_2.

    Attributes:
        objective: "max" (c_2) or "mean" (c_F).
        value: the cost, a sympy number.
        steps: names of the steps of the proof (module docstring) that were checked in exact algebra.
    """

    objective: str
    value: Any
    steps: tuple[str, ...]


def two_step_cost(objective: str) -> TwoStepCost:
    """Return c_2(T_2) ("max") or c_F(T_2) ("mean") after checking the algebra of its proof.

    Raises:
        ParameterError: another objective.
        CertificateError: a step fails.

    >>> two_step_cost("max").value, two_step_cost("mean").value
    (sqrt(2), sqrt(6)/2)
    """
    worst = choice("objective", objective, ("max", "mean")) == "max"
    reached = _cost(sympy.Matrix([[1, 0], [1, 1]]), sympy.eye(2), objective)
    value = sympy.sqrt(2) if worst else sympy.sqrt(sympy.Rational(3, 2))
    _require("attained", sympy.simplify(reached - value) == 0)
    steps = _first_claim() if worst else _second_claim()
    return TwoStepCost(objective, value, ("attained", *steps))


def _first_claim() -> tuple[str, ...]:
    a, b, c, d = sympy.symbols("a b c d", real=True)
    lagrange = (a**2 + b**2) * (c**2 + d**2) - (a * d - b * c) ** 2 - (a * c + b * d) ** 2
    _require("Lagrange", sympy.expand(lagrange) == 0)  # |u| |v| >= |D|
    q_sq = a**2 + b**2 - 1
    # Both are linear in one square, with a slope <= 0, so least where that square is largest.
    one = sympy.expand(b**2 - q_sq * (2 - a) ** 2)
    _require("one side", _falls_in(one, b, a) and _nonnegative(one.subs(b, a), a, 0, 1))
    other = sympy.expand(a**2 - q_sq * (2 - b) ** 2)
    _require("other side", _falls_in(other, a, b) and _nonnegative(other.subs(a, 1), b, 0, 1))
    return "Lagrange", "one side", "other side"


def _falls_in(value: Any, square_of: Any, other: Any) -> bool:
    """Tell whether a polynomial is linear and falling in the square of one variable, the other in [0, 1]."""
    slope = sympy.diff(value, square_of, 2) / 2
    linear = sympy.expand(value - slope * square_of**2 - value.subs(square_of, 0)) == 0
    return linear and _nonnegative(-slope, other, 0, 1)


def _second_claim() -> tuple[str, ...]:
    a, b, c, e, p, q = sympy.symbols("a b c e p q", real=True)

    def F(c: Any, d: Any) -> Any:
        norms = c**2 + d**2 + (a - c) ** 2 + (b - d) ** 2
        return sympy.expand(2 * norms - 3 * (a * d - b * c) ** 2)

    centre = a**2 + b**2 + 4 * (p**2 + q**2) - 3 * (a * q - b * p) ** 2
    _require("centre", sympy.expand(F(a / 2 + p, b / 2 + q) - centre) == 0)
    border = sympy.Poly(F(c, 1), c)
    lead, linear, constant = (border.coeff_monomial(c**k) for k in (2, 1, 0))
    _require("convex", _nonnegative(lead - 1, b, -1, 1))
    _require("vertex", sympy.expand(linear + 2 * a * (2 - 3 * b)) == 0)
    square = linear**2 - 4 * lead * constant
    slope = sympy.diff(sympy.expand(square), a, 2) / 2  # in a^2
    _require("rising", _nonnegative(slope, b, -1, 1) and sympy.diff(slope, a) == 0)
    at_one = sympy.expand(square.subs(a, 1).subs(b, 1 - e))
    cubic = 3 * e**3 - 6 * e**2 + 5 * e - 6
    limit = sympy.Rational(17, 10)
    negative = _nonnegative(-cubic, e, 0, limit)
    _require("discriminant", sympy.expand(at_one - 8 * e * cubic) == 0 and negative)
    _require("left", _nonnegative(constant.subs(a, 1), b, -1, 1))  # F(0), falling in a^2
    end = sympy.expand(border.eval(1))
    concave = sympy.diff(end, a, 2) == -2
    corner = sympy.expand(end.subs(a, 1) - (3 - b) * (1 + b)) == 0
    _require("corner", concave and corner and _nonnegative(end.subs(a, 0), b, -1, 1))
    inside = sympy.expand(square.subs(a, lead / (2 - 3 * b)) * (2 - 3 * b) ** 2 / lead)
    falls = _nonnegative(sympy.cancel(-inside).subs(b, 1 - e), e, limit, 2)
    _require("inside", falls)
    return "centre", "convex", "vertex", "rising", "discriminant", "left", "corner", "inside"


def _nonnegative(value: Any, x: Any, low: Any, high: Any) -> bool:
    """Prove that a polynomial with rational coefficients is >= 0 on an interval, by counting its roots."""
    poly = sympy.Poly(sympy.expand(value), x)
    if poly.is_zero:
        return True
    for factor, power in poly.sqf_list()[1]:
        ends = sum(factor.eval(end) == 0 for end in (low, high))
        if power % 2 and factor.count_roots(low, high) > ends:
            return False  # it changes its sign inside
    inner = next(y for y in _between(low, high) if poly.eval(y) != 0)
    return bool(poly.eval(inner) > 0)


def _between(low: Any, high: Any) -> Any:
    for denominator in range(2, 1000):
        yield low + (high - low) / sympy.Integer(denominator)


def _require(step: str, holds: Any) -> None:
    if not holds:
        raise CertificateError(f"the step {step!r} does not hold")


def _cost(L: Any, R: Any, objective: str) -> Any:
    """Return |L| |R|_(1->1) exactly, with the largest or the root mean square row norm of L."""
    rows = [sum(x * x for x in L.row(i)) for i in range(L.rows)]
    row = max(rows) if objective == "max" else sum(rows) / sympy.Integer(len(rows))
    return sympy.sqrt(row) * max(sum(abs(x) for x in R.col(j)) for j in range(R.cols))


@dataclass(frozen=True)
class TriangleFailure:
    """Two matrices whose costs together are less than the cost of their sum T_2.

    Attributes:
        objective: "max" (c_2) or "mean" (c_F).
        whole: the cost of T_2.
        parts: costs of factorisations of the two summands, hence upper bounds of their costs.
        excess: whole - sum(parts), positive.
    """

    objective: str
    whole: Any
    parts: tuple[Any, Any]
    excess: Any


def triangle_failure(objective: str) -> TriangleFailure:
    """Show that c_2 ("max") or c_F ("mean") is not a norm.

    T_2 = J/2 + H/2 with J of ones and H = [[1, -1], [1, 1]]. J/2 costs 1/2, H/2 = (H/2) I costs sqrt(2)/2,
    T_2 more than both together.

    Raises:
        ParameterError: another objective.
        CertificateError: a step fails.

    >>> triangle_failure("mean").excess
    -sqrt(2)/2 - 1/2 + sqrt(6)/2
    """
    whole = two_step_cost(objective).value
    half = sympy.Rational(1, 2)
    H = sympy.Matrix([[1, -1], [1, 1]]) * half
    column, row = sympy.Matrix([half, half]), sympy.Matrix([[1, 1]])
    _require("sum", column * row + H == sympy.Matrix([[1, 0], [1, 1]]))
    parts = (_cost(column, row, objective), _cost(H, sympy.eye(2), objective))
    excess = whole - sum(parts)
    _require("excess", excess.is_positive)
    return TriangleFailure(objective, whole, parts, excess)


@dataclass(frozen=True)
class SignAverage:
    """A 0/1 matrix as an average of products of sign vectors: M = (1/N) sum over i of s_i t_i^T.

    Attributes:
        left: the s_i as columns, shape (n, N), entries 1 and -1.
        right: the t_i as columns, shape (n, N).
    """

    left: np.ndarray[Any, np.dtype[np.int64]]
    right: np.ndarray[Any, np.dtype[np.int64]]

    def matrix(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return M.

        Raises:
            CertificateError: the average is not an integer matrix.
        """
        total, count = self.left @ self.right.T, self.left.shape[1]
        if np.any(total % count):
            raise CertificateError("the average of the sign products is not an integer matrix")
        return np.asarray(total // count)


def sign_averages(size: int) -> list[SignAverage]:
    """Decompose T_n into ceil(log2 n) + 1 averages of products of sign vectors.

    One is the identity; for each j the others hold the blocks with rows in the right half and columns in
    the left half of an interval of 2^(j+1) steps. In each, rows and columns of one block have one label,
    all others labels of their own, and labels have the rows of a Hadamard matrix as their signs. These are
    orthogonal, so that the average of s_i t_i^T is 1 in the blocks and 0 elsewhere (the paper draws
    independent signs).

    Args:
        size: n, 1 to 4096 (the matrices have up to 4 n^2 entries).

    >>> [average.matrix().tolist() for average in sign_averages(2)]
    [[[1, 0], [0, 1]], [[0, 0], [1, 0]]]
    """
    n = integer("size", size, minimum=1, maximum=4096)
    steps = np.arange(n)
    averages = [_average(steps, steps)]
    for j in range((n - 1).bit_length()):
        block, odd = steps >> (j + 1), (steps >> j) & 1 == 1
        # labels: blocks first, then n + step for what is in no block
        rows = np.where(odd, block, n + steps)
        columns = np.where(odd, 2 * n + steps, block)
        averages.append(_average(rows, columns))
    return averages


def _average(rows: Any, columns: Any) -> SignAverage:
    """Give every label in use its own row of a Hadamard matrix of Sylvester's kind."""
    used, where = np.unique(np.concatenate([rows, columns]), return_inverse=True)
    order = 1 << (len(used) - 1).bit_length()
    parity = np.bitwise_count(np.arange(len(used))[:, None] & np.arange(order)[None, :]) & 1
    signs = 1 - 2 * parity.astype(np.int64)
    return SignAverage(signs[where[: len(rows)]], signs[where[len(rows) :]])


def norm_bound(size: int) -> int:
    """Return ceil(log2 n) + 1, after checking the decomposition that proves it.

    It bounds gamma(T_n) for every matrix norm gamma with gamma(s t^T) = 1 for all sign vectors s and t
    (section 5.1 of the paper), such as gamma_2.

    Raises:
        ParameterError: not an integer from 1 to 4096.
        CertificateError: the parts do not add up to T_n.

    >>> [norm_bound(n) for n in (1, 2, 3, 64)]
    [1, 2, 3, 7]
    """
    parts = sign_averages(size)
    if not np.array_equal(sum(part.matrix() for part in parts), np.tri(int(size), dtype=np.int64)):
        raise CertificateError(f"the parts do not add up to T_{size}")
    return len(parts)
