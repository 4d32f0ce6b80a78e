"""Timers per key and namespace: how operators register them, and how they fire.

    timers = context.timers.service("window-timers", self)      # in open(); see timer_services.py
    timers.register_event_time_timer(window, window.max_timestamp())
    timers.current_watermark, timers.current_processing_time()

    def on_event_time(self, time, namespace): ...               # called on `self`; the timer's key
    def on_processing_time(self, time, namespace): ...          # is the backend's current key

- A timer is (clock, time, namespace, key). A timer that is registered twice fires once. Its key is the key that is
  current in the operator's KeyedStateBackend.
- Event-time timers up to and including a watermark fire before the operator passes the watermark on, in the order of
  keyed_timers.py. A timer that is registered while timers fire, and is due, fires in the same pass. A timer that is registered
  for the past fires with the next watermark.
- Processing-time timers fire as mail of the operator when the task's clock has reached them, in the same order. A
  timer for the past fires when the next mail runs.
- When a bounded input ends in streaming mode, the last watermark fires all event-time timers. Then the processing-time
  timers that are due fire, and the others never fire.
- In batch mode (BatchTimerService) the timers of a key fire after its last record: first those of event time, then
  those of processing time, whatever the clock shows. Before that, the current watermark is the smallest value. While
  the timers fire, it is the largest, and registering a timer only gives a warning.

Flink: `InternalTimerServiceImpl`; `BatchExecutionInternalTimeService`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Protocol

from opchain.runtime.state.timers.keyed_timers import KeyedTimers, TimerChanges
from opchain.runtime.time import MAX_LONG_VALUE, MIN_LONG_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opchain.runtime.mailbox.processing_time_service import (
        ProcessingTimeService,
        TimerHandle,
    )
    from opchain.runtime.state.keyed.keyed_backend import KeyedStateBackend

_LOG = logging.getLogger("opchain.timers")

MANY_TIMERS = 1_000_000
"""The number of timers that timers may register after the end of the input, before there is a warning."""


class Triggerable(Protocol):
    """The receiver of fired timers. The backend's current key is the key of the timer."""

    warning: str | None
    """See StreamOperator."""

    def on_event_time(self, time: int, namespace: Any) -> None:
        """An event-time timer fires."""

    def on_processing_time(self, time: int, namespace: Any) -> None:
        """A processing-time timer fires."""


class InternalTimerService:
    """The timers of one name; see the module. Times are milliseconds.

    An operator may add to `event_timers` directly, but only with keys of records or timers, and in batch mode never while
    timers fire.
    """

    def __init__(
        self,
        backend: KeyedStateBackend,
        processing_time: ProcessingTimeService,
        target: Triggerable,
        event_timers: KeyedTimers,
        processing_timers: KeyedTimers,
        where: str,
    ) -> None:
        self.current_watermark = MIN_LONG_VALUE
        self.current_processing_time = processing_time.current_processing_time
        self._backend = backend
        self._processing_time = processing_time
        self._target = target
        self._where = where  # the operator and its call site, for messages
        self.event_timers = event_timers
        # Fires event-time timers. Replaced by operators that take all timers that are due at once.
        self.fire_due: Callable[[Iterator[tuple[int, Any, Any]]], None] = self._call_target
        self._processing_timers = processing_timers
        # The clock calls back once, at the time of the first processing-time timer.
        self._call: TimerHandle | None = None
        self._call_at = MAX_LONG_VALUE
        # Changes of event-time timers for the next snapshot that the operator records itself.
        self.unjournaled = TimerChanges()
        self._await_next()

    def register_event_time_timer(self, namespace: Any, time: int) -> None:
        """Registers a timer that fires once the watermark has reached a time."""
        self.event_timers.add(time, namespace, self._backend.state_key)

    def register_processing_time_timer(self, namespace: Any, time: int) -> None:
        """Registers a timer that fires once the clock has reached a time."""
        if self._processing_timers.add(time, namespace, self._backend.state_key) and (
            self._call is None or time < self._call_at
        ):
            self._await(time)

    def delete_event_time_timer(self, namespace: Any, time: int) -> None:
        """Deletes a timer, if there is one."""
        self.event_timers.discard(time, namespace, self._backend.state_key)

    def delete_processing_time_timer(self, namespace: Any, time: int) -> None:
        """Deletes a timer, if there is one."""
        self._processing_timers.discard(time, namespace, self._backend.state_key)

    def take_event_time_timers(self) -> list[tuple[int, Any, Any]]:
        """Removes and returns all event-time timers as (time, namespace, state key), in order.

        It is for operators that fire windows without timers, and register timers only for snapshots.
        """
        timers = list(self.event_timers)
        for timer in timers:
            self.event_timers.discard(*timer)
        return timers

    def forget_changes(self) -> None:
        """Discards the recorded changes of event-time timers, because checkpoints already contain them."""
        if self.event_timers.journal is not None:
            self.event_timers.journal = {}

    def event_time_timer_count(self) -> int:
        """The number of event-time timers."""
        return len(self.event_timers)

    def processing_time_timer_count(self) -> int:
        """The number of processing-time timers."""
        return len(self._processing_timers)

    def advance_watermark(self, watermark: int) -> None:
        """Fires the timers that are due at a watermark."""
        self.current_watermark = watermark
        due = self.event_timers.due(watermark)
        self.fire_due(self._watched(due) if watermark == MAX_LONG_VALUE else due)

    def _watched(self, due: Iterator[tuple[int, Any, Any]]) -> Iterator[tuple[int, Any, Any]]:
        """The timers of the last watermark. Warns if they do not end, because each registers the next one."""
        last = len(self.event_timers) + MANY_TIMERS
        for number, timer in enumerate(due):
            if number == last:
                _LOG.warning(
                    "%s: after the end of the input, timers have registered %s further timers, the last one for %d; if "
                    "each timer registers the next one, the job never ends: register none if "
                    "ctx.timer_service().current_watermark() is %d, or run the job in BATCH mode",
                    self._where,
                    f"{MANY_TIMERS:,}",
                    timer[0],
                    MAX_LONG_VALUE,
                )
            yield timer

    def fire_processing_time(self) -> None:
        """Fires the processing-time timers that are due."""
        self._on_processing_time(self.current_processing_time())

    def _call_target(self, due: Iterator[tuple[int, Any, Any]]) -> None:
        select, fire = self._backend.set_current_state_key, self._target.on_event_time
        for time, namespace, state_key in due:
            select(state_key)
            fire(time, namespace)

    def _on_processing_time(self, until: int) -> None:
        """Fires all timers that are due now, which may be more than when the callback was registered.

        If each of them waited for its own callback, the number of records in between would depend on the batches of
        the input.
        """
        self._call, self._call_at = None, MAX_LONG_VALUE
        now = max(until, self.current_processing_time())
        while self._fire_processing_time(now - 1):
            pass
        # Bounded, because a timer may register itself again for the same time each time it fires.
        for _ in range(len(self._processing_timers)):
            if not self._fire_processing_time(now):
                break
        # A timer that fired may have registered a later one, which is awaited now.
        first = self._processing_timers.next_time()
        if first is not None and first < self._call_at:
            self._await(first)

    def _fire_processing_time(self, until: int) -> bool:
        """Fires the first timer that is due. Returns whether there was one."""
        timer = self._processing_timers.pop_until(until)
        if timer is None:
            return False
        time, namespace, state_key = timer
        self._backend.set_current_state_key(state_key)
        self._target.on_processing_time(time, namespace)
        return True

    def register_first_timer(self) -> None:
        """Registers the callback for the first of all timers, and cancels the previous callback."""
        if self._call is not None:
            self._call.cancel()
            self._call = None
        self._await_next()

    def _await_next(self) -> None:
        time = self._processing_timers.next_time()
        if time is not None:
            self._await(time)

    def _await(self, time: int) -> None:
        if self._call is not None:
            self._call.cancel()
        self._call_at = time
        self._call = self._processing_time.register_timer(time, self._on_processing_time)


class BatchTimerService(InternalTimerService):
    """Timers of one key at a time, which fire at its end; see the module.

    As in Flink, a timer that another timer registers never fires: timers that always register the next one would never end.
    """

    def register_event_time_timer(self, namespace: Any, time: int) -> None:
        """Registers a timer that fires at the end of the key, or warns if the timers of the key are firing."""
        if self.current_watermark == MAX_LONG_VALUE:
            self._warn_of(time)
        else:
            super().register_event_time_timer(namespace, time)

    def register_processing_time_timer(self, namespace: Any, time: int) -> None:
        """Registers a timer that fires at the end of the key, or warns if the timers of the key are firing."""
        if self.current_watermark == MAX_LONG_VALUE:
            self._warn_of(time)
        else:
            self._processing_timers.add(time, namespace, self._backend.state_key)

    def _warn_of(self, time: int) -> None:
        self._target.warning = (
            f"a timer registered another timer, for {time}, and batch mode does not fire it: all timers of a key fire once, "
            "after its last record. Register all timers for records, or run the job in STREAMING mode"
        )

    def advance_watermark(self, watermark: int) -> None:
        """Fires all timers of the current key at the last watermark, which ends it. Batch mode has no other watermarks."""
        is_idle = not (self.event_timers.count or self._processing_timers.count)
        if is_idle or watermark != MAX_LONG_VALUE:
            return
        self.current_watermark = MAX_LONG_VALUE
        self.fire_due(self.event_timers.due(MAX_LONG_VALUE))
        self._on_processing_time(MAX_LONG_VALUE)
        self.current_watermark = MIN_LONG_VALUE

    def _call_target(self, due: Iterator[tuple[int, Any, Any]]) -> None:
        fire = self._target.on_event_time
        for time, namespace, _ in due:  # all are of the current key
            fire(time, namespace)

    def _await(self, time: int) -> None:
        """Does nothing, because batch mode does not wait for the clock."""
