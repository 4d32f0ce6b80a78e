"""Functions that fold records into one value."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic

from opchain.runtime.functions.function import Function
from opchain.runtime.type_variables import ACC, IN_contra, OUT_co, T


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
