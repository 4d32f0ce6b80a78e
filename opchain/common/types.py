"""Rows. PyFlink: pyflink.common.types."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.types.row import Row, RowKind

__all__ = [
    "Row",
    "RowKind",
]

__getattr__ = reexports(__name__)
