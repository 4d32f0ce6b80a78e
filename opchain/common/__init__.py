"""Types, time, watermarks and configuration. PyFlink: pyflink.common.

Every name is loaded when it is first asked for, so that importing this package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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

_MODULE_OF = {
    "AssignerWithPeriodicWatermarksWrapper": "opchain.common.watermark_strategy",
    "ByteArraySchema": "opchain.common.serialization",
    "CompletableFuture": "opchain.common.completable_future",
    "ConfigOption": "opchain.common.config_options",
    "ConfigOptions": "opchain.common.config_options",
    "Configuration": "opchain.common.configuration",
    "DeserializationSchema": "opchain.common.serialization",
    "Duration": "opchain.common.time",
    "Encoder": "opchain.common.serialization",
    "ExecutionConfig": "opchain.common.execution_config",
    "InputDependencyConstraint": "opchain.common.input_dependency_constraint",
    "Instant": "opchain.common.time",
    "JobClient": "opchain.common.job_client",
    "JobExecutionResult": "opchain.common.job_execution_result",
    "JobID": "opchain.common.job_id",
    "JobStatus": "opchain.common.job_status",
    "RestartStrategies": "opchain.common.restart_strategy",
    "RestartStrategyConfiguration": "opchain.common.restart_strategy",
    "Row": "opchain.common.types",
    "RowKind": "opchain.common.types",
    "SerializationSchema": "opchain.common.serialization",
    "SimpleStringSchema": "opchain.common.serialization",
    "Time": "opchain.common.time",
    "TimestampAssigner": "opchain.common.watermark_strategy",
    "TypeInformation": "opchain.common.typeinfo",
    "TypeSerializer": "opchain.common.serializer",
    "Types": "opchain.common.typeinfo",
    "WatermarkGenerator": "opchain.common.watermark_strategy",
    "WatermarkGeneratorContext": "opchain.common.watermark_strategy",
    "WatermarkOutput": "opchain.common.watermark_strategy",
    "WatermarkStrategy": "opchain.common.watermark_strategy",
}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        from opchain.reexports import reexports  # noqa: PLC0415 - mostly unused

        return reexports(__name__)(name)
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value  # asked for once
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
