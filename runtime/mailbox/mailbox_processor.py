"""The loop of a task: in each turn it runs the waiting mail, and then one default action.

A task is a generator. It calls `turn` between the buffers that it yields.

Records are too many to be mail, so they are the default action, which processes one buffer of input per turn. A turn
without mail costs the default action and one look at the flag `TaskMailbox.has_new_mail` (benchmarks/mailbox.py
measures it). Everything else is kept out of this path:

- To change the course of the loop, mail is sent, which sets the flag.
- A suspended default action is replaced by one that waits for mail, a completed one by one that does nothing.
- Whether the loop continues is one attribute, which `turn` returns.

A turn runs only the mail that was waiting when it began. So mail that sends itself again, such as a periodic timer,
cannot block the input.

Flink: MailboxProcessor, MailboxDefaultAction with its Controller and Suspension. There the loop stays in its mail
while the default action is suspended. Here the turn ends after that mail, so the generator can yield what the mail
emitted.

The metrics are those of Flink's MailboxMetricsController (`numMailsProcessed`, `mailboxLatencyMs`) and
TaskIOMetricGroup (`idleTimeMsPerSecond`, `backPressuredTimeMsPerSecond`, `busyTimeMsPerSecond`). Flink measures the
latency with a probe mail every second. Here each mail gets a time stamp when it is put, so no timer is needed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from opchain.runtime.errors import InternalError
from opchain.runtime.mailbox.mailbox_executor import MailboxExecutor
from opchain.runtime.mailbox.task_mailbox import (
    MAX_PRIORITY,
    MIN_PRIORITY,
    NO_LOCK,
    Mail,
    MailboxClosedError,
    MailboxState,
    TaskMailbox,
)
from opchain.runtime.mailbox.timer_service import PeriodTimer

LATENCY_WINDOW = 128
"""The number of latest mails whose latencies are kept."""


@dataclass(frozen=True, slots=True)
class MailboxStatistics:
    """The metrics at one moment.

    Attributes:
        mails_processed: The number of mails that ran, including those that ran while an operator waited.
        latencies_ns: The latencies of the latest mails, from put to run, in ascending order.
        longest_queue: The most mails that waited when a turn began.
        idle_ns: The time that the task waited for input.
        back_pressured_ns: The time that the task waited until its output was taken.
        busy_ns: The rest of the time since the task started.
    """

    mails_processed: int
    latencies_ns: tuple[int, ...]
    longest_queue: int
    idle_ns: int
    back_pressured_ns: int
    busy_ns: int


class MailboxMetrics:
    """Measures the loop. The mailbox thread writes it, and any thread may read it.

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
        """Counts a mail that is about to run. It has waited since it was put, or since the measurement began."""
        self._mails_processed += 1
        put_at_ns = max(mail.put_at_ns, self._started_at_ns)
        self._latencies_ns.append(self._clock_ns() - put_at_ns)

    def statistics(self) -> MailboxStatistics:
        """The current metrics."""
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


class Suspension:
    """A suspension of the default action."""

    __slots__ = ("_resume", "timer")

    def __init__(self, resume: Callable[[Suspension], None], timer: PeriodTimer | None) -> None:
        self._resume = resume
        self.timer = timer

    def resume(self) -> None:
        """Resumes the default action. Later calls, and calls after the task has ended, have no effect.

        May be called from any thread.
        """
        self._resume(self)


class Controller(Protocol):
    """The requests of the default action. All methods must be called in the mailbox thread."""

    def all_actions_completed(self) -> None:
        """Ends the loop, because there is no more input."""

    def suspend_default_action(self, timer: PeriodTimer | None = None) -> Suspension:
        """Suspends the default action until the suspension is resumed. Mail still runs.

        Args:
            timer: Measures the time that the task waits: `idle` or `back_pressured` of the metrics. If both input and
                output are unavailable, Flink counts back pressure.
        """


DefaultAction = Callable[[Controller], object]
"""Does a limited amount of work, such as processing one buffer, without blocking."""


class MailboxProcessor:
    """Runs one task's mail and default action in the thread that creates it.

    At the end call `prepare_close` (no more mail is accepted), `drain` (waiting mail runs), and `close`. The processor is
    also the Controller of the default action.

    Args:
        default_action: Does a limited amount of work without blocking. It holds the lock only if it takes it itself.
        mailbox: The mailbox of this thread; a new one by default.
        lock: Held while a mail runs.
        allow_yield: Whether the operators' executors may wait for mail.
        before_mail: Called before the mail of a turn runs.

    Attributes:
        metrics: The metrics, which any thread may read.
        is_completed: Whether the loop has ended and cannot be resumed.
    """

    __slots__ = (
        "_action",
        "_allow_yield",
        "_before_mail",
        "_continues",
        "_default_action",
        "_lock",
        "_mailbox",
        "_suspension",
        "is_completed",
        "metrics",
    )

    def __init__(
        self,
        default_action: DefaultAction,
        *,
        mailbox: TaskMailbox | None = None,
        lock: AbstractContextManager[Any] = NO_LOCK,
        allow_yield: bool = True,
        before_mail: Callable[[], None] = lambda: None,
    ) -> None:
        self._before_mail = before_mail
        self._mailbox = TaskMailbox() if mailbox is None else mailbox
        self._lock = lock
        self._allow_yield = allow_yield
        self.metrics = MailboxMetrics(self._mailbox.clock_ns)
        self._default_action = default_action
        self._suspension: Suspension | None = None
        self._action: DefaultAction = (
            default_action  # or its replacement while it is suspended or completed
        )
        self._continues = True  # false from the mail that ends the loop to the end of that turn
        self.is_completed = False  # the loop can't be resumed

    # The loop

    def turn(self) -> bool:
        """Runs the waiting mail, then at most one default action. Returns False if the loop must end.

        While the default action is suspended, a turn waits for mail. After `suspend` a turn returns False, and the next
        turn continues. After `all_actions_completed` every turn returns False and runs nothing.

        Raises:
            BaseException: The exception of a mail or the default action, or the error of `report_error`.
            NotMailboxThreadError: There is mail, and the caller is not the mailbox thread.
        """
        if self._mailbox.has_new_mail:
            self._run_mail_then_default_action()
        else:
            self._action(self)
        return self._continues or self._end()

    def run_mailbox_step(self) -> bool:
        """Runs one mail, or else one default action. Returns False if neither can run.

        This is for tests. It never blocks.
        """
        self._mailbox.require_mailbox_thread("run a step of the mailbox loop")
        if self.is_completed:
            return False
        if self._mailbox.create_batch() and (mail := self._mailbox.try_take_from_batch()):
            self._run_mail(mail)
        elif self._suspension is None:
            self._default_action(self)
        else:
            return False
        self._continues = not self.is_completed
        return True

    # Control, from any thread

    def suspend(self) -> None:
        """Ends the loop before its next mail or default action. It can be resumed.

        Does nothing if the mailbox accepts no more mail.
        """
        self._send_control_mail(self._suspend_loop, "suspend the mailbox loop")

    def all_actions_completed(self) -> None:
        """Ends the loop before its next mail or default action. It cannot be resumed.

        Does nothing if the mailbox accepts no more mail.
        """
        self._send_control_mail(self._complete_loop, "complete the mailbox loop")

    def report_error(self, error: BaseException) -> None:
        """Makes the loop raise this error before any other mail runs. `close` drops the remaining mail.

        Raises:
            MailboxClosedError: The mailbox accepts no more mail. Its cause is the error, which would be lost otherwise.
        """

        def fail() -> None:
            raise error

        reporter = threading.current_thread().name
        try:
            self._mailbox.put_first(
                Mail(fail, MAX_PRIORITY, f"error reported by thread '{reporter}'")
            )
        except MailboxClosedError as closed:
            raise closed from error

    def mailbox_executor(self, priority: int = MIN_PRIORITY) -> MailboxExecutor:
        """An executor, which sends mail to this mailbox.

        Args:
            priority: The index of the operator in its chain; by default the priority of the task itself (Flink:
                getMainMailboxExecutor).
        """
        return MailboxExecutor(
            self._mailbox,
            priority,
            self._lock,
            run_mail=self._run_mail,
            allow_yield=self._allow_yield,
        )

    def reset_measurements(self) -> None:
        """Restarts the metrics."""
        self.metrics = MailboxMetrics(self._mailbox.clock_ns)

    # The default action, from the mailbox thread

    def suspend_default_action(self, timer: PeriodTimer | None = None) -> Suspension:
        """See Controller.

        Raises:
            NotMailboxThreadError: The caller is not the mailbox thread.
            InternalError: It is suspended already.
        """
        self._mailbox.require_mailbox_thread("suspend the default action")
        if self._suspension is not None:
            raise InternalError(
                "the default action is already suspended; resume it before suspending it again"
            )
        self._suspension = Suspension(self._resume, timer)
        if not self.is_completed:
            self._action = self._wait_for_mail
        return self._suspension

    # The end, from the mailbox thread

    def prepare_close(self) -> None:
        """Accepts no more mail. Flink: prepareClose."""
        self._mailbox.quiesce()

    def drain(self) -> None:
        """Runs the mail that is waiting now, and no later mail.

        If a mail fails, the mail after it stays in the mailbox, and `close` drops it.
        """
        for _ in range(self._mailbox.size()):
            mail = self._mailbox.try_take(MIN_PRIORITY)
            if mail is None:  # an earlier mail waited, and ran it meanwhile
                return
            self._run_mail(mail)

    def close(self) -> list[Mail]:
        """Closes the mailbox, drops its mail and cancels the futures of the mail. Returns the dropped mail.

        Raises:
            Exception: The exception of dropping a mail. All other mail is dropped too.
        """
        dropped = self._mailbox.close()
        with ExitStack() as every_one:
            for mail in reversed(dropped):
                every_one.callback(mail.drop)
        return dropped

    # Parts of a turn

    def _run_mail_then_default_action(self) -> None:
        if self.is_completed:
            return
        # Only what is waiting now: see the module's docstring.
        waiting = self._mailbox.create_batch()
        self.metrics.longest_queue = max(self.metrics.longest_queue, waiting)
        self._before_mail()
        for _ in range(waiting):
            mail = self._mailbox.try_take_from_batch()
            if mail is None:  # an earlier mail waited, and ran it meanwhile
                break
            self._run_mail(mail)
            if not self._continues:
                return
        if self._suspension is None:
            self._default_action(self)

    def _run_mail(self, mail: Mail) -> None:
        self.metrics.count(mail)
        mail.run()

    def _wait_for_mail(self, _: Controller) -> None:
        assert self._suspension is not None
        timer = self._suspension.timer
        if timer is None:
            self._mailbox.wait_for_mail()
        else:
            with timer:
                self._mailbox.wait_for_mail()
        self._run_mail_then_default_action()

    def _end(self) -> bool:
        self._continues = not self.is_completed
        return False

    # Control mail

    def _suspend_loop(self) -> None:
        self._continues = False

    def _complete_loop(self) -> None:
        self._continues = False
        self.is_completed = True
        self._action = _do_nothing

    def _resume(self, suspension: Suspension) -> None:
        if self._mailbox.is_mailbox_thread():
            self._resume_default_action(suspension)
        else:
            self._send_control_mail(
                partial(self._resume_default_action, suspension), "resume the default action"
            )

    def _resume_default_action(self, suspension: Suspension) -> None:
        if self._suspension is suspension:
            self._suspension = None
            if not self.is_completed:
                self._action = self._default_action

    def _send_control_mail(self, command: Callable[[], None], description: str) -> None:
        def put_if_open() -> None:
            if self._mailbox.state is MailboxState.OPEN:
                self._mailbox.put_first(Mail(command, MAX_PRIORITY, description))

        # Together, so that the mailbox cannot be closed between the look and the put.
        self._mailbox.run_exclusively(put_if_open)


def _do_nothing(_: Controller) -> None:
    """Replaces the default action after the loop has completed."""
