"""The ledgers calibrate what the paper's formulas say: two ways to the same parameters."""

from fractions import Fraction

import numpy as np
import pytest
from trilift.counters.edit.design import make_design
from trilift.experiments.edit import reference
from trilift.experiments.edit.plans import LN_DELTA

DELTA = Fraction(1, 10**5)
SIMECC = {
    "paper": lambda epsilon: reference.simecc(epsilon, ln_delta=LN_DELTA),
    "joint-40-51": lambda epsilon: reference.simecc_joint(epsilon, ln_delta=LN_DELTA, share=51),
    "joint-40-9": lambda epsilon: reference.simecc_joint(epsilon, ln_delta=LN_DELTA, share=9),
}


@pytest.mark.parametrize("accounting", SIMECC)
@pytest.mark.parametrize("epsilon", [1, 10, 150])
def test_simecc(accounting: str, epsilon: int) -> None:
    design = make_design(epsilon, delta=DELTA, accounting=accounting, base="cc")
    formula = SIMECC[accounting](float(epsilon))
    assert design.part.base == formula.rule.nominal
    assert float(design.part.drift) == pytest.approx(formula.rule.drift)
    assert float(design.part.scale) == pytest.approx(formula.rule.scale)
    for spec, noise in ((design.values, formula.values), (design.times, formula.times)):
        ratio = spec.sd(np.arange(300)) / noise.sd(300)
        assert np.all((ratio >= 1) & (ratio < 1.001))  # budgets are rounded down
    # delays are for noise rounded to whole steps: half a step more, rounded up
    gap = design.alphas(0, 300) - formula.alphas(300)
    assert np.all((gap > 0.49) & (gap < 1.9))


@pytest.mark.parametrize("epsilon", [1, 10, 150])
def test_ecc(epsilon: int) -> None:
    part = make_design(epsilon, delta=DELTA, accounting="paper", base="cc", mechanism="ecc").part
    rule = reference.ecc(float(epsilon), ln_delta=LN_DELTA).rule
    assert 0 <= float(part.tau) - rule.threshold < 1e-3
    for own, formula in (
        (part.bucket_drift, rule.bucket_drift),
        (part.clock_drift, rule.clock_drift),
        (part.scale0, rule.centre),
        (part.scale_t, rule.query),
    ):
        assert float(own) == pytest.approx(formula)
    assert part.shift == rule.shift
