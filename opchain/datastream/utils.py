"""ResultTypeQueryable, and conversions. PyFlink: pyflink.datastream.utils."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.types.type_information import ResultTypeQueryable

__all__ = [
    "ResultTypeQueryable",
]

__getattr__ = reexports(__name__)
