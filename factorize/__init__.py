"""trilift.factorize: search factorisations of the prefix-sum matrix, in double precision."""

from trilift.factorize.composite import composite_start
from trilift.factorize.estimate import CostEstimate, estimate_cost
from trilift.factorize.joint import search_joint_stage
from trilift.factorize.joint_direct import search_joint_direct
from trilift.factorize.joint_settings import JointResult, JointSettings, estimate_joint_cost, gentle
from trilift.factorize.l2 import L2Result, L2Settings, search_l2_direct, search_l2_stage
from trilift.factorize.lineage import replay, settings_from_json
from trilift.factorize.precision import PrecisionError
from trilift.factorize.result import SearchResult, SearchStatus
from trilift.factorize.schedule import Schedule, cold, warm
from trilift.factorize.search import run_search, search_direct, search_stage
from trilift.factorize.settings import Settings
from trilift.factorize.support import Support, support_of

__all__ = [
    "CostEstimate",
    "JointResult",
    "JointSettings",
    "L2Result",
    "L2Settings",
    "PrecisionError",
    "Schedule",
    "SearchResult",
    "SearchStatus",
    "Settings",
    "Support",
    "cold",
    "composite_start",
    "estimate_cost",
    "estimate_joint_cost",
    "gentle",
    "replay",
    "run_search",
    "search_direct",
    "search_joint_direct",
    "search_joint_stage",
    "search_l2_direct",
    "search_l2_stage",
    "search_stage",
    "settings_from_json",
    "support_of",
    "warm",
]
