"""What becomes of the checkpoints when a job is cancelled."""

from __future__ import annotations

from enum import Enum


class ExternalizedCheckpointRetention(Enum):
    """Which checkpoints stay in the storage."""

    DELETE_ON_CANCELLATION = 0
    """They go when the job is cancelled, and stay when it fails."""
    RETAIN_ON_CANCELLATION = 1
    """They stay; the user deletes them."""
    NO_EXTERNALIZED_CHECKPOINTS = 2
    """They go with the job, however it ends."""
