"""The configuration keys of ExecutionConfig and of the environment's setters, with Flink's defaults.

Flink: PipelineOptions, ExecutionOptions, CheckpointingOptions and StateChangelogOptions; and the keys of CoreOptions,
MetricOptions and TaskManagerOptions that ExecutionConfig has setters for.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from opchain.runtime.configuration.options import ConfigOption, ConfigOptions
from opchain.runtime.time import Duration


class ClosureCleanerLevel(Enum):
    """How thoroughly Flink cleans functions. Flink: ExecutionConfig.ClosureCleanerLevel."""

    NONE = "NONE"
    TOP_LEVEL = "TOP_LEVEL"
    RECURSIVE = "RECURSIVE"


PARALLELISM = ConfigOptions.key("parallelism.default").int_type().default_value(1)
MAX_PARALLELISM = ConfigOptions.key("pipeline.max-parallelism").int_type().default_value(-1)
GLOBAL_JOB_PARAMETERS = (
    ConfigOptions.key("pipeline.global-job-parameters").map_type().default_value({})
)
AUTO_WATERMARK_INTERVAL = (
    ConfigOptions.key("pipeline.auto-watermark-interval")
    .duration_type()
    .default_value(Duration.of_millis(200))
)
LATENCY_TRACKING_INTERVAL = (
    ConfigOptions.key("metrics.latency.interval").duration_type().default_value(Duration(0))
)
OBJECT_REUSE = ConfigOptions.key("pipeline.object-reuse").boolean_type().default_value(False)
AUTO_GENERATE_UIDS = (
    ConfigOptions.key("pipeline.auto-generate-uids").boolean_type().default_value(True)
)
GENERIC_TYPES = ConfigOptions.key("pipeline.generic-types").boolean_type().default_value(True)
FORCE_KRYO = ConfigOptions.key("pipeline.force-kryo").boolean_type().default_value(False)
FORCE_AVRO = ConfigOptions.key("pipeline.force-avro").boolean_type().default_value(False)
CLOSURE_CLEANER_LEVEL = (
    ConfigOptions.key("pipeline.closure-cleaner-level")
    .enum_type(ClosureCleanerLevel)
    .default_value(ClosureCleanerLevel.RECURSIVE)
)
SNAPSHOT_COMPRESSION = (
    ConfigOptions.key("execution.checkpointing.snapshot-compression")
    .boolean_type()
    .default_value(False)
)
TASK_CANCELLATION_INTERVAL = (
    ConfigOptions.key("task.cancellation.interval")
    .duration_type()
    .default_value(Duration.of_seconds(30))
)
TASK_CANCELLATION_TIMEOUT = (
    ConfigOptions.key("task.cancellation.timeout")
    .duration_type()
    .default_value(Duration.of_minutes(3))
)

EXECUTION_CONFIG_OPTIONS: tuple[ConfigOption[Any], ...] = (
    PARALLELISM,
    MAX_PARALLELISM,
    GLOBAL_JOB_PARAMETERS,
    AUTO_WATERMARK_INTERVAL,
    LATENCY_TRACKING_INTERVAL,
    OBJECT_REUSE,
    AUTO_GENERATE_UIDS,
    GENERIC_TYPES,
    FORCE_KRYO,
    FORCE_AVRO,
    CLOSURE_CLEANER_LEVEL,
    SNAPSHOT_COMPRESSION,
    TASK_CANCELLATION_INTERVAL,
    TASK_CANCELLATION_TIMEOUT,
)
"""The options that `ExecutionConfig.configure` reads."""


RUNTIME_MODE = ConfigOptions.key("execution.runtime-mode").string_type().default_value("STREAMING")
OPERATOR_CHAINING = (
    ConfigOptions.key("pipeline.operator-chaining.enabled")
    .boolean_type()
    .default_value(True)
    .with_fallback_keys("pipeline.operator-chaining")
)
CHAIN_DIFFERENT_MAX_PARALLELISM = (
    ConfigOptions.key("pipeline.operator-chaining.chain-operators-with-different-max-parallelism")
    .boolean_type()
    .default_value(True)
)
BUFFER_TIMEOUT_ENABLED = (
    ConfigOptions.key("execution.buffer-timeout.enabled").boolean_type().default_value(True)
)
BUFFER_TIMEOUT = (
    ConfigOptions.key("execution.buffer-timeout.interval")
    .duration_type()
    .default_value(Duration.of_millis(100))
    .with_fallback_keys("execution.buffer-timeout")
)
STATE_BACKEND = (
    ConfigOptions.key("state.backend.type")
    .string_type()
    .default_value("hashmap")
    .with_fallback_keys("state.backend")
)
STATE_FOLDERS = ConfigOptions.key("state.backend.rocksdb.localdir").string_type().no_default_value()
CHANGELOG_ENABLED = ConfigOptions.key("state.changelog.enabled").boolean_type().no_default_value()
SAVEPOINT_DIRECTORY = (
    ConfigOptions.key("execution.checkpointing.savepoint-dir")
    .string_type()
    .no_default_value()
    .with_fallback_keys("state.savepoints.dir")
)
