"""The spent epsilon, recomputed from the integers of a dense R, row by row on each row's own lattice."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trilift.artifacts import load_stage
from trilift.lift.budget import chain_cost
from trilift.lift.chain import Chain
from trilift.lift.dense import materialise
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import ParameterError
from trilift.lift.stage import Stage, lower_ones
from trilift.stream.ledger import MIN_SCALE, Ledger, check_ledger, make_ledger, restore_ledger

EPSILONS = [
    1e-6,
    0.001,
    0.1,
    1,
    Fraction(1, 3),
    Fraction(22, 7),
    Decimal("0.7"),
    np.float32(0.3),
    10.0,
    1e6,
    Fraction(10**30 + 57, 10**30),
    1e-100,
    1e100,
]
CHANGES = [1, 2, Fraction(1, 3), 10**6, 0.5]


def exact(value) -> Fraction:
    """The rational that a number is."""
    return Fraction(value) if not isinstance(value, np.floating) else Fraction(float(value))


def dense_rows(chain: Chain, horizon: int) -> list[tuple[int, int, list[int]]]:
    """Rows of the exact R as (level, row of B, integers over 2^exp), and that exp."""
    dense = materialise(chain, horizon)
    starts = [int(np.flatnonzero(dense.level == level)[0]) for level in range(len(chain.levels))]
    rows = []
    for index, level in enumerate(dense.level.tolist()):
        row = (index - starts[level]) % chain.levels[level].inner
        rows.append((level, row, [int(x) for x in dense.R.num[index]]))
    return rows, dense.R.exp


def largest_charge(rows, exp: int, ledger) -> Fraction:
    """chi * max over columns t of sum over rows |R_t| 2^lambda / sigma: what one input costs, in integers.

    Rows that are not measured must be zero.
    """
    by_weight: dict[Fraction, list[int]] = {}
    for level, row, values in rows:
        entry = ledger.levels[level]
        if entry.places[row] < 0:
            assert not any(values)
            continue
        sigma = entry.row_scales[entry.measured.index(row)]
        weight = Fraction(1 << entry.places[row], sigma)
        sums = by_weight.setdefault(weight, [0] * len(values))
        by_weight[weight] = [a + abs(b) for a, b in zip(sums, values, strict=True)]
    columns = zip(*([weight * x for x in sums] for weight, sums in by_weight.items()), strict=True)
    return ledger.change * max(sum(column, Fraction(0)) for column in columns) / (1 << exp)


def check_spending(chain: Chain, ledger, epsilon, rows, exp) -> Fraction:
    asked = exact(epsilon)
    assert ledger.epsilon == asked
    charge = largest_charge(rows, exp, ledger)
    assert charge <= ledger.spent <= asked
    assert ledger.spent >= asked * Fraction(998, 1000)
    assert sum(ledger.change * x.sensitivity / x.scale for x in ledger.levels) == ledger.spent
    return charge


SHIPPED = [
    ("direct-mean-32",),
    ("stage-mean-9", "direct-mean-4"),
    ("stage-max-17", "direct-max-8"),
    ("stage-mean-9", "stage-max-9", "direct-mean-4"),
]


def shipped(names) -> Chain:
    *stages, top = [load_stage(name) for name in names]
    return Chain(top, stages)


@pytest.mark.parametrize("names", SHIPPED)
def test_shipped_chains_never_spend_more_than_asked(names) -> None:
    """Every column of the whole capacity, every epsilon and change; hardly anything is wasted."""
    chain = shipped(names)
    scales = chain_cost(chain, chain.capacity, objective="mean").scales
    rows, exp = dense_rows(chain, chain.capacity)
    for index, epsilon in enumerate(EPSILONS):
        ledger = make_ledger(
            chain,
            epsilon,
            scales=scales,
            change=CHANGES[index % len(CHANGES)],
            input_places=3 * (index % 3),
        )
        charge = check_spending(chain, ledger, epsilon, rows, exp)
        assert charge >= ledger.spent * Fraction(995, 1000)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 100),
    ties=st.booleans(),
    epsilon=st.fractions(min_value=Fraction(1, 10**6), max_value=10**6),
    change=st.fractions(min_value=Fraction(1, 10**4), max_value=10**6),
    tilt=st.floats(-20, 20),
    gamma=st.integers(0, 20),
)
def test_random_chains_never_spend_more_than_asked(lab, *, seed, ties, epsilon, change, tilt, gamma) -> None:
    """Chains of 1 to 3 levels, one- and two-sided, tails, rows that vanish; any split of the budget."""
    chain = lab.chain(seed, ties=ties)
    scales = [2.0 ** (tilt * level) for level in range(len(chain.levels))]
    ledger = make_ledger(chain, epsilon, scales=scales, change=change, input_places=gamma)
    rows, exp = dense_rows(chain, chain.capacity)
    check_spending(chain, ledger, epsilon, rows, exp)
    for entry, wanted in zip(ledger.levels, scales, strict=True):  # the split is the one asked for
        ratio = (entry.scale / ledger.levels[0].scale) / Fraction(wanted)
        assert abs(ratio - 1) < Fraction(1, 500)


def test_a_scale_one_smaller_overspends(lab) -> None:
    """Negative control: the recomputation is sharp enough to see sigma_l reduced by a third of a percent."""
    chain = shipped(("stage-mean-9", "direct-mean-4"))
    ledger = lab.ledger(chain)
    rows, exp = dense_rows(chain, chain.capacity)
    assert largest_charge(rows, exp, ledger) <= 1
    levels = [dataclasses.replace(x, scale_int=x.scale_int * 996 // 1000) for x in ledger.levels]
    assert largest_charge(rows, exp, dataclasses.replace(ledger, levels=tuple(levels))) > 1


# -- lattices -----------------------------------------------------------------------------------------


def least_places(values: list[Fraction]) -> int:
    return max(x.denominator.bit_length() - 1 for x in values)


@pytest.mark.parametrize("gamma", [0, 4])
@pytest.mark.parametrize("names", SHIPPED[1:])
def test_row_lattices_hold_every_column(lab, names, gamma) -> None:
    """R e_t 2^(lambda - gamma) is an integer everywhere; on the finest level no less will do."""
    chain = shipped(names)
    ledger = lab.ledger(
        chain, Fraction(1, 10**6), input_places=gamma
    )  # scales so large that nothing is refined
    rows, exp = dense_rows(chain, chain.capacity)
    needed: dict[tuple[int, int], int] = {}
    for level, row, values in rows:
        places = least_places([Fraction(x, 1 << exp) for x in values])
        needed[level, row] = max(places, needed.get((level, row), 0))
    for (level, row), places in needed.items():
        assert places + gamma <= ledger.levels[level].places[row]
        if level == 0:
            assert places + gamma == ledger.levels[level].places[row]


def deepest(x: Dyadic) -> int:
    return x.normalized().exp


@pytest.mark.parametrize("names", SHIPPED[1:])
def test_row_lattices_of_completed_artifacts(lab, names) -> None:
    """B rows at b + V, Delta rows at max(a + b, omega + nu) - e + V, the rho row at max(nu, b + eta) - f + V.

    These hold every row; a row may happen to need fewer places. The kinds of rows are told apart by A and g:
    a Delta row has the unit column 2^-e in A and 0 in g, the rho row has 0 in A and 2^-f in g.
    """
    chain = shipped(names)
    ledger = lab.ledger(chain, Fraction(1, 10**6))
    below = 0
    for stage, entry in zip(chain.levels, ledger.levels, strict=True):
        m = stage.size
        core = (stage.A[:, :m], stage.B[:m], stage.g[:m])
        a, b, eta = (deepest(x) for x in core)
        omega, nu = deepest(stage.w), deepest(stage.v)
        kinds = {"delta": 0, "rho": 0}
        for row in range(stage.inner):
            column = [x for x in stage.A[:, row].fractions().tolist() if x]
            tail = stage.g[row].fraction()
            if row < m:
                bound = b
            elif column:
                assert (len(column), column[0].numerator, tail) == (1, 1, 0)
                bound = max(0, max(a + b, omega + nu) - (column[0].denominator.bit_length() - 1))
                kinds["delta"] += 1
            else:
                assert tail.numerator == 1
                bound = max(0, max(nu, b + eta) - (tail.denominator.bit_length() - 1))
                kinds["rho"] += 1
            assert (
                entry.places[row] == least_places(stage.B[row].fractions().tolist()) + below <= bound + below
            )
        assert kinds["delta"] <= m
        assert kinds["rho"] <= 1
        assert sum(kinds.values()) == stage.inner - m > 0
        assert entry.row_scales == tuple(
            entry.scale_int * 2 ** (places - min(entry.places)) for places in entry.places
        )
        below += nu
    assert below > 0


def test_rows_that_vanish_are_not_measured() -> None:
    zero = Stage.plain(Dyadic([[1, 5]]), Dyadic([[1], [0]]))
    (level,) = make_ledger(Chain(zero), 1, scales=[1]).levels
    assert level.measured == (0,)
    assert level.places[1] == -1
    assert len(level.row_scales) == 1


@pytest.mark.parametrize("epsilon", [1e-6, 1, 1000, 1e6, 1e100])
def test_small_scales_are_put_on_a_finer_lattice(lab, epsilon) -> None:
    ledger = lab.ledger(shipped(SHIPPED[1]), epsilon)
    assert all(level.scale_int >= MIN_SCALE for level in ledger.levels)
    assert all(min(level.row_scales) == level.scale_int for level in ledger.levels)


# -- chains whose charges are easily missed --------------------------------------------------------------


def two_sided_half() -> Stage:
    """T_2 = A B with v = (1/2, 1/2), w = 0."""
    eye = Dyadic(np.eye(2, dtype=np.int64))
    return Stage(Dyadic([[1, 0], [1, 1]]), eye, Dyadic([0, 0]), Dyadic([1, 1], 1))


def test_the_same_factors_as_top_and_as_a_stage_beneath_it() -> None:
    """The last column of a stage blends with the first of the next block; the last of the top with zero."""
    plain = Stage.plain(Dyadic([[1, 1], [0, 2]], 1), Dyadic([[1, -1], [1, 1]]))
    chain = Chain(plain, [two_sided_half(), plain])
    ledger = make_ledger(chain, 1, scales=[1000, 1, 1000])
    rows, exp = dense_rows(chain, chain.capacity)
    assert largest_charge(rows, exp, ledger) <= ledger.spent <= 1


def test_a_top_that_no_input_reaches_costs_nothing() -> None:
    """v = 1 pushes every input out of a chain of one block."""
    one = Dyadic([[1]])
    stage = Stage(Dyadic([[1, 0], [1, 1]]), Dyadic(np.eye(2, dtype=np.int64)), Dyadic([0, 1]), Dyadic([1, 1]))
    ledger = make_ledger(Chain(Stage.plain(one, one), [stage]), 1, scales=[1, 1])
    assert ledger.levels[1].sensitivity == ledger.levels[1].spent == 0
    assert Fraction(999, 1000) < ledger.spent <= 1


def test_truncated_horizons_share_the_ledger(lab) -> None:
    """Columns of a shorter horizon are among those of the capacity: a ledger needs no horizon."""
    chain = shipped(SHIPPED[3])
    ledger = lab.ledger(chain, 1)
    for horizon in (1, 8, 9, 10, 80, 82, 200):
        rows, exp = dense_rows(chain, horizon)
        assert largest_charge(rows, exp, ledger) <= 1


# -- refusals -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "epsilon",
    [0, -1, float("nan"), float("inf"), True, "1", None, [1.0], 1j, Decimal("nan"), 1e-300, 1e300, 10**400],
)
def test_bad_epsilons_are_refused(lab, epsilon) -> None:
    """Tiny and huge ones too: past 2^+-480 the squares of the scales would leave the floats."""
    with pytest.raises(ParameterError, match="epsilon"):
        lab.ledger(shipped(SHIPPED[1]), epsilon)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("change", 0),
        ("change", -1),
        ("change", float("nan")),
        ("change", True),
        ("change", "1"),
        ("input_places", -1),
        ("input_places", 1.0),
        ("input_places", 257),
        ("input_places", True),
        ("scales", [1.0]),
        ("scales", [1.0, 2.0, 3.0]),
        ("scales", 1.0),
        ("scales", [[1.0, 1.0]]),
        ("scales", [1.0, 0.0]),
        ("scales", [1.0, -1.0]),
        ("scales", [1.0, float("nan")]),
        ("scales", [1.0, float("inf")]),
        ("scales", ["1", "1"]),
        ("scales", None),
    ],
)
def test_bad_arguments_are_refused_by_name(name, value) -> None:
    options = {"scales": [1.0, 1.0], name: value}
    with pytest.raises(ParameterError, match=name):
        make_ledger(shipped(SHIPPED[1]), 1, **options)


def test_float_chains_are_refused() -> None:
    chain = shipped(SHIPPED[1]).to_float()
    with pytest.raises(ParameterError, match="exact chain"):
        make_ledger(chain, 1, scales=[1, 1])


def test_rounded_factors_that_do_not_multiply_to_t_are_refused() -> None:
    """Exact numbers are not enough: without L R = T the releases are no function of R x + z."""
    eye = Dyadic(np.eye(2, dtype=np.int64))
    rounded = Stage.plain(Dyadic([[1 << 40, 0], [(1 << 40) - 1, 1 << 40]], 40), eye)
    with pytest.raises(ParameterError, match="no exact factorisation"):
        make_ledger(Chain(rounded), 1, scales=[1])


@pytest.mark.parametrize("which", ["w", "v"])
def test_weights_outside_the_unit_interval_are_refused(which) -> None:
    """They satisfy T = A B + w (1 - v)^T, but blends with them lengthen columns."""
    eye, one = Dyadic(np.eye(2, dtype=np.int64)), Dyadic([[1]])
    v, w = (Dyadic([-3, 3]), Dyadic([0, 0])) if which == "v" else (Dyadic([0, 0]), Dyadic([2, 2]))
    target = Dyadic([[1, 0], [1, 1]]) - w[:, None] * (Dyadic([1, 1]) - v)[None, :]
    stage = Stage(target, eye, w, v)
    assert stage.residual() == 0
    with pytest.raises(ParameterError, match=r"weights w and v must lie in \[0, 1\]"):
        make_ledger(Chain(Stage.plain(one, one), [stage]), 1, scales=[1, 1])


def test_check_ledger_tells_ledgers_that_do_not_fit(lab) -> None:
    chain = shipped(SHIPPED[1])
    ledger = lab.ledger(chain, Fraction(1, 10**6))  # nothing refined: no coarser lattice would do
    check_ledger(chain, ledger)
    other = shipped(("stage-max-17", "direct-max-8"))
    with pytest.raises(ParameterError, match="another chain"):
        check_ledger(other, ledger)
    with pytest.raises(ParameterError, match="levels"):
        check_ledger(shipped(SHIPPED[3]), ledger)
    fine, coarse = ledger.levels
    for bad in (
        dataclasses.replace(fine, scale_int=fine.scale_int * 996 // 1000),
        dataclasses.replace(fine, places=tuple(p - 1 for p in fine.places), coarsest=fine.coarsest - 1),
        dataclasses.replace(fine, places=(*fine.places[:-1], fine.places[-1] - 1)),
        dataclasses.replace(fine, places=fine.places[:-1]),
        dataclasses.replace(fine, size=8),
        dataclasses.replace(fine, coarsest=fine.coarsest + 1),
    ):
        with pytest.raises(ParameterError, match="ledger"):
            check_ledger(chain, dataclasses.replace(ledger, levels=(bad, coarse)))
    with pytest.raises(ParameterError, match="more than epsilon"):
        check_ledger(chain, dataclasses.replace(ledger, change=Fraction(2)))
    with pytest.raises(ParameterError, match="another chain"):
        check_ledger(chain, dataclasses.replace(ledger, input_places=1))


def test_the_ledger_as_text(lab) -> None:
    text = lab.ledger(shipped(SHIPPED[1]), Fraction(1, 3)).as_text()
    assert text.startswith("epsilon asked 1/3, spent 0.333")
    assert "level 1: size 4" in text


def test_lattices_that_could_underflow_in_floats_are_refused() -> None:
    """A v of 600 binary places would put the level above on a lattice that floats cannot unit-step."""
    tiny = Dyadic([1], 600)
    v = Dyadic.concatenate([tiny, tiny])
    one = Dyadic([1, 1])
    fine = Stage(
        Dyadic(lower_ones(2)) - Dyadic([0, 1])[:, None] * (one - v)[None, :],
        Dyadic(np.eye(2, dtype=np.int64)),
        Dyadic([0, 1]),
        v,
    )
    chain = Chain(Stage.plain(Dyadic([[1]]), Dyadic([[1]])), [fine])
    with pytest.raises(ParameterError, match="finest"):
        make_ledger(chain, 1, scales=[1.0, 1.0])


def restored(chain: Chain, ledger: Ledger, **changes) -> Ledger:
    """The ledger made again from its integers."""
    given = {
        "epsilon": ledger.epsilon,
        "scales": [(level.scale_int, level.coarsest) for level in ledger.levels],
        "change": ledger.change,
        "input_places": ledger.input_places,
    }
    return restore_ledger(chain, **given | changes)


@pytest.mark.parametrize("names", [("direct-max-8",), ("stage-max-9", "stage-mean-9", "direct-mean-4")])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_ledger_is_its_integers(names, epsilon) -> None:
    chain = Chain(load_stage(names[-1]), [load_stage(name) for name in names[:-1]])
    for change, places in ((1, 0), (Fraction(1, 3), 7)):
        made = make_ledger(chain, epsilon, scales=[1.0] * len(names), change=change, input_places=places)
        assert restored(chain, made) == made


def test_integers_of_something_else() -> None:
    chain = Chain(load_stage("direct-max-4"), [load_stage("stage-max-9")])
    made = make_ledger(chain, 1, scales=[1.0, 1.0])
    first, second = ((level.scale_int, level.coarsest) for level in made.levels)
    for scales in ([first], [first, second, second], []):
        with pytest.raises(ParameterError, match="noise scales for a chain of 2 levels"):
            restored(chain, made, scales=scales)
    with pytest.raises(ParameterError, match="noise scales for"):
        restored(chain.to_float(), made)
    for level, bad in (
        (0, (first[0], first[1] - 1)),
        (1, (second[0], -1)),
        (1, (0, second[1])),
        (1, (-5, second[1])),
        (1, (second[0], 10**18)),  # refused without writing 2^(10^18) down
        (1, (1 << (second[1] + 481), second[1])),
    ):
        scales = [first, second]
        scales[level] = bad
        with pytest.raises(ParameterError, match=f"scale of level {level} is not one of this chain"):
            restored(chain, made, scales=scales)
    with pytest.raises(ParameterError, match="more than epsilon"):
        restored(chain, made, scales=[first, (second[0] // 2, second[1])])
    with pytest.raises(ParameterError, match="more than epsilon"):
        restored(chain, made, change=Fraction(2))
