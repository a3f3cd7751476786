"""The closed-form mechanisms by name: exact costs, leading constants, factors, and chains that stream.

    price("kary", 10**6, arity=17)          what it costs, with the fields of ``trilift plan --json``
    leading_constants("kary", arity=17)     what its kappa tends to for long streams
    plain_stage("kary", 100)                explicit exact factors L R = T_n at small horizons
    stream_chain("kary", 10**6)             an exact chain for trilift.stream, where there is one

"paper" stands for the repeated lift of Arkhipov and Kalinin with the norms that they publish for factors of
size 1024: bounds only, since an exact cost would need the matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from trilift.lift import trees
from trilift.lift.chain import Chain
from trilift.lift.checks import choice, integer
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import ParameterError
from trilift.lift.honaker import HonakerCost, honaker_cost, honaker_stage
from trilift.lift.mechanism_cost import Level, MechanismCost
from trilift.lift.stage import Stage
from trilift.lift.toeplitz import toeplitz_cost, toeplitz_stage
from trilift.lift.tree_chains import binary_tree_chain, kary_tree_chain, kary_tree_subtraction_chain
from trilift.lift.tree_costs import (
    TreeCost,
    averaged_kary_tree_cost,
    binary_tree_cost,
    kary_tree_cost,
    kary_tree_subtraction_cost,
    smooth_binary_tree_cost,
)

__all__ = [
    "NAMES",
    "PAPER_NORMS",
    "leading_constants",
    "plain_stage",
    "price",
    "step_errors_sq",
    "stream_chain",
]

PAPER_SIZE = 1024
PAPER_NORMS = {"max": (3.8417, 1.8730), "mean": (14.3098, 15.3661 / math.sqrt(PAPER_SIZE))}
"""By objective: |R|_(1->1) and |L|_(2->inf) (max) or |L|_F / sqrt(k) (mean) that the paper proves."""


@dataclass(frozen=True)
class _Tree:
    """A tree mechanism: its cost, its factors, its chain (or why there is none), its leading constants."""

    cost: Callable[..., TreeCost | HonakerCost]
    stage: Callable[..., Stage]
    chain: Callable[..., Chain] | str
    arity: tuple[int, int] | None  # by default, the best for max and for mean; None: it cannot be chosen
    limits: Callable[[int], tuple[float, float]]


def _exactly(dense: Callable[..., trees.Pair]) -> Callable[..., Stage]:
    """Make a plain stage of a tree's matrices, whose entries are integers or halves."""

    def stage(horizon: int, **options: Any) -> Stage:
        L, R = dense(horizon, **options)
        return Stage.plain(Dyadic.exact(L), Dyadic.exact(R))

    return stage


def _smooth(balanced: bool) -> Callable[..., TreeCost]:
    # The objective has nothing to choose here.
    return lambda horizon, **_: smooth_binary_tree_cost(horizon, balanced=balanced)


def _smooth_stage(balanced: bool) -> Callable[..., Stage]:
    dense = _exactly(trees.smooth_binary_tree)
    return lambda horizon, **_: dense(horizon, balanced=balanced)


def _unbalanced_limit() -> float:
    """Least 2 t^2 (1-t) / H(t)^3 for a share t of zeros, H the binary entropy; flat at the minimum."""
    shares = [i / 10000 for i in range(1000, 2500)]
    entropies = [-t * math.log2(t) - (1 - t) * math.log2(1 - t) for t in shares]
    return min(2 * t * t * (1 - t) / H**3 for t, H in zip(shares, entropies, strict=True))


def _log3(k: int) -> float:
    return math.log2(k) ** 3


def _subtraction_limits(k: int) -> tuple[float, float]:
    return (k - 1) / _log3(k), (k * k - 1) / (2 * k * _log3(k))


def _averaged_limits(k: int) -> tuple[float, float]:
    return (k - 1) / (2 * _log3(k)), (k - 1) / (2 * _log3(k))


def _honaker_limits(k: int) -> tuple[float, float]:
    mean = (k - 1) ** 2 / (3 * k * _log3(k))
    if k % 2:
        return 1.5 * mean, mean  # the middle child at every level
    # Alternately the two middle children: their offsets x, y solve x = b + y/k, y = b - 1 + x/k, b = a k/2.
    share = (k - 1) / k
    high, low = share * k / 2, share * (k / 2 - 1)
    x = (high + low / k) / (1 - 1 / k**2)
    y = (low + high / k) / (1 - 1 / k**2)
    worst = (high + low) / 2 - (x * x + y * y) / (2 * k)
    return 2 * worst / _log3(k), mean


_DENSE = "its weights are dense (see interpolated_chain)"
_PASCAL = "its levels follow Pascal's triangle"

_TREES = {
    "binary-tree": _Tree(
        binary_tree_cost, _exactly(trees.binary_tree), binary_tree_chain, None, lambda _: (2.0, 1.0)
    ),
    "smooth-tree": _Tree(_smooth(True), _smooth_stage(True), _PASCAL, None, lambda _: (0.25, 0.25)),
    "smooth-tree-unbalanced": _Tree(
        _smooth(False), _smooth_stage(False), _PASCAL, None, lambda _: (_unbalanced_limit(),) * 2
    ),
    "kary": _Tree(
        kary_tree_cost,
        _exactly(trees.kary_tree),
        kary_tree_chain,
        (17, 17),
        lambda k: (2 * (k - 1) / _log3(k), (k - 1) / _log3(k)),
    ),
    "kary-subtraction": _Tree(
        kary_tree_subtraction_cost,
        _exactly(trees.kary_tree_subtraction),
        kary_tree_subtraction_chain,
        (17, 19),
        _subtraction_limits,
    ),
    "kary-averaged": _Tree(
        averaged_kary_tree_cost,
        _exactly(trees.averaged_kary_tree),
        "it reads the same sums in two ways (see averaged_chain)",
        (17, 17),
        _averaged_limits,
    ),
    "honaker": _Tree(honaker_cost, honaker_stage, _DENSE, (2, 2), _honaker_limits),
    "honaker-kary": _Tree(honaker_cost, honaker_stage, _DENSE, (12, 13), _honaker_limits),
}

NAMES = (*_TREES, "toeplitz-sqrt", "paper")
"""The names that :func:`price` knows."""


def price(name: str, horizon: int, *, objective: str = "max", arity: int | None = None) -> MechanismCost:
    """Return what a mechanism costs at a horizon: exact, but for "paper", of which only bounds are known.

    Args:
        name: one of :data:`NAMES`.
        horizon: number of steps n >= 1.
        objective: "max" or "mean": which error the number of levels, or the paper's factors, are chosen for.
        arity: children per node of the k-ary trees; by default the best for long streams and the objective
            (17, or 19 for "kary-subtraction" by mean; 12 and 13 for "honaker-kary"), 2 for "honaker".

    Raises:
        ParameterError: an unknown name, an argument out of range, an arity for a mechanism that has none.

    >>> price("kary", 288, arity=17).max_se()  # 2 levels with up to 16 blocks each: 2 * 32 * 2^2
    256.0
    """
    choice("mechanism", name, NAMES)
    choice("objective", objective, ("max", "mean"))
    options = _options(name, objective, arity)
    if name == "paper":
        return _paper(horizon, objective)
    if name == "toeplitz-sqrt":
        root = toeplitz_cost(horizon)
        rows = (root.max_row_norm_sq, root.mean_row_norm_sq)
        level = Level(name, root.horizon, root.sensitivity)
        l2 = root.l2_sensitivity_sq
        return MechanismCost(
            name, root.name, root.horizon, objective, (level,), root.sensitivity, l2, *rows, *rows
        )
    tree = _TREES[name].cost(horizon, objective=objective, **options)
    b = tree.sensitivity
    rows_exact = (tree.max_row_norm_sq, tree.mean_row_norm_sq)
    levels = _tree_levels(name, tree)
    # Entries of a tree's R are 0 and 1, so that both norms of a column count the same ones.
    return MechanismCost(name, tree.name, tree.horizon, objective, levels, b, b, *rows_exact, *rows_exact)


def step_errors_sq(
    name: str, steps: Any, *, horizon: int, objective: str = "max", arity: int | None = None
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the squared errors of single steps at epsilon = 1, of the mechanism that :func:`price` prices.

    Args:
        name: one of :data:`NAMES` but "paper", of which only norms are published.
        steps: 1-based steps, shape (k,).
        horizon: number of steps n.
        objective: as for :func:`price`.
        arity: as for :func:`price`.

    Returns:
        2 |L_t|^2 |R|^2, shape (k,).

    Raises:
        ParameterError: as :func:`price`; "paper"; a step that is not in 1..horizon.

    >>> step_errors_sq("kary", [1, 287, 288], horizon=288, arity=17).tolist()
    [8.0, 248.0, 256.0]
    """
    if name == "paper":
        raise ParameterError("paper: only norms are published, no errors of single steps")
    choice("mechanism", name, NAMES)
    choice("objective", objective, ("max", "mean"))
    options = _options(name, objective, arity)
    at = [integer("step", int(step), minimum=1, maximum=horizon) for step in steps]
    if name == "toeplitz-sqrt":
        b: float = toeplitz_cost(horizon).sensitivity
        rows = np.array([toeplitz_cost(t).max_row_norm_sq for t in at])  # those of a row grow with the step
        return np.asarray(2.0 * b * b * rows)
    tree = _TREES[name].cost(horizon, objective=objective, **options)
    if isinstance(tree, TreeCost):
        rows = tree.row_norms_sq(np.array(at, dtype=np.int64))
    else:
        rows = np.array([float(tree.row_norm_sq(t)) for t in at])
    return np.asarray(2.0 * tree.sensitivity**2 * rows)


def _tree_levels(name: str, tree: TreeCost | HonakerCost) -> tuple[Level, ...]:
    """Levels with their block sizes in steps; each takes an equal share of epsilon."""
    k, b, n = tree.arity, tree.sensitivity, tree.horizon
    if name.startswith("smooth-tree"):
        return (Level(name, n, float(b)),)  # its sums are not of a few lengths
    sizes = [k**j for j in range(tree.levels)]
    sizes += [n] * (b - len(sizes))  # the averaged tree's total
    return tuple(Level(f"{name}-level-{j}", size, float(b)) for j, size in enumerate(sizes))


def _paper(horizon: int, objective: str) -> MechanismCost:
    """Return the p-fold diamond's bound: cost^(2/3) = p times that of the base.

    The bound for the worst step holds for the first n steps of the lift too. That for the mean is about all
    its ((2k+1)^p - 1)/2 steps, and the paper takes it for the first n.
    """
    n = integer("horizon", horizon, minimum=1, maximum=2**60)
    p, unit = 1, 2 * PAPER_SIZE + 1
    while (unit**p - 1) // 2 < n:
        p += 1
    b, norm = PAPER_NORMS[objective]
    levels = [Level(f"diamond-{objective}-{PAPER_SIZE}", unit, p * b)] * (p - 1)
    levels.append(Level(f"direct-{objective}-{PAPER_SIZE}", PAPER_SIZE, p * b))
    row = p * norm**2
    return MechanismCost(
        name="paper",
        title="lift of Arkhipov and Kalinin, size 1024",
        horizon=n,
        objective=objective,
        levels=tuple(levels),
        sensitivity=p * b,
        l2_sensitivity_sq=None,
        max_row_norm_sq=None,
        mean_row_norm_sq=None,
        bound_max_row_norm_sq=row if objective == "max" else None,
        bound_mean_row_norm_sq=row,  # a mean is at most the largest
    )


def leading_constants(name: str, *, arity: int | None = None) -> tuple[float, float] | None:
    """Return the limits of kappa (max, mean) for long streams; None for "toeplitz-sqrt", which has none.

    Each is that of the best number of levels, and by default of the best arity for that error. Sources:
    Arkhipov and Kalinin, Table 1 and appendix C; for "smooth-tree-unbalanced" and the weighted trees new.

    Raises:
        ParameterError: an unknown name, or an arity that it cannot have.

    >>> [round(x, 4) for x in leading_constants("kary-subtraction", arity=19)]
    [0.2348, 0.1236]
    """
    choice("mechanism", name, NAMES)
    if name == "toeplitz-sqrt":
        _options(name, "max", arity)
        return None
    if name == "paper":
        _options(name, "max", arity)
        both = [2 * (b * norm) ** 2 / math.log2(2 * PAPER_SIZE + 1) ** 3 for b, norm in PAPER_NORMS.values()]
        return both[0], both[1]
    tree = _TREES[name]
    limits = []
    for objective in ("max", "mean"):
        options = _options(name, objective, arity)
        tree.cost(1, **options)  # refuses an arity that it cannot have
        limits.append(tree.limits(options.get("arity", 2))[objective == "mean"])
    return limits[0], limits[1]


def plain_stage(name: str, horizon: int, *, objective: str = "max", arity: int | None = None) -> Stage:
    """Return a mechanism as an exact plain factorisation of T_n: a chain by itself, or a chain's top.

    Its noise streams through :class:`trilift.stream.Noise` as ``Chain(plain_stage(...))``. The matrices are
    dense: the horizon is at most 8192, for "honaker" 1024, for "toeplitz-sqrt" 512. The weights of "honaker"
    are rounded to binary places without harm to exactness.

    Raises:
        ParameterError: "paper" (its matrices are not here), or an argument out of range.

    >>> plain_stage("binary-tree", 7).residual()
    Fraction(0, 1)
    """
    choice("mechanism", name, NAMES)
    choice("objective", objective, ("max", "mean"))
    options = _options(name, objective, arity)
    if name == "paper":
        raise ParameterError("the factors of 'paper' are not part of trilift, only their norms")
    if name == "toeplitz-sqrt":
        return toeplitz_stage(horizon)
    return _TREES[name].stage(horizon, objective=objective, **options)


def stream_chain(name: str, horizon: int, *, objective: str = "max", arity: int | None = None) -> Chain:
    """Return a mechanism as an exact chain with O(log n) memory at any horizon.

    Its cost at equal scales is that of :func:`price`.

    Raises:
        ParameterError: the mechanism has no such structure (the message says why), or an argument is out of
            range.

    >>> stream_chain("kary", 10**6, arity=10).sizes[:2]
    (10, 10)
    """
    choice("mechanism", name, NAMES)
    choice("objective", objective, ("max", "mean"))
    options = _options(name, objective, arity)
    if name not in _TREES:
        reason = (
            "every row of L is dense" if name == "toeplitz-sqrt" else "its factors are not part of trilift"
        )
        raise ParameterError(f"{name!r} is no chain: {reason}")
    chain = _TREES[name].chain
    if isinstance(chain, str):
        raise ParameterError(f"{name!r} is no chain: {chain}")
    return chain(horizon, objective=objective, **options)


def _options(name: str, objective: str, arity: int | None) -> dict[str, int]:
    """Return the arity as an argument, where the mechanism has one."""
    defaults = _TREES[name].arity if name in _TREES else None
    if defaults is None:
        if arity is not None:
            raise ParameterError(f"the mechanism {name!r} has no arity to choose")
        return {}
    default = defaults[objective == "mean"]
    return {"arity": default if arity is None else integer("arity", arity, minimum=2)}
