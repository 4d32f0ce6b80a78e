"""KeyedStream; CachedDataStream, which stores its records for later jobs; and DataStreamUtils."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from opchain.compiler.dsl.argument_checks import (
    DeclaredType,
    at_call,
    check_field,
    checked,
    checked_function,
    declared_type,
    type_of,
)
from opchain.compiler.dsl.captured_functions import captured_selector
from opchain.compiler.dsl.data_stream import DataStream
from opchain.compiler.graph.partitioner import ExchangeMode, KeyBy, Partitioner, PartitionerKind
from opchain.compiler.graph.transformation import (
    CacheTransformation,
    PartitionTransformation,
    Transformation,
    user_call_site,
)
from opchain.runtime.errors import GraphError
from opchain.runtime.functions.key_selectors import FieldAggregation, KeySelector, WithKey
from opchain.runtime.functions.process_functions import KeyedProcessFunction, ProcessFunction
from opchain.runtime.functions.record_functions import ReduceFunction
from opchain.runtime.program.operator_specs import (
    KeyedProcessSpec,
    MapSpec,
    ProcessSpec,
    ReduceSpec,
)
from opchain.runtime.types.type_variables import K, T

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.compiler.dsl.joins import IntervalJoin
    from opchain.compiler.dsl.windowed_stream import WindowedStream
    from opchain.runtime.functions.window import Window
    from opchain.runtime.windows.assigners import WindowAssigner

    W = TypeVar("W", bound=Window)

R = TypeVar("R")
T2 = TypeVar("T2")


class KeyedStream(DataStream[T], Generic[K, T]):
    """A stream that is partitioned by key.

    Flink: `KeyedStream`. Its type parameters have the opposite order.
    """

    def __init__(
        self, stream: DataStream[T], transformation: Transformation, key_by: KeyBy
    ) -> None:
        super().__init__(stream.get_execution_environment(), transformation)
        self._key_by = key_by

    @classmethod
    def by_hash(
        cls, stream: DataStream[T], key_selector: Any, key_type: DeclaredType
    ) -> KeyedStream[Any, T]:
        """The stream, partitioned by the hash of its key: the result of `key_by`."""
        key_by = KeyBy(captured_selector(key_selector), type_of(key_type, "key_by"))
        return cls.partitioned(stream, PartitionerKind.HASH, key_by)

    @classmethod
    def partitioned(
        cls, stream: DataStream[T], kind: PartitionerKind, key_by: KeyBy
    ) -> KeyedStream[Any, T]:
        """The keyed stream that a partitioner returns: HASH, or FORWARD for `reinterpret_as_keyed_stream`."""
        transformation = PartitionTransformation(
            stream.get_execution_environment().next_transformation_id(),
            stream.transformation,
            Partitioner(kind, key_by if kind is PartitionerKind.HASH else None),
            ExchangeMode.UNDEFINED,
            call_site=user_call_site(),
        )
        return cls(stream, transformation, key_by)

    def __repr__(self) -> str:
        (source,) = self.transformation.inputs
        return f"<KeyedStream of {source.label}, key_by ({self.transformation.call_site})>"

    @property
    def state_key(self) -> KeyBy:
        """The key that scopes the state of an operator on this stream."""
        return self._key_by

    def cache(self) -> NoReturn:
        """Raises an error, because a keyed stream is only a partitioning of another stream.

        Raises:
            GraphError: Always.
        """
        raise GraphError(
            f"{at_call('cache')}: a keyed stream can't be cached; call cache() before key_by(), and key_by() on the "
            "cached stream"
        )

    def process(
        self,
        func: KeyedProcessFunction[K, T, R] | ProcessFunction[T, R],
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Processes each record with a KeyedProcessFunction, which has state and timers per key.

        A plain ProcessFunction is also accepted, as in Flink's Java API, where this is deprecated.
        """
        checked_function(func, (KeyedProcessFunction, ProcessFunction), "process")
        if isinstance(func, KeyedProcessFunction):
            return self.transform(KeyedProcessSpec(func), output_type)
        return self.transform(ProcessSpec(func), output_type)

    def reduce(self, func: ReduceFunction[T] | Callable[[T, T], T]) -> DataStream[T]:
        """Combines the records of each key. Emits each new value; in batch mode, only the last one.

        Batch mode combines records in the order of their timestamps. Records without timestamps are first combined in
        the sending tasks, if the source of `func` shows that it is associative. (Flink always combines them one by one.)
        """
        checked_function(func, ReduceFunction, "reduce", callables=True)
        return self.transform(ReduceSpec(func), declared_type(self.transformation))

    def sum(self, position_to_sum: int | str = 0) -> DataStream[T]:
        """Adds up a field per key. The other fields keep the values of the key's first record.

        Args:
            position_to_sum: The index or name of the field. A record that is a plain value has only field 0: the value.
        """
        return self._aggregate("sum", position_to_sum)

    def min(self, position_to_min: int | str = 0) -> DataStream[T]:
        """The smallest value of a field per key. The other fields keep the values of the key's first record."""
        return self._aggregate("min", position_to_min)

    def max(self, position_to_max: int | str = 0) -> DataStream[T]:
        """The greatest value of a field per key. The other fields keep the values of the key's first record."""
        return self._aggregate("max", position_to_max)

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream[T]:
        """The record with the smallest value of a field per key. Of equal values, the first record wins."""
        return self._aggregate("min_by", position_to_min_by)

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream[T]:
        """The record with the greatest value of a field per key. Of equal values, the first record wins."""
        return self._aggregate("max_by", position_to_max_by)

    def window(self, window_assigner: WindowAssigner[T, W]) -> WindowedStream[K, T, W]:
        """Groups the records of each key into windows."""
        from opchain.compiler.dsl.windowed_stream import WindowedStream  # noqa: PLC0415 - a cycle

        return WindowedStream(self, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream[K, T, Any]:
        """Groups the records of each key into windows of `size` records.

        With `slide`, a window starts every `slide` records; without it, windows do not overlap.
        """
        return self.window(count_windows("count_window", size, slide))

    def interval_join(self, other_stream: KeyedStream[K, T2]) -> IntervalJoin[K, T, T2]:
        """Starts an interval join: `.between(lower, upper).process(function)`.

        Flink: `KeyedStream.intervalJoin`. Not in PyFlink.
        """
        from opchain.compiler.dsl.joins import IntervalJoin  # noqa: PLC0415 - a cycle

        return IntervalJoin(self, other_stream)

    def shuffle(self) -> NoReturn:
        """Refused: the key partitions the stream."""
        self._refuse("shuffle")

    def rebalance(self) -> NoReturn:
        """Refused: the key partitions the stream."""
        self._refuse("rebalance")

    def rescale(self) -> NoReturn:
        """Refused: the key partitions the stream."""
        self._refuse("rescale")

    def forward(self) -> NoReturn:
        """Refused: the key partitions the stream."""
        self._refuse("forward")

    def global_(self) -> NoReturn:
        """Refused: the key partitions the stream."""
        self._refuse("global_")

    def broadcast(self, *args: Any) -> NoReturn:  # noqa: ARG002 - refused whatever they are
        """Refused: the key partitions the stream."""
        self._refuse("broadcast")

    def partition_custom(
        self,
        partitioner: Any,  # noqa: ARG002 - refused whatever they are
        key_selector: Any,  # noqa: ARG002
    ) -> NoReturn:
        """Refused: the key partitions the stream."""
        self._refuse("partition_custom")

    def _collected(self) -> DataStream[Any]:
        # As in PyFlink, `execute_and_collect` returns rows of key and record. PyFlink makes these rows in front of the
        # exchange. Its `print` and `add_sink` remove the key again.
        (source,) = self.transformation.inputs
        stream: DataStream[T] = DataStream(self._environment, source)
        return stream.transform(
            MapSpec(WithKey(self._key_by.selector)),
            name="Key and Record",
            parallelism=source.parallelism,
            parallelism_configured=source.parallelism_configured,
        )

    def _refuse(self, call: str) -> NoReturn:
        raise GraphError(
            f"{at_call(call)}: the stream is partitioned by its key "
            f"(key_by at {self.transformation.call_site}), which cannot be replaced; call "
            f"{call}() before key_by(), or after the next operator"
        )

    def _aggregate(self, kind: str, field: int | str) -> DataStream[T]:
        checked(field, (int, str), kind, "the field")
        check_field(kind, field, declared_type(self.transformation))
        spec = ReduceSpec(FieldAggregation(kind, field))
        return self.transform(spec, declared_type(self.transformation), name="Keyed Aggregation")


def count_windows(method: str, size: int, slide: int) -> WindowAssigner[Any, Any]:
    """The assigner of count windows. They slide if `slide` is not 0.

    Raises:
        ValueError: `size` or `slide` is too small.
    """
    from opchain.runtime.windows.global_windows import (  # noqa: PLC0415 - as needed
        CountSlidingWindowAssigner,
        CountTumblingWindowAssigner,
    )

    for what, value in (("size", size), ("slide", slide)):
        least = 1 if what == "size" else 0
        if checked(value, int, method, f"the {what}") < least:
            raise ValueError(
                f"{at_call(method)}: the {what} is {value}; it must be at least {least}"
            )
    return CountSlidingWindowAssigner(size, slide) if slide else CountTumblingWindowAssigner(size)


class CachedDataStream(DataStream[T]):
    """A stream that the first job writes and later jobs read; see `DataStream.cache`.

    A cached stream is not an operator, so setting an attribute raises GraphError. Flink: CachedDataStream.
    """

    def invalidate(self) -> None:
        """Drops the cached records. The next job that uses the stream computes and caches them again."""
        assert isinstance(self.transformation, CacheTransformation)
        self.transformation.records.parts = None


class DataStreamUtils:
    """Flink: `DataStreamUtils`. Not in PyFlink."""

    @staticmethod
    def reinterpret_as_keyed_stream(
        stream: DataStream[T],
        key_selector: KeySelector[T, K] | Callable[[T], K],
        key_type: DeclaredType = None,
    ) -> KeyedStream[K, T]:
        """Turns the stream into a keyed stream without an exchange.

        Each record must already be in the subtask that `key_by` with this selector would choose. This holds for the
        output of an operator on such a keyed stream if the key does not change. A record in another subtask fails the
        job.
        """
        call = "reinterpret_as_keyed_stream"
        checked(stream, DataStream, call, "the stream")
        checked_function(key_selector, KeySelector, call, callables=True)
        key_by = KeyBy(captured_selector(key_selector), type_of(key_type, call))
        return KeyedStream.partitioned(stream, PartitionerKind.FORWARD, key_by)
