"""What an operator finds on its executor: who it is, and the services of its task."""

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
    from opchain.runtime.watermarks.alignment import AlignmentGroup


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

    `keyed_state` is the operator's KeyedStateBackend, `timers` are its TimerServices; both None for an
    operator without key. `operator_state` is its SubtaskStateStore; `restored_checkpoint_id` the number
    of the checkpoint that its state was restored from, if there is one. `mailbox` runs commands in the
    task's thread, at this operator's priority. With `runs_in_epochs` the clock shows the time of the epoch,
    while latency markers go by `marker_time`, the machine's.
    `acknowledge(item)` hands a picklable item to the driver, exactly once. `feed` is what the engine brings a fed source, `schema` and `send_batch(batch)` are an Arrow
    sink's: the JSON text of its schema, and where its batches go. `make_writer(where)` is there for a
    sink whose writer the engine brings.
    `input_clock_ns` is there in an unbounded job that runs in this process: the machine's clock in
    nanoseconds, without the time that the task was back-pressured. `alignment` has such a job's alignment groups.
    """

    task: TaskInfo
    runtime_context: RuntimeContext
    processing_time: ProcessingTimeService
    marker_time: ProcessingTimeService
    mailbox: MailboxExecutor
    acknowledge: Any
    keyed_state: Any = None
    timers: Any = None
    operator_state: Any = None
    feed: Any = None
    schema: str | None = None
    send_batch: Any = None
    make_writer: Any = None
    restored_checkpoint_id: int | None = None
    runs_in_epochs: bool = False
    input_clock_ns: Callable[[], int] | None = None
    alignment: Mapping[str, AlignmentGroup] | None = None

    def quiesce(self) -> None:
        """Lets no timer fire any more."""
        self.processing_time.quiesce()
        self.marker_time.quiesce()

    @property
    def metrics(self) -> MetricGroup:
        """The operator's metric group, which its function sees as well."""
        return self.runtime_context.get_metrics_group()
