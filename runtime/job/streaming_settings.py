"""How an unbounded job runs: what its configuration says, as the driver needs it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from opchain.runtime.job.restarts import RestartStrategy


class Retention(Enum):
    """The retention of checkpoints when a job ends. Flink: ExternalizedCheckpointRetention."""

    KEEP = "keep"
    """Nothing was set: they stay, so that the job can be started again. Flink deletes them."""
    RETAIN_ON_CANCELLATION = "RETAIN_ON_CANCELLATION"
    """They stay when the job is cancelled or fails, and go when it finishes."""
    DELETE_ON_CANCELLATION = "DELETE_ON_CANCELLATION"
    """They stay when the job fails only."""
    NO_EXTERNALIZED_CHECKPOINTS = "NO_EXTERNALIZED_CHECKPOINTS"
    """They go, however the job ends."""

    def keeps(self, *, is_cancelled: bool, has_failed: bool) -> bool:
        """Whether checkpoints stay of a job that has ended so; with neither, it has finished."""
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
        interval_ms: At least so long from the begin of an epoch to the next; 0 for as soon as possible. Spark's
            processing-time trigger: epochs begin at multiples of it.
        min_pause_ms: At least so long from the end of an epoch to the begin of the next.
        trigger: When epochs begin.
        savepoint_directory: Where savepoints go that name no place.
        savepoint_at_end: Where a bounded job writes its state when its input has ended; None for nowhere.
        restarts: When a job that failed starts again, from its last checkpoint.
        restore_from: A checkpoint or savepoint to start from, where `checkpoints` holds none yet; or one of
            those that it holds, to resume from where later ones are damaged.
        allow_non_restored_state: Whether state may be dropped that no operator of the program takes.
        retained: How many checkpoints are kept.
        tolerable_failures: How many checkpoints in a row may fail; the epoch of each is run again.
        retention: What becomes of the checkpoints when the job ends.
        timeout_ms: After how long an epoch's checkpoint fails, and the epoch is aborted; None for never.
        progress_log: A file that gets a line of JSON per epoch.
        target_epoch_ms: How long an epoch should take: sources give it as much input as it can do in that time.
            None leaves it to each source.
        records_epochs: Whether checkpoints keep what `opchain replay` needs.
        accepts_duplicates: Whether output may be written again that is later than the last checkpoint.
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
