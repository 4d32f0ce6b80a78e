"""Stops the tasks of a job that runs in this process, from another thread."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from opchain.runtime.mailbox.task_mailbox import MailboxClosedError

if TYPE_CHECKING:
    from opchain.runtime.task.stream_task import StreamTask


class JobStoppedError(Exception):
    """The job was cancelled while it ran."""


class StopSwitch:
    """Fails the tasks that it watches, now and later, with JobStoppedError.

    The error comes as mail, which a task takes between two batches and while an operator waits: also a
    task that waits for a call that never returns can be stopped. A function that blocks cannot.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: list[StreamTask] = []
        self._is_stopped = False

    def watch(self, task: StreamTask) -> None:
        """Stops a task when the switch is turned; at once if it has been."""
        with self._lock:
            self._tasks.append(task)
            if self._is_stopped:
                _fail(task)

    def forget(self, task: StreamTask) -> None:
        """Watches a task no longer: it has ended."""
        with self._lock:
            self._tasks.remove(task)

    def stop(self) -> None:
        """Turns the switch; any thread may, any number of times."""
        with self._lock:
            if not self._is_stopped:
                self._is_stopped = True
                for task in self._tasks:
                    _fail(task)


def _fail(task: StreamTask) -> None:
    # A closed mailbox: it has ended already.
    with suppress(MailboxClosedError):
        task.processor.report_error(JobStoppedError())
