from __future__ import annotations

from opchain.runtime.mailbox.mailbox_processor import (
    LATENCY_WINDOW,
    MailboxMetrics,
)
from opchain.runtime.mailbox.task_mailbox import Mail, TaskMailbox
from opchain.runtime.testing.operator_harness import ManualClock

MS = 1_000_000


def test_mail_latency_is_measured_from_put_to_run() -> None:
    clock = ManualClock(50)
    mailbox = TaskMailbox(clock.now_ns)
    metrics = MailboxMetrics(clock.now_ns)
    for _ in range(2):
        mailbox.put(Mail(list, 0, "mail"))
        clock.advance(3)
    for mail in mailbox.drain():
        metrics.count(mail)

    statistics = metrics.statistics()
    assert statistics.mails_processed == 2
    assert statistics.latencies_ns == (3 * MS, 6 * MS)


def test_mail_latency_is_that_of_the_latest_mails() -> None:
    clock = ManualClock()
    metrics = MailboxMetrics(clock.now_ns)
    slow, fast = Mail(list, 0, "slow"), Mail(list, 0, "fast")
    clock.advance(10)
    fast.put_at_ns = clock.now_ns()
    metrics.count(slow)
    for _ in range(LATENCY_WINDOW):
        metrics.count(fast)

    assert metrics.statistics().mails_processed == LATENCY_WINDOW + 1
    assert set(metrics.statistics().latencies_ns) == {0}


def test_time_is_busy_unless_it_is_idle_or_back_pressured() -> None:
    clock = ManualClock(1000)
    metrics = MailboxMetrics(clock.now_ns)
    clock.advance(1)
    with metrics.idle:
        clock.advance(20)
    with metrics.back_pressured:
        clock.advance(300)
    clock.advance(4)

    statistics = metrics.statistics()
    assert (statistics.busy_ns, statistics.idle_ns, statistics.back_pressured_ns) == (
        5 * MS,
        20 * MS,
        300 * MS,
    )
