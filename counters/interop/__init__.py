"""Counters in the terms of other libraries: events of dp_accounting, measurements of OpenDP (extras)."""

from trilift.counters.interop.events import dp_event, privacy_loss
from trilift.counters.interop.measurement import make_measurement

__all__ = ["dp_event", "make_measurement", "privacy_loss"]
