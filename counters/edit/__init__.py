"""Counters for streams in which somebody can join or leave: everybody after them shifts."""

from trilift.counters.edit.choose import Choice, choose_design, variants
from trilift.counters.edit.design import Design, make_design
from trilift.counters.edit.gaussian_cc import GaussianCC, HorizonGaussian
from trilift.counters.edit.inputs import BOT, BotRule
from trilift.counters.edit.ledger import EditLedger, LedgerPart
from trilift.counters.edit.mechanism import ECC, SimECC, class_of
from trilift.counters.edit.padding import EndingCounter
from trilift.counters.edit.partition_cc import PartitionCC

__all__ = [
    "BOT",
    "ECC",
    "BotRule",
    "Choice",
    "Design",
    "EditLedger",
    "EndingCounter",
    "GaussianCC",
    "HorizonGaussian",
    "LedgerPart",
    "PartitionCC",
    "SimECC",
    "choose_design",
    "class_of",
    "make_design",
    "variants",
]
