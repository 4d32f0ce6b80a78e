"""The context of an operator on an executor: its subtask, and the services of its task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opchain.runtime.functions.function import RuntimeContext
    from opchain.runtime.mailbox.mailbox_executor import MailboxExecutor
    from opchain.runtime.mailbox.processing_time_service import ProcessingTimeService
    from opchain.runtime.metrics.metric_group import MetricGroup
    from opchain.runtime.program.vertex_program import VertexProgram
    from opchain.runtime.state.operator_state import SubtaskStateStore
    from opchain.runtime.watermarks.splits import AlignmentGroup


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """Which subtask of which vertex this is.

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


@dataclass(slots=True)
class OperatorContext:
    """The services of one operator.

    Attributes:
        task: The subtask that the operator runs in.
        runtime_context: What the operator's function sees.
        processing_time: The clock and timers. With `runs_in_epochs` the clock shows one time throughout an epoch.
        marker_time: The machine's clock, for latency markers.
        mailbox: Runs commands in the task's thread, at this operator's priority.
        acknowledge: `acknowledge(item)` hands a picklable item to the driver, exactly once.
        operator_state: State of the subtask.
        keyed_state: The operator's KeyedStateBackend; None for an operator without key.
        timers: Its TimerServices; None for an operator without key.
        feed: The records that the engine reads for a DataFrame source.
        schema: The schema of an Arrow sink as JSON.
        send_batch: Takes the batches of an Arrow sink, as bytes.
        make_writer: `make_writer(where)` gives the writer of a sink whose writer the engine brings.
        restored_checkpoint_id: The checkpoint that the state was restored from, if there is one.
        runs_in_epochs: Whether the job is unbounded and runs on Spark.
        input_clock_ns: In an unbounded job in this process: the machine's clock in nanoseconds, without the time of
            back pressure.
        alignment: The watermark alignment groups of such a job.
    """

    task: TaskInfo
    runtime_context: RuntimeContext
    processing_time: ProcessingTimeService
    marker_time: ProcessingTimeService
    mailbox: MailboxExecutor
    acknowledge: Callable[..., None]
    operator_state: SubtaskStateStore
    keyed_state: Any = None
    timers: Any = None

    feed: Any = None
    schema: str | None = None
    send_batch: Callable[[bytes], None] | None = None
    make_writer: Any = None
    restored_checkpoint_id: int | None = None
    runs_in_epochs: bool = False
    input_clock_ns: Callable[[], int] | None = None
    alignment: Mapping[str, AlignmentGroup] | None = None

    def quiesce(self) -> None:
        """Stops the timers: none fires any more."""
        self.processing_time.quiesce()
        self.marker_time.quiesce()

    @property
    def metrics(self) -> MetricGroup:
        """The operator's metric group, which its function sees as well."""
        return self.runtime_context.get_metrics_group()
