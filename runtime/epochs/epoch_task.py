"""A subtask of an unbounded job: one task object that runs epoch after epoch.

The task reads an epoch's input to its end. In each channel the barrier of the epoch's checkpoint marks the end. Then
operators emit results that are not part of the state, the task writes the state and sends the barrier on. The
chain stays open: functions keep their fields in memory from one epoch to the next, as long as the same process runs
the task.

A source reads the input that the driver delivers. A bounded source reads everything in its first epoch. Keys of
records that arrive over exchanges are noted, so that the checkpoint can contain the changes alone.

The driver chooses and records one processing time per epoch, and the clock shows this time throughout the epoch. So
timers, and functions that ask for the time, do the same if the epoch is retried. Calls to other systems (async wait)
use the machine's clock.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.epoch import (
    EntryCount,
    Epoch,
    RecordedTask,
    StateSize,
    TaskSnapshot,
    snapshot_bytes,
)
from opchain.runtime.checkpoint.fault_points import reach
from opchain.runtime.checkpoint.restore_plan import describe_states, require_same_states
from opchain.runtime.checkpoint.state_files import (
    RecentFiles,
    TaskState,
    read_changes,
    write_task_state,
)
from opchain.runtime.epochs.event_time import (
    emit_restored_watermark,
    event_time_before_input,
    event_time_snapshot,
    restore_event_time,
)
from opchain.runtime.epochs.recording import EpochRecorder
from opchain.runtime.errors import CheckpointFailedError, UnsupportedFeatureError
from opchain.runtime.mailbox.timer_service import PeriodTimer, SteppedClock, TimerService
from opchain.runtime.operators.source import LegacySourceOperator, SourceOperator
from opchain.runtime.records.columns import arrived_keys
from opchain.runtime.records.elements import Buffer, CheckpointBarrier, RecordBatch
from opchain.runtime.task.input.input_gate import InputElement, InputGate
from opchain.runtime.task.input.task_input import GateInput, SourceInput, TaskInput
from opchain.runtime.task.input.watermark_valve import InputValves
from opchain.runtime.task.report import TaskReport
from opchain.runtime.task.stream_task import StreamTask, TaskEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from opchain.runtime.checkpoint.metadata import StateDescription
    from opchain.runtime.checkpoint.storage import CheckpointStorage
    from opchain.runtime.mailbox.mailbox_processor import MailboxProcessor, Suspension
    from opchain.runtime.operators.operator import OperatorContext, StreamOperator
    from opchain.runtime.program.vertex_program import JobProgram, OperatorProgram
    from opchain.runtime.state.operator_snapshot import OperatorSnapshot
    from opchain.runtime.task.operator_chain import OperatorChain


class EpochGateInput(GateInput):
    """Reads the exchanges of an epoch."""

    def __init__(
        self, elements: Iterable[InputElement], valves: InputValves, chain: OperatorChain
    ) -> None:
        super().__init__(elements, valves, chain)
        valves.begin_epoch()
        chain.head.open_inputs = set(valves.by_input())
        self._keyed = None if chain.head.touches_keys else chain.head.context.keyed
        self._selectors = chain.head.program.arrival_selectors
        self._key_lists = {edge.input_number: edge.key_list for edge in chain.program.inputs}

    def feed(self, item: InputElement) -> None:
        """Records the keys of a batch as touched, and feeds the element. Functions may change the fields of keys."""
        if self._keyed is not None and item.element.__class__ is RecordBatch:
            number = item.input_number
            select = self._selectors[number]
            if select is not None:
                key_list = self._key_lists[number]
                self._keyed.state.touch(arrived_keys(item.element.values, select, key_list))
        super().feed(item)

    def _process_event(self, number: int, channel: int, element: Any) -> None:
        if not isinstance(element, CheckpointBarrier):
            super()._process_event(number, channel, element)
            return
        self._combine(number, channel, element)
        if not self._valves.is_open(number):
            self._chain.close_input(number)


class EpochTask(StreamTask):
    """One subtask that runs epoch after epoch. Any failure closes it.

    Its clock shows `now_ms`, the time of its first epoch, already in the `open` of functions.

    Attributes:
        state: The state files after the last epoch that it ran; None before the first.
    """

    def __init__(
        self, job: JobProgram, task: int, environment: TaskEnvironment, now_ms: int = 0
    ) -> None:
        self.clock = SteppedClock(now_ms, is_held=True)
        super().__init__(job, task, iter(()), replace(environment, timers=self.clock))
        vertex = self.info.vertex
        if isinstance(self.chain.head, LegacySourceOperator) or vertex.chained_sources:
            raise UnsupportedFeatureError(
                f"'{vertex.name}' reads a SourceFunction, or a source that runs inside an operator with several inputs. "
                "Neither can run in epochs: read a Source with from_source(), or call disable_chaining() on it"
            )
        self._turns_of_epoch = _TurnsOfEpoch(self.processor)
        self._valves = InputValves(vertex.inputs, self.info.subtask, vertex.parallelism)
        self.state: TaskState | None = None
        self._has_run = self._is_restored = False
        self._recent_files = RecentFiles()
        self._recorder: EpochRecorder | None = None
        self._sizes: dict[str, StateSize] = {}
        self._entries: defaultdict[str, EntryCount] = defaultdict(EntryCount)

    def open(
        self,
        states: Mapping[str, OperatorSnapshot],
        event_time: Sequence[bytes],
        checkpoint_id: int | None,
        state: TaskState | None = None,
        described: Mapping[str, Sequence[StateDescription]] | None = None,
    ) -> None:
        """Starts the operators, from a checkpoint if there is one.

        Args:
            states: The state of this subtask, by operator id.
            event_time: The event time of all earlier subtasks of the vertex; empty if the vertex is new.
            checkpoint_id: The checkpoint; None for a start without state.
            state: The state files, if the same subtask wrote them, so that its changes can follow them.
            described: The descriptions of states in the checkpoint, by operator id.

        Raises:
            StateError: The kind or type of a state has changed, or the operator has no timers now.
        """
        self.state = state
        try:
            if checkpoint_id is not None:
                for operator in self.chain.operators:
                    found = states.get(operator.program.operator_id)
                    if found is not None:
                        operator.restore_state(found, checkpoint_id)
            self.chain.head.track_changes()  # only the head's keys are recorded
            self.chain.open()
            for operator in self.chain.operators:
                program = operator.program
                before = (described or {}).get(program.operator_id, ())
                where = program.label
                require_same_states(before, describe_states(operator.context), where)
                if operator.context.keyed is not None:
                    operator.context.keyed.timers.require_services()
            restore_event_time(self.chain, self._read_valves, event_time, self.info.subtask)
            self._has_run = self._is_restored = bool(event_time)
        except BaseException as error:
            self._locate(error)
            self._close()
            raise

    def catch_up(
        self, state: TaskState, event_time: Sequence[bytes], storage: CheckpointStorage
    ) -> bool:
        """Applies the changes of epochs in which the task ran elsewhere; returns False if that is not possible.

        Fields of its functions that are not state keep their values.

        Args:
            state: The task's own state at the end of the last of these epochs.
            event_time: The event time of all subtasks at that time.
            storage: The storage of the state.
        """
        if self.state is None or not all(item.can_catch_up for item in self.chain.operators):
            return False
        changes = read_changes(storage, state, self.state)
        if changes is None:
            return False
        for operator in self.chain.operators:
            found = changes.get(operator.program.operator_id)
            if found is not None:
                operator.apply_changes(found)
        restore_event_time(self.chain, self._read_valves, event_time, self.info.subtask)
        self.state = state
        return True

    def run_epoch(
        self, epoch: Epoch, buffers: Iterator[Buffer], storage: CheckpointStorage, attempt_id: str
    ) -> Iterator[Buffer]:
        """Runs an epoch, and yields the buffers that the task sends. The acknowledgement comes last.

        Args:
            epoch: The epoch.
            buffers: The input of the epoch, sorted as Buffer describes.
            storage: The storage of the state.
            attempt_id: The unique id of this attempt.
        """
        yield from self._closed_on_failure(self._run(epoch, buffers, storage, attempt_id))

    def close(self) -> None:
        """Closes the operators; raises the first failure."""
        for error in self._close():
            raise error

    def _run(
        self, epoch: Epoch, buffers: Iterator[Buffer], storage: CheckpointStorage, attempt_id: str
    ) -> Iterator[Buffer]:
        self._begin(epoch, buffers)
        notifications = self._notify(epoch)
        if self._is_restored:
            emit_restored_watermark(self.chain)
        checkpoint: list[Future[None]] = []

        def trigger() -> Future[None]:
            checkpoint.append(self.trigger_checkpoint(epoch, storage, attempt_id))
            return checkpoint[0]

        self._turns_of_epoch.begin(trigger)
        yield from self._turns()
        for future in (*notifications, *checkpoint):
            future.result()
        yield from self._hand_over()
        self._driver.finish(TaskReport(self.info.task, attempt_id, self._measured()))
        yield from self._hand_over()
        self._has_run, self._is_restored = True, False

    def _notify(self, epoch: Epoch) -> list[Future[None]]:
        """Notifies functions, by mail, of the checkpoints that failed and of the last one, which is complete.

        Flink: `notifyCheckpointAbortAsync`, `notifyCheckpointCompleteAsync`.
        """

        def notify(checkpoint_id: int, *, is_complete: bool) -> None:
            for operator in self.chain.operators:
                if is_complete:
                    operator.notify_checkpoint_complete(checkpoint_id)
                else:
                    operator.notify_checkpoint_aborted(checkpoint_id)

        ended = [(number, False) for number in epoch.aborted]
        if not epoch.is_first:
            ended.append((epoch.checkpoint_id - 1, True))
        submit = self.processor.mailbox_executor().submit
        return [
            submit(
                partial(notify, number, is_complete=is_complete),
                f"checkpoint {number} {'is complete' if is_complete else 'was aborted'}",
            )
            for number, is_complete in ended
        ]

    def trigger_checkpoint(
        self, epoch: Epoch, storage: CheckpointStorage, attempt_id: str
    ) -> Future[None]:
        """Submits the checkpoint of an epoch as mail. The future is done when the state is written.

        Flink: `StreamTask.triggerCheckpointAsync`.
        """
        return self.processor.mailbox_executor().submit(
            partial(self._take_checkpoint, epoch, storage, attempt_id),
            f"checkpoint {epoch.checkpoint_id}",
        )

    def _take_checkpoint(self, epoch: Epoch, storage: CheckpointStorage, attempt_id: str) -> None:
        """Flink: `StreamTask.performCheckpoint`, which sends the barrier before it writes."""
        self.chain.on_batch_end()
        if epoch.drains:
            self._finish_operators()
        self.chain.prepare_snapshot(epoch.checkpoint_id)
        self.processor.drain()  # only mail that is due now, because a timer may register itself again
        self.chain.flush()
        self._acknowledge(epoch, storage, attempt_id)
        barrier = CheckpointBarrier(epoch.checkpoint_id, epoch.timestamp_ms)
        for writer in self.writers:
            writer.emit_barrier(barrier)

    def _finish_operators(self) -> None:
        """Ends the operators, which emit their last results. Sinks commit with the checkpoint. Flink: `endData`."""
        for number in range(max(1, len(self.chain.head.program.keys))):
            self.chain.end_input(number)
        self.chain.finish(self.processor.drain)

    def _begin(self, epoch: Epoch, buffers: Iterator[Buffer]) -> None:
        self.processor.reset_measurements()
        for operator in self.chain.operators:
            operator.begin_epoch()
        for writer in self.writers:
            writer.begin_epoch(epoch.checkpoint_id)
        self._driver.begin_epoch()
        if epoch.is_recorded:
            self._recorder = self._recorder or EpochRecorder(self.chain)
            buffers = self._recorder.begin(buffers)
        self._input = self._input_of(epoch, buffers)
        self.clock.advance_to(max(epoch.timestamp_ms, self.clock.current_processing_time()))

    def _input_of(self, epoch: Epoch, buffers: Iterator[Buffer]) -> TaskInput:
        head, vertex = self.chain.head, self.info.vertex
        if isinstance(head, SourceOperator):
            source, awaited = head.source, self._awaited(buffers)
            if source.is_bounded and (epoch.is_first or not self._has_run):
                return SourceInput(
                    head.batches(),
                    self.chain,
                    self._waiter,
                    ends=lambda: not epoch.keeps_event_time,
                )
            return SourceInput(
                head.delivered_batches(delivery.payload for delivery in awaited),
                self.chain,
                self._waiter,
                ends=lambda: epoch.drains or source.has_ended,
            )
        self._gate = InputGate(
            vertex.inputs,
            self.info.subtask,
            vertex.parallelism,
            self._awaited(buffers),
            epoch.checkpoint_id,
        )
        return EpochGateInput(self._gate, self._valves, self.chain)

    def _process_next(self, controller: Any) -> None:  # noqa: ARG002 - the input uses _turns_of_epoch
        self._input.process_next(self._turns_of_epoch)

    def _acknowledge(self, epoch: Epoch, storage: CheckpointStorage, attempt_id: str) -> None:
        started = perf_counter()
        reach("before-state", epoch.checkpoint_id)
        try:
            self.state = self._written_state(epoch, storage, attempt_id)
        except OSError as error:
            raise CheckpointFailedError(
                f"'{self.info.vertex.name}' ({self.info.subtask + 1}/{self.info.vertex.parallelism}) can't write its "
                f"state to {storage.url}: {error}"
            ) from error
        reach("after-state", epoch.checkpoint_id)
        if epoch.drains and not self._has_ended:
            event_time = event_time_before_input(self.chain)
        else:
            event_time = event_time_snapshot(self.chain, self._read_valves)
        described = {
            operator.program.operator_id: describe_states(operator.context)
            for operator in self.chain.operators
        }
        snapshot = TaskSnapshot(
            self.state,
            event_time,
            self.clock.next_call_at(),
            {operator_id: states for operator_id, states in described.items() if states},
            1000 * (perf_counter() - started),
            self._sizes,
            self._recorded(epoch, storage, attempt_id),
        )
        self._driver.send(("snapshot", None, snapshot))

    def _recorded(
        self, epoch: Epoch, storage: CheckpointStorage, attempt_id: str
    ) -> RecordedTask | None:
        if not epoch.is_recorded or self._recorder is None:
            return None
        return self._recorder.recorded(storage, epoch.checkpoint_id, self.info.task, attempt_id)

    def _written_state(
        self, epoch: Epoch, storage: CheckpointStorage, attempt_id: str
    ) -> TaskState:
        """Writes the state, if it has changed."""
        checkpoint_id = epoch.checkpoint_id
        previous = self.state
        is_whole = previous is None or previous.needs_base()
        if is_whole:
            taken = [(item, item.snapshot_state) for item in self.chain.operators]
        else:
            taken = [(item, item.snapshot_changes) for item in self.chain.operators]
        known = () if previous is None else previous.operators
        states, self._sizes = {}, {}
        for operator, take in taken:
            operator_id, snapshot = (
                operator.program.operator_id,
                take(checkpoint_id, epoch.timestamp_ms),
            )
            self._note_size(operator, snapshot, is_whole=is_whole)
            # An empty full snapshot is written if it replaces earlier state.
            if not snapshot.is_empty() or (not snapshot.is_changes and operator_id in known):
                states[operator_id] = snapshot
        if states:
            return write_task_state(
                storage,
                checkpoint_id,
                self.info.task,
                attempt_id,
                states,
                previous,
                self._recent_files,
            )
        return replace(
            previous or TaskState(self.info.task, checkpoint_id), checkpoint_id=checkpoint_id
        )

    def _note_size(
        self, operator: StreamOperator, snapshot: OperatorSnapshot, *, is_whole: bool
    ) -> None:
        operator_id, keyed = operator.program.operator_id, operator.context.keyed
        entries = (
            0 if keyed is None else self._entries[operator_id].of(keyed.state, is_whole=is_whole)
        )
        size = StateSize(entries, snapshot_bytes(snapshot))
        if size.entries or size.written_bytes:
            self._sizes[operator_id] = size

    @property
    def _has_ended(self) -> bool:
        """Whether the task reads a source that has ended. Its watermark stays the greatest after a restore."""
        head = self.chain.head
        return isinstance(head, SourceOperator) and (
            head.source.is_bounded or head.source.has_ended
        )

    @property
    def _read_valves(self) -> InputValves | None:
        return None if isinstance(self.chain.head, SourceOperator) else self._valves

    def _clock_of(self, program: OperatorProgram) -> TimerService:
        return self._wall_timers if program.spec.kind == "async_wait" else self.clock

    def _marker_clock(self) -> TimerService:
        """The machine's clock, because latency markers are not part of an epoch's results, and start no epoch."""
        return self._wall_timers

    def _operator_context(self, program: OperatorProgram) -> OperatorContext:
        context = super()._operator_context(program)
        context.runs_in_epochs = program.spec.kind != "async_wait"
        return context


class _TurnsOfEpoch:
    """The controller of an epoch's input. At the end of input it triggers the checkpoint, and then ends the loop."""

    def __init__(self, processor: MailboxProcessor) -> None:
        self._processor = processor
        self._trigger: Callable[[], Future[None]] | None = None
        self._suspension: Suspension | None = None

    def begin(self, trigger: Callable[[], Future[None]]) -> None:
        """Resumes reading input. `trigger` takes the checkpoint at its end."""
        self._trigger = trigger
        if self._suspension is not None:
            self._suspension.resume()
            self._suspension = None

    def suspend_default_action(self, timer: PeriodTimer | None = None) -> Suspension:
        """See Controller."""
        return self._processor.suspend_default_action(timer)

    def all_actions_completed(self) -> None:
        """Triggers the checkpoint, after which the loop ends."""
        assert self._trigger is not None
        self._suspension = self._processor.suspend_default_action()
        self._trigger().add_done_callback(lambda _: self._processor.suspend())
