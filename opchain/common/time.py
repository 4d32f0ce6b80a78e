"""Duration, Instant and Time. PyFlink: pyflink.common.time."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.time import Duration, Instant, Time

__all__ = [
    "Duration",
    "Instant",
    "Time",
]

__getattr__ = reexports(__name__)
