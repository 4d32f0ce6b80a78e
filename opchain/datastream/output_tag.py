"""Tags of side outputs. PyFlink: pyflink.datastream.output_tag."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.operators.on_error import FailedRecord
from opchain.runtime.types.output_tag import OutputTag

__all__ = [
    "FailedRecord",
    "OutputTag",
]

__getattr__ = reexports(__name__)
