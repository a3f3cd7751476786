"""Counters for streams in which somebody can join or leave: everybody after them shifts."""
