"""What sources and formats may say of their records. PyFlink: pyflink.datastream.utils."""

from __future__ import annotations

from opchain.runtime.types.result_type_queryable import ResultTypeQueryable

__all__ = [
    "ResultTypeQueryable",
]
