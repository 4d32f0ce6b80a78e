"""Interval join: pairs of records of one key whose timestamps are close together.

A left record at time t joins the right records from t + lower to t + upper. Each side keeps its records as long as a
partner may still arrive. Cleanup timers in event time then remove them.

Flink: `IntervalJoinOperator`, which joins partners in the order of a hash map. Here they are joined by time, and
partners of equal time in the order of arrival.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import short_repr
from opchain.runtime.functions.record_functions import ProcessJoinFunction
from opchain.runtime.operators.operator import OperatorContext, Output, UserFunctionOperator
from opchain.runtime.operators.process import emit_results
from opchain.runtime.time import MIN_LONG_VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping

    from opchain.runtime.program.operator_specs import IntervalJoinSpec
    from opchain.runtime.program.vertex_program import OperatorProgram
    from opchain.runtime.state.timers.internal_timer_service import InternalTimerService
    from opchain.runtime.types.output_tag import OutputTag


@dataclass(slots=True)
class TimeBuffer:
    """The state of one side and key: its records by time. `times` is sorted."""

    times: list[int] = field(default_factory=list)
    records: dict[int, list[Any]] = field(default_factory=dict)

    def add(self, time: int, record: Any) -> bool:
        """Adds a record. Returns whether it is the first of its time."""
        known = self.records.get(time)
        if known is not None:
            known.append(record)
            return False
        self.records[time] = [record]
        insort(self.times, time)
        return True

    def between(self, first: int, last: int) -> list[tuple[int, Any]]:
        """The records from time first to last, both included, with their times."""
        times = self.times[bisect_left(self.times, first) : bisect_right(self.times, last)]
        return [(time, record) for time in times for record in self.records[time]]

    def remove(self, time: int) -> None:
        """Drops the records of a time."""
        if self.records.pop(time, None) is not None:
            del self.times[bisect_left(self.times, time)]


class _Side:
    """One input: its records, the times of their partners, and how long the records wait.

    The partners of a record at time t are on the other side, from t + lower to t + upper. `namespace` is the namespace
    of the cleanup timers.
    """

    __slots__ = ("buffers", "late_tag_id", "lower_ms", "namespace", "upper_ms", "wait_ms")

    def __init__(
        self,
        namespace: str,
        buffers: MutableMapping[Any, TimeBuffer],
        lower_ms: int,
        upper_ms: int,
        late_tag: OutputTag[Any] | None,
    ) -> None:
        self.namespace = namespace
        self.buffers = buffers
        self.lower_ms = lower_ms
        self.upper_ms = upper_ms
        self.wait_ms = max(0, upper_ms)
        self.late_tag_id = None if late_tag is None else late_tag.tag_id


class PairContext(ProcessJoinFunction.Context):
    """The context of a pair. There is one object per operator, so it is valid during a call only."""

    __slots__ = ("left", "right", "timestamp")

    def __init__(self) -> None:
        self.left = self.right = self.timestamp = MIN_LONG_VALUE

    def set_times(self, left: Any, right: Any) -> None:
        """Sets the times of the current pair."""
        self.left, self.right, self.timestamp = left, right, max(left, right)

    def get_left_timestamp(self) -> int:
        """The left record's timestamp in milliseconds."""
        return self.left

    def get_right_timestamp(self) -> int:
        """The right record's timestamp in milliseconds."""
        return self.right

    def get_timestamp(self) -> int:
        """The later of the two timestamps."""
        return self.timestamp


class IntervalJoinOperator(UserFunctionOperator):
    """Keeps the records of both sides by time. A record is joined with the partners that have arrived before it."""

    method = "process_element"

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        spec: IntervalJoinSpec = program.spec  # type: ignore[assignment]
        backend = self.backend = context.keyed_state
        lower = spec.lower_ms + (not spec.lower_inclusive)
        upper = spec.upper_ms - (not spec.upper_inclusive)
        self.left = _Side(
            "CLEANUP_LEFT", backend.table("LEFT_BUFFER"), lower, upper, spec.left_late_tag
        )
        self.right = _Side(
            "CLEANUP_RIGHT", backend.table("RIGHT_BUFFER"), -upper, -lower, spec.right_late_tag
        )
        self.select_left_key, self.select_right_key = map(program.key_selector, (0, 1))
        self.function_context = PairContext()
        self.is_event_time = spec.is_event_time
        self.timers: InternalTimerService

    def open(self) -> None:
        """Opens the function and the timer service."""
        super().open()
        self.timers = self.context.timers.service("CLEANUP_TIMER", self)
        # Flink drops late records of an interval join without counting them.
        self._late = self.count_late_records()

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Joins a left record with the right records that have arrived."""
        self.backend.set_current_key(self.select_left_key(value))
        context, time = self.function_context, self._time_of(value, timestamp)
        for partner_time, partner in self._partners(self.left, self.right, value, time):
            context.set_times(time, partner_time)
            self._emit(self.call(value, partner, context))

    def process_element2(self, value: Any, timestamp: int | None) -> None:
        """Joins a right record with the left records that have arrived."""
        self.backend.set_current_key(self.select_right_key(value))
        context, time = self.function_context, self._time_of(value, timestamp)
        for partner_time, partner in self._partners(self.right, self.left, value, time):
            context.set_times(partner_time, time)
            self._emit(self.call(partner, value, context))

    def _emit(self, results: Any) -> None:
        """Emits the results for a pair. In processing time they have no timestamps."""
        emit_results(
            self.output, results, self.function_context.timestamp if self.is_event_time else None
        )

    def _time_of(self, value: Any, timestamp: int | None) -> int:
        """The record's event time, or the time of its arrival."""
        if not self.is_event_time:
            return self.context.processing_time.current_processing_time()
        if timestamp is None or timestamp == MIN_LONG_VALUE:
            raise ValueError(
                f"an interval join needs event time, and record {short_repr(value)} has no "
                "timestamp; call assign_timestamps_and_watermarks() before key_by()"
            )
        return timestamp

    def _partners(
        self, own: _Side, other: _Side, value: Any, timestamp: int
    ) -> Iterable[tuple[int, Any]]:
        """Adds a record, and returns its partners with their times. A late record is dropped and has none."""
        if self.is_event_time and timestamp < self.timers.current_watermark:
            if own.late_tag_id is not None:
                self.output.collect_to(own.late_tag_id, value, timestamp)
            else:
                self._late.inc()
            return ()
        key = self.backend.state_key
        buffer = own.buffers.get(key)
        if buffer is None:
            buffer = own.buffers[key] = TimeBuffer()
        if buffer.add(timestamp, value):
            waits_until = timestamp + own.wait_ms
            if self.is_event_time:
                self.timers.register_event_time_timer(own.namespace, waits_until)
            else:
                # A partner may arrive until the clock shows a later time.
                self.timers.register_processing_time_timer(own.namespace, waits_until + 1)
        partners = other.buffers.get(key)
        if partners is None:
            return ()
        return partners.between(timestamp + own.lower_ms, timestamp + own.upper_ms)

    def on_event_time(self, time: int, namespace: str) -> None:
        """Drops the records whose wait ends at this time."""
        side = self.left if namespace == self.left.namespace else self.right
        key = self.backend.state_key
        buffer = side.buffers.get(key)
        if buffer is not None:
            buffer.remove(time - side.wait_ms)
            if not buffer.times:
                del side.buffers[key]

    def on_processing_time(self, time: int, namespace: str) -> None:
        """Drops the records whose wait ended before this time."""
        self.on_event_time(time - 1, namespace)
