"""The contracts of an operator, its output and its context on an executor, and the contexts of a CheckpointedFunction.

Flink: `StreamOperator`, `Output`. An operator takes elements in `process_element`, and emits results into its
`output`. The chain connects the output to operators and exchanges downstream (runtime/task/operator_chain.py), and
decides whether operators are called one by one or as generated code.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.runtime.functions.callables import accept_collectors
from opchain.runtime.functions.state import (
    CheckpointedFunction,
    CheckpointListener,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedStateStore,
    OperatorStateStore,
)
from opchain.runtime.metrics.histogram import Histogram
from opchain.runtime.metrics.metric_group import NUM_LATE_RECORDS_DROPPED, MetricGroup
from opchain.runtime.state.operator_snapshot import OperatorSnapshot
from opchain.runtime.types.coders import record_converter

if TYPE_CHECKING:
    from opchain.runtime.connectors.dataframe_source import SparkRows
    from opchain.runtime.functions.function import RuntimeContext
    from opchain.runtime.functions.sink import SinkWriter
    from opchain.runtime.mailbox.mailbox_executor import MailboxExecutor
    from opchain.runtime.mailbox.processing_time_service import ProcessingTimeService
    from opchain.runtime.metrics.metric_types import Counter
    from opchain.runtime.program.vertex_program import OperatorProgram, VertexProgram
    from opchain.runtime.records.elements import LatencyMarker
    from opchain.runtime.state.keyed.keyed_backend import KeyedStateBackend
    from opchain.runtime.state.operator_state import SubtaskStateStore
    from opchain.runtime.state.timers.timer_services import TimerServices
    from opchain.runtime.watermarks.splits import AlignmentGroup


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """Identifies a subtask of a vertex, and its attempt.

    `attempt` counts Spark's retries of the task from 0; `attempt_id` is unique to this attempt in the
    whole application.
    """

    vertex: VertexProgram
    subtask: int
    attempt: int = 0
    attempt_id: str = "local"
    job_name: str = ""

    @property
    def task(self) -> int:
        """The number of the task in its job."""
        return self.vertex.first_task + self.subtask

    @property
    def name_with_subtasks(self) -> str:
        """Flink's `getTaskNameWithSubtasks`: `name (2/4)#0`."""
        return f"{self.vertex.name} ({self.subtask + 1}/{self.vertex.parallelism})#{self.attempt}"


class KeyedServices(NamedTuple):
    """The keyed state of an operator, and its timers."""

    state: KeyedStateBackend
    timers: TimerServices


@dataclass(slots=True)
class OperatorContext:
    """The services of one operator.

    Attributes:
        task: The subtask that the operator runs in.
        runtime_context: The context of the operator's function.
        processing_time: The clock and timers. With `runs_in_epochs` the clock shows one time throughout an epoch.
        marker_time: The machine's clock, for latency markers.
        mailbox: Runs commands in the task's thread, at this operator's priority.
        send_to_driver: `send_to_driver(item)` sends a picklable item to the driver, exactly once.
        operator_state: State of the subtask.
        keyed: State and timers by key; None for an operator without key.
        feed: The records that the engine reads for a DataFrame source.
        schema: The schema of an Arrow sink as JSON.
        send_batch: Takes the batches of an Arrow sink, as bytes.
        make_writer: `make_writer(where)` creates the writer of a sink, for sinks whose writer is part of the engine.
        restored_checkpoint_id: The checkpoint that the state was restored from, if there is one.
        runs_in_epochs: Whether the task runs in epochs, on Spark or in this process. False for asynchronous operators,
            which use the machine's clock.
        input_clock_ns: In an unbounded job in this process: the machine's clock in nanoseconds, without the time of
            back pressure.
        alignment: The watermark alignment groups of such a job.
    """

    task: TaskInfo
    runtime_context: RuntimeContext
    processing_time: ProcessingTimeService
    marker_time: ProcessingTimeService
    mailbox: MailboxExecutor
    send_to_driver: Callable[[Any], None]
    operator_state: SubtaskStateStore
    keyed: KeyedServices | None = None

    feed: SparkRows | None = None
    schema: str | None = None
    send_batch: Callable[[bytes], None] | None = None
    make_writer: Callable[[str], SinkWriter[Any]] | None = None
    restored_checkpoint_id: int | None = None
    runs_in_epochs: bool = False
    input_clock_ns: Callable[[], int] | None = None
    alignment: Mapping[str, AlignmentGroup] | None = None

    @property
    def keyed_state(self) -> KeyedStateBackend:
        """The state of an operator with a key."""
        assert self.keyed is not None, "only operators with a key have keyed state"
        return self.keyed.state

    @property
    def timers(self) -> TimerServices:
        """The timers of an operator with a key."""
        assert self.keyed is not None, "only operators with a key have timers"
        return self.keyed.timers

    def quiesce(self) -> None:
        """Fires the timers that are due, and stops the others. No timer fires afterwards."""
        if self.keyed is not None:
            self.keyed.timers.fire_due()
        self.processing_time.quiesce()
        self.marker_time.quiesce()

    @property
    def metrics(self) -> MetricGroup:
        """The operator's metric group, which its function sees as well."""
        return self.runtime_context.get_metrics_group()


class InitializationContext(FunctionInitializationContext):
    """An operator's states for its function. Flink: `StateInitializationContextImpl`."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context

    def is_restored(self) -> bool:
        """Whether a snapshot was restored."""
        return self._context.restored_checkpoint_id is not None

    def get_restored_checkpoint_id(self) -> int | None:
        """The number of the restored checkpoint."""
        return self._context.restored_checkpoint_id

    def get_operator_state_store(self) -> OperatorStateStore:
        """State of the subtask."""
        store: OperatorStateStore = self._context.operator_state
        return store

    def get_keyed_state_store(self) -> KeyedStateStore:
        """State per key; on a stream without key its getters raise StateError."""
        return self._context.runtime_context


@dataclass(frozen=True, slots=True)
class SnapshotContext(FunctionSnapshotContext):
    """A checkpoint. Flink: `StateSnapshotContextSynchronousImpl`."""

    checkpoint_id: int
    timestamp_ms: int

    def get_checkpoint_id(self) -> int:
        """The number of the checkpoint."""
        return self.checkpoint_id

    def get_checkpoint_timestamp(self) -> int:
        """When it was triggered."""
        return self.timestamp_ms


if TYPE_CHECKING:
    Collect = Callable[[Any, int | None], None]


def _discard(value: Any, timestamp: int | None) -> None:
    """The end of a stream without consumers."""


@dataclass(slots=True)
class Output:
    """The receivers of an operator's results. The chain fills them in when it connects the operators.

    `collect(value, timestamp)` emits a record. `sides` has a `collect` for each side output that is read, by tag id.
    `side_converters` converts those records to the type of the tag. The lists have the receivers in the order of the
    out-edges.
    """

    collect: Collect = _discard
    sides: dict[str, Collect] = field(default_factory=dict)
    side_converters: dict[str, Callable[[Any], Any]] = field(default_factory=dict)
    watermark_receivers: list[Callable[[int], None]] = field(default_factory=list)
    idle_receivers: list[Callable[[bool], None]] = field(default_factory=list)
    marker_receivers: list[Callable[[LatencyMarker], None]] = field(default_factory=list)
    current_watermark: int = -(2**63)
    is_idle: bool = False

    def collect_to(self, tag_id: str, value: Any, timestamp: int | None) -> None:
        """Emits a record to a side output. Without a reader the record is dropped, as in Flink."""
        collect = self.sides.get(tag_id)
        if collect is not None:
            convert = self.side_converters.get(tag_id)
            collect(value if convert is None else convert(value), timestamp)

    def emit_watermark(self, watermark: int) -> None:
        """Emits a watermark to everything downstream."""
        self.current_watermark = watermark
        for receive in self.watermark_receivers:
            receive(watermark)

    def emit_status(self, is_idle: bool) -> None:
        """Tells everything downstream that this stream became idle, or active again."""
        self.is_idle = is_idle
        for receive in self.idle_receivers:
            receive(is_idle)

    def emit_latency_marker(self, marker: LatencyMarker) -> None:
        """Emits a latency marker to everything downstream."""
        for receive in self.marker_receivers:
            receive(marker)


class StreamOperator:
    """One operator of one subtask.

    The operators of a chain are created and opened from tail to head. Then they process elements. When the input has
    ended, they are finished from head to tail. `close` is always called, once. The default methods pass elements on
    unchanged.

    With `sorts_batch_input`, batch mode gives a keyed operator its records key by key (runtime/task/input/batch_input.py).
    Otherwise records come in the order of arrival. With `ends_keys`, batch mode fires the timers of a key and drops its
    state before the next key begins. Otherwise the operator emits its results after the last key.

    If an operator `touches_keys`, it or its generated code selects or touches each key under which state may change
    (KeyedStateBackend.touch). For other operators the task touches the keys of all records.
    """

    sorts_batch_input = True
    ends_keys = True
    touches_keys = False
    late_records_dropped: Counter | None = None
    """Set by `count_late_records`, in operators that drop late records."""
    warning: str | None = None
    """What the driver warns of once, after the operator's name and call site."""

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        self.program = program
        self.context = context
        self.output = output
        self.as_declared = record_converter(program.record_type)
        self.records_in = 0
        self.records_out = 0
        self.current_watermark = -(2**63)
        self.input_watermarks = [-(2**63)] * len(program.keys)
        self.idle_inputs: set[int] = set()
        # In an epoch, the inputs with records that have not been read. They count even if they are idle.
        self.open_inputs: set[int] = set()
        self.latencies: dict[str, Histogram] = {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.program.label}>"

    @property
    def current_key(self) -> Any:
        """The key of the current record or timer; None for an operator without key."""
        keyed = self.context.keyed
        return None if keyed is None else keyed.state.current_key

    def count_late_records(self) -> Counter:
        """Registers the counter of late records, for `open`."""
        counter: Counter = self.context.metrics.counter(NUM_LATE_RECORDS_DROPPED)
        self.late_records_dropped = counter
        return counter

    def begin_epoch(self) -> None:
        """Resets the counters to 0, because the driver adds the counts of the epochs."""
        self.records_in = self.records_out = 0
        self.latencies.clear()
        late = self.late_records_dropped
        if late is not None:
            late.dec(late.get_count())

    def restore_state(self, snapshot: OperatorSnapshot, checkpoint_id: int) -> None:
        """Restores this subtask's part of a checkpoint. Called before `open`."""
        context = self.context
        context.restored_checkpoint_id = checkpoint_id
        context.operator_state.restore(snapshot.operator)
        if context.keyed is not None:
            context.keyed.state.restore([snapshot.keyed])
            context.keyed.timers.restore([snapshot.timers])

    def write_state(self, checkpoint_id: int, timestamp_ms: int) -> None:
        """Writes what the operator keeps in attributes to its state. Called before each snapshot."""

    def snapshot_state(self, checkpoint_id: int, timestamp_ms: int) -> OperatorSnapshot:
        """The whole state of this subtask, for a checkpoint."""
        self.write_state(checkpoint_id, timestamp_ms)
        context = self.context
        keyed = context.keyed
        return OperatorSnapshot(
            keyed={} if keyed is None else keyed.state.snapshot(),
            timers={} if keyed is None else keyed.timers.snapshot(),
            operator=context.operator_state.snapshot(),
        )

    def track_changes(self) -> None:
        """Makes `snapshot_changes` return changes from the next snapshot on. Called before `open`.

        The caller must touch the key of each record (see KeyedStateBackend.touch). Without this call, `snapshot_changes`
        returns the whole state.
        """
        if self.context.keyed is not None:
            self.context.keyed.state.track_changes()
            self.context.keyed.timers.track_changes()

    def snapshot_changes(self, checkpoint_id: int, timestamp_ms: int) -> OperatorSnapshot:
        """The changes since the last snapshot; the whole state if changes are not tracked."""
        context, keyed = self.context, self.context.keyed
        if keyed is None or not keyed.state.tracks_changes:
            return self.snapshot_state(checkpoint_id, timestamp_ms)
        self.write_state(checkpoint_id, timestamp_ms)
        return OperatorSnapshot(
            keyed=keyed.state.snapshot_changes(),
            timers=keyed.timers.snapshot_changes(),
            operator=context.operator_state.snapshot(),
            is_changes=True,
        )

    @property
    def can_catch_up(self) -> bool:
        """Whether `apply_changes` may be called while the operator is open.

        False for an operator that keeps a copy of its state in attributes.
        """
        return True

    def apply_changes(self, snapshot: OperatorSnapshot) -> None:
        """Applies changes to the restored state. Called before `open`, or later if the operator `can_catch_up`."""
        context = self.context
        context.operator_state.restore(snapshot.operator)
        if context.keyed is not None:
            context.keyed.state.restore([snapshot.keyed])
            context.keyed.timers.apply_changes(snapshot.timers)

    def open(self) -> None:
        """Opens the user's function and registers state, before the first record."""

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Takes a record of a one-input operator."""
        raise NotImplementedError(f"{self!r} has no first input")

    def process_element2(self, value: Any, timestamp: int | None) -> None:
        """Takes a record of the second input."""
        raise NotImplementedError(f"{self!r} has no second input")

    def input(self, number: int) -> Collect:
        """The function that takes the records of input `number`, from 0."""
        return self.process_element if number == 0 else self.process_element2

    def process_batch(
        self, number: int, values: Sequence[Any], timestamps: Sequence[int | None] | None
    ) -> None:
        """Takes a batch of input `number`. The chain replaces this method by generated code."""
        process = self.input(number)
        key = self.program.keys[number] if number < len(self.program.keys) else None
        if key is not None and key.is_carried:
            times = repeat(None) if timestamps is None else timestamps
            for (key.selector.key, value), timestamp in zip(values, times):  # noqa: B905
                process(value, timestamp)
        elif timestamps is None:
            for value in values:
                process(value, None)
        else:
            for value, timestamp in zip(values, timestamps):  # noqa: B905 - equal by construction
                process(value, timestamp)

    def count(self, records_in: int, records_out: int) -> None:
        """Counts a batch that generated code has processed."""
        self.records_in += records_in
        self.records_out += records_out

    def process_watermark(self, watermark: int) -> None:
        """Takes the watermark of all inputs: fires timers, then emits the watermark."""
        self.current_watermark = watermark
        if self.context.keyed is not None:
            self.context.keyed.timers.advance_watermark(watermark)
        self.output.emit_watermark(watermark)

    def process_watermark_of(self, number: int, watermark: int) -> None:
        """Takes the watermark of one of several inputs. The operator's watermark is the minimum over its inputs.

        Flink: `AbstractStreamOperator.processWatermark1/2` over an `IndexedCombinedWatermarkStatus`.
        """
        self.input_watermarks[number] = watermark
        self._raise_watermark()

    def close_input(self, number: int) -> None:
        """Takes the end of an input's records in an epoch. From now on, the input does not count if it is idle."""
        self.open_inputs.discard(number)
        self._raise_watermark()

    def _raise_watermark(self) -> None:
        if len(self.idle_inputs) == len(self.input_watermarks):
            return
        combined = min(
            watermark
            for number, watermark in enumerate(self.input_watermarks)
            if number in self.open_inputs or number not in self.idle_inputs
        )
        if combined > self.current_watermark:
            self.process_watermark(combined)

    def process_status(self, is_idle: bool) -> None:
        """Takes the idleness of the combined input."""
        self.output.emit_status(is_idle)

    def process_status_of(self, number: int, *, is_idle: bool) -> None:
        """Takes the idleness of one of several inputs. Idle inputs do not count for the minimum.

        Flink: `AbstractStreamOperator.processWatermarkStatus` over `IndexedCombinedWatermarkStatus`.
        """
        inputs = max(1, len(self.program.keys))
        if inputs == 1:
            self.process_status(is_idle)
            return
        was_idle = len(self.idle_inputs) == inputs
        (self.idle_inputs.add if is_idle else self.idle_inputs.discard)(number)
        # Flink emits the watermark first. Downstream of an exchange, the valve ignores it, because its channel is idle.
        if (len(self.idle_inputs) == inputs) is not was_idle:
            self.process_status(is_idle)
        self._raise_watermark()

    def process_latency_marker(self, marker: LatencyMarker) -> None:
        """Records the latency of a marker, and emits the marker.

        Flink: `AbstractStreamOperator.reportOrForwardLatencyMarker`, with the granularity `operator`.
        """
        latency = self.latencies.get(marker.operator_id)
        if latency is None:
            latency = self.latencies[marker.operator_id] = Histogram()
        now_ms = self.context.marker_time.current_processing_time()
        latency.update(now_ms - marker.marked_time_ms)
        self.output.emit_latency_marker(marker)

    def end_key(self) -> None:
        """Fires the timers of the current key, before the next key begins in batch mode."""
        self.context.timers.end_key()

    def end_input(self, number: int) -> None:
        """Called when input `number` has ended, before `finish` (Flink: `BoundedMultiInput`)."""

    def on_batch_end(self) -> None:
        """Called after each batch, for periodic watermarks."""

    def finish(self) -> None:
        """Called when all inputs have ended, from head to tail. Emits remaining results."""

    def prepare_snapshot(self, checkpoint_id: int) -> None:
        """Called before the barrier is sent, from head to tail. Emits results that are not part of the state.

        Flink: `prepareSnapshotPreBarrier`.
        """

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Notifies a CheckpointListener that a checkpoint is complete. A later one may replace it."""
        for listener in self._listeners():
            listener.notify_checkpoint_complete(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Notifies a CheckpointListener that a checkpoint failed."""
        for listener in self._listeners():
            listener.notify_checkpoint_aborted(checkpoint_id)

    def _listeners(self) -> list[CheckpointListener]:
        found = (getattr(self.program.spec, name, None) for name in ("function", "source"))
        return [item for item in found if isinstance(item, CheckpointListener)]

    def snapshot_event_time(self) -> Any:
        """The watermarks and watermark generators of this subtask, for a checkpoint. Must be picklable."""
        return None

    def restore_event_time(self, snapshot: Any) -> None:
        """Restores the result of `snapshot_event_time` of the same subtask. Called after `open`."""

    def rescale_event_time(self, snapshots: Sequence[Any]) -> None:
        """Restores the results of `snapshot_event_time` of all subtasks, after the parallelism has changed."""

    def close(self) -> None:
        """Releases all resources. Called once, also after an error."""


class UserFunctionOperator(StreamOperator):
    """An operator that calls a user's function: a Function object or a plain callable.

    `method` is the name of the Function's method that takes a record.
    """

    method = ""

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.function: Any = program.spec.function  # type: ignore[attr-defined]
        accept_collectors(self.function)
        self.call: Callable[..., Any] = getattr(self.function, self.method, self.function)

    def open(self) -> None:
        """Opens the user's function with its runtime context; a CheckpointedFunction is initialized first."""
        if isinstance(self.function, CheckpointedFunction):
            self.function.initialize_state(InitializationContext(self.context))
        opened = getattr(self.function, "open", None)
        if opened is not None:
            self._refuse_generator("open", opened(self.context.runtime_context))

    @property
    def can_catch_up(self) -> bool:
        """False if the function keeps state in memory."""
        return not isinstance(self.function, CheckpointedFunction)

    def write_state(self, checkpoint_id: int, timestamp_ms: int) -> None:
        """A CheckpointedFunction writes its fields to its states."""
        if isinstance(self.function, CheckpointedFunction):
            self.function.snapshot_state(SnapshotContext(checkpoint_id, timestamp_ms))

    def close(self) -> None:
        """Closes the user's function."""
        closed = getattr(self.function, "close", None)
        if closed is not None:
            self._refuse_generator("close", closed())

    def _refuse_generator(self, method: str, result: Any) -> None:
        """Raises an error for a method that yields: its code has not run when it returns."""
        if isinstance(result, Generator):
            raise TypeError(
                f"{self.program.label}: {method}() contains a yield, "
                f"so it is a generator and its body never ran; nothing can be emitted in "
                f"{method}(): yield where records are processed"
            )
