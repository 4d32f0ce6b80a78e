"""Bounds of timestamps, and the name of the main output. PyFlink: pyflink.common.constants."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.time import MAX_LONG_VALUE, MIN_LONG_VALUE
from opchain.runtime.types.output_tag import DEFAULT_OUTPUT_TAG

__all__ = [
    "DEFAULT_OUTPUT_TAG",
    "MAX_LONG_VALUE",
    "MIN_LONG_VALUE",
]

__getattr__ = reexports(__name__)
