"""A call that has no results yet: which records it is for, and which attempt it is at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opchain.runtime.operators.async_wait.element_queue import QueuedRecord
    from opchain.runtime.operators.async_wait.event_loop_thread import RunningCall
    from opchain.runtime.task.mailbox.processing_time_service import TimerHandle


class PendingCall:
    """A call for one record, or for the records of a batch that have no results yet.

    Flink: `ResultHandler`, and `RetryableResultHandlerDelegator` around it.
    """

    __slots__ = ("attempt", "is_done", "pause", "records", "running")

    def __init__(self, records: list[QueuedRecord]) -> None:
        self.records = records
        self.attempt = 1
        self.is_done = False
        self.running: RunningCall | None = None
        self.pause: TimerHandle | None = None
        """The timer of the next attempt, while the call waits for it."""

    @property
    def values(self) -> list[Any]:
        """The records as the function gets them."""
        return [record.value for record in self.records]
