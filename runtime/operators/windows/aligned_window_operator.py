"""A fast operator for tumbling and sliding event-time windows with the default trigger.

These windows begin and end at the same times for all keys. So there is one dictionary per window, from key to
contents (a *pane*), and one entry in a queue of window ends. A record costs a subtraction and two look-ups, and a
window fires by iterating over its pane. The general WindowOperator calls a trigger for each record, and has timers
for each key.

Both operators emit the same results in the same order: windows by their ends, and the keys of a window in the order
of their first records, which is the order of the general operator's timers. Flink leaves the order of equal timers
open.
"""

from __future__ import annotations

import heapq
import operator
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.window import TimeWindow
from opchain.runtime.operators.process import emit_where_read
from opchain.runtime.operators.window_folds import FoldedRecords, are_contents, merger
from opchain.runtime.operators.windows.evaluation import has_clear
from opchain.runtime.operators.windows.window_operator import KeyedWindowOperator, WindowOperator
from opchain.runtime.operators.windows.window_state import (
    CONTENTS,
    TIMERS,
    BufferedContents,
    contents_of,
    declare_contents,
    described_windows,
)
from opchain.runtime.state.keyed.keyed_changes import KEEPS_PLACE
from opchain.runtime.state.keyed.state_table import newest
from opchain.runtime.state.keys.key_identity import key_of
from opchain.runtime.time import MAX_LONG_VALUE, MIN_LONG_VALUE
from opchain.runtime.windows.time_windows import (
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowStagger,
)
from opchain.runtime.windows.triggers import EventTimeTrigger

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, MutableMapping, Sequence

    from opchain.runtime.operators.operator import OperatorContext, Output
    from opchain.runtime.program.operator_specs import WindowSpec
    from opchain.runtime.program.vertex_program import OperatorProgram
    from opchain.runtime.records.columns import Columns
    from opchain.runtime.state.operator_snapshot import OperatorSnapshot
    from opchain.runtime.state.timers.internal_timer_service import InternalTimerService


def is_aligned(spec: WindowSpec, *, is_batch: bool) -> bool:
    """Whether AlignedWindowOperator runs a spec.

    In batch mode, functions that get the records themselves are run key by key (KeyByKeyWindowOperator): only the
    records of one key are kept.
    """
    keeps_records = spec.reduce is None and spec.aggregate is None
    return has_plain_windows(spec) and not (is_batch and keeps_records)


def has_plain_windows(spec: WindowSpec) -> bool:
    """Whether a spec has tumbling or sliding event-time windows with the default trigger.

    A function with a `clear` is left to the general operator where windows are dropped while others fire (with
    lateness).
    """
    return (
        type(spec.assigner) in (TumblingEventTimeWindows, SlidingEventTimeWindows)
        and getattr(spec.assigner, "stagger", WindowStagger.ALIGNED) is WindowStagger.ALIGNED
        and type(spec.trigger) is EventTimeTrigger
        and spec.evictor is None
        and not (spec.allowed_lateness_ms and has_clear(spec.function))
    )


class KeyByKeyWindowOperator(WindowOperator):
    """Runs these windows in batch mode: the windows of a key fire after its last record."""

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self._size, self._slide, self._offset = self.assigner.pace  # type: ignore[attr-defined]
        self._plain, self._identify = self.backend.identity.plain, self.backend.identity.of
        self._held: dict[int, list[Any]] = {}

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Adds the record to its windows, the latest first."""
        key = self.select_key(value)
        if key.__class__ not in self._plain:
            key = self._identify(key)
        if key != self.backend.state_key:
            self.backend.set_current_state_key(key)
        if timestamp is None:
            self.refuse(value)
        held = self._held
        latest = timestamp - (timestamp - self._offset) % self._slide
        for start in range(latest, timestamp - self._size, -self._slide):
            if start in held:
                held[start].append(value)
                continue
            window = TimeWindow(start, start + self._size)
            self.lateness.cleanup_time(window)  # raises for an end after the largest timestamp
            if not held:
                self.timers.register_event_time_timer(window, window.max_timestamp())
            held[start] = [value]

    def on_event_time(self, time: int, window: Any) -> None:  # noqa: ARG002 - one timer stands for all windows
        """Fires all windows of the key."""
        self.evaluation.emit_each(self._due())

    def _due(self) -> Iterator[tuple[Any, TimeWindow, Any]]:
        held, self._held = self._held, {}
        for start in sorted(held):
            window = TimeWindow(start, start + self._size)
            self.evaluation.context.enter(window)
            yield self.backend.current_key, window, held.pop(start)
            self.evaluation.clear(window)


class _FiredPane:
    """A window that has fired, and is kept for late records until its cleanup time.

    `pending` has keys that have not fired. There are some after a restore that combines subtasks: the window had
    fired in one of them, and not yet in another.
    """

    __slots__ = ("pane", "pending")

    def __init__(self, pane: MutableMapping[Any, Any]) -> None:
        self.pane = pane
        self.pending: dict[Any, None] = {}


class AlignedWindowOperator(KeyedWindowOperator):
    """Runs aligned event-time windows.

    `panes` has the windows that the watermark has not passed, by their start. `panes_since` has the windows of records by
    the start of a record's latest window, if they are sliding windows. With allowed lateness, windows that have fired are
    kept until their cleanup time, and fire again with each record. In batch mode all windows fire at the end of the
    input.
    """

    ends_keys = False

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        assigner = self.spec.assigner
        assert isinstance(assigner, (TumblingEventTimeWindows, SlidingEventTimeWindows))
        self.size, self.slide, self.offset = assigner.pace
        self.contents = contents_of(self.spec)
        self.panes: dict[int, MutableMapping[Any, Any]] = {}
        self.panes_since: dict[int, Sequence[MutableMapping[Any, Any]]] = {}
        self._fired_panes: dict[int, _FiredPane] = {}
        # Heaps of window starts: windows that have not fired, and windows that have.
        self._starts: list[int] = []
        self._retained_starts: list[int] = []
        self.plain, self.identify = self.backend.identity.plain, self.backend.identity.of
        self._key: Any = None
        self._merge: Callable[[Any, Any], Any]
        self._folds_are_contents: bool
        self._timers: InternalTimerService

    @property
    def can_catch_up(self) -> bool:
        """False: `open` builds the panes and heaps from the tables."""
        return False

    @property
    def current_key(self) -> Any:
        """The key of the current record or window."""
        return None if self._key is None else key_of(self._key)

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Adds the record to its windows, the latest first."""
        key = self.select_key(value)
        if key.__class__ not in self.plain:
            key = self.identify(key)
        self._key = key
        if timestamp is None:
            self.refuse(value)
        latest = timestamp - (timestamp - self.offset) % self.slide
        if timestamp - latest >= self.size:
            self.skip(value, timestamp)  # between two windows
        for pane in self.panes_for(latest, key, value, timestamp):
            pane[key] = self.contents.added(pane.get(key), value)

    def process_folded(self, batch: Columns, timestamps: Sequence[int]) -> None:
        """Merges partial results that a sender has folded into their windows. The timestamps are starts of slices."""
        kinds, lists = batch.layout[0][1:], batch.lists
        merge = self._merge = merger(kinds, self.contents)
        is_contents = self._folds_are_contents = are_contents(kinds)
        self.records_in += sum(lists[1])
        adds_up = is_contents and merge is operator.add
        first = 0
        for start, of_slice in groupby(timestamps):
            last = first + sum(1 for _ in of_slice)
            keys, counts, results = (each[first:last] for each in (lists[0], lists[1], lists[-1]))
            first = last
            latest = start - (start - self.offset) % self.slide
            if adds_up and latest in self.panes_since:
                for pane in self.panes_since[latest]:
                    earlier_of = pane.get
                    for key, held in zip(keys, results, strict=True):
                        pane[key] = earlier_of(key, 0) + held
                continue
            for key, count, held in zip(keys, counts, results, strict=True):
                self._key = key
                panes = self.panes_since.get(latest)
                if panes is None:
                    panes = self.panes_for(latest, key, FoldedRecords(count, held), start)
                for pane in panes:
                    earlier = pane.get(key)
                    pane[key] = held if earlier is None and is_contents else merge(earlier, held)

    def _added(self, contents: Any, value: Any) -> Any:
        if value.__class__ is not FoldedRecords:
            return self.contents.added(contents, value)
        if contents is None and self._folds_are_contents:
            return value.held
        return self._merge(contents, value.held)

    def panes_for(
        self, latest: int, key: Any, value: Any, timestamp: int
    ) -> Sequence[MutableMapping[Any, Any]]:
        """The panes of a record's windows, the latest first. `latest` is the start of its latest window.

        See `pane_for`. If all of these windows are open, `panes_since` has them from now on.
        """
        starts = range(latest, timestamp - self.size, -self.slide)
        panes = []
        for start in starts:
            pane = self.panes.get(start)
            if pane is None:
                pane = self.pane_for(start, key, value, timestamp)
            if pane is not None:
                panes.append(pane)
        if len(panes) == len(starts) and self.size % self.slide == 0:
            self.panes_since[latest] = panes
        return panes

    def pane_for(
        self, start: int, key: Any, value: Any, timestamp: int
    ) -> MutableMapping[Any, Any] | None:
        """The pane of a window that is not in `panes`; None if the record needs no pane.

        A new window is created. A window that has fired adds the record, and fires again for this key. An expired
        window drops the record. If the record's latest window has expired, the record counts as late.
        """
        if start <= MIN_LONG_VALUE:
            self.refuse(value)
        window = TimeWindow(start, start + self.size)
        if self.lateness.is_window_late(window, self.current_watermark):
            if timestamp - start < self.slide:
                self.skip(value, timestamp)
            return None
        fired = self._fired_panes.get(start)
        if fired is None:
            pane = self.backend.table(CONTENTS, window)
            if window.max_timestamp() > self.current_watermark:
                self._open(start, pane)
                return pane
            fired = self._keep_fired(start, pane)
        fired.pane[key] = self._added(fired.pane.get(key), value)
        if window.max_timestamp() <= self.current_watermark:
            self._fire(window, {key: fired.pane[key]}, timestamp)
        elif key not in fired.pending:
            self._await(start, fired, key)
        return None

    def process_watermark(self, watermark: int) -> None:
        """Fires the windows that the watermark passes, in the order of their ends, and drops old ones."""
        self.current_watermark = watermark
        self.panes_since.clear()
        while self._starts and self._starts[0] + self.size - 1 <= watermark:
            start = heapq.heappop(self._starts)
            window = TimeWindow(start, start + self.size)
            pane = self.panes.pop(start, None)
            if pane is None:
                fired = self._fired_panes[start]
                due = {key: fired.pane[key] for key in fired.pending}
                self._timers_are_over(window, window.max_timestamp(), due)
                fired.pending.clear()
                self._fire(window, due, window.max_timestamp())
            else:
                self._timers_are_over(window, window.max_timestamp(), pane)
                self._fire(window, pane, window.max_timestamp())
                if self.lateness.allowed_ms:
                    self._keep_fired(start, pane)
                else:
                    self.backend.drop(CONTENTS, window)
        while self._retained_starts:
            start = self._retained_starts[0]
            window = TimeWindow(start, start + self.size)
            if not self.lateness.is_window_late(window, watermark):
                break
            heapq.heappop(self._retained_starts)
            pane = self._fired_panes.pop(start).pane
            self._timers_are_over(window, window.max_timestamp() + self.lateness.allowed_ms, pane)
            self.backend.drop(CONTENTS, window)
        super().process_watermark(watermark)

    def sort_keys(self, keys: Iterable[Any]) -> None:
        """Sorts the keys of all windows. For batch mode, where records come in another order."""
        place_of = {key: place for place, key in enumerate(keys)}
        for pane in self.panes.values():
            entries = [(key, pane[key]) for key in sorted(pane, key=place_of.__getitem__)]
            pane.clear()
            pane.update(entries)

    def _open(self, start: int, pane: MutableMapping[Any, Any]) -> None:
        self.panes[start] = pane
        heapq.heappush(self._starts, start)

    def _keep_fired(self, start: int, pane: MutableMapping[Any, Any]) -> _FiredPane:
        fired = self._fired_panes[start] = _FiredPane(pane)
        heapq.heappush(self._retained_starts, start)
        return fired

    def _await(self, start: int, fired: _FiredPane, key: Any) -> None:
        if not fired.pending:
            heapq.heappush(self._starts, start)
        fired.pending[key] = None

    def _fire(self, window: TimeWindow, pane: MutableMapping[Any, Any], time: int) -> None:
        contents, evaluation = self.contents, self.evaluation
        due = self._clearing(window, pane) if evaluation.clears else pane.items()
        if evaluation.fire is not None:
            evaluation.context.enter(window)
            evaluation.fire(due, window, time)
            return
        if isinstance(contents, BufferedContents) or evaluation.has_function:
            evaluation.emit_all(window, self._evaluated(due), time)
            return
        output = self.output
        collect = partial(emit_where_read, output) if output.sides else output.collect
        result_of = contents.result
        for self._key, held in pane.items():
            result = result_of(held)
            if result is not None:
                collect(result, time)

    def _clearing(
        self, window: TimeWindow, pane: MutableMapping[Any, Any]
    ) -> Iterator[tuple[Any, Any]]:
        """Yields the keys of a window and their contents, and clears the window of each key."""
        for key, held in pane.items():
            yield key, held
            # With lateness, this operator runs no function that has a `clear`: see has_plain_windows.
            self.evaluation.clear(window)

    def _evaluated(self, due: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        """Yields keys and their elements. A key is the current key until the next is requested."""
        for self._key, held in due:
            self.backend.set_current_state_key(self._key)
            elements = self.contents.elements(held)
            if elements is not None:
                yield self.backend.current_key, elements

    # Snapshots have the timers that the general operator would have. So either operator can read them.

    def open(self) -> None:
        """Opens the functions, and divides restored windows into those that have fired and those that have not."""
        super().open()
        declare_contents(self)
        self._timers = self.context.timers.service(TIMERS, self, described_windows(self.spec))
        pending: dict[Any, dict[Any, None]] = {}
        for time, window, key in self._take_timers():
            if time == window.max_timestamp():
                pending.setdefault(window, {})[key] = None
        for window in filter(self._is_own, self.backend.namespaces(CONTENTS)):
            pane = self.backend.table(CONTENTS, window)
            # A trigger that purges leaves timers of keys without contents.
            waiting = [key for key in pending.get(window, ()) if key in pane]
            if len(waiting) == len(pane):
                self._open(window.start, pane)
                continue
            fired = self._keep_fired(window.start, pane)
            for key in waiting:
                self._await(window.start, fired, key)
        self._timers.forget_changes()

    def snapshot_state(self, checkpoint_id: int, timestamp_ms: int) -> OperatorSnapshot:
        """The whole state of this subtask, for a checkpoint."""
        for time, window, keys in self._waiting():
            for key in keys:
                self.backend.set_current_state_key(key)
                self._timers.register_event_time_timer(window, time)
        snapshot = super().snapshot_state(checkpoint_id, timestamp_ms)
        self._take_timers()
        self._timers.forget_changes()
        return snapshot

    def snapshot_changes(self, checkpoint_id: int, timestamp_ms: int) -> OperatorSnapshot:
        """The changes: the touched keys of current windows, and windows that have ended."""
        if not self.backend.tracks_changes:
            return self.snapshot_state(checkpoint_id, timestamp_ms)
        touched = self.backend.touched_keys()
        self._timers.unjournaled.added += [
            (KEEPS_PLACE, time, window, key)
            for time, window, keys in self._waiting()
            for key in newest(keys, touched)
        ]
        windows = (
            TimeWindow(start, start + self.size) for start in (*self.panes, *self._fired_panes)
        )
        self.backend.write_to(CONTENTS, windows)
        return super().snapshot_changes(checkpoint_id, timestamp_ms)

    def _waiting(self) -> Iterator[tuple[int, TimeWindow, MutableMapping[Any, Any]]]:
        """The timers that the general operator would have: time, window, and the keys that have one."""
        for start in sorted(self._starts):
            fired = self._fired_panes.get(start)
            window = TimeWindow(start, start + self.size)
            keys = self.panes[start] if fired is None else fired.pending
            yield window.max_timestamp(), window, keys
        if not self.lateness.allowed_ms:
            return
        for start in sorted((*self._retained_starts, *self.panes)):
            window = TimeWindow(start, start + self.size)
            time = window.max_timestamp() + self.lateness.allowed_ms
            if time < MAX_LONG_VALUE:  # the end of time needs no timer
                fired = self._fired_panes.get(start)
                yield time, window, self.panes[start] if fired is None else fired.pane

    def _timers_are_over(self, window: TimeWindow, time: int, keys: Collection[Any]) -> None:
        """Records that timers of a window no longer exist, if changes are tracked."""
        if self.backend.tracks_changes:
            key_groups = self.backend.key_groups_of(keys)
            self._timers.unjournaled.dropped.append((time, window, key_groups))

    def _take_timers(self) -> list[tuple[int, TimeWindow, Any]]:
        """Takes the timers of this assigner's windows out of the timer service, and returns them.

        The service keeps restored timers of an assigner with another size or offset. Their windows get no more
        records; the timers fire and drop them.
        """
        own = []
        for timer in self._timers.take_event_time_timers():
            time, window, key = timer
            if self._is_own(window):
                own.append(timer)
            else:
                self.backend.set_current_state_key(key)
                self._timers.register_event_time_timer(window, time)
        return own

    def _is_own(self, window: Any) -> bool:
        return (
            isinstance(window, TimeWindow)
            and window.end - window.start == self.size
            and (window.start - self.offset) % self.slide == 0
        )

    def on_event_time(self, time: int, window: Any) -> None:
        """Takes a timer of a restored window of another assigner."""
        key, pane = self.backend.state_key, self.backend.table(CONTENTS, window)
        if time == window.max_timestamp() and key in pane:
            self._fire(window, {key: pane[key]}, time)
        if time == self.lateness.cleanup_time(window):
            pane.pop(key, None)
            self.backend.leave(CONTENTS, window)

    def on_processing_time(self, time: int, window: Any) -> None:
        """Does nothing: there are no processing-time timers."""
