"""Runs one operator without a job: push records, watermarks and time, and check its output.

    with KeyedOneInputOperatorHarness(CountPerKey(), key_selector=itemgetter(0)) as harness:
        harness.process_element(("a", 1), 10)
        harness.process_watermark(20)
        assert harness.values() == [("a", 1)]

An operator runs here as in a task in streaming mode: the same classes, state backend, timers and mailbox,
interpreted. Time stands still until the test moves it; nothing sleeps. A harness is one subtask of several
if asked to, and starts from the snapshots of others, at any parallelism.

Flink: `AbstractStreamOperatorTestHarness` and similar classes. Spark has `TwsTester` for its own operators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.runtime.functions.process_functions import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from opchain.runtime.functions.record_functions import (
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    MapBatchesFunction,
    MapFunction,
    MapPartitionFunction,
    ReduceFunction,
)
from opchain.runtime.mailbox.mailbox_processor import MailboxProcessor
from opchain.runtime.mailbox.timer_service import SteppedClock
from opchain.runtime.operators.operator import Output, TaskInfo
from opchain.runtime.operators.registry import create_operator
from opchain.runtime.program import operator_specs as specs
from opchain.runtime.program.vertex_program import KeyProgram, OperatorProgram, VertexProgram
from opchain.runtime.state.keys.key_groups import (
    default_max_parallelism,
    key_group,
    key_group_range,
)
from opchain.runtime.state.operator_snapshot import OperatorSnapshot, redistribute
from opchain.runtime.task.operator_services import operator_context
from opchain.runtime.task.stream_task import TaskEnvironment
from opchain.runtime.time import MAX_LONG_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from typing_extensions import Self

    from opchain.runtime.functions.state_descriptors import MapStateDescriptor, StateDescriptor
    from opchain.runtime.types.output_tag import OutputTag


class ManualClock(SteppedClock):
    """A clock that shows 0 until a test moves it.

        clock = ManualClock()
        service = ProcessingTimeService(clock, executor)
        service.register_timer(10, fired.append)
        clock.advance(10)  # puts the timer's mail
        processor.run_mailbox_step()  # runs it

    Flink: TestProcessingTimeService and ManualClock.
    """


class EmittedRecord(NamedTuple):
    """A record, and its event time in milliseconds, or None."""

    value: Any
    timestamp: int | None


class EmittedWatermark(NamedTuple):
    """A watermark that was passed on."""

    timestamp: int


class CapturedOutput(Output):
    """An output that collects everything that is emitted.

    Attributes:
        elements: Records of the main output and watermarks, as they came.
        by_tag: Records of the side outputs, by tag id.
        statuses: Each change of idleness that was passed on.
    """

    __slots__ = ("by_tag", "elements", "statuses")

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[EmittedRecord | EmittedWatermark] = []
        self.by_tag: dict[str, list[EmittedRecord]] = {}
        self.statuses: list[bool] = []
        self.collect = self._keep
        self.watermark_receivers.append(
            lambda timestamp: self.elements.append(EmittedWatermark(timestamp))
        )
        self.idle_receivers.append(self.statuses.append)

    def collect_to(self, tag_id: str, value: Any, timestamp: int | None) -> None:
        """Keeps a record of a side output."""
        self.by_tag.setdefault(tag_id, []).append(EmittedRecord(value, timestamp))

    def records(self, tag: OutputTag[Any] | None = None) -> list[EmittedRecord]:
        """The records of the main output, or of a side output."""
        if tag is not None:
            return list(self.by_tag.get(tag.tag_id, ()))
        return [element for element in self.elements if isinstance(element, EmittedRecord)]

    def clear(self) -> None:
        """Discards the collected output."""
        self.elements.clear()
        self.by_tag.clear()
        self.statuses.clear()

    def _keep(self, value: Any, timestamp: int | None) -> None:
        self.elements.append(EmittedRecord(value, timestamp))


_SPECS: tuple[tuple[type, type[specs.OperatorSpec]], ...] = (
    (MapFunction, specs.MapSpec),
    (FilterFunction, specs.FilterSpec),
    (FlatMapFunction, specs.FlatMapSpec),
    (MapBatchesFunction, specs.MapBatchesSpec),
    (ReduceFunction, specs.ReduceSpec),
    (ProcessFunction, specs.ProcessSpec),
    (KeyedProcessFunction, specs.KeyedProcessSpec),
    (CoMapFunction, specs.CoMapSpec),
    (CoFlatMapFunction, specs.CoFlatMapSpec),
    (CoProcessFunction, specs.CoProcessSpec),
    (KeyedCoProcessFunction, specs.KeyedCoProcessSpec),
    (BroadcastProcessFunction, specs.BroadcastProcessSpec),
    (KeyedBroadcastProcessFunction, specs.KeyedBroadcastProcessSpec),
)


def spec_of(
    function: Any, descriptors: Sequence[MapStateDescriptor[Any, Any]] = (), *, is_keyed: bool
) -> specs.OperatorSpec:
    """The operator spec for a function, or the spec itself if the argument is one.

    Raises:
        TypeError: There is no operator for this kind of function.
    """
    if isinstance(function, specs.OperatorSpec):
        return function
    if isinstance(function, MapPartitionFunction):
        return specs.FullWindowSpec(function) if is_keyed else specs.MapPartitionSpec(function)
    for kind, spec in _SPECS:
        if isinstance(function, kind):
            arguments = (function, tuple(descriptors)) if descriptors else (function,)
            return spec(*arguments)
    kinds = ", ".join(kind.__name__ for kind, _ in _SPECS)
    raise TypeError(
        f"{type(function).__name__} cannot be run by a harness, which takes {kinds}; for other "
        f"operators pass the operator's spec, such as WindowSpec(assigner, trigger, reduce=...)"
    )


class OperatorHarness:
    """The base class of all harnesses. Use OneInputOperatorHarness, TwoInputOperatorHarness and their keyed forms.

    The operator is opened when the `with` block begins, and closed when it ends.

    Args:
        function: The function under test (MapFunction, KeyedProcessFunction, ...), or the spec of an operator.
        key_selectors: For each input, the key selector; None for an input without key.
        broadcast_state: The descriptors of the broadcast states, for functions with a broadcast side.
        parallelism: The number of subtasks.
        subtask: The number of this subtask, from 0.
        max_parallelism: The number of key groups. Default: Flink's default for the parallelism.
        clock: The clock, to share one with other harnesses. Default: a new clock at 0.
        snapshots: The snapshots to restore: those of all previous subtasks, in order.
        tracks_changes: Whether `snapshot_changes` returns only changes, after the first snapshot.
        job_parameters: The parameters for `get_job_parameter`.

    Attributes:
        operator: The operator under test.
        clock: The clock.
        sent_to_driver: The values that the operator sent to the driver.
    """

    def __init__(
        self,
        function: Any,
        key_selectors: Sequence[Callable[[Any], Any] | None],
        *,
        broadcast_state: Sequence[MapStateDescriptor[Any, Any]] = (),
        parallelism: int = 1,
        subtask: int = 0,
        max_parallelism: int | None = None,
        clock: ManualClock | None = None,
        snapshots: Sequence[OperatorSnapshot] | None = None,
        tracks_changes: bool = False,
        job_parameters: Mapping[str, str] | None = None,
    ) -> None:
        is_keyed = any(select is not None for select in key_selectors)
        spec = spec_of(function, broadcast_state, is_keyed=is_keyed)
        self.clock = ManualClock() if clock is None else clock
        self.sent_to_driver: list[Any] = []
        self._output = CapturedOutput()
        self._processor = MailboxProcessor(lambda _: None)
        self._key_groups = max_parallelism or default_max_parallelism(parallelism)
        self._range = key_group_range(self._key_groups, parallelism, subtask)
        self._snapshots = snapshots
        program = OperatorProgram(
            index=0,
            name=spec.default_name,
            operator_id="0" * 32,
            call_site="test harness",
            spec=spec,
            parent=-1,
            keys=tuple(map(_key_program, key_selectors)),
        )
        vertex = VertexProgram(
            vertex_id=program.operator_id,
            name=program.name,
            parallelism=parallelism,
            max_parallelism=self._key_groups,
            first_task=0,
            operators=(program,),
        )
        self._task = TaskInfo(vertex, subtask)
        context = operator_context(
            program,
            self._task,
            self._processor.mailbox_executor(0),
            self.clock,
            TaskEnvironment(),
            send_to_driver=self.sent_to_driver.append,
            job_parameters=job_parameters or {},
        )
        self.operator = create_operator(program, context, self._output, is_batch=False)
        if tracks_changes:
            self.operator.track_changes()

    # Life

    def open(self) -> None:
        """Restores the snapshots, if there are any, and opens the operator. The `with` statement calls it."""
        if self._snapshots is not None:
            parallelism, subtask = self._task.vertex.parallelism, self._task.subtask
            share = redistribute(self._snapshots, self._range, parallelism, subtask)
            self.operator.restore_state(share, checkpoint_id=1)
        self.operator.open()

    def close(self) -> None:
        """Closes the operator. The `with` statement calls it."""
        try:
            self.operator.close()
        finally:
            self._processor.close()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Time

    def set_processing_time(self, now_ms: int) -> None:
        """Sets the clock, and fires the processing-time timers that are due.

        Raises:
            ValueError: The time is before the current time.
        """
        self.clock.advance_to(now_ms)
        self.run_mail()

    def advance_processing_time(self, by_ms: int) -> None:
        """Advances the clock, and fires the processing-time timers that are due."""
        self.set_processing_time(self.clock.current_processing_time() + by_ms)

    def run_mail(self) -> None:
        """Runs the mail of timers and asynchronous calls, until the mailbox is empty."""
        while self.run_mailbox_step():
            pass

    def run_mailbox_step(self) -> bool:
        """Runs the next mail, such as a timer. Returns False if there is none.

        Flink: `MailboxProcessor.runMailboxStep`.
        """
        return self._processor.mailbox_executor().try_yield()

    def end_input(self) -> None:
        """Ends all inputs, as the end of a bounded job does: the last watermark, then `finish`."""
        inputs = max(1, len(self.operator.program.keys))
        for number in range(inputs):
            self._take_watermark(number, MAX_LONG_VALUE)
        for number in range(inputs):
            self.operator.end_input(number)
        self.operator.context.processing_time.quiesce()
        self.run_mail()
        self.operator.finish()

    # What came out

    def records(self, tag: OutputTag[Any] | None = None) -> list[EmittedRecord]:
        """The records of the main output, or of a side output, as (value, timestamp)."""
        return self._output.records(tag)

    def values(self, tag: OutputTag[Any] | None = None) -> list[Any]:
        """The values of the emitted records."""
        return [value for value, _ in self.records(tag)]

    def elements(self) -> list[EmittedRecord | EmittedWatermark]:
        """Records of the main output and watermarks, as they came."""
        return list(self._output.elements)

    def statuses(self) -> list[bool]:
        """The changes of idleness that were passed on; True is idle."""
        return list(self._output.statuses)

    def clear_output(self) -> None:
        """Discards the output so far."""
        self._output.clear()

    # State

    def snapshot(self, checkpoint_id: int = 1) -> OperatorSnapshot:
        """All state of this subtask. Other harnesses can start from it."""
        now_ms = self.clock.current_processing_time()
        return self.operator.snapshot_state(checkpoint_id, now_ms)

    def snapshot_changes(self, checkpoint_id: int = 1) -> OperatorSnapshot:
        """The changes since the last snapshot. All state if changes are not tracked."""
        now_ms = self.clock.current_processing_time()
        return self.operator.snapshot_changes(checkpoint_id, now_ms)

    def owns(self, key: Any) -> bool:
        """Whether records with this key belong to this subtask."""
        return key_group(key, self._key_groups) in self._range

    def keyed_state(self, descriptor: StateDescriptor[Any], key: Any) -> Any:
        """The state of a key. Read or change it before the next call of the harness."""
        backend = self.operator.context.keyed_state
        backend.set_current_key(key)
        return backend.state(descriptor)

    def keys(self, state_name: str) -> Iterator[Any]:
        """The keys that have a state, in the order in which they were added."""
        return self.operator.context.keyed_state.keys(state_name)

    def state_entry_count(self) -> int:
        """The number of (state, key, namespace) entries."""
        return self.operator.context.keyed_state.entry_count()

    def event_time_timer_count(self) -> int:
        """The number of registered event-time timers."""
        return self.operator.context.timers.event_time_timer_count()

    def processing_time_timer_count(self) -> int:
        """The number of registered processing-time timers."""
        return self.operator.context.timers.processing_time_timer_count()

    # What the harnesses per number of inputs are made of

    def _take_element(self, number: int, value: Any, timestamp: int | None) -> None:
        self._require_own(number, value)
        self._touch(number, value)
        self.operator.records_in += 1
        self.operator.input(number)(value, timestamp)

    def _take_watermark(self, number: int, watermark: int) -> None:
        if len(self.operator.program.keys) > 1:
            self.operator.process_watermark_of(number, watermark)
        else:
            self.operator.process_watermark(watermark)

    def _touch(self, number: int, value: Any) -> None:
        """Records the key as touched, as a task does for its batches."""
        key = self.operator.program.keys[number] if self.operator.program.keys else None
        keyed = self.operator.context.keyed
        if key is not None and keyed is not None and keyed.state.tracks_changes:
            keyed.state.touch((key.selector(value),))

    def _require_own(self, number: int, value: Any) -> None:
        """Raises an error for a record that an exchange would send to another subtask."""
        key = self.operator.program.keys[number] if self.operator.program.keys else None
        if key is None or self._task.vertex.parallelism == 1:
            return
        selected = key.selector(value)
        if not self.owns(selected):
            raise ValueError(
                f"the key {selected!r} belongs to key group {key_group(selected, self._key_groups)}, "
                f"and subtask {self._task.subtask} of {self._task.vertex.parallelism} has the key "
                f"groups {self._range.first} to {self._range.last}; call owns(key) first"
            )


def _key_program(select: Callable[[Any], Any] | None) -> KeyProgram | None:
    if select is None:
        return None
    return KeyProgram(getattr(select, "get_key", select), "key", "test harness")


class OneInputOperatorHarness(OperatorHarness):
    """An operator with one input without key. Further arguments are those of OperatorHarness.

    Flink: `OneInputStreamOperatorTestHarness`.
    """

    def __init__(self, function: Any, **settings: Any) -> None:
        super().__init__(function, (None,), **settings)

    def process_element(self, value: Any, timestamp: int | None = None) -> None:
        """Processes a record. `timestamp` is its event time in milliseconds."""
        self._take_element(0, value, timestamp)

    def process_elements(self, records: Iterable[tuple[Any, int | None]]) -> None:
        """Processes records, given as (value, timestamp)."""
        for value, timestamp in records:
            self._take_element(0, value, timestamp)

    def process_watermark(self, watermark: int) -> None:
        """Processes a watermark: fires timers, and emits the watermark."""
        self._take_watermark(0, watermark)

    def process_status(self, *, is_idle: bool) -> None:
        """Sets whether the input is idle."""
        self.operator.process_status(is_idle)


class KeyedOneInputOperatorHarness(OneInputOperatorHarness):
    """An operator on a keyed stream. Flink: `KeyedOneInputStreamOperatorTestHarness`.

    Args:
        function: See OperatorHarness.
        key_selector: Returns the key of a record.
        settings: See OperatorHarness.
    """

    def __init__(self, function: Any, key_selector: Callable[[Any], Any], **settings: Any) -> None:
        OperatorHarness.__init__(self, function, (key_selector,), **settings)


class TwoInputOperatorHarness(OperatorHarness):
    """An operator with two inputs without keys. Flink: `TwoInputStreamOperatorTestHarness`."""

    def __init__(self, function: Any, **settings: Any) -> None:
        super().__init__(function, (None, None), **settings)

    def process_element1(self, value: Any, timestamp: int | None = None) -> None:
        """Processes a record of the first input."""
        self._take_element(0, value, timestamp)

    def process_element2(self, value: Any, timestamp: int | None = None) -> None:
        """Processes a record of the second input, which is the broadcast input if there is one."""
        self._take_element(1, value, timestamp)

    def process_watermark1(self, watermark: int) -> None:
        """Processes a watermark of the first input. The operator's watermark is the minimum of both inputs."""
        self._take_watermark(0, watermark)

    def process_watermark2(self, watermark: int) -> None:
        """Processes a watermark of the second input. The operator's watermark is the minimum of both inputs."""
        self._take_watermark(1, watermark)

    def process_both_watermarks(self, watermark: int) -> None:
        """Processes the same watermark on both inputs."""
        self._take_watermark(0, watermark)
        self._take_watermark(1, watermark)

    def process_status1(self, *, is_idle: bool) -> None:
        """Sets whether the first input is idle."""
        self.operator.process_status_of(0, is_idle=is_idle)

    def process_status2(self, *, is_idle: bool) -> None:
        """Sets whether the second input is idle."""
        self.operator.process_status_of(1, is_idle=is_idle)


class KeyedTwoInputOperatorHarness(TwoInputOperatorHarness):
    """An operator on connected keyed streams. Flink: `KeyedTwoInputStreamOperatorTestHarness`.

    Args:
        function: See OperatorHarness.
        key_selector1: Returns the key of a record of the first input.
        key_selector2: Returns the key of a record of the second input. None for a broadcast input.
        settings: See OperatorHarness.
    """

    def __init__(
        self,
        function: Any,
        key_selector1: Callable[[Any], Any],
        key_selector2: Callable[[Any], Any] | None = None,
        **settings: Any,
    ) -> None:
        OperatorHarness.__init__(self, function, (key_selector1, key_selector2), **settings)
