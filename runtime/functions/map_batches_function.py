"""A function over batches of records."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from opchain.runtime.functions.function import Function


class MapBatchesFunction(Function):
    """Turns each batch of records into any number of records; Flink's DataStream has none of its kind."""

    @abstractmethod
    def map_batches(self, batch: Any) -> Any:
        """A batch of results, or yields several: lists, or record batches, as the batch is one."""
