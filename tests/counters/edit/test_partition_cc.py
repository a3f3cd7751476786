"""PartitionCC: its partition costs half of epsilon exactly, its ledger closes, its output changes at once."""

import math
from fractions import Fraction

import numpy as np
import pytest
from trilift.counters.edit.internals import trace
from trilift.counters.edit.part import part_rule
from trilift.counters.edit.partition_cc import PartitionCC, PartitionDesign, SwapThresholds
from trilift.counters.edit.svt import SVTRule
from trilift.lift.errors import HorizonError, ParameterError
from trilift.stream.gdp import ln_delta_bounds, ln_of


def below(k: np.ndarray, scale: int) -> np.ndarray:
    """P(Z < k) of a discrete Laplace variate."""
    u = math.exp(-1 / scale)
    return np.where(k <= 0, u ** np.maximum(1 - k, 0), 1 + u - u ** np.maximum(k, 0)) / (1 + u)


def law(rule: SVTRule, sums: list[int], *, threshold: int) -> np.ndarray:
    """Pr[segment ends at t], t = 1 .. T, and of no end; tails below e^-60 left out."""
    z0 = np.arange(-60 * rule.origin_scale, 60 * rule.origin_scale + 1)
    u = math.exp(-1 / rule.origin_scale)
    alive = (1 - u) / (1 + u) * u ** np.abs(z0).astype(np.float64)
    out = []
    for v in sums:
        gap = (threshold + z0 - v).astype(np.float64)
        out.append(float(np.sum(alive * below(1 - gap, rule.step_scale))))
        alive = alive * below(gap, rule.step_scale)
    return np.array([*out, float(alive.sum())])


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(3)])
def test_the_worst_loss_is_half_of_epsilon(epsilon) -> None:
    """All changes of one input in streams of 6 steps over {0, 1}, and of 20 steps far below or above."""
    rule = SVTRule.of_scales(2 / epsilon, scale_t=2 / epsilon, lattice_places=0)
    d, worst = rule.unit, 0.0
    for threshold in (2 * d, 20 * d):
        for bits in range(64):
            inputs = [bits >> t & 1 for t in range(6)]
            for j in (t for t in range(6) if inputs[t] == 0):
                other = [x + (t == j) for t, x in enumerate(inputs)]
                one, two = (
                    law(rule, (d * np.cumsum(x)).tolist(), threshold=threshold) for x in (inputs, other)
                )
                worst = max(worst, float(np.abs(np.log(one / two)).max()))
    for level in (-math.ceil(60 / epsilon) * d, math.ceil(30 / epsilon) * d):
        one, two = law(rule, [level] * 20, threshold=0), law(rule, [level + d] * 20, threshold=0)
        worst = max(worst, float(np.abs(np.log(one / two))[:-1].max()))
    assert worst <= float(epsilon) / 2 * (1 + 1e-9)
    assert worst >= float(epsilon) / 2 * 0.999


def test_scales_of_the_running_mechanism() -> None:
    design = PartitionDesign.make(Fraction(3, 10), delta=1e-5, horizon=1000)
    rule = part_rule(design.part, high=1)
    assert isinstance(design.part, SwapThresholds)
    assert max(Fraction(rule.unit, rule.origin_scale), Fraction(rule.unit, rule.step_scale)) <= Fraction(
        3, 20
    )
    assert rule.factor == 0
    assert float(design.tau) == pytest.approx(6 * math.log(1000) / 0.3, abs=2e-6)
    assert design.tau * Fraction(3, 10) >= 6 * ln_of(1000)[0]


@pytest.mark.parametrize("epsilon", [0.05, 1, 30])
@pytest.mark.parametrize("delta", [1e-12, Fraction(1, 3), 1e-200])
def test_the_ledger_closes(epsilon, delta) -> None:
    design = PartitionDesign.make(epsilon, delta=delta, horizon=10)
    ledger = design.ledger
    assert ledger.spent_epsilon == design.epsilon
    assert ledger.spent_delta <= design.delta
    assert ledger.spent_delta >= design.delta * Fraction(999, 1000)
    for part in ledger.parts[1:]:
        assert ln_delta_bounds(part.epsilon, mu=design.mu)[1] <= part.ln_delta


def test_noise_of_the_count_is_that_of_its_two_halves() -> None:
    """C = 1/mu(epsilon/4, delta/2): the end of epoch j has C sqrt(j+1), step m of an epoch of N has
    C sqrt(j + S_N S_m), with S_1 = 1, S_2 = 5/4 at step 2."""
    design = PartitionDesign.make(0.378, delta=1e-5, horizon=10_000)
    c = 1 / float(design.mu)
    assert c == pytest.approx(34.222, abs=0.001)
    sd = design.values.sd(np.array([0, 2, 6, 1]))
    assert sd[0] == pytest.approx(c, rel=1e-3)
    assert sd[1] == pytest.approx(c * math.sqrt(2), rel=1e-3)
    assert sd[2] == pytest.approx(c * math.sqrt(3), rel=1e-3)
    assert sd[3] == pytest.approx(c * math.sqrt(1 + 1.25), rel=1e-3)
    assert float(2 * design.mu**2 / design.values.mu**2) == pytest.approx(1, abs=1e-9)
    assert 2 * design.mu**2 >= design.values.mu**2


def test_values_change_at_the_end_of_a_segment_and_nowhere_else() -> None:
    values = np.random.default_rng(1).integers(0, 2, 600)
    counter = PartitionCC(8, 1e-6, horizon=600, simulation_seed=2)
    shown = counter.extend(values)
    seen = trace(PartitionCC(8, 1e-6, horizon=600, simulation_seed=2), values)
    assert seen.times.tolist() == seen.ends.tolist()
    assert len(seen.ends) > 5
    steps = np.searchsorted(seen.ends, np.arange(1, 601), side="right") - 1
    assert shown.tolist() == [int(seen.values[k]) if k >= 0 else 0 for k in steps]


def test_errors_and_words() -> None:
    with pytest.raises(ParameterError, match="delta must be below 1"):
        PartitionCC(1, 1, horizon=10)
    counter = PartitionCC(1, 1e-5, horizon=3, simulation_seed=1)
    counter.extend([None, 0, 1])
    with pytest.raises(HorizonError):
        counter.update(1)
    text = counter.privacy_statement()
    assert text.startswith("SIMULATION")
    assert "NOT for edit neighbours" in text
    assert "at once" in counter.describe()


def test_saved_and_continued(tmp_path) -> None:
    values = np.random.default_rng(3).integers(0, 2, 400)
    whole = PartitionCC(8, 1e-6, horizon=400, simulation_seed=2).extend(values)
    counter = PartitionCC(8, 1e-6, horizon=400, simulation_seed=2)
    first = counter.extend(values[:150])
    counter.save(tmp_path / "state")
    rest = PartitionCC.load(tmp_path / "state").extend(values[150:])
    assert np.concatenate([first, rest]).tolist() == whole.tolist()
