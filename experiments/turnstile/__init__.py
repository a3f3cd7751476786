"""Experiments on turnstile streams: factors, intervals and speeds of the counters of items and of F2."""
