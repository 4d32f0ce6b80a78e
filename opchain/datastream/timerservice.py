"""Clocks and timers. PyFlink: pyflink.datastream.timerservice."""

from __future__ import annotations

from opchain.runtime.timer_service import TimerService

__all__ = [
    "TimerService",
]
