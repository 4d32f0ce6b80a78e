"""Runs an unbounded job in this process without checkpoints: all tasks at once, each on its own thread.

For experiments with streaming programs. Records are passed on as soon as they arrive. So the results of several inputs
depend on which input is faster, as in Flink. State is lost on exit, and transactional sinks commit only if the job
ends. A job with checkpoints runs in epochs instead: see epoch_run.py.
"""

from __future__ import annotations

import queue
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opchain.runtime.job.progress import CountedProgress
from opchain.runtime.job.run import HeldInterrupts
from opchain.runtime.local.task_thread import ENDING_S, JobStoppedError, end_threads
from opchain.runtime.mailbox.task_mailbox import MailboxClosedError
from opchain.runtime.measurements.record_warnings import RecordWarnings
from opchain.runtime.program.vertex_program import (
    DRIVER,
    JobProgram,
    VertexProgram,
)
from opchain.runtime.records.garbage_collection import gc_relaxed
from opchain.runtime.shipping.functions import ship_vertices, shipped_task
from opchain.runtime.task.input.live_input import LiveBuffers
from opchain.runtime.task.stream_task import StreamTask, TaskEnvironment
from opchain.runtime.watermarks.splits import AlignmentGroup

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.runtime.records.elements import Buffer


class StopSwitch:
    """Makes tasks fail with JobStoppedError.

    The error arrives as mail, which a task processes between two batches and while an operator waits. So a task that
    waits for an asynchronous call can be stopped. A function that blocks is left to `task_thread`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: list[StreamTask] = []
        self._is_stopped = False

    @property
    def is_stopped(self) -> bool:
        """Whether the switch was turned."""
        return self._is_stopped

    def watch(self, task: StreamTask) -> None:
        """Stops the task when the switch is turned, or immediately if it was already."""
        with self._lock:
            self._tasks.append(task)
            if self._is_stopped:
                _fail(task)

    def forget(self, task: StreamTask) -> None:
        """Stops watching a task that has ended."""
        with self._lock:
            self._tasks.remove(task)

    def stop(self) -> None:
        """Turns the switch. Any thread may call it, any number of times."""
        with self._lock:
            if not self._is_stopped:
                self._is_stopped = True
                for task in self._tasks:
                    _fail(task)


def _fail(task: StreamTask) -> None:
    # The mailbox of a task that has ended is closed.
    with suppress(MailboxClosedError):
        task.processor.report_error(JobStoppedError())


_LOOK_EVERY_S = 1.0
"""How often running tasks are checked for dropped late records."""

_FLUSH_AFTER_MS = 100
"""The default of the buffer timeout, as in Flink."""


def _flush_after_ms(job: JobProgram) -> int | None:
    """How long a record of a SourceFunction may be buffered: the smallest buffer timeout. None for no limit."""
    timeouts = [output.buffer_timeout_ms for vertex in job.vertices for output in vertex.outputs]
    if not timeouts:
        return _FLUSH_AFTER_MS
    return min((timeout for timeout in timeouts if timeout >= 0), default=None)


@dataclass(frozen=True, slots=True)
class _Ended:
    """The message of a thread at the end of its task."""

    error: BaseException | None = None


class LiveRun:
    """The threads of one job. `switch` stops it, and `progress` is notified of its tasks."""

    def __init__(
        self,
        job: JobProgram,
        environment: TaskEnvironment,
        switch: StopSwitch,
        progress: CountedProgress | None = None,
    ) -> None:
        self._progress = progress or CountedProgress(job)
        self._job = replace(job, vertices=tuple(_cut_at_once(vertex) for vertex in job.vertices))
        self._shipped = ship_vertices(self._job)
        self._environment = replace(
            environment, alignment=_alignment_groups(job), flush_after_ms=_flush_after_ms(job)
        )
        self._switch = switch
        self._inputs = {task: LiveBuffers() for task in job.tasks}
        self._to_driver: queue.SimpleQueue[Buffer | _Ended] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._running: list[StreamTask] = []
        self._record_warnings = RecordWarnings(job)

    def buffers(self) -> Iterator[Buffer]:
        """Runs all tasks, and yields what they send to the driver, until all have ended.

        Raises:
            Exception: The exception of the first task that failed. All other tasks are stopped by then.
            JobStoppedError: The job was stopped, and all tasks are blocked by functions.
        """
        for task in self._inputs:
            thread = threading.Thread(
                target=self._run, args=(task,), name=f"task {task}", daemon=True
            )
            self._threads.append(thread)
        left = len(self._threads)
        try:
            with gc_relaxed():
                with HeldInterrupts():
                    for thread in self._threads:
                        thread.start()
                while left:
                    item = self._next_item()
                    if item is None:
                        self._warn_of_records()
                        if (
                            self._switch.is_stopped
                        ):  # each task that is not blocked has ended by now
                            raise JobStoppedError
                    elif not isinstance(item, _Ended):
                        yield item
                    elif item.error is not None:
                        raise item.error
                    else:
                        left -= 1
        finally:
            self._stop_tasks()
            self._warn_of_records()

    def _next_item(self) -> Buffer | _Ended | None:
        """The next buffer of a task. None if there is none for a while."""
        try:
            return self._to_driver.get(timeout=_LOOK_EVERY_S)
        except queue.Empty:
            return None

    def _warn_of_records(self) -> None:
        """Reads the counters of the running tasks, which only report at their end."""
        dropped: Counter[str] = Counter()
        records_in: Counter[str] = Counter()
        for task in list(self._running):
            for operator in task.chain.operators:
                self._record_warnings.note_warning(operator.program.operator_id, operator.warning)
                counted = operator.late_records_dropped
                if counted is not None:
                    operator_id = operator.program.operator_id
                    dropped[operator_id] += counted.get_count()
                    records_in[operator_id] += operator.records_in
        for operator_id, count in dropped.items():
            self._record_warnings.note(operator_id, count, records_in[operator_id])

    def _run(self, task: int) -> None:
        """Runs one task in its thread."""
        try:
            program = shipped_task(self._job, self._shipped, task)
            running = StreamTask(program, task, self._inputs[task], self._environment)
            self._switch.watch(running)
            self._running.append(running)
            self._progress.started(task, running.counts_now)
            for buffer in running.run():
                if buffer.target == DRIVER:
                    self._to_driver.put(buffer)
                else:
                    for copy in buffer.for_each_reader():
                        self._inputs[copy.target].deliver(copy)
        except BaseException as error:  # noqa: BLE001 - the thread that runs the job raises it
            self._to_driver.put(_Ended(error))
        else:
            assert running.report is not None, "a task that has ended has its numbers"
            self._progress.finished(task, running.report.metrics)
            self._to_driver.put(_Ended())

    def _stop_tasks(self) -> None:
        self._switch.stop()
        for buffers in self._inputs.values():
            buffers.close()
        end_threads([thread for thread in self._threads if thread.ident is not None], ENDING_S)


def _alignment_groups(job: JobProgram) -> dict[str, AlignmentGroup]:
    """The groups of sources that wait for each other, by name; the members are (task, operator)."""
    members: dict[str, list[tuple[int, int]]] = {}
    for vertex in job.vertices:
        for operator in vertex.all_operators:
            strategy = getattr(operator.spec, "watermark_strategy", None)
            if strategy is not None and strategy.alignment is not None:
                group = members.setdefault(strategy.alignment.watermark_group, [])
                if strategy.makes_watermarks:
                    group += [(task, operator.index) for task in vertex.tasks]
    return {name: AlignmentGroup(found) for name, found in members.items()}


def _cut_at_once(vertex: VertexProgram) -> VertexProgram:
    """The vertex with outputs that send all records after each batch: a buffer timeout of 0."""
    outputs = tuple(replace(output, buffer_timeout_ms=0) for output in vertex.outputs)
    return replace(vertex, outputs=outputs)
