"""Streaming: keyed randomness, exact samplers, the budget ledger, and correlated noise at any step."""

from trilift.stream.keys import new_key, new_stream_id, simulation_key
from trilift.stream.laplace import LaplaceRows
from trilift.stream.ledger import Ledger, LevelLedger, make_ledger
from trilift.stream.noise import Noise

__all__ = [
    "LaplaceRows",
    "Ledger",
    "LevelLedger",
    "Noise",
    "make_ledger",
    "new_key",
    "new_stream_id",
    "simulation_key",
]
