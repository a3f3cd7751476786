"""What counters spend together: their guarantees as rationals, and a budget that refuses to be overspent."""

from trilift.counters.accounting.budget import Budget
from trilift.counters.accounting.guarantee import Guarantee, guarantee_of

__all__ = ["Budget", "Guarantee", "guarantee_of"]
