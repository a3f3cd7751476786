"""trilift.factorize: search factorisations of the prefix-sum matrix, in double precision on JAX."""

from trilift.factorize.estimate import CostEstimate, estimate_cost
from trilift.factorize.lineage import replay, settings_from_json
from trilift.factorize.precision import PrecisionError
from trilift.factorize.result import SearchResult, SearchStatus
from trilift.factorize.schedule import Schedule, cold, warm
from trilift.factorize.search import run_search, search_direct, search_stage
from trilift.factorize.settings import Settings

__all__ = [
    "CostEstimate",
    "PrecisionError",
    "Schedule",
    "SearchResult",
    "SearchStatus",
    "Settings",
    "cold",
    "estimate_cost",
    "replay",
    "run_search",
    "search_direct",
    "search_stage",
    "settings_from_json",
    "warm",
]
