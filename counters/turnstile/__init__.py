"""Counters of turnstile streams: how many distinct items are present, and their second moment."""
