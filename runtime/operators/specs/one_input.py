"""Operators on one stream without key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from opchain.runtime.operators.specs.operator_spec import OperatorSpec

if TYPE_CHECKING:
    from opchain.runtime.columnar.spark_types import SparkType
    from opchain.runtime.watermarks.strategy import WatermarkStrategy


@dataclass(frozen=True, slots=True)
class MapSpec(OperatorSpec):
    """`map`: one record out for each record in."""

    kind: ClassVar[str] = "map"
    default_name: ClassVar[str] = "Map"
    function: Any

    def reads_timestamps(self) -> bool:
        """No: records keep theirs."""
        return False


@dataclass(frozen=True, slots=True)
class FilterSpec(OperatorSpec):
    """`filter`: keeps the records for which the function is true."""

    kind: ClassVar[str] = "filter"
    default_name: ClassVar[str] = "Filter"
    function: Any

    def reads_timestamps(self) -> bool:
        """No: records keep theirs."""
        return False


@dataclass(frozen=True, slots=True)
class FlatMapSpec(OperatorSpec):
    """`flat_map`: any number of records for each record in."""

    kind: ClassVar[str] = "flat_map"
    default_name: ClassVar[str] = "Flat Map"
    function: Any

    def reads_timestamps(self) -> bool:
        """No: records keep theirs."""
        return False


@dataclass(frozen=True, slots=True)
class MapBatchesSpec(OperatorSpec):
    """`map_batches`: any number of records for each batch.

    `batch_format` is "list", or "arrow" for record batches of the struct `record_type`. With `one_to_one` each
    record has one result, which keeps its timestamp; `gives_values` takes the one column of results for the
    records themselves.
    """

    kind: ClassVar[str] = "map_batches"
    default_name: ClassVar[str] = "Map Batches"
    takes_batches: ClassVar[bool] = True
    function: Any
    batch_format: str = "list"
    one_to_one: bool = False
    record_type: SparkType | None = None
    gives_values: bool = False

    def reads_timestamps(self) -> bool:
        """No: results keep them, or have none."""
        return False

    def makes_timestamps(self) -> bool:
        """Where results are not those of single records: they have none."""
        return not self.one_to_one


@dataclass(frozen=True, slots=True)
class ProcessSpec(OperatorSpec):
    """`process` on a stream without key."""

    kind: ClassVar[str] = "process"
    default_name: ClassVar[str] = "Process"
    function: Any


@dataclass(frozen=True, slots=True)
class TimestampsWatermarksSpec(OperatorSpec):
    """`assign_timestamps_and_watermarks`."""

    kind: ClassVar[str] = "assign_watermarks"
    default_name: ClassVar[str] = "Timestamps/Watermarks"
    strategy: WatermarkStrategy

    def makes_timestamps(self) -> bool:
        """Whether the strategy assigns them; without an assigner records keep theirs."""
        return self.strategy.timestamp_assigner is not None


@dataclass(frozen=True, slots=True)
class AsyncWaitSpec(OperatorSpec):
    """`AsyncDataStream.ordered_wait` and `unordered_wait`; `timeout_ms` 0 means none."""

    kind: ClassVar[str] = "async_wait"
    default_name: ClassVar[str] = "async wait operator"
    is_yielding: ClassVar[bool] = True
    function: Any
    timeout_ms: int
    capacity: int = 100
    is_ordered: bool = False
    retry_strategy: Any = None


@dataclass(frozen=True, slots=True)
class MapPartitionSpec(OperatorSpec):
    """`full_window_partition().map_partition` on a stream: one call per subtask, at the end."""

    kind: ClassVar[str] = "map_partition"
    default_name: ClassVar[str] = "MapPartition"
    emits_only_at_end: ClassVar[bool] = True
    function: Any

    def makes_timestamps(self) -> bool:
        """Yes: that of the window or pair."""
        return True
