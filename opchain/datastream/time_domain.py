"""TimeDomain: event time or processing time of a timer. PyFlink: pyflink.datastream.time_domain."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.time import TimeDomain

__all__ = [
    "TimeDomain",
]

__getattr__ = reexports(__name__)
