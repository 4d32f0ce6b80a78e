"""A function over all records of a partition."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Generic

from opchain.runtime.functions.function import Function
from opchain.runtime.type_variables import IN_contra, OUT_co

if TYPE_CHECKING:
    from collections.abc import Iterable


class MapPartitionFunction(Function, Generic[IN_contra, OUT_co]):
    """Evaluates all records of a subtask, or of a key, once the input has ended.

    Flink: `MapPartitionFunction`; PyFlink has none.
    """

    @abstractmethod
    def map_partition(self, values: Iterable[IN_contra]) -> Iterable[OUT_co] | None:
        """Yields the results; the values can be gone through once."""
