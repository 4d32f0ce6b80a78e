"""Input that arrives while the task runs, from producers on other threads.

A bounded task reads existing buffers in a fixed order. A live task gets each buffer as mail, in the order of arrival,
and its default action processes the buffers that have arrived. Without any, the action is suspended. So timers fire
while no input arrives, and no buffer is processed while an operator waits for mail.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from opchain.runtime.mailbox.task_mailbox import MailboxClosedError
from opchain.runtime.records.elements import Buffer, NothingYet
from opchain.runtime.task.input.task_input import TaskInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from opchain.runtime.mailbox.mailbox_processor import Controller, MailboxProcessor, Suspension
    from opchain.runtime.task.input.input_gate import InputElement, InputGate
    from opchain.runtime.task.input.task_input import GateInput, Waiter

MOST_WAITING = 64
"""How many buffers wait for a task. A sender of another buffer waits until there is room."""

_LOOK_EVERY_S = 0.2


class LiveBuffers:
    """The buffers for a task, which may not have started yet. Any thread may deliver; the task connects once."""

    def __init__(self, most_waiting: int = MOST_WAITING) -> None:
        self._room = threading.Semaphore(most_waiting)
        self._lock = threading.Lock()
        self._early: list[Buffer] = []
        self._take: Callable[[Buffer], None] | None = None
        self._is_closed = False

    def deliver(self, buffer: Buffer) -> None:
        """Adds a buffer. Waits for room, and drops the buffer if the reader has closed."""
        while not self._room.acquire(timeout=_LOOK_EVERY_S):
            if self._is_closed:
                return
        with self._lock:
            if self._take is None:
                self._early.append(buffer)
            else:
                self._take(buffer)

    def connect(self, take: Callable[[Buffer], None]) -> None:
        """Calls `take` with each buffer: first with waiting buffers, then in the thread that delivers one."""
        with self._lock:
            for buffer in self._early:
                take(buffer)
            self._early.clear()
            self._take = take

    def release(self) -> None:
        """Makes room for another buffer. Called for each buffer that was processed."""
        self._room.release()

    def close(self) -> None:
        """Wakes all threads that wait in `deliver`."""
        self._is_closed = True


class LiveInput(TaskInput):
    """Processes buffers as they arrive, and elements of chained sources in between.

    Args:
        buffers: The buffers of the producers.
        gate: Decodes buffers, and knows when all channels have ended.
        feeder: Passes elements to the chain.
        pulled: The elements of chained sources; empty without sources.
        processor: The task's mailbox loop.
        waiter: Suspends the task while chained sources have no records.
    """

    def __init__(
        self,
        buffers: LiveBuffers,
        gate: InputGate,
        feeder: GateInput,
        pulled: Iterable[InputElement],
        processor: MailboxProcessor,
        waiter: Waiter,
    ) -> None:
        self._buffers = buffers
        self._gate = gate
        self._feeder = feeder
        self._pulled: Iterator[InputElement] | None = iter(pulled)
        self._processor = processor
        self._waiter = waiter
        self._arrived: deque[Iterator[InputElement]] = deque()
        self._suspension: Suspension | None = None
        executor = processor.mailbox_executor()

        def take(buffer: Buffer) -> None:
            # The mailbox is closed: the task has failed, and so has the job.
            with suppress(MailboxClosedError):
                executor.execute(partial(self._arrive, buffer), "a buffer came")

        self._connect = partial(buffers.connect, take)
        self._is_connected = False

    def process_next(self, controller: Controller) -> None:
        """Processes part of a batch, an element that has arrived, or an element of a chained source; else waits for mail."""
        if not self._is_connected:
            self._is_connected = True
            self._connect()
        if self._feeder.parts.has_more:
            self._feeder.parts.process_part()
        elif self._arrived:
            self._feed_arrived()
        elif not self._feed_pulled(controller):
            if self._gate.has_ended:
                controller.all_actions_completed()
            else:
                self._suspension = controller.suspend_default_action(self._processor.metrics.idle)

    def before_mail(self) -> None:
        """See TaskInput."""
        self._feeder.before_mail()

    def close(self) -> None:
        """Wakes waiting producers."""
        self._buffers.close()

    def _feed_arrived(self) -> None:
        item = next(self._arrived[0], None)
        if item is None:
            self._arrived.popleft()
            self._buffers.release()
        else:
            self._feeder.feed(item)

    def _feed_pulled(self, controller: Controller) -> bool:
        """Whether the chained sources have an element, or may have one later."""
        item = None if self._pulled is None else next(self._pulled, None)
        if item is None:
            self._pulled = None
        elif item.element.__class__ is NothingYet:
            self._suspension = self._waiter.wait(controller, item.element)
        else:
            self._feeder.feed(item)
        return item is not None

    def _arrive(self, buffer: Buffer) -> None:
        """Adds a buffer for the default action, and resumes the action. Runs as mail."""
        self._arrived.append(iter(self._gate.read(buffer)))
        if self._suspension is not None:
            self._suspension.resume()
            self._suspension = None
