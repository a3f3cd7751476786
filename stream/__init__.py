"""Streaming: keyed randomness, exact samplers, budget ledgers, and correlated noise at any step."""

from trilift.stream.gaussian import GaussianRows
from trilift.stream.gaussian_ledger import GaussianLedger, make_gaussian_ledger
from trilift.stream.gaussian_noise import GaussianNoise
from trilift.stream.keys import new_key, new_stream_id, simulation_key
from trilift.stream.laplace import LaplaceRows
from trilift.stream.ledger import Ledger, LevelLedger, make_ledger
from trilift.stream.noise import Noise
from trilift.stream.process import NoiseProcess

__all__ = [
    "GaussianLedger",
    "GaussianNoise",
    "GaussianRows",
    "LaplaceRows",
    "Ledger",
    "LevelLedger",
    "Noise",
    "NoiseProcess",
    "make_gaussian_ledger",
    "make_ledger",
    "new_key",
    "new_stream_id",
    "simulation_key",
]
