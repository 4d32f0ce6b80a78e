"""All timer services of an operator: one per name. They are restored, and written to snapshots by key group.

    timers = context.timers.service("window-timers", self)      # in open(); one service per name

The services themselves are in internal_timer_service.py. Flink: `InternalTimeServiceManagerImpl`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import StateError
from opchain.runtime.records.garbage_collection import gc_paused
from opchain.runtime.records.record_pickle import dump_records
from opchain.runtime.state.keyed.keyed_snapshot import CHANGES, WHOLE, in_order
from opchain.runtime.state.keys.key_identity import key_of
from opchain.runtime.state.keys.key_router import KeyRouter
from opchain.runtime.state.timers.internal_timer_service import (
    BatchTimerService,
    InternalTimerService,
    Triggerable,
)
from opchain.runtime.state.timers.keyed_timers import (
    KeyedTimers,
    TimerChanges,
    apply_changes,
    by_key_group,
    forget_empty,
    journaled,
)
from opchain.runtime.time import MAX_LONG_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opchain.runtime.mailbox.processing_time_service import ProcessingTimeService
    from opchain.runtime.state.keyed.keyed_backend import KeyedStateBackend
    from opchain.runtime.state.keys.java_hash import Hasher

    Row = tuple[int, int, Any, Any]


class TimerServices:
    """All timer services of one operator.

    Args:
        backend: Its current key is the key of a new timer.
        processing_time: The operator's clock.
        hasher: The hash function of the declared key type, as in the backend.
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
        self._types: dict[str, str] = {}
        self._queues: dict[str, tuple[KeyedTimers, KeyedTimers]] = {}
        self._made_router: KeyRouter | None = None
        # The number of the next changes is 0 if they would be incomplete.
        self._tracks_changes = False
        self._next_number = 0

    def service(self, name: str, target: Triggerable, type_text: str = "") -> InternalTimerService:
        """The service of a name. It is created on first use, with the restored timers.

        Timers that were saved with another `type_text` are refused; empty: any timers are accepted.
        """
        self._types[name] = type_text
        service = self._services.get(name)
        if service is None:
            service = self._services[name] = self._kind(
                self._backend, self._processing_time, target, *self._queues_of(name), self._where
            )
        return service

    def advance_watermark(self, watermark: int) -> None:
        """Fires due timers of all services, in the order in which the services were created."""
        for service in self._services.values():
            service.advance_watermark(watermark)

    def begin_at(self, watermark: int) -> None:
        """Sets the watermark of all services, without firing timers."""
        for service in self._services.values():
            service.current_watermark = watermark

    def fire_due(self) -> None:
        """Fires all processing-time timers that are due, at the end of the input. It does not wait for their mail."""
        for service in self._services.values():
            service.fire_processing_time()

    def end_key(self) -> None:
        """Fires all timers of the current key, in batch mode."""
        for service in self._services.values():
            service.advance_watermark(MAX_LONG_VALUE)

    def event_time_timer_count(self) -> int:
        """The number of event-time timers in all services."""
        return sum(len(event_timers) for event_timers, _ in self._queues.values())

    def processing_time_timer_count(self) -> int:
        """The number of processing-time timers in all services."""
        return sum(len(processing_timers) for _, processing_timers in self._queues.values())

    def described_services(self) -> list[tuple[str, str]]:
        """The names and types of all services. The type of a restored one that was not requested yet is empty."""
        return [(name, self._types.get(name, "")) for name in self._queues]

    def require_services(self) -> None:
        """Checks that each restored timer belongs to a service that the operator has requested. Call it after `open`.

        Raises:
            StateError: It does not, so it would never fire.
        """
        for name, queues in self._queues.items():
            count = sum(map(len, queues))
            if count and name not in self._services:
                raise StateError(
                    f"{self._where}: {count} of the saved timers ('{name}') would never fire, because the operator has no "
                    "timers now: keep a function with timers, such as a KeyedProcessFunction, or give the operator "
                    "another uid to start with empty state"
                )

    def snapshot(self) -> dict[int, bytes]:
        """All timers by key group. Key groups without timers are left out.

        The frame of a key group (see keyed_snapshot.py) is a pickle of (1, {name: (event rows, processing rows)}). A row
        is (position among the timers of service and clock, time, namespace, key). Frames of changes may follow it (see
        keyed_timers.py).
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
        """Restores the timers of this subtask's key groups. Call it before `service`.

        Raises:
            StateError: A snapshot can't be read.
        """
        last = 0
        groups = self._backend.key_groups
        with gc_paused():
            for last, frames in in_order(snapshots, groups, "a snapshot of timers", self._where):
                if last == 0:
                    self._restore_whole(frames)
                else:
                    self._apply(frames)
        number = max(last + 1, self._next_number)
        self._begin_changes(number)
        self._next_number = number

    def track_changes(self) -> None:
        """Begins to record added and removed timers for `snapshot_changes`, which is off by default."""
        self._tracks_changes = True
        for queues in self._queues.values():
            for timers in queues:
                timers.journal = {}

    def snapshot_changes(self) -> dict[int, bytes]:
        """The timers that were added and removed since the last snapshot of either kind, by key group.

        Raises:
            StateError: Changes are not tracked, or there was no snapshot.
        """
        if not (self._tracks_changes and self._next_number):
            raise StateError(
                f"{self._where}: changes of timers were requested, but are not tracked; call "
                f"track_changes(), and take a full snapshot first"
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
        """Applies the result of `snapshot_changes` to the timers that were restored from earlier snapshots."""
        self.restore([changes])
        for service in self._services.values():
            service.register_first_timer()

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
