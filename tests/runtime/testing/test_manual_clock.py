from __future__ import annotations

from opchain.runtime.mailbox import MailboxExecutor, TaskMailbox
from opchain.runtime.testing.operator_harness import ManualClock, ManualProcessingTimeService


def test_a_service_has_a_clock_of_its_own_or_the_one_given() -> None:
    executor = MailboxExecutor(TaskMailbox(), 0)
    clock = ManualClock(3)
    assert ManualProcessingTimeService(executor, clock).clock is clock
    assert ManualProcessingTimeService(executor).current_processing_time() == 0
