"""The spec of each operator: a frozen value that the compiler reads and executors receive.

A spec has what the user passed (functions, strategies, windows), and no state. The operator of the same name in
runtime/operators runs it, and compiler/codegen generates its code.

Attributes of all specs:
    default_name: The name that Flink gives the operator.
    is_yielding: Flink's operator waits for mail while it processes a record, so Flink never chains it
        after a legacy source.
    emits_only_at_end: The operator emits nothing before its input ends. Flink: isOutputOnlyAfterEndOfStream.

Timestamps are carried only between an operator that sets them and a downstream operator that reads them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from opchain.runtime.functions.process_functions import has_on_timer

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.columnar.spark_types import SparkType
    from opchain.runtime.functions.sink import Sink
    from opchain.runtime.functions.source import Source
    from opchain.runtime.functions.state_descriptors import MapStateDescriptor
    from opchain.runtime.types.output_tag import OutputTag
    from opchain.runtime.watermarks.strategy import WatermarkStrategy
    from opchain.runtime.windows.assigners import WindowAssigner
    from opchain.runtime.windows.evictors import Evictor
    from opchain.runtime.windows.triggers import Trigger

    OnError: TypeAlias = Literal["skip"] | OutputTag[Any]


@dataclass(frozen=True, slots=True)
class OperatorSpec:
    """The root of all specs."""

    kind: ClassVar[str] = "operator"
    default_name: ClassVar[str] = "Operator"
    is_yielding: ClassVar[bool] = False
    emits_only_at_end: ClassVar[bool] = False

    @property
    def changes_records(self) -> bool:
        """Whether the operator may change records in place."""
        return True

    @property
    def reads_timestamps(self) -> bool:
        """Whether the operator uses the timestamps of its records."""
        return True

    @property
    def makes_timestamps(self) -> bool:
        """Whether results get new timestamps. Otherwise they keep the timestamps of their records."""
        return False

    @property
    def brings_timestamps(self) -> bool:
        """Whether a source reads records that have timestamps already."""
        return False


@dataclass(frozen=True, slots=True)
class SourceSpec(OperatorSpec):
    """A source of `from_source`, `from_collection`, `from_sequence`, ...; chains as FLIP-27 sources do."""

    kind: ClassVar[str] = "source"
    default_name: ClassVar[str] = "Sequence Source"
    source: Source[Any]
    watermark_strategy: WatermarkStrategy | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether the source is bounded."""
        return self.source.is_bounded

    @property
    def makes_timestamps(self) -> bool:
        """Whether the strategy assigns timestamps, or the connector reads them."""
        strategy = self.watermark_strategy
        assigns = strategy is not None and strategy.timestamp_assigner is not None
        return assigns or self.source.has_timestamps

    @property
    def brings_timestamps(self) -> bool:
        """The value of the connector."""
        return self.source.has_timestamps


@dataclass(frozen=True, slots=True)
class LegacySourceSpec(OperatorSpec):
    """A SourceFunction of `add_source`. It is unbounded, and is the head of a chain that runs in its own thread."""

    kind: ClassVar[str] = "legacy_source"
    default_name: ClassVar[str] = "Custom Source"
    function: Any
    is_parallel: bool = False
    is_bounded: bool = False

    @property
    def makes_timestamps(self) -> bool:
        """True, because the function may collect records with timestamps."""
        return True

    @property
    def brings_timestamps(self) -> bool:
        """True, because the function may collect records with timestamps."""
        return True


@dataclass(frozen=True, slots=True)
class InputFormatSourceSpec(LegacySourceSpec):
    """A legacy source over splits, such as PyFlink's `from_collection`.

    Flink: `InputFormatSourceFunction`. `function` is a Source, which runs as in a SourceSpec. Only the graph differs.
    """

    kind: ClassVar[str] = "input_format_source"
    default_name: ClassVar[str] = "Collection Source"
    function: Source[Any]

    @property
    def makes_timestamps(self) -> bool:
        """The value of the connector."""
        return self.function.has_timestamps

    @property
    def brings_timestamps(self) -> bool:
        """The value of the connector."""
        return self.function.has_timestamps


@dataclass(frozen=True, slots=True)
class _RecordFunctionSpec(OperatorSpec):
    """An operator that calls a function with each record. Results keep the timestamp of the record."""

    reads_timestamps: ClassVar[bool] = False

    function: Any


@dataclass(frozen=True, slots=True)
class _TimerFunctionSpec(OperatorSpec):
    """An operator that calls a process function with the records of a key and when its timers fire."""

    function: Any

    @property
    def makes_timestamps(self) -> bool:
        """Whether the function has timers: their results have the timer's time."""
        return has_on_timer(self.function)


@dataclass(frozen=True, slots=True)
class MapSpec(_RecordFunctionSpec):
    """`map`: one record out for each record in."""

    kind: ClassVar[str] = "map"
    default_name: ClassVar[str] = "Map"


@dataclass(frozen=True, slots=True)
class FilterSpec(_RecordFunctionSpec):
    """`filter`: keeps the records for which the function is true."""

    kind: ClassVar[str] = "filter"
    default_name: ClassVar[str] = "Filter"


@dataclass(frozen=True, slots=True)
class FlatMapSpec(_RecordFunctionSpec):
    """`flat_map`: any number of records for each record in."""

    kind: ClassVar[str] = "flat_map"
    default_name: ClassVar[str] = "Flat Map"


@dataclass(frozen=True, slots=True)
class MapBatchesSpec(OperatorSpec):
    """`map_batches`: any number of records for each batch.

    `batch_format` is "list", or "arrow" for record batches of the struct `record_type`. With `one_to_one` each record
    has one result, which keeps its timestamp. With `gives_values` the results have one column, whose values become
    the records.
    """

    kind: ClassVar[str] = "map_batches"
    default_name: ClassVar[str] = "Map Batches"
    reads_timestamps: ClassVar[bool] = False
    function: Any
    batch_format: str = "list"
    one_to_one: bool = False
    record_type: SparkType | None = None
    gives_values: bool = False

    @property
    def makes_timestamps(self) -> bool:
        """Whether results do not belong to single records. They have no timestamps then."""
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

    @property
    def makes_timestamps(self) -> bool:
        """Whether the strategy has an assigner. Without one, records keep their timestamps."""
        return self.strategy.timestamp_assigner is not None


@dataclass(frozen=True, slots=True)
class AsyncWaitSpec(OperatorSpec):
    """`AsyncDataStream.ordered_wait` and `unordered_wait`. A `timeout_ms` of 0 is no timeout."""

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
    makes_timestamps: ClassVar[bool] = True
    function: Any


@dataclass(frozen=True, slots=True)
class ReduceSpec(_RecordFunctionSpec):
    """`reduce` on a keyed stream, and the rolling `sum`, `min`, `max`, `min_by`, `max_by`."""

    kind: ClassVar[str] = "reduce"
    default_name: ClassVar[str] = "Keyed Reduce"


@dataclass(frozen=True, slots=True)
class CombinedReduceSpec(ReduceSpec):
    """In batch mode, a reduce whose senders have combined records. It gets (key, value) pairs.

    A combined value need not have the key of the combined records. Only executors use this spec.
    """

    kind: ClassVar[str] = "combined_reduce"


@dataclass(frozen=True, slots=True)
class KeyedProcessSpec(_TimerFunctionSpec):
    """`process` on a keyed stream."""

    kind: ClassVar[str] = "keyed_process"
    default_name: ClassVar[str] = "KeyedProcess"


@dataclass(frozen=True, slots=True)
class WindowSpec(OperatorSpec):
    """A window, and the functions that are called for it.

    It has `reduce`, `aggregate` or `function`. `reduce` and `aggregate` combine records as they arrive; an additional
    `function` gets their result. `function` alone gets all records of the window. It is a WindowFunction or
    ProcessWindowFunction (or their `All` forms for `window_all`).
    """

    kind: ClassVar[str] = "window"
    default_name: ClassVar[str] = "Window"
    makes_timestamps: ClassVar[bool] = True
    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any]
    evictor: Evictor[Any, Any] | None = None
    allowed_lateness_ms: int = 0
    late_tag: OutputTag | None = None
    reduce: Any = None
    aggregate: Any = None
    function: Any = None
    is_all: bool = False


@dataclass(frozen=True, slots=True)
class FullWindowSpec(OperatorSpec):
    """`full_window_partition().map_partition` on a keyed stream: one call per key, at the end."""

    kind: ClassVar[str] = "full_window"
    default_name: ClassVar[str] = "GlobalWindows"
    emits_only_at_end: ClassVar[bool] = True
    makes_timestamps: ClassVar[bool] = True
    function: Any


@dataclass(frozen=True, slots=True)
class CoMapSpec(_RecordFunctionSpec):
    """`connect(...).map`."""

    kind: ClassVar[str] = "co_map"
    default_name: ClassVar[str] = "Co-Map"


@dataclass(frozen=True, slots=True)
class CoFlatMapSpec(_RecordFunctionSpec):
    """`connect(...).flat_map`."""

    kind: ClassVar[str] = "co_flat_map"
    default_name: ClassVar[str] = "Co-Flat Map"


@dataclass(frozen=True, slots=True)
class CoProcessSpec(OperatorSpec):
    """`connect(...).process` if one of the streams has no key."""

    kind: ClassVar[str] = "co_process"
    default_name: ClassVar[str] = "Co-Process"
    function: Any


@dataclass(frozen=True, slots=True)
class KeyedCoProcessSpec(_TimerFunctionSpec):
    """`connect(...).process` on two keyed streams."""

    kind: ClassVar[str] = "keyed_co_process"
    default_name: ClassVar[str] = "Co-Keyed-Process"


@dataclass(frozen=True, slots=True)
class BroadcastProcessSpec(OperatorSpec):
    """`connect(broadcast).process` on a stream without key."""

    kind: ClassVar[str] = "broadcast_process"
    default_name: ClassVar[str] = "Co-Process-Broadcast"
    function: Any
    descriptors: tuple[MapStateDescriptor, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyedBroadcastProcessSpec(_TimerFunctionSpec):
    """`connect(broadcast).process` on a keyed stream."""

    kind: ClassVar[str] = "keyed_broadcast_process"
    default_name: ClassVar[str] = "Co-Process-Broadcast-Keyed"
    descriptors: tuple[MapStateDescriptor, ...] = ()


@dataclass(frozen=True, slots=True)
class IntervalJoinSpec(OperatorSpec):
    """`interval_join`: pairs whose times differ by `lower_ms` to `upper_ms` (right minus left).

    In processing time, the time of a record is the time of its arrival.
    """

    kind: ClassVar[str] = "interval_join"
    default_name: ClassVar[str] = "Interval Join"
    makes_timestamps: ClassVar[bool] = True
    function: Any
    lower_ms: int
    upper_ms: int
    lower_inclusive: bool = True
    upper_inclusive: bool = True
    left_late_tag: OutputTag | None = None
    right_late_tag: OutputTag | None = None
    is_event_time: bool = True


@dataclass(frozen=True, slots=True)
class MultiInputSpec(OperatorSpec):
    """An operator with any number of inputs: `functions[i]` flat-maps the records of input i."""

    kind: ClassVar[str] = "multi_input"
    default_name: ClassVar[str] = "Multiple Input Operator"
    functions: tuple[Callable[[Any], Any], ...] = field(default=())


@dataclass(frozen=True, slots=True)
class SinkSpec(OperatorSpec):
    """A sink of `sink_to` in the program. In the StreamGraph it becomes a writer and a committer."""

    kind: ClassVar[str] = "sink"
    default_name: ClassVar[str] = "Sink"
    sink: Sink[Any]


@dataclass(frozen=True, slots=True)
class SinkWriterSpec(OperatorSpec):
    """The writer of a sink."""

    kind: ClassVar[str] = "sink_writer"
    default_name: ClassVar[str] = "Writer"
    is_yielding: ClassVar[bool] = True
    sink: Sink[Any]

    @property
    def reads_timestamps(self) -> bool:
        """The value of the sink."""
        return self.sink.reads_timestamps

    @property
    def changes_records(self) -> bool:
        """The value of the sink."""
        return self.sink.changes_records


@dataclass(frozen=True, slots=True)
class SinkCommitterSpec(OperatorSpec):
    """The committer of a sink."""

    kind: ClassVar[str] = "sink_committer"
    default_name: ClassVar[str] = "Committer"
    reads_timestamps: ClassVar[bool] = False
    sink: Sink[Any]


@dataclass(frozen=True, slots=True)
class LegacySinkSpec(OperatorSpec):
    """A SinkFunction of `add_sink`, and `print`."""

    kind: ClassVar[str] = "legacy_sink"
    default_name: ClassVar[str] = "Unnamed"
    function: Any

    @property
    def reads_timestamps(self) -> bool:
        """True, unless the function has `reads_timestamps = False`."""
        return bool(getattr(self.function, "reads_timestamps", True))


@dataclass(frozen=True, slots=True)
class TwoPhaseSinkSpec(LegacySinkSpec):
    """A two-phase sink of `add_sink`, such as JdbcSink: tasks write, and the driver commits."""

    kind: ClassVar[str] = "two_phase_sink"

    @property
    def sink(self) -> Sink[Any]:
        """The sink, which writes and commits."""
        found: Sink[Any] = self.function.two_phase
        return found

    @property
    def changes_records(self) -> bool:
        """The value of the sink."""
        return self.sink.changes_records


@dataclass(frozen=True, slots=True)
class CollectSinkSpec(LegacySinkSpec):
    """The sink of `execute_and_collect`: one subtask sends the records to the program.

    Flink: `CollectSinkOperatorFactory`. The program finds the records by the operator's uid.

    Attributes:
        limit: The most records that the program reads; None for all.
    """

    kind: ClassVar[str] = "collect_sink"
    default_name: ClassVar[str] = "Data stream collect sink"
    reads_timestamps: ClassVar[bool] = False
    changes_records: ClassVar[bool] = False
    function: None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class GuardedSpec(OperatorSpec):
    """`on_error`: an operator whose failing records are skipped, or go to a side output."""

    kind: ClassVar[str] = "guarded"
    guarded: OperatorSpec
    policy: OnError

    @property
    def function(self) -> Any:
        """The function of the guarded operator."""
        return self.guarded.function  # type: ignore[attr-defined]  # GUARDED_KINDS all have one

    @property
    def changes_records(self) -> bool:
        """The value of the guarded operator."""
        return self.guarded.changes_records

    @property
    def reads_timestamps(self) -> bool:
        """The value of the guarded operator."""
        return self.guarded.reads_timestamps

    @property
    def makes_timestamps(self) -> bool:
        """The value of the guarded operator."""
        return self.guarded.makes_timestamps


GUARDED_KINDS = (
    *(MapSpec, FilterSpec, FlatMapSpec, ProcessSpec, KeyedProcessSpec),
    *(CoMapSpec, CoFlatMapSpec, CoProcessSpec, KeyedCoProcessSpec),
    *(BroadcastProcessSpec, KeyedBroadcastProcessSpec, IntervalJoinSpec),
)
"""Operators that call a function with one record."""
