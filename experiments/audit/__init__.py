"""Audits: lower confidence bounds on what a mechanism really spends, from many runs of the shipped code.

It stands among the experiments, not among the counters, because it drives every kind of counter from outside
and needs scipy; nothing that releases anything uses it.
"""
