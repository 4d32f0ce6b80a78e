"""What a mailbox loop has done: mail run, how long it waited, where the task's time went.

Flink: MailboxMetricsController for `numMailsProcessed` and `mailboxLatencyMs`, and the timers of
TaskIOMetricGroup for `idleTimeMsPerSecond`, `backPressuredTimeMsPerSecond` and
`busyTimeMsPerSecond`. Flink measures latency with a probe mail every second; here each mail is
stamped as it is put, so that the latency is that of the task's own mail and needs no timer.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opchain.runtime.mailbox.timer_service import PeriodTimer

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.mailbox.mail import Mail

LATENCY_WINDOW = 128
"""How many of the latest mails the latency is taken over."""


@dataclass(frozen=True, slots=True)
class MailboxStatistics:
    """One look at the metrics.

    Attributes:
        mails_processed: Mails run, those run by waiting operators included.
        latencies_ns: From put to run, of the latest mails, in ascending order.
        longest_queue: The most mails that waited at once, where the loop took them.
        idle_ns: Time blocked because there was no input.
        back_pressured_ns: Time blocked because the output was not taken.
        busy_ns: All other time since the task started.
    """

    mails_processed: int
    latencies_ns: tuple[int, ...]
    longest_queue: int
    idle_ns: int
    back_pressured_ns: int
    busy_ns: int

    def latency_ns(self, quantile: float) -> int:
        """The latency that this part of the latest mails did not exceed; 0 before the first mail.

        Args:
            quantile: Between 0 and 1: 0.5 is the median, 1 the longest.
        """
        if not self.latencies_ns:
            return 0
        rank = math.ceil(quantile * len(self.latencies_ns))
        return self.latencies_ns[max(rank, 1) - 1]


class MailboxMetrics:
    """Counts as the loop goes; written by the mailbox thread, read from any.

    Args:
        clock_ns: The mailbox's clock. Busy time counts from now.

    Attributes:
        idle: Runs while the task waits for input.
        back_pressured: Runs while the task waits until its output is taken.
        longest_queue: The most mails that a turn found.
    """

    __slots__ = (
        "_clock_ns",
        "_latencies_ns",
        "_mails_processed",
        "_started_at_ns",
        "back_pressured",
        "idle",
        "longest_queue",
    )

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self._started_at_ns = clock_ns()
        self._mails_processed = 0
        self.longest_queue = 0
        self._latencies_ns: deque[int] = deque(maxlen=LATENCY_WINDOW)
        self.idle = PeriodTimer(clock_ns)
        self.back_pressured = PeriodTimer(clock_ns)

    def count(self, mail: Mail) -> None:
        """Note that this mail is about to run; it has waited since it was put, or since measuring began."""
        self._mails_processed += 1
        put_at_ns = max(mail.put_at_ns, self._started_at_ns)
        self._latencies_ns.append(self._clock_ns() - put_at_ns)

    def statistics(self) -> MailboxStatistics:
        """The numbers up to now."""
        idle_ns = self.idle.total_ns
        back_pressured_ns = self.back_pressured.total_ns
        elapsed_ns = self._clock_ns() - self._started_at_ns
        return MailboxStatistics(
            mails_processed=self._mails_processed,
            latencies_ns=tuple(sorted(self._latencies_ns.copy())),
            longest_queue=self.longest_queue,
            idle_ns=idle_ns,
            back_pressured_ns=back_pressured_ns,
            busy_ns=elapsed_ns - idle_ns - back_pressured_ns,
        )
