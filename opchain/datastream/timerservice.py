"""TimerService. PyFlink: pyflink.datastream.timerservice."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.functions.process_functions import TimerService

__all__ = [
    "TimerService",
]

__getattr__ = reexports(__name__)
