"""Event time and processing time across epochs.

A checkpoint contains the watermarks of each task. Flink stores no watermarks in checkpoints: after a restore, event time
starts again, and records that were late are no longer late. In opchain, a restored job gives the same results as one
that never failed. Only after draining, which ends event time, it starts again.

Watermark alignment works between epochs: a source or split that is ahead of its group gets no input in the next epoch.
The clock of processing time shows one time throughout an epoch.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.runtime.program.operator_specs import SourceSpec
from opchain.runtime.records.elements import MIN_WATERMARK
from opchain.runtime.records.record_pickle import dump_records
from opchain.runtime.time import MAX_LONG_VALUE
from opchain.runtime.watermarks.splits import limit_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.runtime.checkpoint.metadata import CheckpointMetadata
    from opchain.runtime.measurements.job_metrics import JobMetrics
    from opchain.runtime.measurements.vertex_metrics import OperatorMetrics
    from opchain.runtime.operators.operator import StreamOperator
    from opchain.runtime.program.vertex_program import JobProgram
    from opchain.runtime.task.input.watermark_valve import InputValves, WatermarkValve
    from opchain.runtime.task.operator_chain import OperatorChain
    from opchain.runtime.watermarks.strategy import WatermarkAlignmentParams


@dataclass(frozen=True, slots=True)
class OperatorEventTime:
    """The event time of one operator. `own` is the operator's own part."""

    current_watermark: int
    input_watermarks: tuple[int, ...]
    idle_inputs: frozenset[int]
    output_watermark: int
    output_is_idle: bool
    own: Any


@dataclass(frozen=True, slots=True)
class TaskEventTime:
    """The event time of one task: valves by input number, watermarks by input, operators by id; the vertex's wiring."""

    valves: dict[int, WatermarkValve]
    input_watermarks: tuple[int, ...]
    operators: dict[str, OperatorEventTime]
    wiring: str


def event_time_snapshot(chain: OperatorChain, valves: InputValves | None) -> bytes:
    """The event time of a task, pickled; `valves` is None for a task without exchanges to read.

    Raises:
        StateError: An operator's part cannot be pickled.
    """
    event_time = TaskEventTime(
        valves={} if valves is None else valves.by_input(),
        input_watermarks=tuple(chain.input_watermarks),
        operators={
            operator.program.operator_id: OperatorEventTime(
                operator.current_watermark,
                tuple(operator.input_watermarks),
                frozenset(operator.idle_inputs),
                operator.output.current_watermark,
                operator.output.is_idle,
                operator.snapshot_event_time(),
            )
            for operator in chain.operators
        },
        wiring=chain.program.wiring,
    )
    return dump_records(event_time)


def event_time_before_input(chain: OperatorChain) -> bytes:
    """The event time of a task that has read nothing, pickled.

    A job that was drained stores it, because its watermark is the greatest. A job that starts from its savepoint would
    drop all records as late.
    """
    watermarks = (MIN_WATERMARK,) * len(chain.input_watermarks)
    return dump_records(TaskEventTime({}, watermarks, operators={}, wiring=""))


def restore_event_time(
    chain: OperatorChain, valves: InputValves | None, saved: Sequence[bytes], subtask: int
) -> None:
    """Restores the event time of a task after its operators were opened.

    Each subtask restores its own event time if the vertex and everything upstream of it are the same as before.
    Otherwise a channel may come from another task. So all subtasks start at the lowest watermarks of all earlier
    subtasks, and the tasks upstream emit theirs again.

    Args:
        chain: The operators.
        valves: The valves of the exchanges that the task reads.
        saved: The event time of all earlier subtasks.
        subtask: The subtask of the task.
    """
    found: list[TaskEventTime] = [pickle.loads(data) for data in saved]
    # Checkpoints of earlier versions have no wiring.
    if found and all(getattr(item, "wiring", None) == chain.program.wiring for item in found):
        _go_on(chain, valves, found[subtask])
    elif found:
        _begin_together(chain, valves, found)
    for writer, output in zip(chain.writers, chain.program.outputs, strict=True):
        writer.watermark = chain.outputs[output.operator].current_watermark


def emit_restored_watermark(chain: OperatorChain) -> None:
    """Emits the watermark and status that the task restored from a checkpoint, to all tasks downstream.

    A receiver with the same channels as before has restored them, and ignores them. A new operator, or a receiver with
    other channels, needs them: a source that has ended, or is idle, would never emit them again, and event time would
    stop forever. Operators that are new in this chain process them first.
    """
    for operator in chain.operators[1:]:
        received, emitted = chain.outputs[operator.program.parent], operator.output
        if emitted.current_watermark == MIN_WATERMARK < received.current_watermark:
            operator.process_watermark(received.current_watermark)
        if received.is_idle and not emitted.is_idle:
            operator.process_status(is_idle=True)
    for writer, output in zip(chain.writers, chain.program.outputs, strict=True):
        emitted = chain.outputs[output.operator]
        # An idle channel takes no watermark, so the status comes first or last.
        if not emitted.is_idle:
            writer.emit_status(is_idle=False)
        if emitted.current_watermark > MIN_WATERMARK:
            writer.emit_watermark(emitted.current_watermark)
        if emitted.is_idle:
            writer.emit_status(is_idle=True)


def _go_on(chain: OperatorChain, valves: InputValves | None, saved: TaskEventTime) -> None:
    if valves is not None:
        valves.restore(saved.valves)
    chain.input_watermarks[:] = saved.input_watermarks
    for operator in chain.operators:
        own = _of(operator, saved)
        if own is not None:
            _restore_watermarks(operator, own.current_watermark, own.output_watermark)
            operator.input_watermarks[:] = own.input_watermarks
            operator.idle_inputs = set(own.idle_inputs)
            operator.output.is_idle = own.output_is_idle
            if own.own is not None:
                operator.restore_event_time(own.own)


def _begin_together(
    chain: OperatorChain, valves: InputValves | None, saved: Sequence[TaskEventTime]
) -> None:
    for operator in chain.operators:
        found = [own for own in (_of(operator, item) for item in saved) if own is not None]
        if found:
            _restore_watermarks(
                operator,
                min(item.current_watermark for item in found),
                min(item.output_watermark for item in found),
            )
            operator.rescale_event_time([item.own for item in found if item.own is not None])
    if valves is not None:
        # The inputs may have changed places. So each one starts at the watermark of the first operator.
        lowest = chain.head.current_watermark
        for marks in (chain.input_watermarks, chain.head.input_watermarks):
            marks[:] = [lowest] * len(marks)
        for number in valves.by_input():
            valves.hold(number, lowest)


def _of(operator: StreamOperator, saved: TaskEventTime) -> OperatorEventTime | None:
    """The event time of an operator, by the id of `set_uid_hash`, then by its operator id."""
    program = operator.program
    named = None if program.uid_hash is None else saved.operators.get(program.uid_hash)
    return saved.operators.get(program.operator_id) if named is None else named


def _restore_watermarks(operator: StreamOperator, current: int, emitted: int) -> None:
    operator.current_watermark = current
    operator.output.current_watermark = emitted
    if operator.context.keyed is not None:
        operator.context.keyed.timers.begin_at(current)


def sources_ahead(job: JobProgram, metrics: JobMetrics) -> dict[str, frozenset[str]]:
    """The sources that must wait for their alignment group, by operator id.

    The values are the names of the splits that must wait, empty if all splits must. Flink: FLIP-217.

    Args:
        job: The job.
        metrics: The metrics of the last epoch.
    """
    found: dict[str, tuple[WatermarkAlignmentParams, OperatorMetrics]] = {}
    least: dict[str, int] = {}
    for vertex, counted in zip(job.vertices, metrics.vertices, strict=True):
        for program, operator in zip(vertex.all_operators, counted.operators, strict=True):
            spec = program.spec
            strategy = spec.watermark_strategy if isinstance(spec, SourceSpec) else None
            if (
                strategy is not None
                and strategy.alignment is not None
                and strategy.makes_watermarks
            ):
                found[program.operator_id] = strategy.alignment, operator
                group = strategy.alignment.watermark_group
                least[group] = min(_watermark(operator), least.get(group, MAX_LONG_VALUE))
    ahead: dict[str, frozenset[str]] = {}
    for operator_id, (alignment, operator) in found.items():
        drift_ms = alignment.max_allowed_watermark_drift.to_millis()
        limit = limit_of(least[alignment.watermark_group], drift_ms)
        splits = frozenset(
            name
            for counts in operator.subtasks
            for name, watermark in counts.split_watermarks.items()
            if watermark > limit
        )
        if limit < _watermark(operator) < MAX_LONG_VALUE:
            ahead[operator_id] = frozenset()
        elif splits:
            ahead[operator_id] = splits
    return ahead


def _watermark(operator: OperatorMetrics) -> int:
    """The lowest watermark of the subtasks that are not idle, or 2**63 - 1 if all are idle."""
    marks = [item.output_watermark for item in operator.subtasks if not item.output_is_idle]
    return min(marks, default=MAX_LONG_VALUE)


def epoch_time_ms(
    now_ms: int, before: CheckpointMetadata | None, replaced: CheckpointMetadata | None
) -> int:
    """The processing time of an epoch: the machine's time, but not less than in the previous epoch.

    Args:
        now_ms: The machine's time.
        before: The checkpoint of the previous epoch, if there is one.
        replaced: The dropped checkpoint of this epoch, if there is one. Its time is used again.
    """
    if replaced is not None:
        return _shown_in(replaced)
    return now_ms if before is None else max(now_ms, _shown_in(before))


def _shown_in(metadata: CheckpointMetadata) -> int:
    # `timestamp_ms` is later than the start of the epoch, and the clock may have been set back in between.
    shown = metadata.input.clock_ms
    return metadata.timestamp_ms if shown is None else shown
