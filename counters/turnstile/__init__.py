"""Counters of turnstile streams: how many distinct items are present, and their second moment."""

from trilift.counters.turnstile.budget import Budget, TurnstileLedger, make_budget
from trilift.counters.turnstile.distinct import DistinctCounter
from trilift.counters.turnstile.reading import Reading, Readings
from trilift.counters.turnstile.second_moment import SecondMoment

__all__ = [
    "Budget",
    "DistinctCounter",
    "Reading",
    "Readings",
    "SecondMoment",
    "TurnstileLedger",
    "make_budget",
]
