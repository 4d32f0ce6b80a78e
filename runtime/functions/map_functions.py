"""Functions of one record at a time: map, flat map, filter, and their two-input forms.

A function over all records of a partition.

A function over batches of records.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.functions.function import Function
from opchain.runtime.types.type_variables import IN1_contra, IN2_contra, IN_contra, OUT_co

if TYPE_CHECKING:
    from collections.abc import Iterable


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
