"""The exact numbers of a stage that a certificate speaks about."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from trilift.artifacts.certificate import INTERIOR, RATIONALS
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import CertificateError, ParameterError
from trilift.lift.interior import interior_sensitivity, neighbour_products
from trilift.lift.stage import Stage, lower_ones
from trilift.verify.enclosures import kappa_up
from trilift.verify.exact import product

__all__ = ["INTERIOR_KAPPAS", "KAPPAS", "Facts", "interior_rows", "measure", "prove_factorisation"]

KAPPAS = {"kappa_max": RATIONALS[:2], "kappa_mean": (RATIONALS[0], RATIONALS[2])}
INTERIOR_KAPPAS = {"interior_kappa_max": INTERIOR[:2], "interior_kappa_mean": (INTERIOR[0], INTERIOR[2])}


@dataclass(frozen=True)
class Facts:
    """Exact norms of a stage, and kappas rounded up; the interior ones are None for a plain factorisation."""

    values: dict[str, Fraction | None]
    kappas: dict[str, float | None]


def prove_factorisation(stage: Stage) -> None:
    """Prove T_m = A B + w (1 - v)^T and 0 <= w, v <= 1 in exact arithmetic.

    Raises:
        ParameterError: the stage holds floats.
        CertificateError: one of them is false; the message says which, where and by how much.
    """
    if not stage.is_exact:
        raise ParameterError("only an exact stage can be proved: complete it first")
    v = product(stage.B.T, stage.g[:, None])[:, 0]
    for name, weights in (("w", stage.w), ("v = B^T g", v)):
        _prove_range(name, weights)
    ones = Dyadic(np.ones(stage.size, dtype=np.int64))
    rank_one = stage.w[:, None] * (ones - v)[None, :]
    defect = Dyadic(lower_ones(stage.size)) - product(stage.A, stage.B) - rank_one
    wrong = np.argwhere(defect.num != 0)
    if len(wrong):
        i, j = (int(index) for index in wrong[0])
        by = defect[i : i + 1, j].fraction()
        raise CertificateError(
            f"T = A B + w (1 - v)^T fails in {len(wrong)} of {defect.num.size} entries, first at ({i}, {j}): "
            f"{int(j <= i)} on the left, {show(int(j <= i) - by)} on the right, off by {show(by)}"
        )


def _prove_range(name: str, weights: Dyadic) -> None:
    low, high = weights.min(), weights.max()
    if low < 0:
        i = int(np.argmin(weights.num))
        raise CertificateError(f"0 <= {name} fails at index {i}: it is {show(low)}, below by {show(-low)}")
    if high > 1:
        i = int(np.argmax(weights.num))
        raise CertificateError(
            f"{name} <= 1 fails at index {i}: it is {show(high)}, above by {show(high - 1)}"
        )


def show(value: Fraction) -> str:
    """Write a rational shortly: exactly if it is short, else by its float."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) <= 60:
        return str(value)
    try:
        return f"about {float(value):.6g}"
    except OverflowError:
        return "beyond the range of floats"


def measure(stage: Stage, *, kind: str) -> Facts:
    """Return the exact norms of an exact stage, and its kappas rounded up.

    Args:
        stage: exact, of size m >= 2.
        kind: "stage", or "direct", for which there are no interior norms.
    """
    q, products = neighbour_products(stage)  # q_i are the norms of the rows on the lattice of blocks
    values: dict[str, Fraction | None] = {
        "sensitivity": Fraction(stage.sensitivity()),
        "max_row_norm_sq": q.max(),
        "mean_row_norm_sq": q.sum().fraction() / stage.size,
    }
    values.update(_interior(stage, q, products) if kind == "stage" else dict.fromkeys(INTERIOR))
    kappas: dict[str, float | None] = {}
    for name, (b, q_name) in {**KAPPAS, **INTERIOR_KAPPAS}.items():
        sensitivity, norm = values[b], values[q_name]
        if sensitivity is None or norm is None:
            kappas[name] = None
        else:
            kappas[name] = kappa_up(norm, sensitivity=sensitivity, size=stage.size)
    return Facts(values, kappas)


def _interior(stage: Stage, norms: Dyadic, products: Dyadic) -> dict[str, Fraction]:
    """Return b-bar and the largest and mean q-bar of the stage above itself."""
    largest, mean = interior_rows(stage, norms, products)
    return dict(zip(INTERIOR, (Fraction(interior_sensitivity(stage)), largest, mean), strict=True))


def interior_rows(stage: Stage, norms: Dyadic, products: Dyadic) -> tuple[Fraction, Fraction]:
    """Return the largest and the mean q-bar of the stage above itself, without the m x m table.

    A blended norm is a convex function of the weight with which it is blended, so over the weights of the
    level below it is largest at the least or the largest of them. The mean needs three moments of w.

    Args:
        stage: exact.
        norms, products: of its neighbouring rows, by :func:`trilift.lift.interior.neighbour_products`.
    """
    before = _rolled(norms)
    ends = [_blend(norms, before, products, x) for x in (stage.w.min(), stage.w.max())]
    rest = Dyadic(np.ones(stage.size, dtype=np.int64)) - stage.w
    count = stage.size
    moments = [
        (x * y).sum().fraction() / count for x, y in ((stage.w, stage.w), (rest, rest), (stage.w, rest))
    ]
    totals = [x.sum().fraction() / count for x in (norms, before, products)]
    mean = moments[0] * totals[0] + moments[1] * totals[1] + 2 * moments[2] * totals[2]
    return max(end.max() for end in ends), mean


def _rolled(values: Dyadic) -> Dyadic:
    return Dyadic(np.roll(values.num, 1), values.exp)


def _weights(x: Fraction) -> tuple[Dyadic, Dyadic]:
    """Return x and 1 - x, a dyadic rational, as arrays of one entry."""
    places = x.denominator.bit_length() - 1
    return Dyadic([x.numerator], places), Dyadic([x.denominator - x.numerator], places)


def _blend(norms: Dyadic, before: Dyadic, products: Dyadic, x: Fraction) -> Dyadic:
    """Return |(1 - x) Row_{j-1} + x Row_j|^2 for every j."""
    w, rest = _weights(x)
    return w * w * norms + rest * rest * before + w * rest * products * 2
