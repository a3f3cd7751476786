"""Lifting: dyadic numbers, stages, chains, their exact costs, and the plan for a horizon (numpy only)."""

from trilift.lift.budget import ChainCost, best_scales, chain_cost, horizon_scales
from trilift.lift.chain import Chain
from trilift.lift.compose import compose
from trilift.lift.costs import column_norms, column_norms_sq, mean_row_norms_sq, row_norms_sq
from trilift.lift.dense import Dense, bridge, materialise
from trilift.lift.diamond import best_alpha, diamond, diamond_chain, diamond_power, diamond_stage
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import (
    ArtifactFormatError,
    CertificateError,
    HorizonError,
    MissingExtraError,
    ParameterError,
    ReplayError,
    StateError,
    TriliftError,
)
from trilift.lift.extremes import level_max_row_norms_sq, max_column_charge, max_row_norm_sq
from trilift.lift.interior import (
    interior_column_norms,
    interior_column_norms_sq,
    interior_row_norms_sq,
    interior_sensitivity,
    interior_sensitivity_sq,
)
from trilift.lift.plan import Plan, Shape, plan, screen, shape_of
from trilift.lift.stage import Stage, lower_ones

__all__ = [
    "ArtifactFormatError",
    "CertificateError",
    "Chain",
    "ChainCost",
    "Dense",
    "Dyadic",
    "HorizonError",
    "MissingExtraError",
    "ParameterError",
    "Plan",
    "ReplayError",
    "Shape",
    "Stage",
    "StateError",
    "TriliftError",
    "best_alpha",
    "best_scales",
    "bridge",
    "chain_cost",
    "column_norms",
    "column_norms_sq",
    "compose",
    "diamond",
    "diamond_chain",
    "diamond_power",
    "diamond_stage",
    "horizon_scales",
    "interior_column_norms",
    "interior_column_norms_sq",
    "interior_row_norms_sq",
    "interior_sensitivity",
    "interior_sensitivity_sq",
    "level_max_row_norms_sq",
    "lower_ones",
    "materialise",
    "max_column_charge",
    "max_row_norm_sq",
    "mean_row_norms_sq",
    "plan",
    "row_norms_sq",
    "screen",
    "shape_of",
]
