"""Runs programs epoch by epoch in this process: live, or rebuilt from the checkpoint before each epoch."""

from __future__ import annotations

import pickle
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import cloudpickle
from forms import Ran, job_of

from opchain.common import Types
from opchain.datastream.functions import CheckpointedFunction, MapFunction
from opchain.datastream.state import ListStateDescriptor
from opchain.runtime.checkpoint.epoch import Epoch
from opchain.runtime.checkpoint.metadata import CheckpointMetadata, EpochInput, TaskMetadata
from opchain.runtime.checkpoint.source_numbers import bounded_sources
from opchain.runtime.checkpoint.storage import checkpoint_storage
from opchain.runtime.connectors.unbounded_source import UnboundedSource
from opchain.runtime.epochs.live_tasks import operators_with_state
from opchain.runtime.epochs.local_epochs import LocalEpochs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from opchain.datastream import DataStream, StreamExecutionEnvironment
    from opchain.runtime.program.vertex_program import JobProgram

    Records = Sequence[Any]

cloudpickle.register_pickle_by_value(sys.modules[__name__])


class GivenSource(UnboundedSource[Any]):
    """Reads the lists of records that a test delivers."""

    def initial_position(self, now_ms: int) -> Any:
        raise AssertionError("a test delivers by itself")

    def latest_position(self, start: Any, now_ms: int) -> Any:
        raise AssertionError("a test delivers by itself")

    def splits_between(self, start: Any, end: Any, parallelism: int) -> Any:
        raise AssertionError("a test delivers by itself")

    def splits(self, parallelism: int) -> Any:
        raise AssertionError("a test delivers by itself")

    def read(self, split: Records, batch_size: int) -> Iterator[Records]:
        for first in range(0, len(split), batch_size):
            yield split[first : first + batch_size]


class Numbered(MapFunction[Any, Any], CheckpointedFunction):
    """Numbers the records of a subtask, over epochs and restarts; the last number is operator state."""

    def initialize_state(self, context: Any) -> None:
        descriptor = ListStateDescriptor("number", Types.LONG())
        self.state = context.get_operator_state_store().get_list_state(descriptor)
        self.number = sum(self.state.get())

    def snapshot_state(self, context: Any) -> None:
        self.state.update([self.number])

    def map(self, value: Any) -> Any:
        self.number += 1
        return self.number


def given(env: StreamExecutionEnvironment, name: str, strategy: Any = None) -> DataStream[Any]:
    """The stream of what a test delivers under this name."""
    from opchain.common import WatermarkStrategy  # noqa: PLC0415

    return env.from_source(GivenSource(), strategy or WatermarkStrategy.no_watermarks(), name).uid(
        name
    )


@dataclass
class EpochRun:
    """One job, from epoch to epoch.

    `latest` is the last checkpoint; a run that is given another's resumes from there.
    """

    draw: Callable[[StreamExecutionEnvironment], Any]
    folder: Path
    parallelism: int = 1
    form: str = "inlined"
    latest: CheckpointMetadata | None = None
    processes: int = 1
    process_of: Callable[[int], int] = lambda _: 0
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.storage = checkpoint_storage(str(self.folder))
        self.job: JobProgram = job_of(
            self.draw, self.form, parallelism=self.parallelism, **self.settings
        )
        self._epochs = LocalEpochs(self.job, self.storage, self.processes)

    def run(self, now_ms: int = 0, *, drains: bool = False, **deliveries: Records) -> Ran:
        """Runs an epoch: the records of each source go to its subtasks in contiguous parts."""
        latest = self.latest
        epoch = Epoch(
            1 if latest is None else latest.checkpoint_id + 1,
            now_ms,
            is_first=latest is None,
            drains=drains,
        )
        by_task: dict[int, list[bytes]] = {}
        for vertex in self.job.vertices:
            records = deliveries.get(vertex.operators[0].uid or "")
            if records is not None:
                size = vertex.parallelism
                for subtask in range(size):
                    first = len(records) * subtask // size
                    behind = len(records) * (subtask + 1) // size
                    part = list(records[first:behind])
                    by_task[vertex.first_task + subtask] = [pickle.dumps(part)]
        outcome = self._epochs.run(epoch, by_task, latest, self.process_of)
        self.latest = CheckpointMetadata(
            epoch.checkpoint_id,
            now_ms,
            "test",
            "run",
            tuple(operators_with_state(self.job, outcome.snapshots)),
            tuple(
                TaskMetadata(
                    vertex.first_task + subtask,
                    vertex.vertex_id,
                    subtask,
                    outcome.snapshots[vertex.first_task + subtask].state,
                    outcome.snapshots[vertex.first_task + subtask].event_time,
                )
                for vertex in self.job.vertices
                for subtask in range(vertex.parallelism)
            ),
            EpochInput(bounded=bounded_sources(self.job)),
        )
        return Ran(self.job, outcome)

    def next_timer_ms(self, ran: Ran) -> int | None:
        """When the first processing-time timer is due after an epoch."""
        times = [item.next_timer_ms for item in ran.outcome.snapshots.values()]
        return min((time for time in times if time is not None), default=None)

    def restarted(self, parallelism: int | None = None) -> EpochRun:
        """The job as a new run has it, which finds nothing but the checkpoint."""
        self.close()
        return EpochRun(
            self.draw,
            self.folder,
            parallelism or self.parallelism,
            self.form,
            self.latest,
            self.processes,
            self.process_of,
            self.settings,
        )

    def close(self) -> None:
        """Closes the tasks."""
        self._epochs.close()
