"""Functions whose methods get only records: map, filter, flat map, reduce, aggregate, join, co-group and others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.functions.function import Function
from opchain.runtime.types.type_variables import (
    ACC,
    IN1_contra,
    IN2_contra,
    IN_contra,
    OUT_co,
    T,
    T_contra,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opchain.runtime.types.output_tag import Emitted


class MapFunction(Function, Generic[IN_contra, OUT_co]):
    """Turns each record into one record."""

    @abstractmethod
    def map(self, value: IN_contra) -> OUT_co:
        """Returns the result for a record."""


class FlatMapFunction(Function, Generic[IN_contra, OUT_co]):
    """Turns each record into any number of records."""

    @abstractmethod
    def flat_map(self, value: IN_contra) -> Iterable[OUT_co]:
        """Yields the results for a record, or returns them as an iterable."""


class FilterFunction(Function, Generic[IN_contra]):
    """Keeps the records for which `filter` returns true."""

    @abstractmethod
    def filter(self, value: IN_contra) -> bool:
        """Whether to keep the record."""


class CoMapFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Maps the records of two connected streams. One object handles both streams, so they can share state."""

    @abstractmethod
    def map1(self, value: IN1_contra) -> OUT_co | None:
        """The result for a record of the first stream; None emits nothing, as in PyFlink."""

    @abstractmethod
    def map2(self, value: IN2_contra) -> OUT_co | None:
        """The result for a record of the second stream; None emits nothing, as in PyFlink."""


class CoFlatMapFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Flat-maps the records of two connected streams. One object handles both streams."""

    @abstractmethod
    def flat_map1(self, value: IN1_contra) -> Iterable[OUT_co] | None:
        """Yields the results for a record of the first stream."""

    @abstractmethod
    def flat_map2(self, value: IN2_contra) -> Iterable[OUT_co] | None:
        """Yields the results for a record of the second stream."""


class MapPartitionFunction(Function, Generic[IN_contra, OUT_co]):
    """Processes all records of a subtask, or of a key, when the input has ended.

    Flink: `MapPartitionFunction`. Not in PyFlink.
    """

    @abstractmethod
    def map_partition(self, values: Iterable[IN_contra]) -> Iterable[OUT_co] | None:
        """Yields the results. `values` can be iterated only once."""


class MapBatchesFunction(Function):
    """Turns each batch of records into any number of records. Flink's DataStream API has no such function."""

    @abstractmethod
    def map_batches(self, batch: Any) -> Any:
        """Returns a batch of results, or yields several batches.

        They are lists or Arrow record batches, like the input.
        """


class ReduceFunction(Function, Generic[T]):
    """Combines two values into one value of the same type.

    In session windows the function must be associative, as in Flink: windows that become one have a value each.
    """

    @abstractmethod
    def reduce(self, value1: T, value2: T) -> T:
        """Returns the combination of both values. `value1` is the older one."""


class AggregateFunction(Function, Generic[IN_contra, ACC, OUT_co]):
    """Adds values to an accumulator, and computes a result from the accumulator.

    The function itself must not keep state: one object is used for the accumulators of all keys and windows.
    """

    @abstractmethod
    def create_accumulator(self) -> ACC:
        """Returns a new, empty accumulator."""

    @abstractmethod
    def add(self, value: IN_contra, accumulator: ACC) -> ACC:
        """Returns the accumulator with the value added. It may change and return the same object."""

    @abstractmethod
    def get_result(self, accumulator: ACC) -> OUT_co:
        """The result of an accumulator."""

    @abstractmethod
    def merge(self, acc_a: ACC, acc_b: ACC) -> ACC:
        """Merges two accumulators when windows merge. It may change and return one of them."""


class DeltaFunction(Function, Generic[T_contra]):
    """Measures the distance of two records, for DeltaTrigger and DeltaEvictor."""

    @abstractmethod
    def get_delta(self, old_data_point: T_contra, new_data_point: T_contra) -> float:
        """Returns the distance. It may depend on which of the two is the older one."""


class JoinFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Turns each pair of a window join into one record."""

    @abstractmethod
    def join(self, first: IN1_contra, second: IN2_contra) -> OUT_co:
        """Returns the record for a pair."""


class FlatJoinFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Turns each pair of a window join into any number of records."""

    @abstractmethod
    def join(self, first: IN1_contra, second: IN2_contra) -> Iterable[OUT_co] | None:
        """Yields the records for a pair."""


class CoGroupFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Processes the records of two streams that have the same key and window. One side may be empty."""

    @abstractmethod
    def co_group(
        self, first: Iterable[IN1_contra], second: Iterable[IN2_contra]
    ) -> Iterable[OUT_co] | None:
        """Yields the records for a key and window."""


class ProcessJoinFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Processes each pair of an interval join."""

    class Context(ABC):
        """The timestamps of the pair, in milliseconds."""

        @abstractmethod
        def get_left_timestamp(self) -> int:
            """The event time of the left record."""

        @abstractmethod
        def get_right_timestamp(self) -> int:
            """The event time of the right record."""

        @abstractmethod
        def get_timestamp(self) -> int:
            """The event time of emitted records: the later one of both timestamps."""

    @abstractmethod
    def process_element(
        self, left: IN1_contra, right: IN2_contra, ctx: ProcessJoinFunction.Context
    ) -> Emitted[OUT_co]:
        """Yields the records for a pair. `yield tag, value` emits to a side output."""
