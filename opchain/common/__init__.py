"""Types, time, watermarks and configuration. PyFlink: pyflink.common.

A name is imported when it is first used, so importing this package is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.reexports import reexports

if TYPE_CHECKING:
    from opchain.common.completable_future import CompletableFuture
    from opchain.common.config_options import ConfigOption, ConfigOptions
    from opchain.common.configuration import Configuration
    from opchain.common.execution_config import ExecutionConfig
    from opchain.common.input_dependency_constraint import InputDependencyConstraint
    from opchain.common.job_client import JobClient
    from opchain.common.job_execution_result import JobExecutionResult
    from opchain.common.job_id import JobID
    from opchain.common.job_status import JobStatus
    from opchain.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
    from opchain.common.serialization import (
        ByteArraySchema,
        DeserializationSchema,
        Encoder,
        SerializationSchema,
        SimpleStringSchema,
    )
    from opchain.common.serializer import TypeSerializer
    from opchain.common.time import Duration, Instant, Time
    from opchain.common.typeinfo import TypeInformation, Types
    from opchain.common.types import Row, RowKind
    from opchain.common.watermark_strategy import (
        AssignerWithPeriodicWatermarksWrapper,
        TimestampAssigner,
        WatermarkGenerator,
        WatermarkGeneratorContext,
        WatermarkOutput,
        WatermarkStrategy,
    )

__all__ = [
    "AssignerWithPeriodicWatermarksWrapper",
    "ByteArraySchema",
    "CompletableFuture",
    "ConfigOption",
    "ConfigOptions",
    "Configuration",
    "DeserializationSchema",
    "Duration",
    "Encoder",
    "ExecutionConfig",
    "InputDependencyConstraint",
    "Instant",
    "JobClient",
    "JobExecutionResult",
    "JobID",
    "JobStatus",
    "RestartStrategies",
    "RestartStrategyConfiguration",
    "Row",
    "RowKind",
    "SerializationSchema",
    "SimpleStringSchema",
    "Time",
    "TimestampAssigner",
    "TypeInformation",
    "TypeSerializer",
    "Types",
    "WatermarkGenerator",
    "WatermarkGeneratorContext",
    "WatermarkOutput",
    "WatermarkStrategy",
]

__getattr__ = reexports(
    __name__,
    watermark_strategy="TimestampAssigner WatermarkGenerator WatermarkGeneratorContext WatermarkOutput",
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
