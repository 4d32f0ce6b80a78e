"""Timestamps and watermarks. PyFlink: pyflink.common.watermark_strategy."""

from __future__ import annotations

from opchain.reexports import reexports
from opchain.runtime.watermarks.generators import (
    WatermarkGenerator,
    WatermarkGeneratorContext,
    WatermarkOutput,
)
from opchain.runtime.watermarks.strategy import (
    AssignerWithPeriodicWatermarksWrapper,
    TimestampAssigner,
    WatermarkStrategy,
)

__all__ = [
    "AssignerWithPeriodicWatermarksWrapper",
    "TimestampAssigner",
    "WatermarkGenerator",
    "WatermarkGeneratorContext",
    "WatermarkOutput",
    "WatermarkStrategy",
]

__getattr__ = reexports(__name__)
