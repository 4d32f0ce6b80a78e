"""The id of one run of a job.

The states of a job.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

_HEX = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, order=True, slots=True)
class JobID:
    """128 bits, printed as 32 hexadecimal digits. Flink: JobID.

    Raises:
        ValueError: The text is something else.
    """

    hex_string: str

    def __post_init__(self) -> None:
        if not isinstance(self.hex_string, str) or not _HEX.fullmatch(self.hex_string):
            raise ValueError(
                f"JobID takes 32 lower-case hexadecimal digits, not {self.hex_string!r}"
            )

    def __str__(self) -> str:
        return self.hex_string


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
    """It stopped here, and may continue elsewhere."""
    RECONCILING = 9
    """It waits for word from tasks that outlived their coordinator."""

    def is_globally_terminal_state(self) -> bool:
        """Whether the job is over for good."""
        return self in {JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED}

    def is_terminal_state(self) -> bool:
        """Whether the job is over here; a suspended one may continue elsewhere."""
        return self is JobStatus.SUSPENDED or self.is_globally_terminal_state()
