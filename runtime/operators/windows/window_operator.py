"""The window operator for any assigner, trigger and evictor, its shortcuts, and the lateness rules of all window operators.

Flink: `WindowOperator` with its `Context`, `cleanupTime`, `isWindowLate` and `isElementLate`; `EvictingWindowOperator`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from opchain.runtime.errors import short_repr
from opchain.runtime.functions.window import CountWindow
from opchain.runtime.operators.operator import OperatorContext, Output, StreamOperator
from opchain.runtime.operators.window_folds import FoldedRecords
from opchain.runtime.operators.windows.evaluation import (
    AssignerContext,
    WindowContext,
    WindowEvaluation,
)
from opchain.runtime.operators.windows.window_state import (
    CONTENTS,
    TIMERS,
    described_windows,
    window_state_of,
)
from opchain.runtime.state.keyed.hash_map_backend import HashMapKeyedStateBackend
from opchain.runtime.time import MAX_LONG_VALUE, MIN_LONG_VALUE, timer_millis
from opchain.runtime.windows.data_triggers import CountTrigger, PurgingTrigger
from opchain.runtime.windows.global_windows import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    CountWindowAssigner,
)
from opchain.runtime.windows.time_windows import (
    SlidingProcessingTimeWindows,
    TumblingProcessingTimeWindows,
    WindowStagger,
    check_timestamp,
)
from opchain.runtime.windows.triggers import ProcessingTimeTrigger, Trigger, TriggerResult

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence

    from opchain.runtime.functions.window import Window
    from opchain.runtime.metrics.metric_group import MetricGroup
    from opchain.runtime.program.operator_specs import WindowSpec
    from opchain.runtime.program.vertex_program import OperatorProgram
    from opchain.runtime.state.keyed.keyed_backend import KeyedStateBackend
    from opchain.runtime.state.operator_snapshot import OperatorSnapshot
    from opchain.runtime.state.timers.internal_timer_service import InternalTimerService


@dataclass(frozen=True, slots=True)
class Lateness:
    """The lateness rules of one window operator. In processing time no record is late."""

    is_event_time: bool
    allowed_ms: int

    @classmethod
    def of(cls, spec: WindowSpec) -> Lateness:
        """The rules of a spec."""
        return cls(spec.assigner.is_event_time(), spec.allowed_lateness_ms)

    def cleanup_time(self, window: Window) -> int:
        """When the window's contents, trigger state and window state are dropped.

        Raises:
            ValueError: The window ends after the largest timestamp. In Flink the sum overflows, and the record is
                lost without being counted as late.
        """
        last = window.max_timestamp()
        if last > MAX_LONG_VALUE:
            raise ValueError(
                f"{window!r} ends after the largest timestamp, {MAX_LONG_VALUE} ms; check the "
                "timestamp assigner: its timestamps must be milliseconds since the epoch"
            )
        return min(last + self.allowed_ms, MAX_LONG_VALUE) if self.is_event_time else last

    def is_window_late(self, window: Window, watermark: int) -> bool:
        """Whether the window has expired, so it takes no more records."""
        return self.is_over(self.cleanup_time(window), watermark)

    def is_over(self, cleanup_time: int, watermark: int) -> bool:
        """`is_window_late` of a window with this cleanup time."""
        return self.is_event_time and cleanup_time <= watermark

    def is_element_late(self, timestamp: int | None, watermark: int) -> bool:
        """Whether a record that was added to no window is late: it goes to the late output, or is counted as dropped.

        A record between two sliding windows is in no window either. It is ignored if the watermark has not passed it.
        """
        if timestamp is None:
            timestamp = MIN_LONG_VALUE
        return self.is_event_time and min(timestamp + self.allowed_ms, MAX_LONG_VALUE) <= watermark


class KeyedWindowOperator(StreamOperator):
    """The functions and the late records of a window operator. Its subclasses have the windows."""

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        spec: WindowSpec = program.spec  # type: ignore[assignment]
        self.spec = spec
        self.select_key = program.key_selector()
        self.backend: KeyedStateBackend = context.keyed_state
        self.lateness = Lateness.of(spec)
        self.evaluation = WindowEvaluation(spec, WindowContext(self), output)

    def event_time(self) -> int:
        """The watermark that decides which windows are late."""
        return self.current_watermark

    def refuse(self, value: Any) -> NoReturn:
        """Raises an error for a record without timestamp."""
        check_timestamp(value, MIN_LONG_VALUE, self.spec.assigner)
        raise AssertionError

    def open(self) -> None:
        """Registers the counter, and opens the user's functions.

        Flink does not allow rich reduce and aggregate functions here; opchain does.
        """
        self._late = self.count_late_records()
        for function in self._functions():
            opened = getattr(function, "open", None)
            if opened is not None:
                opened(self.context.runtime_context)

    def close(self) -> None:
        """Closes the user's functions."""
        for function in self._functions():
            closed = getattr(function, "close", None)
            if closed is not None:
                closed()

    def _functions(self) -> list[Any]:
        spec = self.spec
        return [item for item in (spec.reduce, spec.aggregate, spec.function) if item is not None]

    def skip(self, value: Any, timestamp: int | None) -> None:
        """Takes a record that was added to no window. If it is late, it goes to the late output or is counted."""
        if self.lateness.is_element_late(timestamp, self.event_time()):
            if self.spec.late_tag is not None:
                self.output.collect_to(self.spec.late_tag.tag_id, value, timestamp)
            else:
                self._late.inc(value.count if value.__class__ is FoldedRecords else 1)


class TriggerContext(Trigger.OnMergeContext):
    """The context of a trigger. The operator sets `window` before each call; the key is the backend's current key."""

    __slots__ = ("_backend", "_metric_group", "_timers", "_trigger", "merged", "window")

    def __init__(
        self,
        trigger: Trigger[Any, Any],
        timers: InternalTimerService,
        backend: KeyedStateBackend,
        metric_group: MetricGroup,
    ) -> None:
        self._trigger = trigger
        self._timers = timers
        self._backend = backend
        self._metric_group = metric_group
        self.window: Any = None
        self.merged: Sequence[Any] = ()

    # Calls of the operator

    def on_event_time(self, time: int) -> TriggerResult:
        """Calls the trigger's `on_event_time` for the current window."""
        return self._trigger.on_event_time(time, self.window, self)

    def on_processing_time(self, time: int) -> TriggerResult:
        """Calls the trigger's `on_processing_time` for the current window."""
        return self._trigger.on_processing_time(time, self.window, self)

    def on_merge(self, merged: Sequence[Any]) -> None:
        """Calls the trigger's `on_merge`: these windows were merged into the current one."""
        self.merged = merged
        self._trigger.on_merge(self.window, self)

    def clear(self) -> None:
        """Calls the trigger's `clear` for the current window."""
        self._trigger.clear(self.window, self)

    # Calls of the trigger

    def get_current_processing_time(self) -> int:
        """The task's clock."""
        return self._timers.current_processing_time()

    def get_current_watermark(self) -> int:
        """The operator's event time."""
        return self._timers.current_watermark

    def get_metric_group(self) -> Any:
        """The operator's metric group."""
        return self._metric_group

    def register_processing_time_timer(self, time: int) -> None:
        """Sets a timer of the current window."""
        self._timers.register_processing_time_timer(self.window, timer_millis(time))

    def register_event_time_timer(self, time: int) -> None:
        """Sets a timer of the current window."""
        self._timers.register_event_time_timer(self.window, timer_millis(time))

    def delete_processing_time_timer(self, time: int) -> None:
        """Deletes a timer of the current window."""
        self._timers.delete_processing_time_timer(self.window, timer_millis(time))

    def delete_event_time_timer(self, time: int) -> None:
        """Deletes a timer of the current window."""
        self._timers.delete_event_time_timer(self.window, timer_millis(time))

    def get_partitioned_state(self, state_descriptor: Any) -> Any:
        """The state of the current key and window."""
        return self._backend.get_partitioned_state(self.window, state_descriptor)

    def merge_partitioned_state(self, state_descriptor: Any) -> None:
        """Merges the states of the merged windows into the state of the current window."""
        if self.merged:
            state = self._backend.namespaced_state(state_descriptor)
            state.merge_namespaces(self.window, self.merged)


class WindowOperator(KeyedWindowOperator):
    """Runs windows that do not merge. For windows that merge see MergingWindowOperator."""

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.assigner = self.spec.assigner
        self.assigner_context = AssignerContext(self)
        self.contents = window_state_of(self)
        self._on_element = self.spec.trigger.on_element
        self.timers: InternalTimerService
        self.trigger: TriggerContext

    def open(self) -> None:
        """Opens the functions and the timer service."""
        super().open()
        self.contents.open(self)
        self.timers = self.context.timers.service(TIMERS, self, described_windows(self.spec))
        self.trigger = TriggerContext(
            self.spec.trigger, self.timers, self.backend, self.context.metrics
        )

    def event_time(self) -> int:
        """The watermark of the timer service. In batch mode it advances only while the timers of a key fire."""
        return self.timers.current_watermark

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Adds the record to its windows, and calls the trigger for each of them."""
        self.backend.set_current_key(self.select_key(value))
        event_time = MIN_LONG_VALUE if timestamp is None else timestamp
        windows = self.assigner.assign_windows(value, event_time, self.assigner_context)
        is_skipped = True
        lateness = self.lateness
        for window in windows:
            cleanup_time = lateness.cleanup_time(window)
            if not lateness.is_over(cleanup_time, self.timers.current_watermark):
                is_skipped = False
                self.contents.select(window)
                self.add_element(window, value, timestamp, cleanup_time)
        if is_skipped:
            self.skip(value, timestamp)

    def add_element(
        self, window: Any, value: Any, timestamp: int | None, cleanup_time: int
    ) -> None:
        """Adds a record to a window whose contents are selected, and calls the trigger."""
        self.contents.add(value, timestamp)
        context = self.trigger
        context.window = window
        time = MIN_LONG_VALUE if timestamp is None else timestamp
        result = self._on_element(value, time, window, context)
        if result is not TriggerResult.CONTINUE:
            self._follow(result, window, timestamp)
        if cleanup_time == MAX_LONG_VALUE:
            return  # no watermark passes the largest timestamp
        if self.lateness.is_event_time:
            self.timers.register_event_time_timer(window, cleanup_time)
        else:
            self.timers.register_processing_time_timer(window, cleanup_time)

    def on_event_time(self, time: int, window: Any) -> None:
        """Takes an event-time timer of the current key."""
        if self.select_contents(window):
            self.trigger.window = window
            self._follow(self.trigger.on_event_time(time), window, time)
            if self.lateness.is_event_time and time == self.lateness.cleanup_time(window):
                self.drop(window)

    def on_processing_time(self, time: int, window: Any) -> None:
        """Takes a processing-time timer of the current key."""
        if self.select_contents(window):
            self.trigger.window = window
            self._follow(self.trigger.on_processing_time(time), window, time)
            if not self.lateness.is_event_time and time == self.lateness.cleanup_time(window):
                self.drop(window)

    def select_contents(self, window: Any) -> bool:
        """Selects a window's contents. Returns False if the window is no longer active."""
        self.contents.select(window)
        return True

    def drop(self, window: Any) -> None:
        """Drops a window whose contents are selected: contents, trigger state and window state."""
        self.contents.clear()
        self.trigger.clear()
        self.evaluation.clear(window)

    def _follow(self, result: TriggerResult, window: Any, time: int | None) -> None:
        if result is TriggerResult.CONTINUE:
            return
        if not isinstance(result, TriggerResult):
            raise TypeError(
                f"trigger {self.spec.trigger!r} returned {short_repr(result)}; it must return a "
                f"TriggerResult, such as TriggerResult.CONTINUE"
            )
        if result is not TriggerResult.PURGE:
            self.contents.emit(window, time)
        if result is not TriggerResult.FIRE:
            self.contents.clear()

    def delete_cleanup(self, window: Any) -> None:
        """Deletes the cleanup timer of a window, which must be the trigger's current window."""
        time = self.lateness.cleanup_time(window)
        if time == MAX_LONG_VALUE:
            return
        if self.lateness.is_event_time:
            self.trigger.delete_event_time_timer(time)
        else:
            self.trigger.delete_processing_time_timer(time)


def has_plain_processing_time(spec: WindowSpec) -> bool:
    """Whether ProcessingTimeWindowOperator runs a spec."""
    return (
        type(spec.assigner) in (TumblingProcessingTimeWindows, SlidingProcessingTimeWindows)
        and getattr(spec.assigner, "stagger", WindowStagger.ALIGNED) is WindowStagger.ALIGNED
        and type(spec.trigger) is ProcessingTimeTrigger
        and spec.evictor is None
    )


class ProcessingTimeWindowOperator(WindowOperator):
    """A shortcut for aligned processing-time windows with the default trigger.

    The first record of a window and key sets the one timer, which fires and drops the window. Consecutive records have
    the same windows until the clock passes the start or end of a window.

    Attributes:
        plain: See KeyIdentity.
        identify: See KeyIdentity.
    """

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self._slide = self.assigner.pace[1]  # type: ignore[attr-defined]
        self._windows: Sequence[Any] = ()
        self._panes: list[MutableMapping[Any, Any]] = []
        self._since = self._until = MIN_LONG_VALUE
        self.plain, self.identify = self.backend.identity.plain, self.backend.identity.of

    def process_element(self, value: Any, timestamp: int | None) -> None:  # noqa: ARG002 - event time
        """Adds the record to its windows, the latest first."""
        self.backend.set_current_key(self.select_key(value))
        key, added = self.backend.state_key, self.contents.kind.added
        for pane in self.open_panes():
            if key not in pane:
                self.await_end(key, pane)
            pane[key] = added(pane.get(key), value)

    def open_panes(self) -> Sequence[MutableMapping[Any, Any]]:
        """The contents of the windows that the clock is in, by key, the latest window first."""
        now = self.timers.current_processing_time()
        if not self._since <= now < self._until:
            windows = list(self.assigner.assign_windows(None, now, self.assigner_context))
            self._windows, self._since = windows, now
            self._until = min([windows[0].start + self._slide, windows[-1].end]) if windows else now
            self._panes = [self.backend.table(CONTENTS, window) for window in windows]
        return self._panes

    def await_end(self, key: Any, pane: MutableMapping[Any, Any]) -> None:
        """Sets the timer of a key in the window of a pane."""
        self.backend.set_current_state_key(key)
        for window, own in zip(self._windows, self._panes, strict=True):
            if own is pane:
                self.timers.register_processing_time_timer(window, window.max_timestamp())

    def drop(self, window: Any) -> None:
        """Drops a window of a key. If it was the last key, the pane is of no use any more."""
        super().drop(window)
        self._until = MIN_LONG_VALUE

    def apply_changes(self, snapshot: OperatorSnapshot) -> None:
        """Applies changes, which may replace panes."""
        super().apply_changes(snapshot)
        self._until = MIN_LONG_VALUE

    def snapshot_changes(self, checkpoint_id: int, timestamp_ms: int) -> OperatorSnapshot:
        """The changes: the touched keys of current windows, and windows that have ended."""
        if self.backend.tracks_changes:
            self.backend.write_to(CONTENTS, self.backend.namespaces(CONTENTS))
        return super().snapshot_changes(checkpoint_id, timestamp_ms)


def has_plain_counts(spec: WindowSpec) -> bool:
    """Whether CountWindowOperator runs a spec."""
    assigner, trigger = spec.assigner, spec.trigger
    return (
        type(assigner) in (CountTumblingWindowAssigner, CountSlidingWindowAssigner)
        and type(trigger) is PurgingTrigger
        and type(trigger.nested_trigger) is CountTrigger
        and trigger.nested_trigger.window_size == assigner.window_size  # type: ignore[attr-defined]
        and assigner.window_slide <= assigner.window_size  # type: ignore[attr-defined]
        and spec.evictor is None
    )


class _CountedWindow:
    """A window of a key that is being filled.

    It is full when the key has had `full_at` records, and takes no more when it has had `end`. Both are the same, unless
    the restored job had windows of another size.
    """

    __slots__ = ("end", "full_at", "held")

    end: int
    full_at: int
    held: Any


class _CountedKey(_CountedWindow):
    """The oldest open window of a key. `later` has the others, the latest first.

    After `left` more records the operator has to look at them. The key will have had `total` records then.
    """

    __slots__ = ("later", "left", "total")

    later: list[_CountedWindow] | tuple[()]
    left: int
    total: int


class CountWindowOperator(WindowOperator):
    """A shortcut for count windows with the default trigger.

    The windows that change are objects. A snapshot writes them into the tables of assigner, trigger and contents.
    """

    most_in_memory = 100_000
    """With a backend on disk: the number of keys after which their windows are written to its tables."""

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.counted: dict[Any, _CountedKey] = {}
        self.plain, self.identify = self.backend.identity.plain, self.backend.identity.of
        self._is_in_memory = type(self.backend) is HashMapKeyedStateBackend

    def open(self) -> None:
        """Opens the functions, and declares the counts."""
        super().open()
        assigner, counter = self.spec.assigner, self.spec.trigger.nested_trigger  # type: ignore[attr-defined]
        assert isinstance(assigner, CountWindowAssigner)
        self._size, self._numbers_at = assigner.window_size, assigner.numbers_at
        self._slide, self._of_window = assigner.window_slide, counter.count.name
        self.context.runtime_context.get_state(assigner.count)
        self.backend.namespaced_state(counter.count)
        self._totals = self.backend.table(assigner.count.name)

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Puts the record into the windows of its key, and fires a window that is full."""
        self.backend.set_current_key(self.select_key(value))
        key = self.backend.state_key
        counted = self.counted.get(key)
        if counted is None or counted.left == 1:
            self.count_for(key, value, timestamp)
        else:
            counted.left -= 1
            for window in (*counted.later, counted):
                window.held = self.contents.kind.added(window.held, value)

    def count_for(self, key: Any, value: Any, timestamp: int | None) -> None:
        """Adds a record whose windows are not in memory, or of which one is full with this record, or the first one."""
        self.backend.set_current_state_key(key)
        counted = self.counted.get(key)
        if counted is None:
            counted = self.counted[key] = self._opened(key)
        kind, total = self.contents.kind, counted.total
        counted.left = left = counted.left - 1
        for window in (*counted.later, counted):
            held = window.held = kind.added(window.held, value)
            if left == 0 and window.full_at == total:
                window.held, window.full_at = None, total + self._size
                elements = None if held is None else kind.elements(held)
                if elements is not None:
                    number = self._number_of(window)
                    self.evaluation.emit(self.backend.current_key, number, elements, timestamp)
        if left:
            return
        latest = total // self._slide
        if counted.end == total:
            self._put(key, counted, total)
            if counted.later:
                oldest = counted.later.pop()
                counted.end, counted.full_at = oldest.end, oldest.full_at
                counted.held = oldest.held
            else:
                self._take(key, latest, total, counted)
        if total % self._slide == 0 and counted.end != latest * self._slide + self._size:
            new = self._take(key, latest, total, _CountedWindow())
            counted.later = [new, *counted.later]
        self._look_later(counted, total)

    def _opened(self, key: Any) -> _CountedKey:
        if not self._is_in_memory and len(self.counted) >= self.most_in_memory:
            self._save()
            self.backend.set_current_state_key(key)
        total = self._totals.get(key, 0)
        *later, oldest = self._numbers_at(total)
        counted = _CountedKey()
        self._take(key, oldest, total, counted)
        counted.later = [self._take(key, n, total, _CountedWindow()) for n in later] or ()
        self._look_later(counted, total)
        return counted

    def _look_later(self, counted: _CountedKey, total: int) -> None:
        """The operator looks when a window is full, when it has its last record, and before the first record of a window."""
        look_at = total + self._slide - total % self._slide
        look_at = min(look_at, counted.end, counted.full_at)
        for window in counted.later:
            look_at = min(look_at, window.full_at)
        counted.left = look_at - total
        counted.total = look_at

    def _take(self, key: Any, number: int, total: int, window: _CountedWindow) -> _CountedWindow:
        """Gives a window the count and the contents in the tables. They are removed there. Returns the window."""
        window.end = window.full_at = number * self._slide + self._size
        window.held = None
        if self._totals:
            name, backend = CountWindow(number), self.backend
            count = backend.table(self._of_window, name).pop(key, 0)
            window.full_at = total + max(1, self._size - count)
            window.held = backend.table(CONTENTS, name).pop(key, None)
            for state in (self._of_window, CONTENTS):
                if not backend.table(state, name):
                    backend.leave(state, name)
        return window

    def _number_of(self, window: _CountedWindow) -> CountWindow:
        return CountWindow((window.end - self._size) // self._slide)

    def _put(self, key: Any, window: _CountedWindow, total: int) -> None:
        if count := total + self._size - window.full_at:
            number = self._number_of(window)
            self.backend.table(self._of_window, number)[key] = count
            self.backend.table(CONTENTS, number)[key] = window.held

    def write_state(self, checkpoint_id: int, timestamp_ms: int) -> None:
        """Writes all windows into the tables."""
        self._save()
        super().write_state(checkpoint_id, timestamp_ms)

    def _save(self) -> None:
        for key, counted in self.counted.items():
            self.backend.set_current_state_key(key)
            self._totals[key] = total = counted.total - counted.left
            for window in (*counted.later, counted):
                self._put(key, window, total)
        self.counted.clear()


class KeyByKeyCountWindowOperator(CountWindowOperator):
    """Runs count windows in batch mode, where only the current key has open ones."""

    def _opened(self, key: Any) -> _CountedKey:
        self.counted.clear()
        return super()._opened(key)
