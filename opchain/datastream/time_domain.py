"""The clocks that timers follow. PyFlink: pyflink.datastream.time_domain."""

from __future__ import annotations

from opchain.runtime.time import TimeDomain

__all__ = [
    "TimeDomain",
]
