"""Interval joins: pairs of records whose timestamps lie close together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from opchain.compiler.dsl.argument_checks import at_call, checked, checked_function, checked_stream
from opchain.compiler.dsl.connected_streams import with_two_inputs
from opchain.compiler.dsl.keyed_stream import KeyedStream
from opchain.compiler.graph.partitioner import PartitionerKind
from opchain.runtime.functions.record_functions import ProcessJoinFunction
from opchain.runtime.program.operator_specs import IntervalJoinSpec
from opchain.runtime.time import millis_of
from opchain.runtime.types.output_tag import OutputTag

if TYPE_CHECKING:
    from datetime import timedelta

    from opchain.compiler.dsl.argument_checks import DeclaredType
    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.runtime.time import Duration, Time

K = TypeVar("K")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
R = TypeVar("R")


class IntervalJoin(Generic[K, T1, T2]):
    """Two keyed streams, waiting for the interval. Flink: `KeyedStream.IntervalJoin`."""

    def __init__(self, stream1: KeyedStream[K, T1], stream2: KeyedStream[K, T2]) -> None:
        self._left = stream1
        self._right: KeyedStream[K, T2] = checked_stream(
            stream2, KeyedStream, stream1, "interval_join"
        )

        self._is_event_time = True

    def in_event_time(self) -> IntervalJoin[K, T1, T2]:
        """Joins by event time: the default."""
        self._is_event_time = True
        return self

    def in_processing_time(self) -> IntervalJoin[K, T1, T2]:
        """Joins by the times at which records arrive. Nothing is late, and results have no timestamps.

        Flink has the method and refuses it in `between`.
        """
        self._is_event_time = False
        return self

    def between(
        self,
        lower_bound: Duration | Time | timedelta | int,
        upper_bound: Duration | Time | timedelta | int,
    ) -> IntervalJoined[K, T1, T2]:
        """Joins a left record with right ones that are `lower_bound` to `upper_bound` later.

        Args:
            lower_bound: At least this much later (milliseconds if an int); negative for earlier.
            upper_bound: At most this much later.
        """
        lower, upper = millis_of(lower_bound), millis_of(upper_bound)
        if lower > upper:
            raise ValueError(
                f"{at_call('between')}: the lower bound, {lower} ms, is above the upper bound, "
                f"{upper} ms; swap the two"
            )
        interval = _Interval(lower, upper, is_event_time=self._is_event_time)
        return IntervalJoined(self._left, self._right, interval)


@dataclass(frozen=True, slots=True)
class _Interval:
    lower_ms: int
    upper_ms: int
    lower_inclusive: bool = True
    upper_inclusive: bool = True
    left_late_tag: OutputTag[Any] | None = None
    right_late_tag: OutputTag[Any] | None = None
    is_event_time: bool = True


class IntervalJoined(Generic[K, T1, T2]):
    """Two keyed streams and an interval, waiting for the function. Flink: `IntervalJoined`."""

    def __init__(
        self, left: KeyedStream[K, T1], right: KeyedStream[K, T2], interval: _Interval
    ) -> None:
        self._left = left
        self._right = right
        self._interval = interval

    def lower_bound_exclusive(self) -> IntervalJoined[K, T1, T2]:
        """Leaves out records that lie exactly at the lower bound."""
        return self._with(lower_inclusive=False)

    def upper_bound_exclusive(self) -> IntervalJoined[K, T1, T2]:
        """Leaves out records that lie exactly at the upper bound."""
        return self._with(upper_inclusive=False)

    def side_output_left_late_data(self, output_tag: OutputTag[T1]) -> IntervalJoined[K, T1, T2]:
        """Sends left records that come too late to a side output instead of dropping them."""
        checked(output_tag, OutputTag, "side_output_left_late_data", "the tag")
        return self._with(left_late_tag=output_tag)

    def side_output_right_late_data(self, output_tag: OutputTag[T2]) -> IntervalJoined[K, T1, T2]:
        """Sends right records that come too late to a side output instead of dropping them."""
        checked(output_tag, OutputTag, "side_output_right_late_data", "the tag")
        return self._with(right_late_tag=output_tag)

    def process(
        self,
        process_join_function: ProcessJoinFunction[T1, T2, R],
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Gives each pair to a function."""
        checked_function(process_join_function, ProcessJoinFunction, "process")
        interval = self._interval
        lowest = interval.lower_ms + (not interval.lower_inclusive)
        highest = interval.upper_ms - (not interval.upper_inclusive)
        if lowest > highest:
            raise ValueError(
                f"{at_call('process')}: the interval is empty: it goes from {interval.lower_ms} to "
                f"{interval.upper_ms} ms and excludes a bound; make it larger or include the bounds"
            )
        spec = IntervalJoinSpec(
            process_join_function,
            interval.lower_ms,
            interval.upper_ms,
            interval.lower_inclusive,
            interval.upper_inclusive,
            interval.left_late_tag,
            interval.right_late_tag,
            interval.is_event_time,
        )
        # Flink keys both inputs once more, by the same selectors.
        return with_two_inputs(
            spec, _keyed_again(self._left), _keyed_again(self._right), output_type
        )

    def _with(self, **changes: Any) -> IntervalJoined[K, T1, T2]:
        # Changed in place, as in Flink: a program may drop the result.
        self._interval = replace(self._interval, **changes)
        return self


def _keyed_again(stream: KeyedStream[K, T1]) -> KeyedStream[K, T1]:
    return KeyedStream.partitioned(stream, PartitionerKind.HASH, stream.state_key)
