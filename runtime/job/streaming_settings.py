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
    """See the module.

    Attributes:
        checkpoints: Path or URL of the job's checkpoints; None for a temporary folder, without restart.
        key_file: A file with the key that signs checkpoints; None if they are not signed.
        interval_ms: The shortest time between the starts of two epochs; 0 for none. As with Spark's processing-time
            trigger, epochs begin at multiples of it.
        min_pause_ms: The shortest time between the end of an epoch and the start of the next.
        trigger: When epochs begin.
        savepoint_directory: The default directory of savepoints.
        savepoint_at_end: The savepoint that a bounded job writes when its input has ended; None for no savepoint.
        restarts: The restart strategy. A restart resumes from the last checkpoint.
        restore_from: A checkpoint or savepoint to start from if `checkpoints` is empty; or one of its checkpoints, to
            resume from it if later ones are damaged.
        allow_non_restored_state: Whether state may be dropped that no operator of the program claims.
        retained: How many checkpoints are retained.
        tolerable_failures: How many checkpoints in a row may fail. The epoch of a failed checkpoint is retried.
        retention: Whether the checkpoints are kept when the job ends.
        timeout_ms: The time after which an epoch is aborted and its checkpoint fails; None for no limit.
        progress_log: A file to which each epoch appends a line of JSON.
        target_epoch_ms: How long an epoch should take. Sources limit the input of an epoch accordingly. None for the
            default of each source.
        records_epochs: Whether checkpoints contain what `opchain replay` needs.
        accepts_duplicates: Whether output after the last checkpoint may be written a second time.
    """

    checkpoints: str | None = None
    key_file: str | None = None
    interval_ms: int = 0
    min_pause_ms: int = 0
    trigger: Trigger = Trigger.PROCESSING_TIME
    savepoint_directory: str | None = None
    savepoint_at_end: str | None = None
    restarts: RestartStrategy = field(default_factory=RestartStrategy)
    restore_from: str | None = None
    allow_non_restored_state: bool = False
    retained: int = 1
    tolerable_failures: int = 0
    retention: Retention = Retention.KEEP
    timeout_ms: int | None = None
    progress_log: str | None = None
    target_epoch_ms: int | None = None
    records_epochs: bool = False
    accepts_duplicates: bool = False
