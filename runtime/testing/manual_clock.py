"""Time that moves when a test says so.

    clock = ManualClock()
    service = ManualProcessingTimeService(executor, clock)
    service.register_timer(10, fired.append)
    clock.advance(10)           # puts the timer's mail
    processor.run_mailbox_step()    # runs it

Flink: TestProcessingTimeService and ManualClock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.mailbox.processing_time_service import MailboxProcessingTimeService
from opchain.runtime.mailbox.stepped_clock import SteppedClock

if TYPE_CHECKING:
    from opchain.runtime.mailbox.mailbox_executor import MailboxExecutor


class ManualClock(SteppedClock):
    """A clock that shows 0 until a test moves it."""


class ManualProcessingTimeService(MailboxProcessingTimeService):
    """Timers of an operator by a manual clock; callbacks arrive as mail, as those of the system do.

    Args:
        executor: Sends the mail, with the operator's priority.
        clock: To be shared with the other operators of a task; one of its own if not given.

    Attributes:
        clock: The clock, to advance.
    """

    def __init__(self, executor: MailboxExecutor, clock: ManualClock | None = None) -> None:
        self.clock = ManualClock() if clock is None else clock
        super().__init__(self.clock, executor)
