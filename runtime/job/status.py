"""The states of a job."""

from __future__ import annotations

from enum import Enum


class JobStatus(Enum):
    """Where a job is between being accepted and being over. Flink: JobStatus."""

    CREATED = 0
    """Accepted; nothing runs."""
    RUNNING = 1
    """Some of its tasks run, wait or are done."""
    FAILING = 2
    """It failed, and is being cleaned up."""
    FAILED = 3
    """It failed and will not be tried again."""
    CANCELLING = 4
    """Someone cancelled it, and its tasks are being stopped."""
    CANCELED = 5
    """It was cancelled."""
    FINISHED = 6
    """All of its tasks are done."""
    RESTARTING = 7
    """It failed, and will start again from its last checkpoint."""
    SUSPENDED = 8
    """It stopped here, and may go on elsewhere."""
    RECONCILING = 9
    """It waits for word from tasks that outlived their coordinator."""

    def is_globally_terminal_state(self) -> bool:
        """Whether the job is over for good."""
        return self in {JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED}

    def is_terminal_state(self) -> bool:
        """Whether the job is over here; a suspended one may go on elsewhere."""
        return self is JobStatus.SUSPENDED or self.is_globally_terminal_state()
