"""The closed forms by name: prices, records, limits, factors, chains."""

import json
import math

import numpy as np
import pytest
from trilift.lift import ParameterError, chain_cost, tree_costs
from trilift.lift.mechanisms import (
    NAMES,
    PAPER_NORMS,
    leading_constants,
    plain_stage,
    price,
    step_errors_sq,
    stream_chain,
)

PLAN_KEYS = [
    "horizon",
    "epsilon",
    "objective",
    "levels",
    "max_se",
    "mean_se",
    "kappa_max",
    "kappa_mean",
    "bound_max_se",
    "bound_mean_se",
]
EXACT = [name for name in NAMES if name != "paper"]
CHAINS = ["binary-tree", "kary", "kary-subtraction"]


@pytest.mark.parametrize("objective", ["max", "mean"])
@pytest.mark.parametrize("name", NAMES)
def test_records_have_the_keys_of_a_plan(name: str, objective: str) -> None:
    record = json.loads(json.dumps(price(name, 1000, objective=objective).record(0.5), allow_nan=False))
    assert list(record) == PLAN_KEYS
    assert all(set(level) == {"name", "size", "scale"} for level in record["levels"])
    assert record["bound_mean_se"] > 0
    if name == "paper":
        assert [record[key] for key in ("max_se", "mean_se", "kappa_max", "kappa_mean")] == [None] * 4
        assert (record["bound_max_se"] is None) == (objective == "mean")
    else:
        unit = price(name, 1000, objective=objective)
        assert record["max_se"] == pytest.approx(4 * unit.max_se())
        assert record["kappa_max"] == pytest.approx(unit.max_se() / math.log2(1000) ** 3)
        assert record["mean_se"] <= record["max_se"] <= record["bound_max_se"]


@pytest.mark.parametrize("name", NAMES)
def test_one_step(name: str) -> None:
    record = price(name, 1).record()
    assert record["kappa_max"] is None
    assert record["kappa_mean"] is None
    if name != "paper":
        assert record["max_se"] == 2.0  # one Laplace draw of scale 1


@pytest.mark.parametrize("name", EXACT)
def test_plain_stages_have_these_costs(name: str) -> None:
    for horizon in (1, 6, 30):
        stage, cost = plain_stage(name, horizon), price(name, horizon)
        assert stage.residual() == 0
        assert stage.is_plain
        assert float(stage.sensitivity()) == pytest.approx(float(cost.sensitivity), rel=1e-12)
        norms = stage.row_norms_sq().to_float()
        rel = 1e-8 if name.startswith("honaker") else 1e-12  # rounded gains
        assert norms.max() == pytest.approx(float(cost.max_row_norm_sq), rel=rel)
        assert norms.mean() == pytest.approx(float(cost.mean_row_norm_sq), rel=rel)
        l2 = (stage.B.to_float() ** 2).sum(axis=0).max()
        assert l2 == pytest.approx(float(cost.l2_sensitivity_sq), rel=1e-12)
        assert cost.gamma("max") == pytest.approx(math.sqrt(norms.max() * l2), rel=rel)


@pytest.mark.parametrize("name", CHAINS)
def test_chains_have_these_costs(name: str) -> None:
    n = 10**6
    for objective in ("max", "mean"):
        chain, cost = stream_chain(name, n, objective=objective), price(name, n, objective=objective)
        found = chain_cost(chain, n, objective=objective, scales=np.ones(len(chain.levels)))
        assert found.max_se() == pytest.approx(cost.max_se(), rel=1e-12)
        assert found.mean_se() == pytest.approx(cost.mean_se(), rel=1e-12)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in CHAINS])
def test_no_chain_is_said_so(name: str) -> None:
    with pytest.raises(ParameterError, match="is no chain"):
        stream_chain(name, 100)


def test_published_leading_constants() -> None:
    """Table 1 of the paper, as it is printed there."""
    printed = {
        "binary-tree": (2.0, 1.0),
        "smooth-tree": (0.25, 0.25),
        "kary": (0.4686, 0.2343),
        "kary-subtraction": (0.2343, 0.1236),
        "kary-averaged": (0.1171, 0.1171),
    }
    for name, values in printed.items():
        assert leading_constants(name) == pytest.approx(values, abs=5e-5)
    assert leading_constants("kary-subtraction")[1] == pytest.approx(180 / (19 * math.log2(19) ** 3))
    # 2 * 0.2903^2: the constant in the paper's bound for 0/1 factors is attained
    assert leading_constants("smooth-tree-unbalanced")[0] == pytest.approx(2 * 0.290**2, rel=3e-3)
    assert leading_constants("paper")[0] <= 0.0778
    assert leading_constants("paper")[1] <= 0.0710
    assert leading_constants("toeplitz-sqrt") is None


@pytest.mark.parametrize("name", ["binary_tree", "kary_tree", "kary_tree_subtraction", "averaged_kary_tree"])
def test_limits_are_those_of_the_exact_costs(name: str) -> None:
    """On whole trees the row norms grow by a constant with every level, at one unit of sensitivity each."""
    mechanism = {
        "binary_tree": "binary-tree",
        "kary_tree": "kary",
        "kary_tree_subtraction": "kary-subtraction",
        "averaged_kary_tree": "kary-averaged",
    }[name]
    for objective, k in enumerate((2, 2) if name == "binary_tree" else (17, 19)):
        arity = {} if name == "binary_tree" else {"arity": k}
        last = 0 if name == "averaged_kary_tree" else 1  # whole trees end before the next block, or with it
        low, high = (getattr(tree_costs, f"{name}_cost")(k**h - last, levels=h, **arity) for h in (6, 12))
        rows = [(tree.max_row_norm_sq, tree.mean_row_norm_sq)[objective] for tree in (low, high)]
        slope = (high.sensitivity - low.sensitivity) / 6
        limit = 2 * float(rows[1] - rows[0]) / 6 * slope**2 / math.log2(k) ** 3
        assert leading_constants(mechanism, **arity)[objective] == pytest.approx(
            limit, rel=2e-2 if k == 2 else 1e-5
        )


@pytest.mark.parametrize("balanced", [True, False])
def test_limits_of_smooth_trees(balanced: bool) -> None:
    """With h bits and z zeros: 2 z^2 (h-z) over the cube of log2 of the number of leaves."""
    h = 20000
    z = h // 2 if balanced else round(0.16 * h)
    kappa = 2 * z * z * (h - z) / math.log2(math.comb(h, z)) ** 3
    name = "smooth-tree" if balanced else "smooth-tree-unbalanced"
    assert leading_constants(name)[0] == pytest.approx(kappa, rel=3e-3)


def test_the_printed_arities_are_the_best() -> None:
    odd = range(3, 60, 2)
    assert min(range(2, 60), key=lambda k: leading_constants("kary", arity=k)[0]) == 17
    assert min(odd, key=lambda k: leading_constants("kary-subtraction", arity=k)[0]) == 17
    assert min(odd, key=lambda k: leading_constants("kary-subtraction", arity=k)[1]) == 19
    assert min(range(2, 60), key=lambda k: leading_constants("kary-averaged", arity=k)[0]) == 17
    assert min(range(2, 60), key=lambda k: leading_constants("honaker-kary", arity=k)[0]) == 12
    assert min(range(2, 60), key=lambda k: leading_constants("honaker-kary", arity=k)[1]) == 13


def test_the_paper_bound_is_the_repeated_lift() -> None:
    b, norm = PAPER_NORMS["max"]
    one, two = price("paper", 1024), price("paper", 1025)
    assert one.bound_max_se() == pytest.approx(2 * (b * norm) ** 2)
    assert two.bound_max_se() == pytest.approx(8 * one.bound_max_se())
    assert [level.size for level in two.levels] == [2049, 1024]
    assert sum(b / level.scale for level in two.levels) == pytest.approx(1.0)
    assert price("paper", (2049**2 - 1) // 2).levels == two.levels
    assert len(price("paper", (2049**2 - 1) // 2 + 1).levels) == 3
    # kappa of the bound tends to the leading constant along whole lifts
    whole = (2049**5 - 1) // 2
    assert price("paper", whole).kappa("max", bound=True) == pytest.approx(
        leading_constants("paper")[0], rel=0.06
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("binary", {}),
        ("binary-tree", {"arity": 3}),
        ("paper", {"arity": 3}),
        ("kary-subtraction", {"arity": 4}),
        ("kary", {"arity": 1}),
        ("kary", {"objective": "both"}),
        ("smooth-tree", {"objective": "both"}),
    ],
)
def test_refusals(name: str, options: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        price(name, 100, **options)


@pytest.mark.parametrize("horizon", [0, -1, True, 1.5, 2**61])
@pytest.mark.parametrize("name", NAMES)
def test_refuses_horizons(name: str, horizon: object) -> None:
    with pytest.raises(ParameterError):
        price(name, horizon)


def test_other_refusals() -> None:
    with pytest.raises(ParameterError):
        plain_stage("paper", 10)
    with pytest.raises(ParameterError):
        leading_constants("kary-subtraction", arity=4)
    with pytest.raises(ParameterError, match="log2"):
        price("kary", 1).kappa("max")
    with pytest.raises(ParameterError, match="epsilon"):
        price("kary", 10).record(float("nan"))


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("objective", ["max", "mean"])
def test_errors_of_single_steps(name: str, objective: str) -> None:
    """Their largest and their mean are the priced ones."""
    errors = step_errors_sq(name, np.arange(1, 101), horizon=100, objective=objective)
    cost = price(name, 100, objective=objective)
    assert errors.shape == (100,)
    assert errors.max() == pytest.approx(float(cost.max_se() or 0), rel=1e-12)
    assert errors.mean() == pytest.approx(float(cost.mean_se() or 0), rel=1e-12)


def test_no_errors_of_single_steps() -> None:
    with pytest.raises(ParameterError, match="only norms are published"):
        step_errors_sq("paper", [1], horizon=100)
    for step in (0, 101):
        with pytest.raises(ParameterError, match="step must be"):
            step_errors_sq("kary", [step], horizon=100)
