"""Timers per key and namespace: what operators register, and how they fire.

    timers = context.timers.service("window-timers", self)      # in open(); one service per name
    timers.register_event_time_timer(window, window.max_timestamp())
    timers.current_watermark, timers.current_processing_time()

    def on_event_time(self, time, namespace): ...               # self is the target; the timer's key
    def on_processing_time(self, time, namespace): ...          # is the backend's current key

- A timer is (clock, time, namespace, key): registered twice it fires once; it belongs to the key that
  is current in the operator's KeyedStateBackend.
- Event-time timers fire when the watermark reaches them, before the operator passes it on: those up to
  and including the watermark, in the order that keyed_timers gives. A timer registered while others
  fire, and due as well, fires in the same pass. One registered in the past fires with the next
  watermark, not at once.
- Processing-time timers fire as mail of the operator once the task's clock has reached them, likewise in
  order; one in the past as soon as mail is read.
- When a bounded input ends in streaming mode, the last watermark fires all event-time timers;
  processing-time timers that are not yet due never fire.
- In batch mode (BatchTimerService) a key's timers fire when its last record has been processed: first
  those of event time, then those of processing time, whatever the clock shows. Until then the current
  watermark is the smallest; while they fire it is the largest, and registering has no effect.

Flink: `InternalTimeServiceManagerImpl`, `InternalTimerServiceImpl`; `BatchExecutionInternalTimeService`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from opchain.runtime.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from opchain.runtime.errors import StateError
from opchain.runtime.state.collector_pause import collector_paused
from opchain.runtime.state.key_identity import key_of
from opchain.runtime.state.key_router import KeyRouter
from opchain.runtime.state.keyed_frames import CHANGES, WHOLE, in_order
from opchain.runtime.state.keyed_timers import KeyedTimers
from opchain.runtime.state.timer_changes import (
    TimerChanges,
    apply_changes,
    by_key_group,
    forget_empty,
    journaled,
)
from opchain.runtime.task.record_pickle import dump_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opchain.runtime.state.java_hash import Hasher
    from opchain.runtime.state.keyed_backend import KeyedStateBackend
    from opchain.runtime.task.mailbox.processing_time_service import (
        ProcessingTimeService,
        TimerHandle,
    )

    Row = tuple[int, int, Any, Any]


class Triggerable(Protocol):
    """What timers are fired at; the backend's current key is the timer's."""

    def on_event_time(self, time: int, namespace: Any) -> None:
        """An event-time timer fires."""

    def on_processing_time(self, time: int, namespace: Any) -> None:
        """A processing-time timer fires."""


class InternalTimerService:
    """The timers of one name; see the module. Times are milliseconds."""

    def __init__(
        self,
        backend: KeyedStateBackend,
        processing_time: ProcessingTimeService,
        target: Triggerable,
        event_timers: KeyedTimers,
        processing_timers: KeyedTimers,
    ) -> None:
        self.current_watermark = MIN_LONG_VALUE
        self.current_processing_time = processing_time.current_processing_time
        self._backend = backend
        self._processing_time = processing_time
        self._target = target
        self._event_timers = event_timers
        self._processing_timers = processing_timers
        # The one call that is asked of the clock: for the first of the processing-time timers.
        self._call: TimerHandle | None = None
        self._call_at = MAX_LONG_VALUE
        # Changes of event-time timers that the operator keeps in a form of its own, for the next snapshot.
        self.unjournaled = TimerChanges()
        self._await_next()

    def register_event_time_timer(self, namespace: Any, time: int) -> None:
        """Has a timer fire once the watermark is at or past a time."""
        self._event_timers.add(time, namespace, self._backend.state_key)

    def register_processing_time_timer(self, namespace: Any, time: int) -> None:
        """Has a timer fire once the clock is at or past a time."""
        if self._processing_timers.add(time, namespace, self._backend.state_key) and (
            self._call is None or time < self._call_at
        ):
            self._await(time)

    def delete_event_time_timer(self, namespace: Any, time: int) -> None:
        """Takes a timer back; nothing happens where there is none."""
        self._event_timers.discard(time, namespace, self._backend.state_key)

    def delete_processing_time_timer(self, namespace: Any, time: int) -> None:
        """Takes a timer back; nothing happens where there is none."""
        self._processing_timers.discard(time, namespace, self._backend.state_key)

    def take_event_time_timers(self) -> list[tuple[int, Any, Any]]:
        """Gives out all event-time timers as (time, namespace, state key), in order.

        For operators that know by themselves what is due, and register timers for snapshots alone.
        """
        timers = list(self._event_timers)
        for timer in timers:
            self._event_timers.discard(*timer)
        return timers

    def forget_changes(self) -> None:
        """Starts anew with what `snapshot_changes` gives: what changed so far is known to checkpoints."""
        if self._event_timers.journal is not None:
            self._event_timers.journal = {}

    def event_time_timer_count(self) -> int:
        """How many event-time timers wait."""
        return len(self._event_timers)

    def processing_time_timer_count(self) -> int:
        """How many processing-time timers wait."""
        return len(self._processing_timers)

    def advance_watermark(self, watermark: int) -> None:
        """Fires what is due at a watermark."""
        self.current_watermark = watermark
        pop, select = self._event_timers.pop_until, self._backend.set_current_state_key
        fire = self._target.on_event_time
        while (timer := pop(watermark)) is not None:
            time, namespace, state_key = timer
            select(state_key)
            fire(time, namespace)

    def _on_processing_time(self, until: int) -> None:
        self._call = None
        pop, select = self._processing_timers.pop_until, self._backend.set_current_state_key
        fire = self._target.on_processing_time
        while (timer := pop(until)) is not None:
            time, namespace, state_key = timer
            select(state_key)
            fire(time, namespace)
        if self._call is None:
            self._await_next()

    def await_anew(self) -> None:
        """Asks the clock for the first of the timers that wait now."""
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
    """Timers of one key at a time, which fire at its end; see the module."""

    def register_event_time_timer(self, namespace: Any, time: int) -> None:
        """Has a timer fire at the end of the key; nothing happens at that end."""
        if self.current_watermark != MAX_LONG_VALUE:
            super().register_event_time_timer(namespace, time)

    def register_processing_time_timer(self, namespace: Any, time: int) -> None:
        """Has a timer fire at the end of the key; nothing happens at that end."""
        if self.current_watermark != MAX_LONG_VALUE:
            self._processing_timers.add(time, namespace, self._backend.state_key)

    def advance_watermark(self, watermark: int) -> None:
        """The last watermark ends the key at hand; there are no others in batch mode."""
        if watermark == MAX_LONG_VALUE:
            self.end_key()

    def end_key(self) -> None:
        """Fires everything that the key at hand has registered."""
        if not (self._event_timers or self._processing_timers):
            return
        super().advance_watermark(MAX_LONG_VALUE)
        self._on_processing_time(MAX_LONG_VALUE)
        self.current_watermark = MIN_LONG_VALUE

    def _await(self, time: int) -> None:
        """The clock decides nothing here."""


class TimerServices:
    """All timer services of one operator.

    Args:
        backend: Whose current key timers belong to.
        processing_time: The operator's clock.
        hasher: The hash code of keys, as the backend's.
        is_batch: Whether timers fire at the end of each key.
        where: The operator and its call site, for messages.
    """

    def __init__(
        self,
        backend: KeyedStateBackend,
        processing_time: ProcessingTimeService,
        *,
        hasher: Hasher | None = None,
        is_batch: bool = False,
        where: str = "the operator",
    ) -> None:
        self._backend = backend
        self._processing_time = processing_time
        self._hasher = hasher
        self._kind = BatchTimerService if is_batch else InternalTimerService
        self._where = where
        self._services: dict[str, InternalTimerService] = {}
        self._queues: dict[str, tuple[KeyedTimers, KeyedTimers]] = {}
        self._made_router: KeyRouter | None = None
        # The number of the next changes is 0 where they would not be complete.
        self._tracks_changes = False
        self._next_number = 0

    def service(self, name: str, target: Triggerable) -> InternalTimerService:
        """The service of a name, made when first asked for: it then has the restored timers."""
        service = self._services.get(name)
        if service is None:
            service = self._services[name] = self._kind(
                self._backend, self._processing_time, target, *self._queues_of(name)
            )
        return service

    def advance_watermark(self, watermark: int) -> None:
        """Fires what is due, service by service in the order in which they were made."""
        for service in self._services.values():
            service.advance_watermark(watermark)

    def begin_at(self, watermark: int) -> None:
        """Lets the services begin at a watermark; nothing fires."""
        for service in self._services.values():
            service.current_watermark = watermark

    def end_key(self) -> None:
        """In batch mode: fires what the current key has registered."""
        self.advance_watermark(MAX_LONG_VALUE)

    def event_time_timer_count(self) -> int:
        """How many event-time timers wait, in all services."""
        return sum(len(event_timers) for event_timers, _ in self._queues.values())

    def processing_time_timer_count(self) -> int:
        """How many processing-time timers wait, in all services."""
        return sum(len(processing_timers) for _, processing_timers in self._queues.values())

    def service_names(self) -> list[str]:
        """The names of the services known so far, restored ones included."""
        return list(self._queues)

    def snapshot(self) -> dict[int, bytes]:
        """All timers by key group, as the backend's snapshot; key groups without timers are left out.

        The frame of a key group (see keyed_frames; timer_changes has what may follow it) is a pickle of
        (1, {name: (event rows, processing rows)}), a row being (position among the timers of service
        and clock, time, namespace, key).
        """
        groups: dict[int, dict[str, tuple[list[Row], list[Row]]]] = {}
        for name, queues in self._queues.items():
            for domain, timers in enumerate(queues):
                forget_empty(timers)
                rows = [
                    (position, time, namespace, key_of(state_key))
                    for position, (time, namespace, state_key) in enumerate(timers)
                ]
                key_groups = self._router.key_groups_of([row[3] for row in rows])
                for group, row in zip(key_groups, rows, strict=True):
                    services = groups.setdefault(group, {})
                    services.setdefault(name, ([], []))[domain].append(row)
        self._begin_changes(1)
        return {
            group: dump_records((WHOLE, services)) for group, services in sorted(groups.items())
        }

    def restore(self, snapshots: Iterable[Mapping[int, bytes]]) -> None:
        """Takes in the timers of this subtask's key groups; before `service` is called.

        Raises:
            StateError: A snapshot can't be read.
        """
        last = 0
        groups = self._backend.key_groups
        with collector_paused():
            for last, frames in in_order(snapshots, groups, "a snapshot of timers", self._where):
                if last == 0:
                    self._restore_whole(frames)
                else:
                    self._apply(frames)
        number = max(last + 1, self._next_number)
        self._begin_changes(number)
        self._next_number = number

    def track_changes(self) -> None:
        """Notes from the next snapshot or the last restore on which timers come and go; off by default."""
        self._tracks_changes = True
        for queues in self._queues.values():
            for timers in queues:
                timers.journal = {}

    def snapshot_changes(self) -> dict[int, bytes]:
        """What came and went since the last snapshot of either kind, by key group; then starts anew.

        Raises:
            StateError: Changes are not tracked, or there was no snapshot.
        """
        if not (self._tracks_changes and self._next_number):
            raise StateError(
                f"{self._where}: changes of timers are asked for where they are not tracked since a "
                "snapshot; call track_changes(), and take a whole snapshot first"
            )
        groups: dict[int, dict[str, list[Any]]] = {}
        for name, queues in self._queues.items():
            service = self._services.get(name)
            for domain, timers in enumerate(queues):
                changes = journaled(timers)
                if service is not None and domain == 0:
                    changes.extend(service.unjournaled)
                for group, of_group in by_key_group(changes, self._router).items():
                    services = groups.setdefault(group, {})
                    services.setdefault(name, [([], [], []), ([], [], [])])[domain] = of_group
        number = self._next_number
        self._begin_changes(number + 1)
        return {
            group: dump_records((CHANGES, number, services))
            for group, services in sorted(groups.items())
        }

    def apply_changes(self, changes: Mapping[int, bytes]) -> None:
        """Takes in what `snapshot_changes` gave, on top of what was restored from before it."""
        self.restore([changes])
        for service in self._services.values():
            service.await_anew()

    def _restore_whole(self, frames: Sequence[tuple[int, Any]]) -> None:
        found: dict[tuple[str, int], list[tuple[int, int, int, Any, Any]]] = {}
        for group, (_, services) in frames:
            for name, queues in services.items():
                for domain, rows in enumerate(queues):
                    found.setdefault((name, domain), []).extend(
                        (time, position, group, namespace, key)
                        for position, time, namespace, key in rows
                    )
        identity = self._backend.identity
        for (name, domain), waiting in found.items():
            timers = self._queues_of(name)[domain]
            for time, _, _, namespace, key in sorted(waiting, key=lambda row: row[:3]):
                timers.add(time, namespace, identity.of(key))

    def _apply(self, frames: Sequence[tuple[int, Any]]) -> None:
        found: dict[tuple[str, int], list[Any]] = {}
        for group, (_, _, services) in frames:
            for name, queues in services.items():
                for domain, changes in enumerate(queues):
                    found.setdefault((name, domain), []).append((group, changes))
        for (name, domain), of_groups in found.items():
            timers = self._queues_of(name)[domain]
            apply_changes(timers, of_groups, self._backend.identity, self._router)

    def _begin_changes(self, number: int) -> None:
        if not self._tracks_changes:
            self._next_number = 0
            return
        self._next_number = number
        for queues in self._queues.values():
            for timers in queues:
                timers.journal = {}
        for service in self._services.values():
            service.unjournaled = TimerChanges()

    @property
    def _router(self) -> KeyRouter:
        if self._made_router is None:
            self._made_router = KeyRouter(self._backend.max_parallelism, 1, self._hasher)
        return self._made_router

    def _queues_of(self, name: str) -> tuple[KeyedTimers, KeyedTimers]:
        queues = self._queues.get(name)
        if queues is None:
            queues = self._queues[name] = KeyedTimers(), KeyedTimers()
            if self._tracks_changes:
                for timers in queues:
                    timers.journal = {}
        return queues
