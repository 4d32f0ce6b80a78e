"""Clocks and timers. PyFlink: pyflink.datastream.timerservice."""

from __future__ import annotations

from opchain.runtime.functions.process_functions import TimerService

__all__ = [
    "TimerService",
]
