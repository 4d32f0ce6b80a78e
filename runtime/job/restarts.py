"""Restart strategies: whether, how often and when a failed job starts again.

Flink: `RestartBackoffTimeStrategy` and its implementations. Jitter is computed from the job's name and the number of
the restart. So jobs that fail together restart at different times, and each restart has the same delay in every run.
"""

from __future__ import annotations

import logging
import random
import textwrap
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from opchain.runtime.errors import (
    CheckpointError,
    CheckpointFailedError,
    GraphError,
    InternalError,
    MissingLibraryError,
    TaskFailedError,
    add_note,
)
from opchain.runtime.mailbox.timer_service import wall_clock_ms

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

T = TypeVar("T")

_LOG = logging.getLogger("opchain.job")

NO_LIMIT = 2**31 - 1
_FAILURES_KEPT = 20

_LASTING = (
    CheckpointError,
    GraphError,
    InternalError,
    MissingLibraryError,
)
"""Errors that another attempt would raise again, such as a lease of another run. Flink: `NonRecoverableError`."""


@dataclass(frozen=True, slots=True)
class RestartStrategy:
    """When a failed job restarts.

    Attributes:
        kind: How restarts are counted and spaced.
        attempts: The limit of restarts: in total (fixed delay), within `interval_ms` (failure rate), or since the last
            reset (exponential delay).
        delay_ms: The delay before a restart. With an exponential delay, it is the first delay.
        interval_ms: The span in which failures are counted (failure rate).
        most_delay_ms: The longest delay (exponential delay).
        multiplier: The factor between two delays (exponential delay).
        reset_ms: The time without failures after which delay and count are reset (exponential delay).
        jitter: The share by which a delay may be longer or shorter, but not shorter than the first (exponential delay).
    """

    kind: Literal["none", "fixed-delay", "failure-rate", "exponential-delay"] = "none"
    attempts: int = 1
    delay_ms: int = 1000
    interval_ms: int = 60_000
    most_delay_ms: int = 60_000
    multiplier: float = 1.5
    reset_ms: int = 3_600_000
    jitter: float = 0.1

    def __str__(self) -> str:
        if self.kind == "fixed-delay":
            return f"fixed delay: {self.attempts} restarts, {self.delay_ms} ms apart"
        if self.kind == "failure-rate":
            return (
                f"failure rate: {self.attempts} failures in {self.interval_ms} ms, restarts after "
                f"{self.delay_ms} ms"
            )
        if self.kind == "exponential-delay":
            how_many = "" if self.attempts >= NO_LIMIT else f", at most {self.attempts} in a row"
            return f"exponential delay: restarts after {self.delay_ms} to {self.most_delay_ms} ms{how_many}"
        return "no restart"


@dataclass(frozen=True, slots=True)
class RestartedFailure:
    """A failure that was followed by a restart.

    Attributes:
        error: The exception, without its traceback, whose frames would keep the objects of the attempt alive.
        at_ms: The time of the failure, in milliseconds since 1970.
        restart: The number of the restart, from 1.
        delay_ms: The delay before the restart.
    """

    error: BaseException
    at_ms: int
    restart: int
    delay_ms: float


class Restarts:
    """The restarts of one run of a job.

    Args:
        strategy: The restart strategy.
        job_name: For the log.
        now_ms: The clock.
        start: Where a restarted job begins, for the log.

    Attributes:
        count: The number of restarts.
        is_waiting: Whether the job has failed and waits for its restart.
        failures: The last 20 failures that were followed by a restart, the latest at the end.
    """

    def __init__(
        self,
        strategy: RestartStrategy,
        job_name: str = "",
        now_ms: Callable[[], int] = wall_clock_ms,
        start: str = "from the beginning",
    ) -> None:
        self._start = start
        self.strategy = strategy
        self.count = 0
        self.is_waiting = False
        self.failures: deque[RestartedFailure] = deque(maxlen=_FAILURES_KEPT)
        self._job_name = job_name
        self._now_ms = now_ms
        self._in_a_row = 0
        self._next_delay_ms = float(strategy.delay_ms)
        self._restarted_at_ms: float | None = None
        self._failed_at_ms: deque[int] = deque(maxlen=strategy.attempts + 1 if self._counts else 1)

    @property
    def _counts(self) -> bool:
        return self.strategy.kind == "failure-rate"

    def run(self, attempt: Callable[[int], T], cancelled: threading.Event) -> T:
        """Runs the job, and restarts it as the strategy says.

        Args:
            attempt: Runs the job once. Its argument is the number of earlier restarts.
            cancelled: Set when the job is cancelled. There are no restarts after that.

        Raises:
            Exception: The exception of the last attempt.
            TaskFailedError: The job was cancelled while it waited for a restart.
        """
        while True:
            try:
                return attempt(self.count)
            except Exception as failure:  # noqa: BLE001, PERF203 - that is what the loop is for
                self._prepare_next(failure, cancelled)

    def _prepare_next(self, failure: Exception, cancelled: threading.Event) -> None:
        """Waits until the job may start again. Raises the failure if there is no restart."""
        if cancelled.is_set():
            raise failure
        delay_ms = self.delay_after(failure)
        if delay_ms is None:
            if self.count:
                add_note(
                    failure,
                    f"the job was restarted {self.count} times; its restart strategy allows no more "
                    f"({self.strategy})",
                )
            raise failure
        self.count += 1
        problem = [f"{type(failure).__name__}: {failure}", *getattr(failure, "__notes__", ())]
        _LOG.warning(
            "job '%s' failed; restart %d follows in %d ms %s (%s)\n%s",
            self._job_name,
            self.count,
            delay_ms,
            self._start,
            self.strategy,
            textwrap.indent("\n".join(problem), "  "),
            exc_info=failure if _LOG.isEnabledFor(logging.INFO) else None,
        )
        self.failures.append(
            RestartedFailure(failure.with_traceback(None), self._now_ms(), self.count, delay_ms)
        )
        self.is_waiting = True
        try:
            if cancelled.wait(delay_ms / 1000):
                raise TaskFailedError(
                    "the job was cancelled while it waited to restart"
                ) from failure
        finally:
            self.is_waiting = False
        self._restarted_at_ms = self._now_ms()

    def delay_after(self, failure: Exception) -> float | None:
        """The delay before a restart, in milliseconds; None if the job is not restarted."""
        strategy, now_ms = self.strategy, self._now_ms()
        is_lasting = isinstance(failure, _LASTING) and not isinstance(
            failure, CheckpointFailedError
        )
        if is_lasting or strategy.kind == "none":
            return None
        if strategy.kind == "fixed-delay":
            return strategy.delay_ms if self.count < strategy.attempts else None
        if strategy.kind == "failure-rate":
            failed = self._failed_at_ms
            failed.append(now_ms)
            is_too_often = len(failed) > strategy.attempts
            if is_too_often and now_ms - failed[0] <= strategy.interval_ms:
                return None
            return strategy.delay_ms
        return self._exponential_delay(now_ms)

    def _exponential_delay(self, now_ms: int) -> float | None:
        strategy = self.strategy
        started_ms = self._restarted_at_ms
        if started_ms is not None and now_ms - started_ms >= strategy.reset_ms:
            self._in_a_row, self._next_delay_ms = 0, strategy.delay_ms
        self._in_a_row += 1
        if self._in_a_row > strategy.attempts:
            return None
        delay_ms = self._next_delay_ms
        self._next_delay_ms = min(delay_ms * strategy.multiplier, strategy.most_delay_ms)
        draw = random.Random(f"restart {self._job_name} {self.count}").uniform(-1, 1)  # noqa: S311
        jittered = min(delay_ms * (1 + strategy.jitter * draw), strategy.most_delay_ms)
        return max(strategy.delay_ms, jittered)
