"""trilift.factorize: search factorisations of the prefix-sum matrix, in double precision."""

from trilift.factorize.compare import RunSummary, compare_runs
from trilift.factorize.composite import composite_start
from trilift.factorize.estimate import CostEstimate, estimate_cost
from trilift.factorize.hosts import Hosts, connect
from trilift.factorize.jobs import Job, estimate_job, read_job
from trilift.factorize.joint import search_joint_stage
from trilift.factorize.joint_chain import ChainSearchResult, search_chain
from trilift.factorize.joint_direct import search_joint_direct
from trilift.factorize.joint_settings import JointResult, JointSettings, estimate_joint_cost, gentle
from trilift.factorize.l2 import L2Result, L2Settings, search_l2_direct, search_l2_stage
from trilift.factorize.lbfgs import Polished, polish
from trilift.factorize.lineage import replay, settings_from_json
from trilift.factorize.precision import PrecisionError
from trilift.factorize.result import SearchResult, SearchStatus
from trilift.factorize.runs import RunResult, run_job
from trilift.factorize.schedule import Schedule, cold, warm
from trilift.factorize.search import run_search, search_direct, search_stage
from trilift.factorize.settings import Settings
from trilift.factorize.sources import load_float_stage, warm_stage
from trilift.factorize.support import Support, support_of

__all__ = [
    "ChainSearchResult",
    "CostEstimate",
    "Hosts",
    "Job",
    "JointResult",
    "JointSettings",
    "L2Result",
    "L2Settings",
    "Polished",
    "PrecisionError",
    "RunResult",
    "RunSummary",
    "Schedule",
    "SearchResult",
    "SearchStatus",
    "Settings",
    "Support",
    "cold",
    "compare_runs",
    "composite_start",
    "connect",
    "estimate_cost",
    "estimate_job",
    "estimate_joint_cost",
    "gentle",
    "load_float_stage",
    "polish",
    "read_job",
    "replay",
    "run_job",
    "run_search",
    "search_chain",
    "search_direct",
    "search_joint_direct",
    "search_joint_stage",
    "search_l2_direct",
    "search_l2_stage",
    "search_stage",
    "settings_from_json",
    "support_of",
    "warm",
    "warm_stage",
]
