"""The operator classes for all specs, and the choice of a window operator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.operators.async_wait.async_wait_operator import AsyncWaitOperator
from opchain.runtime.operators.broadcast_process import (
    BroadcastProcessOperator,
    KeyedBroadcastProcessOperator,
)
from opchain.runtime.operators.interval_join import IntervalJoinOperator
from opchain.runtime.operators.keyed_process import KeyedCoProcessOperator, KeyedProcessOperator
from opchain.runtime.operators.map_batches import (
    FullWindowOperator,
    MapBatchesOperator,
    MapPartitionOperator,
)
from opchain.runtime.operators.on_error import guarded
from opchain.runtime.operators.process import (
    CoFlatMapOperator,
    CoMapOperator,
    CoProcessOperator,
    FilterOperator,
    FlatMapOperator,
    MapOperator,
    MultiInputOperator,
    ProcessOperator,
)
from opchain.runtime.operators.reduce import (
    BatchReduceOperator,
    CombinedReduceOperator,
    ReduceOperator,
)
from opchain.runtime.operators.sinks import (
    CollectSinkOperator,
    LegacySinkOperator,
    SinkCommitterOperator,
    SinkWriterOperator,
)
from opchain.runtime.operators.source import LegacySourceOperator, SourceOperator
from opchain.runtime.operators.timestamps_watermarks import TimestampsWatermarksOperator
from opchain.runtime.operators.windows.aligned_window_operator import (
    AlignedWindowOperator,
    KeyByKeyWindowOperator,
    has_plain_windows,
    is_aligned,
)
from opchain.runtime.operators.windows.merging_window_operator import MergingWindowOperator
from opchain.runtime.operators.windows.session_window_operator import (
    SessionWindowOperator,
    has_plain_sessions,
)
from opchain.runtime.operators.windows.window_operator import (
    CountWindowOperator,
    KeyByKeyCountWindowOperator,
    KeyedWindowOperator,
    ProcessingTimeWindowOperator,
    WindowOperator,
    has_plain_counts,
    has_plain_processing_time,
)
from opchain.runtime.program import operator_specs as specs
from opchain.runtime.windows.assigners import MergingWindowAssigner

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.operators.operator import OperatorContext, Output, StreamOperator
    from opchain.runtime.program.operator_specs import WindowSpec
    from opchain.runtime.program.vertex_program import OperatorProgram

    Create = Callable[[OperatorProgram, OperatorContext, Output], StreamOperator]


def window_operator_class(spec: WindowSpec, *, is_batch: bool) -> type[KeyedWindowOperator]:
    """The class of the operator that runs a spec."""
    if is_aligned(spec, is_batch=is_batch):
        return AlignedWindowOperator
    if is_batch and has_plain_windows(spec):
        return KeyByKeyWindowOperator
    if isinstance(spec.assigner, MergingWindowAssigner):
        return SessionWindowOperator if has_plain_sessions(spec) else MergingWindowOperator
    if has_plain_counts(spec):
        return KeyByKeyCountWindowOperator if is_batch else CountWindowOperator
    return ProcessingTimeWindowOperator if has_plain_processing_time(spec) else WindowOperator


def create_window_operator(
    program: OperatorProgram, context: OperatorContext, output: Output
) -> KeyedWindowOperator:
    """The operator of a program whose spec is a WindowSpec."""
    spec: WindowSpec = program.spec  # type: ignore[assignment]
    kind = window_operator_class(spec, is_batch=context.task.vertex.is_batch)
    return kind(program, context, output)


OPERATORS: dict[type[specs.OperatorSpec], Create] = {
    specs.SourceSpec: SourceOperator,
    specs.InputFormatSourceSpec: SourceOperator,
    specs.LegacySourceSpec: LegacySourceOperator,
    specs.MapSpec: MapOperator,
    specs.FilterSpec: FilterOperator,
    specs.FlatMapSpec: FlatMapOperator,
    specs.MapBatchesSpec: MapBatchesOperator,
    specs.ProcessSpec: ProcessOperator,
    specs.TimestampsWatermarksSpec: TimestampsWatermarksOperator,
    specs.AsyncWaitSpec: AsyncWaitOperator,
    specs.MapPartitionSpec: MapPartitionOperator,
    specs.ReduceSpec: ReduceOperator,
    specs.KeyedProcessSpec: KeyedProcessOperator,
    specs.FullWindowSpec: FullWindowOperator,
    specs.CoMapSpec: CoMapOperator,
    specs.CoFlatMapSpec: CoFlatMapOperator,
    specs.CoProcessSpec: CoProcessOperator,
    specs.KeyedCoProcessSpec: KeyedCoProcessOperator,
    specs.BroadcastProcessSpec: BroadcastProcessOperator,
    specs.KeyedBroadcastProcessSpec: KeyedBroadcastProcessOperator,
    specs.WindowSpec: create_window_operator,
    specs.IntervalJoinSpec: IntervalJoinOperator,
    specs.MultiInputSpec: MultiInputOperator,
    specs.SinkWriterSpec: SinkWriterOperator,
    specs.SinkCommitterSpec: SinkCommitterOperator,
    specs.CollectSinkSpec: CollectSinkOperator,
    specs.LegacySinkSpec: LegacySinkOperator,
    specs.TwoPhaseSinkSpec: SinkWriterOperator,
}
"""The operator of each spec in streaming mode."""

BATCH_OPERATORS: dict[type[specs.OperatorSpec], Create] = {
    specs.ReduceSpec: BatchReduceOperator,
    specs.CombinedReduceSpec: CombinedReduceOperator,
}
"""The operators that batch mode uses instead."""


def create_operator(
    program: OperatorProgram, context: OperatorContext, output: Output, *, is_batch: bool
) -> StreamOperator:
    """The operator of a program.

    Raises:
        UnsupportedFeatureError: no operator runs this spec yet.
    """
    if isinstance(program.spec, specs.GuardedSpec):
        unguarded = replace(program, spec=program.spec.guarded)
        return guarded(
            lambda held: create_operator(unguarded, context, held, is_batch=is_batch),
            output,
            program.spec.policy,
        )
    kind = type(program.spec)
    operator = (BATCH_OPERATORS.get(kind) if is_batch else None) or OPERATORS.get(kind)
    if operator is None:
        raise UnsupportedFeatureError(
            f"{program.label} is a {program.spec.kind}, which compiles but "
            "does not run yet; see docs/reference/support.md"
        )
    return operator(program, context, output)
