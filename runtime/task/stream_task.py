"""One subtask: reads buffers, runs its mailbox loop, writes buffers. Flink: `StreamTask`.

The task is a generator, as `mapPartitions` needs one. In each turn it runs its mail, processes one element of the
input, and yields the buffers that are full. While Spark takes these buffers, the task waits. That is its back pressure.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from itertools import count
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import TaskFailedError, add_note
from opchain.runtime.functions.sink import NO_LINEAGE, SinkWriter
from opchain.runtime.mailbox.mailbox_processor import MailboxProcessor
from opchain.runtime.mailbox.task_mailbox import (
    MIN_PRIORITY,
    NO_LOCK,
)
from opchain.runtime.mailbox.timer_service import SystemTimerService, TimerService
from opchain.runtime.operators.broadcast_process import BroadcastProcessOperator
from opchain.runtime.operators.operator import OperatorContext, TaskInfo
from opchain.runtime.operators.source import LegacySourceOperator, SourceOperator
from opchain.runtime.program.vertex_program import ARROW_SINK, JobProgram, OperatorProgram
from opchain.runtime.records.elements import Buffer
from opchain.runtime.task.failure_site import add_failure_site
from opchain.runtime.task.input.batch_input import BroadcastFirstInput, KeySortedInput
from opchain.runtime.task.input.chained_sources import ChainedSources
from opchain.runtime.task.input.input_gate import InputGate
from opchain.runtime.task.input.legacy_source import LegacySourceInput
from opchain.runtime.task.input.live_input import LiveBuffers, LiveInput
from opchain.runtime.task.input.task_input import GateInput, SourceInput, TaskInput, Waiter
from opchain.runtime.task.input.watermark_valve import InputValves
from opchain.runtime.task.operator_chain import OperatorChain
from opchain.runtime.task.operator_services import operator_context
from opchain.runtime.task.output.record_writer import RecordWriter
from opchain.runtime.task.report import DriverChannel, TaskReport, measure_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from opchain.runtime.connectors.dataframe_source import SparkRows
    from opchain.runtime.measurements.task_metrics import TaskMetrics
    from opchain.runtime.watermarks.splits import AlignmentGroup


@dataclass(frozen=True, slots=True)
class TaskEnvironment:
    """The environment of a task: its attempt, its clock and its files.

    `attempt_id` is unique to the attempt in the whole application. `timers` is None for the machine's clock. With
    `prints_on_driver`, lines of print sinks are sent to the driver. `feed` has the rows of a DataFrame source,
    `schemas` the schemas of Arrow sinks, by operator. `lineage` and `staging` belong to the SinkOrigin of the job's
    sinks. `sink_writers` create the writers that the engine provides, by operator. `alignment` has the watermark
    alignment groups, by name. In a live run, records of a SourceFunction are sent after `flush_after_ms`; None sends
    full batches only. In a live run, `take_collected` gets the uid of a collecting sink and its records at once.
    """

    attempt: int = 0
    attempt_id: str = "local"
    timers: TimerService | None = None
    files: Mapping[str, Path] = field(default_factory=dict)
    prints_on_driver: bool = False
    feed: SparkRows | None = None
    schemas: Mapping[int, str] = field(default_factory=dict)
    lineage: str = NO_LINEAGE
    staging: str | None = None
    sink_writers: Mapping[int, Callable[[str], SinkWriter[Any]]] = field(default_factory=dict)
    alignment: Mapping[str, AlignmentGroup] | None = None
    flush_after_ms: int | None = None
    take_collected: Callable[[str, list[Any]], None] | None = None


class StreamTask:
    """One attempt of one subtask.

    `buffers` has the buffers for this task: sorted as Buffer says, or arriving while the task runs. Call `run` once.
    Afterwards `report` has the metrics.
    """

    def __init__(
        self,
        job: JobProgram,
        task: int,
        buffers: Iterator[Buffer] | LiveBuffers,
        environment: TaskEnvironment | None = None,
    ) -> None:
        self.environment = environment or TaskEnvironment()
        vertex, subtask = job.vertex_of(task)
        self.job = job
        self.info = TaskInfo(
            vertex, subtask, self.environment.attempt, self.environment.attempt_id, job.job_name
        )
        self._is_live = isinstance(buffers, LiveBuffers)
        self._most_results = None if self._is_live else vertex.most_results
        self._ready: deque[Buffer] = deque()
        self._driver = DriverChannel(task, self._ready.append, self.environment.take_collected)
        self._own_timers: SystemTimerService | None = None
        if self.environment.timers is not None:
            self._timers = self.environment.timers
        else:
            self._timers = self._own_timers = SystemTimerService()
        has_legacy_source = vertex.operators[0].spec.kind == "legacy_source"
        self._source_lock: Any = threading.RLock() if has_legacy_source else NO_LOCK
        self.processor = MailboxProcessor(
            self._process_next,
            lock=self._source_lock,
            # Mail that waits would hold the lock, which the source needs to continue.
            allow_yield=not has_legacy_source,
            before_mail=self._before_mail,
        )
        self._wall_timers = self._own_timers or SystemTimerService()
        self._waiter = Waiter(self.processor, self._wall_timers)
        self.writers = [
            RecordWriter(
                output,
                subtask,
                vertex.parallelism,
                self._ready.append,
                operator=vertex.operators[output.operator],
            )
            for output in vertex.outputs
        ]
        self.chain = OperatorChain(vertex, self.writers, self._operator_context)
        self._sources = ChainedSources(vertex.chained_sources, self._operator_context)
        self._gate: InputGate | None = None
        self._input = self._make_input(buffers)
        self.report: TaskReport | None = None

    def run(self) -> Iterator[Buffer]:
        """Yields the buffers that the task fills, its report last.

        Closes everything in any case. If closing fails too, the first failure is raised.
        """
        yield from self._closed_on_failure(self._work())
        for error in self._close():
            raise error

    def _closed_on_failure(self, work: Iterator[Buffer]) -> Iterator[Buffer]:
        """The buffers of the work. If it fails, its error gets notes with the place, and everything is closed."""
        try:
            yield from self._located(work)
        except BaseException as failure:
            for error in self._close():
                notes = [f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())]
                add_note(failure, f"and then closing failed: {'; '.join(notes)}")
            raise

    def _located(self, work: Iterator[Buffer]) -> Iterator[Buffer]:
        try:
            yield from work
        except RuntimeError as error:
            # If a user's function raises StopIteration, Python turns it into a RuntimeError when it reaches a generator.
            # That is the generator of this task, unless the user's function is a generator itself.
            stopped = error.__cause__
            if not isinstance(stopped, StopIteration) or not _passed_here(stopped):
                self._locate(error)
                raise
            failure = RuntimeError("a function raised StopIteration")
            self._locate(failure.with_traceback(stopped.__traceback__))
            raise failure from stopped
        except (Exception, KeyboardInterrupt) as error:
            self._locate(error)
            raise
        except GeneratorExit as error:
            if _closes_the_task(error):
                raise
            raise self._exited(error) from error
        except SystemExit as error:
            raise self._exited(error) from error

    def _exited(self, error: SystemExit | GeneratorExit) -> TaskFailedError:
        if isinstance(error, SystemExit):
            what = f"called sys.exit({'' if error.code is None else repr(error.code)})"
        else:
            what = "raised GeneratorExit"
        failed = TaskFailedError(
            f"a function {what}, which would end the process of the task: raise an exception to fail the job"
        )
        self._locate(failed.with_traceback(error.__traceback__))
        failed.__cause__ = error
        return failed

    def _work(self) -> Iterator[Buffer]:
        self.chain.open()
        self._sources.open()
        yield from self._turns()
        self._finish()
        yield from self._hand_over()

    def _turns(self) -> Iterator[Buffer]:
        """Runs turns until the loop ends; yields the buffers that are full."""
        ready, turn = self._ready, self.processor.turn
        while turn():
            if ready:
                yield from self._hand_over()

    def _locate(self, error: BaseException) -> None:
        """Adds notes to an error: the operator and the record at which it was raised."""
        add_failure_site(error, self.info, self.chain.pending)

    def _process_next(self, controller: Any) -> None:
        if self._most_results is not None and self._results() >= self._most_results:
            controller.all_actions_completed()
        else:
            self._input.process_next(controller)

    def _results(self) -> int:
        """The number of records that have left the task."""
        return self.writers[0].records_out if self.writers else self.chain.operators[-1].records_in

    def _before_mail(self) -> None:
        self._input.before_mail()

    def _hand_over(self) -> Iterator[Buffer]:
        """Yields the buffers that are full. While it waits, the task and its source are back-pressured."""
        ready, back_pressured = self._ready, self.processor.metrics.back_pressured
        while ready:
            buffer = ready.popleft()
            with self._source_lock, back_pressured:
                yield buffer

    def _finish(self) -> None:
        """Finishes the operators when the input has ended. Flink: `StreamTask.endData`, `afterInvoke`.

        After the last operator no mail runs and no timer fires.
        """
        self.chain.finish(self.processor.drain)
        self.processor.prepare_close()
        self.processor.drain()
        self.chain.end_output()
        for writer in self.writers:
            writer.end_of_input()
        metrics, info = self._measured(), self.info
        self.report = TaskReport(info.task, info.attempt_id, metrics, info.attempt)
        self._driver.finish(self.report)

    def counts_now(self) -> TaskMetrics:
        """The counts of the task so far. Any thread may call this while the task runs."""
        return self._measured(counts_only=True)

    def _measured(self, *, counts_only: bool = False) -> TaskMetrics:
        return measure_task(
            self.info,
            self.chain,
            self._sources.operators,
            self._gate,
            self.writers,
            self.processor.metrics.statistics(),
            counts_only=counts_only,
        )

    def _close(self) -> list[Exception]:
        """Closes everything, and returns all failures."""
        closers: tuple[Callable[[], object], ...] = (
            self._input.close,
            self._sources.close,
            self.chain.close,
            self.processor.close,
            self._wall_timers.shutdown,
        )
        return [error for close in closers if (error := self._failure_of(close)) is not None]

    def _failure_of(self, close: Callable[[], object]) -> Exception | None:
        try:
            close()
        except Exception as error:  # noqa: BLE001 - the others must be closed too
            self._locate(error)
            return error
        except SystemExit as error:
            return self._exited(error)
        return None

    def _make_input(self, buffers: Iterator[Buffer] | LiveBuffers) -> TaskInput:
        head, vertex = self.chain.head, self.info.vertex
        if isinstance(head, LegacySourceOperator):
            return LegacySourceInput(
                head,
                self.chain,
                self.processor,
                self._source_lock,
                vertex.batch_size,
                self._timers,
                self.environment.flush_after_ms,
            )
        if isinstance(head, SourceOperator):
            return SourceInput(head.batches(), self.chain, self._waiter)
        subtask, parallelism = self.info.subtask, vertex.parallelism
        valves = InputValves(vertex.inputs, subtask, parallelism, vertex.chained_sources)
        watermarks = self.chain.input_watermarks
        if isinstance(buffers, LiveBuffers):
            self._gate = InputGate(vertex.inputs, subtask, parallelism, ())
            pulled = self._sources.elements_with((), (), watermarks)
            feeder = GateInput((), valves, self.chain)
            return LiveInput(buffers, self._gate, feeder, pulled, self.processor, self._waiter)
        self._gate = InputGate(vertex.inputs, subtask, parallelism, self._awaited(buffers))
        elements = self._sources.elements_with(self._gate, vertex.inputs, watermarks)
        if vertex.is_batch:
            if head.context.keyed is not None and head.sorts_batch_input:
                return KeySortedInput(elements, self.chain)
            if isinstance(head, BroadcastProcessOperator):
                return BroadcastFirstInput(elements, self.chain)
        return GateInput(elements, valves, self.chain, self._waiter)

    def _awaited(self, buffers: Iterator[Buffer]) -> Iterator[Buffer]:
        """The buffers. While the task waits for one, it is idle."""
        idle = self.processor.metrics.idle
        while True:
            with idle:
                buffer = next(buffers, None)
            if buffer is None:
                return
            yield buffer

    def _clock_of(self, program: OperatorProgram) -> TimerService:  # noqa: ARG002 - for tasks with several
        """The clock of an operator."""
        return self._timers

    def _marker_clock(self) -> TimerService | None:
        """The clock of latency markers; None for the operators' clocks."""
        return None

    def _operator_context(self, program: OperatorProgram) -> OperatorContext:
        # Sources inside the head are upstream of all operators. So an operator that waits does not run their mail.
        is_in_chain = program.index < len(self.info.vertex.operators)
        context = operator_context(
            program,
            self.info,
            self.processor.mailbox_executor(program.index if is_in_chain else MIN_PRIORITY),
            self._clock_of(program),
            self.environment,
            marker_timers=self._marker_clock(),
            send_to_driver=self._driver.send,
            job_parameters=self.job.job_parameters,
        )
        context.send_batch = self._send_batch_of(program.index)
        if self._is_live:
            context.input_clock_ns = self._input_clock_ns
        return context

    def _input_clock_ns(self) -> int:
        """The machine's clock without the time of back pressure, because the input is not idle then."""
        return perf_counter_ns() - self.processor.metrics.back_pressured.total_ns

    def _send_batch_of(self, operator: int) -> Callable[[bytes], None]:
        """The function that an Arrow sink calls to send batches. They do not go to the driver."""
        numbers = count()

        def send_batch(batch: bytes) -> None:
            self._ready.append(Buffer(ARROW_SINK, operator, self.info.task, next(numbers), batch))

        return send_batch


def _closes_the_task(error: GeneratorExit) -> bool:
    """Whether the generator of a task is closed. Otherwise a function has raised the exception."""
    return error.__traceback__ is None or error.__traceback__.tb_next is None


def _passed_here(error: StopIteration) -> bool:
    """Whether an exception reached a generator of this module, and not only one of a user's function."""
    outermost = error.__traceback__
    return outermost is not None and outermost.tb_frame.f_code.co_filename == __file__
