"""The configuration keys behind the environment's own setters, with Flink's defaults.

Flink: PipelineOptions, ExecutionOptions, CheckpointingOptions and StateChangelogOptions.
"""

from __future__ import annotations

from opchain.runtime.configuration.options import ConfigOptions
from opchain.runtime.time import Duration

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
