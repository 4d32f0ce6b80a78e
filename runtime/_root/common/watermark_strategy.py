"""Timestamps and watermarks. PyFlink: pyflink.common.watermark_strategy."""

from __future__ import annotations

from opchain.runtime.watermark_generators import (
    WatermarkGenerator,
    WatermarkGeneratorContext,
    WatermarkOutput,
)
from opchain.runtime.watermark_strategy import (
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
