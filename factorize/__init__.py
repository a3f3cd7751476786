"""trilift.factorize: search factorisations of the prefix-sum matrix, in double precision on JAX."""

from trilift.factorize.estimate import CostEstimate, estimate_cost
from trilift.factorize.precision import PrecisionError
from trilift.factorize.result import SearchResult, SearchStatus
from trilift.factorize.schedule import Schedule, cold, warm
from trilift.factorize.search import search_direct, search_stage

__all__ = [
    "CostEstimate",
    "PrecisionError",
    "Schedule",
    "SearchResult",
    "SearchStatus",
    "cold",
    "estimate_cost",
    "search_direct",
    "search_stage",
    "warm",
]
