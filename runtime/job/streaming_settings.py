"""The settings of an unbounded job, as the driver needs them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from opchain.runtime.job.restarts import RestartStrategy


class Retention(Enum):
    """The retention of checkpoints when a job ends. Flink: ExternalizedCheckpointRetention."""

    KEEP = "keep"
    """Not set: checkpoints are kept, so that the job can be started again. Flink deletes them."""
    RETAIN_ON_CANCELLATION = "RETAIN_ON_CANCELLATION"
    """Checkpoints are kept if the job is cancelled or fails, and deleted if it finishes."""
    DELETE_ON_CANCELLATION = "DELETE_ON_CANCELLATION"
    """Checkpoints are only kept if the job fails."""
    NO_EXTERNALIZED_CHECKPOINTS = "NO_EXTERNALIZED_CHECKPOINTS"
    """Checkpoints are deleted when the job ends."""

    def keeps(self, *, is_cancelled: bool, has_failed: bool) -> bool:
        """Whether the checkpoints of a job are kept after it was cancelled, has failed, or otherwise has finished."""
        if self is Retention.KEEP:
            return True
        if is_cancelled:
            return self is Retention.RETAIN_ON_CANCELLATION
        return has_failed and self is not Retention.NO_EXTERNALIZED_CHECKPOINTS


class Trigger(Enum):
    """When epochs begin. Spark: `DataStreamWriter.trigger`."""

    PROCESSING_TIME = "processing-time"
    AVAILABLE_NOW = "available-now"
    ONCE = "once"


@dataclass(frozen=True, slots=True)
class StreamingSettings:
    """See the module. JobSettings in the compiler has fields of the same names, and describes them.

    `restarts` is the restart strategy that several fields of JobSettings describe. A restart resumes from the last
    checkpoint. Without `checkpoint_dir`, checkpoints are in a temporary folder. 0 means no limit, and no pause.
    """

    checkpoint_dir: str | None = None
    checkpoint_key_file: str | None = None
    checkpoint_interval_ms: int = 0
    checkpoint_min_pause_ms: int = 0
    checkpoint_timeout_ms: int = 0
    checkpoint_retention: Retention = Retention.KEEP
    retained_checkpoints: int = 1
    tolerable_checkpoint_failures: int = 0
    trigger: Trigger = Trigger.PROCESSING_TIME
    savepoint_directory: str | None = None
    savepoint_at_end: str | None = None
    restarts: RestartStrategy = field(default_factory=RestartStrategy)
    restore_from: str | None = None
    allow_non_restored_state: bool = False
    progress_log: str | None = None
    target_epoch_ms: int = 0
    record_epochs: bool = False
    accept_duplicates: bool = False
