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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from opchain.runtime.mailbox.mailbox_processor import Controller, MailboxProcessor, Suspension
    from opchain.runtime.task.input.input_gate import InputElement, InputGate
    from opchain.runtime.task.input.task_input import GateInput, Waiter

MOST_WAITING = 64
"""How many buffers wait for a task; who brings one more waits until there is room."""

_LOOK_EVERY_S = 0.2


class LiveBuffers:
    """The way into a task that may not have begun yet: any thread delivers, the task connects once."""

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
        """Has `take` called with each buffer, in the thread that delivers it; those that came first."""
        with self._lock:
            for buffer in self._early:
                take(buffer)
            self._early.clear()
            self._take = take

    def made_room(self) -> None:
        """Lets another buffer in; after each that was taken."""
        self._room.release()

    def close(self) -> None:
        """Ends all waiting."""
        self._is_closed = True


class LiveInput:
    """Feeds a chain with what its producers deliver, and its own sources in between.

    Args:
        buffers: What comes.
        gate: Decodes it, and knows when all channels have ended.
        feeder: Feeds the chain with elements.
        pulled: The elements of chained sources; none where there are no sources.
        processor: The task's mailbox loop.
        waiter: Waits where chained sources have nothing yet.
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
            # A closed mailbox: the task has failed, and with it the job.
            with suppress(MailboxClosedError):
                executor.execute(partial(self._arrive, buffer), "a buffer came")

        self._connect = partial(buffers.connect, take)
        self._is_connected = False

    def process_next(self, controller: Controller) -> None:
        """Feeds part of a batch, or an element that has arrived, or one of a chained source; else waits for mail."""
        if not self._is_connected:
            self._is_connected = True
            self._connect()
        if self._feeder.parts.is_within:
            self._feeder.parts.go_on()
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
        """Lets no producer wait any longer."""
        self._buffers.close()

    def _feed_arrived(self) -> None:
        item = next(self._arrived[0], None)
        if item is None:
            self._arrived.popleft()
            self._buffers.made_room()
        else:
            self._feeder.feed(item)

    def _feed_pulled(self, controller: Controller) -> bool:
        """Whether the chained sources have something, or may have something later."""
        item = None if self._pulled is None else next(self._pulled, None)
        if item is None:
            self._pulled = None
        elif item.element.__class__ is NothingYet:
            self._suspension = self._waiter.wait(controller, item.element)
        else:
            self._feeder.feed(item)
        return item is not None

    def _arrive(self, buffer: Buffer) -> None:
        """Keeps a buffer for the default action, and has that run; as mail."""
        self._arrived.append(iter(self._gate.read(buffer)))
        if self._suspension is not None:
            self._suspension.resume()
            self._suspension = None
