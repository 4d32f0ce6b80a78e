"""Functions that fold records into one value.

A measure of how far two records are apart.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic

from opchain.runtime.functions.function import Function
from opchain.runtime.types.type_variables import ACC, IN_contra, OUT_co, T, T_contra


class ReduceFunction(Function, Generic[T]):
    """Combines two values of a type into one of that type.

    Must be associative: batch jobs and session windows combine in any grouping.
    """

    @abstractmethod
    def reduce(self, value1: T, value2: T) -> T:
        """The value that stands for both; `value1` is the older one."""


class AggregateFunction(Function, Generic[IN_contra, ACC, OUT_co]):
    """Folds values into an accumulator of another type, and that into a result.

    The function itself holds no state: one object serves the accumulators of all keys and windows.
    """

    @abstractmethod
    def create_accumulator(self) -> ACC:
        """A fresh accumulator of nothing."""

    @abstractmethod
    def add(self, value: IN_contra, accumulator: ACC) -> ACC:
        """The accumulator with the value taken in; it may be the same object, changed."""

    @abstractmethod
    def get_result(self, accumulator: ACC) -> OUT_co:
        """The result of what was accumulated so far."""

    @abstractmethod
    def merge(self, acc_a: ACC, acc_b: ACC) -> ACC:
        """One accumulator of both, which may be one of them, changed; used when windows merge."""


class DeltaFunction(Function, Generic[T_contra]):
    """Measures the distance of two records, for DeltaTrigger and DeltaEvictor."""

    @abstractmethod
    def get_delta(self, old_data_point: T_contra, new_data_point: T_contra) -> float:
        """The distance; which of the two is the older one may matter."""
