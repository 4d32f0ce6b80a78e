"""Tags of side outputs. PyFlink: pyflink.datastream.output_tag."""

from __future__ import annotations

from opchain.runtime.types.output_tag import OutputTag

__all__ = [
    "OutputTag",
]
