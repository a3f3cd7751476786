"""The chain that a counter uses when none is given: the most promising one of the shipped artifacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trilift.artifacts import Entry, L2Entry, catalogue, catalogue_l2, load_stage, load_stage_l2
from trilift.lift import Chain, ParameterError, Shape, screen, shape_of
from trilift.lift.budget import OBJECTIVES, chain_cost
from trilift.lift.chain import NORMS
from trilift.lift.checks import choice, integer, show

__all__ = ["LARGEST", "chain_of", "default_names"]

LARGEST = 129
"""Largest piece of a default chain: proving and loading larger ones would take longer than most counts do."""

_EXACT_UP_TO = 1024
_COMPARED = 6


def _third(b: float, q: float) -> float:
    return float((b * b * q) ** (1 / 3))


def _stage_shape(entry: Entry) -> Shape:
    """Return a stage's screening scalars from its certificate, without loading a matrix."""
    finest = {
        "max": _third(entry.sensitivity, entry.max_row_norm_sq),
        "mean": _third(entry.sensitivity, entry.mean_row_norm_sq),
    }
    interior = {
        "max": _third(entry.interior_sensitivity, entry.interior_max_row_norm_sq),
        "mean": _third(entry.interior_sensitivity, entry.interior_mean_row_norm_sq),
    }
    return Shape(entry.name, entry.size, entry.tail, False, finest, interior, {})


def _l2_shape(entry: L2Entry) -> Shape:
    """The same for Gaussian noise; a certificate's gammas are the costs."""
    claims = entry.certificate
    finest = {"max": claims.gamma_max, "mean": claims.gamma_mean}
    interior = {
        "max": claims.interior_gamma_max or claims.gamma_max,
        "mean": claims.interior_gamma_mean or claims.gamma_mean,
    }
    return Shape(entry.name, claims.size, entry.tail, False, finest, interior, {})


def default_names(horizon: int, *, objective: str, norm: str = "l1") -> tuple[str, ...]:
    """Return the names of a good chain of shipped artifacts for a horizon, finest first, the top last.

    Only artifacts of size up to :data:`LARGEST` are used, so that a counter starts at once; ``trilift plan``
    finds chains with less error among all of them, to be passed as ``chain=``. Chains are ranked by the sum
    of their levels' costs; up to horizon 1024, where that is least exact, the first few are compared by exact
    cost. On the same artifacts :func:`trilift.lift.plan`, which compares more chains exactly, is at most
    slightly better (a test states by how much).

    Args:
        horizon: number of steps.
        objective: "max" or "mean".
        norm: "l1" for Laplace noise, "l2" for Gaussian noise.

    Raises:
        ParameterError: bad arguments.
        HorizonError: no chain of shipped artifacts reaches the horizon.
    """
    n = integer("horizon", horizon, minimum=1)
    choice("objective", objective, OBJECTIVES)
    load = load_stage if choice("norm", norm, NORMS) == "l1" else load_stage_l2
    if norm == "l1":
        entries = [e for e in catalogue() if e.source == "shipped" and e.size <= LARGEST]
        shapes = [_stage_shape(e) for e in entries if e.kind == "stage"]
        direct = [(e.name, e.objective) for e in entries if e.kind == "direct"]
    else:
        others = [e for e in catalogue_l2() if e.source == "shipped" and e.certificate.size <= LARGEST]
        shapes = [_l2_shape(e) for e in others if e.certificate.kind == "stage"]
        direct = [(e.name, e.certificate.objective) for e in others if e.certificate.kind == "direct"]
    # the first steps of a top for the mean are good for the maximum too, but not the other way round
    tops = [name for name, made_for in direct if objective in ("max", made_for)]
    loaded = {name: load(name).to_float() for name in tops}
    shapes += [shape_of(stage, name=name, norm=norm) for name, stage in loaded.items()]
    ranked = screen(shapes, n, objective=objective, keep=_COMPARED if n <= _EXACT_UP_TO else 1)
    if len(ranked) == 1:
        return ranked[0]
    for name in {name for names in ranked for name in names} - loaded.keys():
        loaded[name] = load(name).to_float()

    def exact_cost(names: tuple[str, ...]) -> float:
        chain = Chain(loaded[names[-1]], [loaded[name] for name in names[:-1]])
        return chain_cost(chain, n, objective=objective, norm=norm).objective_row_sq

    return min(ranked, key=exact_cost)


def chain_of(names: Sequence[str], *, norm: str = "l1") -> Chain:
    """Load artifacts by name (or path) and chain them: finest first, the top last.

    Raises:
        ParameterError: an empty or non-string sequence, an unknown name.
    """
    if not isinstance(names, (list, tuple)) or not names or not all(isinstance(x, str) for x in names):
        wanted = "a Chain or a sequence of artifact names"
        raise ParameterError(f"chain must be {wanted} (names), got {show(names)}")
    load = load_stage if choice("norm", norm, NORMS) == "l1" else load_stage_l2
    loaded: dict[str, Any] = {name: load(name) for name in names}
    return Chain(loaded[names[-1]], [loaded[name] for name in names[:-1]])
