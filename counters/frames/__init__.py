"""Private running sums in dataframes of pandas and polars (extras), one counter a group."""

from trilift.counters.frames.cumsum import PrivateCumsum, private_cumsum

__all__ = ["PrivateCumsum", "private_cumsum"]
