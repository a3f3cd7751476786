"""The peers' mechanisms with the parameters that are best for them at a horizon, and their cost by theory.

All at epsilon = 1 under pure differential privacy, for two streams that differ in one input by 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from trilift.experiments.bench.theory import (
    FloatArray,
    block_tree,
    consistent_tree,
    discrete_laplace_variance,
    full_decomposition,
    summed_tree,
    tree_layers,
)
from trilift.lift.mechanisms import price

__all__ = ["Choice", "averaged_choices", "dpcrpy_choices", "opendp_choices"]

_ARITIES = (*range(2, 25), 32, 48, 64)


@dataclass(frozen=True)
class Choice:
    """One mechanism of a peer at one horizon.

    Attributes:
        title: what it is, with its parameters.
        asked: what its script is told.
        best_for: "max", "mean", or "both": the error for which no other parameter is better.
        max_se: largest squared error by theory, or None where there is none.
        mean_se: the mean one.
    """

    title: str
    asked: dict[str, Any]
    best_for: str
    max_se: float | None
    mean_se: float | None


def _best(
    options: Iterable[dict[str, Any]],
    errors: Callable[[dict[str, Any]], FloatArray],
    title: Callable[[dict[str, Any]], str],
) -> list[Choice]:
    """Return the options with the least largest and the least mean error: one, if it is the same."""
    tried = []
    for option in options:
        steps = errors(option)
        tried.append((float(steps.max()), float(steps.mean()), option))
    worst = min(tried, key=lambda entry: entry[0])
    mean = min(tried, key=lambda entry: entry[1])
    if worst[2] == mean[2]:
        return [Choice(title(worst[2]), worst[2], "both", worst[0], worst[1])]
    return [
        Choice(title(entry[2]), entry[2], best_for, entry[0], entry[1])
        for entry, best_for in ((worst, "max"), (mean, "mean"))
    ]


def _orders(n: int, arity: int) -> range:
    """Return the heights worth trying: the one that reaches n, and some below."""
    reach = tree_layers(n, arity) - 1
    return range(max(1, reach - 2), reach + 1)


def _tree_se(n: int, option: dict[str, Any]) -> FloatArray:
    levels = option["order"] + 1
    least = option["name"] != "BinMech"
    norms = block_tree(n, arity=option["arity"], order=option["order"], least_variance=least)
    return np.asarray(2.0 * levels**2 * norms, dtype=np.float64)


def dpcrpy_choices(n: int) -> list[Choice]:
    """Return the trees of dpcrpy at their best: BinMech, Honaker, KTCR, FDA; AuBCR has nothing to choose."""

    def title(option: dict[str, Any]) -> str:
        name, order = option["name"], option["order"]
        if name == "KTCR":
            return f"KTCR, {option['arity']}-ary, height {order}, equal budgets"
        return f"{name}, order {order}"

    found: list[Choice] = []
    for name, arities in (("BinMech", (2,)), ("Honaker", (2,)), ("KTCR", _ARITIES)):
        options = [{"name": name, "arity": k, "order": h} for k in arities for h in _orders(n, k)]
        found += _best(options, lambda option: _tree_se(n, option), title)
    whole = n.bit_length() - 1
    options = [{"name": "FDA", "order": order} for order in (whole, whole + 1)]
    found += _best(options, lambda option: 2.0 * full_decomposition(n, order=option["order"]), title)
    if n == 1 << whole:
        found.append(Choice(f"AuBCR, order {whole}", {"name": "AuBCR", "order": whole}, "both", None, None))
    return found


def opendp_choices(n: int) -> list[Choice]:
    """Return trees over OpenDP's primitives: read causally, and with its consistency over all nodes."""
    found: list[Choice] = []
    for kind, norms, words in (
        ("tree", summed_tree, "tree, nodes added up"),
        ("consistent", consistent_tree, "tree, made consistent (all data at once)"),
    ):

        def errors(option: dict[str, Any], norms: Callable[..., FloatArray] = norms) -> FloatArray:
            scale = float(tree_layers(n, option["branching"]))
            rows = norms(n, branching=option["branching"])
            return np.asarray(discrete_laplace_variance(scale) * rows, dtype=np.float64)

        def title(option: dict[str, Any], words: str = words) -> str:
            return f"{option['branching']}-ary {words}"

        options = [{"kind": kind, "branching": b} for b in _ARITIES if b <= n]
        found += _best(options, errors, title)
    return found


def averaged_choices(n: int) -> list[Choice]:
    """Return the averaged k-ary tree at its best: exact costs in closed form, no code of others exists."""
    costs = {k: [price("kary-averaged", n, objective=o, arity=k) for o in ("max", "mean")] for k in _ARITIES}
    found = []
    for which, objective in enumerate(("max", "mean")):
        errors = {k: (pair[which].max_se(), pair[which].mean_se()) for k, pair in costs.items()}
        known = {k: (float(a), float(b)) for k, (a, b) in errors.items() if a is not None and b is not None}
        k = min(known, key=lambda arity: known[arity][which])
        found.append(Choice(f"{k}-ary tree, averaged", {"arity": k}, objective, *known[k]))
    if found[0].asked == found[1].asked:
        return [replace(found[0], best_for="both")]
    return found
