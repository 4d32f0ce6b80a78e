"""A fast operator for event-time sessions with the default trigger.

Most records fall into the latest session of their key, or extend it. Then a record costs a look-up and a comparison:
a session in memory is an object whose start and end change in place. MergingWindowOperator replaces a window, its timer
and its entries in tables with each record that extends a session.

A queue has one entry per session, with the end that the session had when the entry was made. When the watermark reaches
this end, the session fires. If it has been extended since, the entry moves to the new end instead.

Both operators emit the same results in the same order: sessions by their ends, then by their starts, then in the order
in which they last changed. Snapshots contain the tables and timers that MergingWindowOperator would have, so both
operators read them. They are written for the keys that changed since the last snapshot. If state is on disk,
this operator uses the code of MergingWindowOperator.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import heappop, heappush, heapreplace
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.function import has_lifecycle
from opchain.runtime.functions.window import TimeWindow
from opchain.runtime.operators.windows.evaluation import has_clear
from opchain.runtime.operators.windows.merging_window_operator import (
    START,
    MergingWindowOperator,
    MergingWindowSet,
    touching,
)
from opchain.runtime.operators.windows.window_state import CONTENTS, united
from opchain.runtime.state.keyed.hash_map_backend import HashMapKeyedStateBackend
from opchain.runtime.time import MAX_LONG_VALUE, MIN_LONG_VALUE
from opchain.runtime.windows.time_windows import (
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
)
from opchain.runtime.windows.triggers import EventTimeTrigger

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opchain.runtime.operators.operator import OperatorContext, Output
    from opchain.runtime.program.operator_specs import WindowSpec
    from opchain.runtime.program.vertex_program import OperatorProgram
    from opchain.runtime.state.operator_snapshot import OperatorSnapshot


def has_plain_sessions(spec: WindowSpec) -> bool:
    """Whether SessionWindowOperator runs a spec.

    Functions that are called while records are added have no current key here, so they may not use state.
    """
    return (
        type(spec.assigner) in (EventTimeSessionWindows, DynamicEventTimeSessionWindows)
        and type(spec.trigger) is EventTimeTrigger
        and spec.evictor is None
        and not (spec.allowed_lateness_ms and has_clear(spec.function))
        and not adds_with_state(spec)
    )


def adds_with_state(spec: WindowSpec) -> bool:
    """Whether the function that takes records in may have state, so that it needs the current key."""
    return has_lifecycle(spec.reduce) or has_lifecycle(spec.aggregate)


class _Session:
    """A session of a key.

    `change` orders sessions by their last change. `state_window` is the namespace of the contents in snapshots, None
    before the first snapshot. A session that has fired is kept for late records. A session that `was_merged` is part
    of another one.
    """

    __slots__ = ("change", "end", "has_fired", "held", "key", "start", "state_window", "was_merged")

    def __init__(self, key: Any, start: int, end: int, change: int) -> None:
        self.key = key
        self.start = start
        self.end = end
        self.change = change
        self.held: Any = None
        self.has_fired = self.was_merged = False
        self.state_window: TimeWindow | None = None

    @property
    def window(self) -> TimeWindow:
        """The current window."""
        return TimeWindow(self.start, self.end)


_IN_ORDER = attrgetter("end", "start", "change")


class SessionWindowOperator(MergingWindowOperator):
    """Keeps the sessions of each key as objects.

    `latest_session` has the latest session of a key if it has not fired, `_others` the rest of the key's sessions,
    sorted by start. Sessions of a key never overlap or touch each other.
    `changed` has the keys whose sessions have changed since the last snapshot; None if changes are not tracked.
    """

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.gap_of = self.assigner.gap_of  # type: ignore[attr-defined]
        self.next_change = count().__next__
        self.latest_session: dict[Any, _Session] = {}
        self.changed: dict[Any, None] | None = None
        self.plain, self.identify = self.backend.identity.plain, self.backend.identity.of
        self._others: dict[Any, list[_Session]] = {}
        self._queue: list[tuple[int, int, _Session]] = []
        self._is_in_memory = type(self.backend) is HashMapKeyedStateBackend
        self._is_batch = context.task.vertex.is_batch

    @property
    def can_catch_up(self) -> bool:
        """False for sessions in memory: `open` reads them from the tables."""
        return not self._is_in_memory

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Adds the record to its session."""
        self.backend.set_current_key(self.select_key(value))
        key = self.backend.state_key
        if timestamp is None:
            self.refuse(value)
        end = timestamp + self.gap_of(value)
        session = self.latest_session.get(key)
        if session is None or not session.start <= timestamp <= session.end or end > MAX_LONG_VALUE:
            session = self.session_for(key, value, timestamp, end)
        elif end > session.end:
            session.end, session.change = end, self.next_change()
        if session is not None:
            if self.changed is not None:
                self.changed[key] = None
            session.held = self.contents.kind.added(session.held, value)

    def session_for(self, key: Any, value: Any, timestamp: int, end: int) -> _Session | None:
        """The session for a record that the latest session of its key does not contain: a new, extended or merged one.

        None if the record is already handled: it was late, or was added to a session that fired again.
        """
        if not self._is_in_memory:
            self.backend.set_current_state_key(key)
            self.put_into((TimeWindow(timestamp, end),), value, timestamp)
            return None
        touched = self._touched(key, timestamp, end)
        window = new = TimeWindow(timestamp, end)
        if touched:
            window = TimeWindow(
                min(timestamp, *[item.start for item in touched]),
                max(end, *[item.end for item in touched]),
            )
        watermark = self.timers.current_watermark
        if self.lateness.is_window_late(window, watermark):
            self.skip(value, timestamp)
            return None
        if len(touched) == 1 and not touched[0].has_fired:
            (session,) = touched
            if (session.start, session.end) != (window.start, window.end):
                session.start, session.end = window.start, window.end
                session.change = self.next_change()
            return session
        session = self._merged(key, touched, window, new)
        self._add(session)
        if not session.has_fired:
            if self._is_batch and not self._queue:
                self.timers.register_event_time_timer(window, window.end - 1)
            self._enqueue(session, window.end - 1)
            return session
        if self.changed is not None:
            self.changed[key] = None
        session.held = self.contents.kind.added(session.held, value)
        self._enqueue(session, self.lateness.cleanup_time(window))
        fired = self._fired(session, session.window)
        if fired is not None:
            self.evaluation.emit(*fired, timestamp)
        return None

    def process_watermark(self, watermark: int) -> None:
        """Fires the sessions that the watermark passes, and drops old ones."""
        self.current_watermark = watermark
        self.context.timers.advance_watermark(watermark)
        if not self._is_batch:
            self._fire(watermark)
        self.output.emit_watermark(watermark)

    def on_event_time(self, time: int, window: Any) -> None:
        """Takes a timer. In batch mode the one timer fires after the last record of a key, and fires its sessions.

        In streaming mode the timers of a snapshot fire too; they are ignored, because the queue has their sessions.
        """
        if not self._is_in_memory:
            super().on_event_time(time, window)
        elif self._is_batch:
            self._fire(self.timers.current_watermark)

    def _sessions_of(self, key: Any) -> list[_Session]:
        latest = self.latest_session.get(key)
        others = self._others.get(key, ())
        return [*others] if latest is None else [*others, latest]

    def _touched(self, key: Any, start: int, end: int) -> list[_Session]:
        """The sessions of a key that overlap or touch a window."""
        latest = self.latest_session.get(key)
        if latest is not None and latest.end < start:
            return []
        found = touching(self._others.get(key, []), start, end)
        if latest is not None and latest.start <= end:
            found.append(latest)
        return found

    def _add(self, session: _Session) -> None:
        """Adds a session that touches no other session of its key."""
        key = session.key
        latest, others = self.latest_session.get(key), self._others.get(key)
        if session.has_fired or session.start < self._last_start(latest, others):
            insort(self._others.setdefault(key, []), session, key=START)
            return
        self.latest_session[key] = session
        if latest is not None:
            self._others.setdefault(key, []).append(latest)

    def _drop(self, session: _Session) -> None:
        """Drops a session."""
        key = session.key
        if self.latest_session.get(key) is session:
            del self.latest_session[key]
            return
        others = self._others[key]
        del others[bisect_left(others, session.start, key=START)]  # the first one, as a rule
        if not others:
            del self._others[key]

    def _keep(self, session: _Session) -> None:
        """Keeps a session that has fired for late records."""
        key = session.key
        if self.latest_session.get(key) is session:
            del self.latest_session[key]
            self._others.setdefault(key, []).append(session)

    @staticmethod
    def _last_start(latest: _Session | None, others: list[_Session] | None) -> int:
        if latest is not None:
            return latest.start
        return others[-1].start if others else MIN_LONG_VALUE

    def _merged(
        self, key: Any, touched: list[_Session], window: TimeWindow, new: TimeWindow
    ) -> _Session:
        """The session that replaces the touched ones, which are dropped. It does not have the new record yet."""
        session = _Session(key, window.start, window.end, self.next_change())
        session.has_fired = window.end - 1 <= self.timers.current_watermark
        if not touched:
            return session
        session_of = {item.window: item for item in touched}
        parts = list(session_of.values())
        if len(parts) > 1:
            merged = MergingWindowSet(self.merging_assigner, dict.fromkeys(session_of))
            merged.add(new, lambda _, group, *__: parts.sort(key=_place_in(group)))
        session.state_window = parts[0].state_window
        others = [item.held for item in parts[1:] if item.held is not None]
        session.held = united(self.contents.kind, parts[0].held, others)
        for item in parts:
            item.was_merged, item.held = True, None
            self._drop(item)
        return session

    # Firing

    def _enqueue(self, session: _Session, time: int) -> None:
        heappush(self._queue, (time, session.change, session))

    def _fire(self, watermark: int) -> None:
        queue, due = self._queue, []
        lateness = self.lateness.allowed_ms
        while queue and queue[0][0] <= watermark:
            _, change, session = queue[0]
            time = session.end - 1 + (lateness if session.has_fired else 0)
            if time <= watermark or session.was_merged:
                heappop(queue)
                if not session.was_merged:
                    due.append(session)
            else:
                heapreplace(queue, (time, change, session))
        if due:
            due.sort(key=_IN_ORDER)
            self.evaluation.emit_each(self._due(due, watermark))

    def _due(self, sessions: Iterable[_Session], watermark: int) -> Iterator[tuple[Any, Any, Any]]:
        """Yields `_fired` of each session. Afterwards the session is dropped, or kept for late records."""
        for session in sessions:
            key, window = session.key, session.window
            if not session.has_fired:
                fired = self._fired(session, window)
                if fired is not None:
                    yield fired
                session.has_fired = True
            if self.changed is not None:
                self.changed[key] = None
            cleanup_time = self.lateness.cleanup_time(window)
            if cleanup_time > watermark:
                self._enqueue(session, cleanup_time)
                self._keep(session)
            else:
                self._drop(session)
            if self.evaluation.clears:
                self.evaluation.clear(window)

    def _fired(self, session: _Session, window: TimeWindow) -> tuple[Any, Any, Any] | None:
        """The key, window and elements of a session, whose key becomes the current key. None without elements."""
        self.backend.set_current_state_key(session.key)
        elements = None if session.held is None else self.contents.kind.elements(session.held)
        if elements is None:
            return None
        self.evaluation.context.enter(window)
        return self.backend.current_key, window, elements

    # Snapshots

    def open(self) -> None:
        """Opens the functions, and reads restored sessions."""
        super().open()
        if not self._is_in_memory:
            return
        place_of = {
            (window, key): place
            for place, (time, window, key) in enumerate(self.timers.event_timers)
            if time == window.max_timestamp()
        }
        found: list[tuple[int, int, Any, TimeWindow, TimeWindow]] = []
        for key, windows in self.mappings.items():
            for window, state_window in windows.items():
                place = place_of.get((window, key), -1)
                found.append((place, len(found), key, window, state_window))
        for place, _, key, window, state_window in sorted(found, key=lambda item: item[:2]):
            session = _Session(key, window.start, window.end, self.next_change())
            session.has_fired = place < 0
            session.state_window = state_window
            session.held = self.backend.table(CONTENTS, state_window).get(key)
            time = window.end - 1 if place >= 0 else self.lateness.cleanup_time(window)
            self._enqueue(session, time)
            self._add(session)
        self._begin_changes()

    def write_state(self, checkpoint_id: int, timestamp_ms: int) -> None:
        """Writes changed sessions to the tables and timers."""
        self._save()
        super().write_state(checkpoint_id, timestamp_ms)

    def snapshot_state(self, checkpoint_id: int, timestamp_ms: int) -> OperatorSnapshot:
        """The whole state of this subtask, for a checkpoint."""
        snapshot = super().snapshot_state(checkpoint_id, timestamp_ms)
        self._begin_changes()
        return snapshot

    def snapshot_changes(self, checkpoint_id: int, timestamp_ms: int) -> OperatorSnapshot:
        """The changes: the sessions of the keys that changed."""
        snapshot = super().snapshot_changes(checkpoint_id, timestamp_ms)
        self._begin_changes()
        return snapshot

    def _begin_changes(self) -> None:
        if self._is_in_memory:
            self.changed = {} if self.backend.tracks_changes else None

    def _save(self) -> None:
        """Writes changed sessions to the tables and timers, which are as of the last snapshot."""
        if not self._is_in_memory:
            return
        keys: Iterable[Any] = self.changed or ()
        if self.changed is None:
            keys = dict.fromkeys([*self.mappings, *self.latest_session, *self._others])
        saved = [session for key in keys for session in self._saved(key)]
        for session in sorted(saved, key=attrgetter("change")):
            self.backend.set_current_state_key(session.key)
            window = session.window
            cleanup_time = self.lateness.cleanup_time(window)
            if not session.has_fired:
                self.timers.register_event_time_timer(window, window.end - 1)
            if self.lateness.allowed_ms and cleanup_time != MAX_LONG_VALUE:
                self.timers.register_event_time_timer(window, cleanup_time)

    def _saved(self, key: Any) -> Iterable[_Session]:
        """Writes the sessions of a key to the tables, and returns them. Deletes timers of other windows."""
        self.backend.set_current_state_key(key)
        sessions = {item.window: item for item in self._sessions_of(key)}
        for window, session in sessions.items():
            session.state_window = session.state_window or window
        states = {window: item.state_window for window, item in sessions.items()}
        kept = set(states.values())
        for window, state_window in self.mappings.pop(key, {}).items():
            if window not in sessions:
                self.timers.delete_event_time_timer(window, window.end - 1)
                self.trigger.window = window
                self.delete_cleanup(window)
            if state_window not in kept:
                self.contents.select(state_window)
                self.contents.clear()
        for session in sessions.values():
            self.contents.select(session.state_window)
            self.contents.put(session.held)
        if states:
            self.mappings[key] = states
        return sessions.values()


def _place_in(group: list[TimeWindow]) -> Any:
    return lambda session: group.index(session.window)
