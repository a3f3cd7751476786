"""Counters that lose nothing: a folder with a journal, in which every step is durable before it is seen."""

from trilift.counters.durable.counter import DurableCounter

__all__ = ["DurableCounter"]
