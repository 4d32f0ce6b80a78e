"""The configuration keys behind CheckpointConfig, with Flink's defaults.

Flink: CheckpointingOptions.
"""

from __future__ import annotations

from opchain.compiler.settings.checkpointing_mode import CheckpointingMode
from opchain.compiler.settings.externalized_checkpoint_retention import (
    ExternalizedCheckpointRetention,
)
from opchain.runtime.configuration.options import ConfigOptions
from opchain.runtime.time import Duration

_PREFIX = "execution.checkpointing"

INTERVAL = ConfigOptions.key(f"{_PREFIX}.interval").duration_type().no_default_value()
MODE = (
    ConfigOptions.key(f"{_PREFIX}.mode")
    .enum_type(CheckpointingMode)
    .default_value(CheckpointingMode.EXACTLY_ONCE)
)
TIMEOUT = (
    ConfigOptions.key(f"{_PREFIX}.timeout").duration_type().default_value(Duration.of_minutes(10))
)
MIN_PAUSE = ConfigOptions.key(f"{_PREFIX}.min-pause").duration_type().default_value(Duration(0))
MAX_CONCURRENT = (
    ConfigOptions.key(f"{_PREFIX}.max-concurrent-checkpoints").int_type().default_value(1)
)
TOLERABLE_FAILURES = (
    ConfigOptions.key(f"{_PREFIX}.tolerable-failed-checkpoints").int_type().default_value(0)
)
RETENTION = (
    ConfigOptions.key(f"{_PREFIX}.externalized-checkpoint-retention")
    .enum_type(ExternalizedCheckpointRetention)
    .default_value(ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS)
)
UNALIGNED = ConfigOptions.key(f"{_PREFIX}.unaligned.enabled").boolean_type().default_value(False)
FORCE_UNALIGNED = (
    ConfigOptions.key(f"{_PREFIX}.unaligned.forced").boolean_type().default_value(False)
)
ALIGNED_TIMEOUT = (
    ConfigOptions.key(f"{_PREFIX}.aligned-checkpoint-timeout")
    .duration_type()
    .default_value(Duration(0))
)
