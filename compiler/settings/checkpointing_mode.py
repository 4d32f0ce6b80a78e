"""What a checkpoint promises."""

from __future__ import annotations

from enum import Enum


class CheckpointingMode(Enum):
    """How often a record counts in state and sinks when a job had to start again.

    Here a checkpoint is the end of a micro-batch, so that at least once is exactly once, too.
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
