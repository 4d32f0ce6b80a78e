"""A measure of how far two records are apart."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic

from opchain.runtime.functions.function import Function
from opchain.runtime.type_variables import T_contra


class DeltaFunction(Function, Generic[T_contra]):
    """Measures the distance of two records, for DeltaTrigger and DeltaEvictor."""

    @abstractmethod
    def get_delta(self, old_data_point: T_contra, new_data_point: T_contra) -> float:
        """The distance; which of the two is the older one may matter."""
