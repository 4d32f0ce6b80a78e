"""Joins of two streams: window joins with `join` and `co_group`, and time-bounded joins with `interval_join`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from opchain.compiler.dsl.argument_checks import (
    DeclaredType,
    at_call,
    checked,
    checked_function,
    checked_stream,
    type_of,
)
from opchain.compiler.dsl.connected_streams import with_two_inputs
from opchain.compiler.dsl.keyed_stream import KeyedStream
from opchain.compiler.dsl.windowed_stream import WindowDefinition, WindowedStream
from opchain.compiler.graph.partitioner import PartitionerKind
from opchain.runtime.errors import GraphError
from opchain.runtime.functions.co_grouping import (
    FIRST,
    SECOND,
    CoGroupWindowFunction,
    InputTagger,
    JoinCoGroupFunction,
    UnionKeySelector,
)
from opchain.runtime.functions.key_selectors import KeySelector
from opchain.runtime.functions.record_functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessJoinFunction,
)
from opchain.runtime.functions.type_variables import W
from opchain.runtime.program.operator_specs import IntervalJoinSpec, MapSpec
from opchain.runtime.time import Duration, Time, millis_of
from opchain.runtime.types.output_tag import OutputTag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import timedelta

    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.runtime.windows.assigners import WindowAssigner

K = TypeVar("K")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
R = TypeVar("R")


class KeyedPair(Generic[K, T1, T2]):
    """Two streams, and the key selectors that pair their records."""

    def __init__(
        self, stream1: DataStream[T1], stream2: DataStream[T2], key_selector1: Any, key_type: Any
    ) -> None:
        checked_function(key_selector1, KeySelector, "where", callables=True)
        self._stream1 = stream1
        self._stream2 = stream2
        self._selector1 = key_selector1
        self._selector2: Any = None
        self._key_type = type_of(key_type, "where")

    def equal_to(self, key_selector2: Any, key_type: DeclaredType) -> KeyedPair[K, T1, T2]:
        """Sets the second stream's key."""
        checked_function(key_selector2, KeySelector, "equal_to", callables=True)
        second = type_of(key_type, "equal_to")
        if self._key_type is not None and second is not None and self._key_type != second:
            raise GraphError(
                f"{at_call('equal_to')}: the keys are declared as {self._key_type!r} in where() and "
                f"{second!r} here; declare the same type for both"
            )
        self._key_type = self._key_type or second
        self._selector2 = key_selector2
        return self

    def environment(self) -> Any:
        """The environment of both streams."""
        return self._stream1.get_execution_environment()

    def windowed(self, assigner: WindowAssigner[Any, W]) -> WindowedStream[K, Any, W]:
        """Merges both streams into one keyed and windowed stream.

        The operators are those of Flink: a map per input that tags its records, a union, a key-by and a window.
        """
        first = _tagged(self._stream1, FIRST)
        second = _tagged(self._stream2, SECOND)
        selector = UnionKeySelector(self._selector1, self._selector2)
        return first.union(second).key_by(selector, self._key_type).window(assigner)


def _tagged(stream: DataStream[Any], number: int) -> DataStream[tuple[int, Any]]:
    # As in Flink, a tagger has the parallelism of its input, so that it is chained to the input.
    return stream.transform(MapSpec(InputTagger(number)), parallelism=stream.get_parallelism())


class CoGroupedStreams(Generic[T1, T2]):
    """Two streams; `where` comes next. Flink: `CoGroupedStreams`."""

    def __init__(self, input1: DataStream[T1], input2: DataStream[T2]) -> None:
        self._streams = (input1, input2)

    def where(
        self, key_selector: KeySelector[T1, K] | Callable[[T1], K], key_type: DeclaredType = None
    ) -> CoGroupWhere[K, T1, T2]:
        """Sets the first stream's key."""
        return CoGroupWhere(KeyedPair(*self._streams, key_selector, key_type))


class CoGroupWhere(Generic[K, T1, T2]):
    """The first stream has a key; `equal_to` comes next. Flink: `CoGroupedStreams.Where`."""

    def __init__(self, pair: KeyedPair[K, T1, T2]) -> None:
        self._pair = pair

    def equal_to(
        self, key_selector: KeySelector[T2, K] | Callable[[T2], K], key_type: DeclaredType = None
    ) -> CoGroupEqualTo[K, T1, T2]:
        """Sets the second stream's key."""
        return CoGroupEqualTo(self._pair.equal_to(key_selector, key_type))


class CoGroupEqualTo(Generic[K, T1, T2]):
    """Both streams have keys; `window` comes next. Flink: `CoGroupedStreams.Where.EqualTo`."""

    def __init__(self, pair: KeyedPair[K, T1, T2]) -> None:
        self._pair = pair

    def window(self, assigner: WindowAssigner[Any, W]) -> WindowedCoGroup[K, T1, T2, W]:
        """Sets the windows. Their assigner gets `(1 or 2, record)`, with the number of the stream."""
        return WindowedCoGroup(self._pair, assigner)


class WindowedPair(WindowDefinition[Any, W], Generic[K, T1, T2, W]):
    """Two streams with their keys and windows."""

    def __init__(self, pair: KeyedPair[K, T1, T2], assigner: WindowAssigner[Any, W]) -> None:
        super().__init__(pair.environment(), assigner)
        self._pair = pair

    def co_grouped(
        self, function: CoGroupFunction[Any, Any, Any], output_type: DeclaredType
    ) -> DataStream[Any]:
        """Adds the operators of a co-group, with the settings of this definition."""
        windowed = self._pair.windowed(self._assigner)
        # The windowed stream gets the trigger, the evictor and the lateness that were set here.
        windowed.take_over(self)
        return windowed.apply(CoGroupWindowFunction(function), output_type)


class WindowedCoGroup(WindowedPair[K, T1, T2, W]):
    """Both streams have keys and windows; `apply` comes next. Flink: `CoGroupedStreams.WithWindow`."""

    def apply(
        self,
        function: CoGroupFunction[T1, T2, R] | Callable[[Iterable[T1], Iterable[T2]], Iterable[R]],
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Calls a function with the records of both streams that have the same key and window."""
        checked_function(function, CoGroupFunction, "apply", callables=True)
        return self.co_grouped(function, output_type)  # type: ignore[arg-type]  # or a callable


class JoinedStreams(Generic[T1, T2]):
    """Two streams; `where` comes next. Flink: `JoinedStreams`."""

    def __init__(self, input1: DataStream[T1], input2: DataStream[T2]) -> None:
        self._streams = (input1, input2)

    def where(
        self, key_selector: KeySelector[T1, K] | Callable[[T1], K], key_type: DeclaredType = None
    ) -> JoinWhere[K, T1, T2]:
        """Sets the first stream's key."""
        return JoinWhere(KeyedPair(*self._streams, key_selector, key_type))


class JoinWhere(Generic[K, T1, T2]):
    """The first stream has a key; `equal_to` comes next. Flink: `JoinedStreams.Where`."""

    def __init__(self, pair: KeyedPair[K, T1, T2]) -> None:
        self._pair = pair

    def equal_to(
        self, key_selector: KeySelector[T2, K] | Callable[[T2], K], key_type: DeclaredType = None
    ) -> JoinEqualTo[K, T1, T2]:
        """Sets the second stream's key."""
        return JoinEqualTo(self._pair.equal_to(key_selector, key_type))


class JoinEqualTo(Generic[K, T1, T2]):
    """Both streams have keys; `window` comes next. Flink: `JoinedStreams.Where.EqualTo`."""

    def __init__(self, pair: KeyedPair[K, T1, T2]) -> None:
        self._pair = pair

    def window(self, assigner: WindowAssigner[Any, W]) -> WindowedJoin[K, T1, T2, W]:
        """Sets the windows. Their assigner gets `(1 or 2, record)`, with the number of the stream."""
        return WindowedJoin(self._pair, assigner)


class WindowedJoin(WindowedPair[K, T1, T2, W]):
    """Both streams have keys and windows; `apply` comes next. Flink: `JoinedStreams.WithWindow`."""

    def apply(
        self,
        function: JoinFunction[T1, T2, R] | FlatJoinFunction[T1, T2, R] | Callable[[T1, T2], R],
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Calls a function with each pair of records that have the same key and window.

        A plain callable is used like a JoinFunction: it returns one record per pair.
        """
        checked_function(function, (JoinFunction, FlatJoinFunction), "apply", callables=True)
        return self.co_grouped(JoinCoGroupFunction(function), output_type)


class IntervalJoin(Generic[K, T1, T2]):
    """Two keyed streams; `between` comes next. Flink: `KeyedStream.IntervalJoin`."""

    def __init__(self, stream1: KeyedStream[K, T1], stream2: KeyedStream[K, T2]) -> None:
        self._left = stream1
        self._right: KeyedStream[K, T2] = checked_stream(
            stream2, KeyedStream, stream1, "interval_join"
        )

        self._is_event_time = True

    def in_event_time(self) -> IntervalJoin[K, T1, T2]:
        """Joins by event time. This is the default."""
        self._is_event_time = True
        return self

    def in_processing_time(self) -> IntervalJoin[K, T1, T2]:
        """Joins by processing time. No record is late, and results have no timestamps.

        Flink has this method too, but refuses such a join in `between`.
        """
        self._is_event_time = False
        return self

    def between(
        self,
        lower_bound: Duration | Time | timedelta | int,
        upper_bound: Duration | Time | timedelta | int,
    ) -> IntervalJoined[K, T1, T2]:
        """Joins each left record with the right records that are `lower_bound` to `upper_bound` later.

        Args:
            lower_bound: The minimum distance in time (milliseconds if an int). Negative: the right record may be
                earlier.
            upper_bound: The maximum distance in time.
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
    """Two keyed streams and an interval; `process` comes next. Flink: `IntervalJoined`."""

    def __init__(
        self, left: KeyedStream[K, T1], right: KeyedStream[K, T2], interval: _Interval
    ) -> None:
        self._left = left
        self._right = right
        self._interval = interval

    def lower_bound_exclusive(self) -> IntervalJoined[K, T1, T2]:
        """Excludes records exactly at the lower bound."""
        return self._with(lower_inclusive=False)

    def upper_bound_exclusive(self) -> IntervalJoined[K, T1, T2]:
        """Excludes records exactly at the upper bound."""
        return self._with(upper_inclusive=False)

    def side_output_left_late_data(self, output_tag: OutputTag[T1]) -> IntervalJoined[K, T1, T2]:
        """Sends late left records to a side output instead of dropping them."""
        checked(output_tag, OutputTag, "side_output_left_late_data", "the tag")
        return self._with(left_late_tag=output_tag)

    def side_output_right_late_data(self, output_tag: OutputTag[T2]) -> IntervalJoined[K, T1, T2]:
        """Sends late right records to a side output instead of dropping them."""
        checked(output_tag, OutputTag, "side_output_right_late_data", "the tag")
        return self._with(right_late_tag=output_tag)

    def process(
        self,
        process_join_function: ProcessJoinFunction[T1, T2, R],
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Calls a function with each joined pair of records."""
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
