"""Functions that only get records: map, filter, flat map, reduce, aggregate, join, co-group and similar functions."""

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
    """Turns each record into exactly one."""

    @abstractmethod
    def map(self, value: IN_contra) -> OUT_co:
        """The record that takes the place of `value`."""


class FlatMapFunction(Function, Generic[IN_contra, OUT_co]):
    """Turns each record into any number of records."""

    @abstractmethod
    def flat_map(self, value: IN_contra) -> Iterable[OUT_co]:
        """Yields, or returns as an iterable, the records made of `value`."""


class FilterFunction(Function, Generic[IN_contra]):
    """Keeps some records and drops the others."""

    @abstractmethod
    def filter(self, value: IN_contra) -> bool:
        """Whether the record stays."""


class CoMapFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Maps two connected streams to one; a single object sees both, so they can share state."""

    @abstractmethod
    def map1(self, value: IN1_contra) -> OUT_co | None:
        """The result for a record of the first stream; None emits nothing, as in PyFlink."""

    @abstractmethod
    def map2(self, value: IN2_contra) -> OUT_co | None:
        """The result for a record of the second stream; None emits nothing, as in PyFlink."""


class CoFlatMapFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Flat-maps two connected streams to one; a single object sees both."""

    @abstractmethod
    def flat_map1(self, value: IN1_contra) -> Iterable[OUT_co] | None:
        """Yields the results for a record of the first stream."""

    @abstractmethod
    def flat_map2(self, value: IN2_contra) -> Iterable[OUT_co] | None:
        """Yields the results for a record of the second stream."""


class MapPartitionFunction(Function, Generic[IN_contra, OUT_co]):
    """Evaluates all records of a subtask, or of a key, once the input has ended.

    Flink: `MapPartitionFunction`; PyFlink has none.
    """

    @abstractmethod
    def map_partition(self, values: Iterable[IN_contra]) -> Iterable[OUT_co] | None:
        """Yields the results; the values can be gone through once."""


class MapBatchesFunction(Function):
    """Turns each batch of records into any number of records; Flink's DataStream has none of its kind."""

    @abstractmethod
    def map_batches(self, batch: Any) -> Any:
        """A batch of results, or yields several: lists, or record batches, as the batch is one."""


class ReduceFunction(Function, Generic[T]):
    """Combines two values of a type into one of that type.

    Must be associative: batch jobs and session windows combine in any grouping.
    """

    @abstractmethod
    def reduce(self, value1: T, value2: T) -> T:
        """The value that stands for both; `value1` is the older one."""


class AggregateFunction(Function, Generic[IN_contra, ACC, OUT_co]):
    """Folds values into an accumulator of another type, and that into a result.

    The function itself has no state, because one object is used for the accumulators of all keys and windows.
    """

    @abstractmethod
    def create_accumulator(self) -> ACC:
        """A fresh accumulator of nothing."""

    @abstractmethod
    def add(self, value: IN_contra, accumulator: ACC) -> ACC:
        """The accumulator with the value taken in; it may be the same object, changed."""

    @abstractmethod
    def get_result(self, accumulator: ACC) -> OUT_co:
        """The result of an accumulator."""

    @abstractmethod
    def merge(self, acc_a: ACC, acc_b: ACC) -> ACC:
        """One accumulator of both, which may be one of them, changed; used when windows merge."""


class DeltaFunction(Function, Generic[T_contra]):
    """Measures the distance of two records, for DeltaTrigger and DeltaEvictor."""

    @abstractmethod
    def get_delta(self, old_data_point: T_contra, new_data_point: T_contra) -> float:
        """The distance; which of the two is the older one may matter."""


class JoinFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Makes one record of each pair of a window join."""

    @abstractmethod
    def join(self, first: IN1_contra, second: IN2_contra) -> OUT_co:
        """The pair's record."""


class FlatJoinFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Makes any number of records of each pair of a window join."""

    @abstractmethod
    def join(self, first: IN1_contra, second: IN2_contra) -> Iterable[OUT_co] | None:
        """Yields the pair's records."""


class CoGroupFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Processes the records of two streams in one window with the same key. One side may be empty."""

    @abstractmethod
    def co_group(
        self, first: Iterable[IN1_contra], second: Iterable[IN2_contra]
    ) -> Iterable[OUT_co] | None:
        """Yields the group's records."""


class ProcessJoinFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Processes each pair of an interval join."""

    class Context(ABC):
        """The times of the pair, in milliseconds."""

        @abstractmethod
        def get_left_timestamp(self) -> int:
            """The event time of the left record."""

        @abstractmethod
        def get_right_timestamp(self) -> int:
            """The event time of the right record."""

        @abstractmethod
        def get_timestamp(self) -> int:
            """The event time of emitted records, which is the later one of the two inputs."""

    @abstractmethod
    def process_element(
        self, left: IN1_contra, right: IN2_contra, ctx: ProcessJoinFunction.Context
    ) -> Emitted[OUT_co]:
        """Yields the pair's records; `yield tag, value` goes to a side output."""
