"""Runs a job with the real code of the driver in this process, and injects faults at any step.

A step is any change of a file of a checkpoint or a sink: create, sync, link, rename or remove. Spark's commit of a
micro-batch is a step, too. `Steps` counts the steps and runs an action before a chosen one, so that a test can try
every step.

A dead process does nothing more, not even in `finally`: after its death, every step fails.
"""

from __future__ import annotations

import os
import pickle
import random
import re
import sys
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import cloudpickle
from checkpoint_state import state_in
from epoch_runs import given
from forms import job_of

from opchain.common import Duration, Encoder, Time, Types, WatermarkStrategy
from opchain.datastream.connectors.file_system import BucketAssigner, FileSink
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ListStateDescriptor, ValueStateDescriptor
from opchain.datastream.window import TumblingEventTimeWindows
from opchain.runtime.checkpoint.coordinator import CheckpointCoordinator, lineage_of
from opchain.runtime.checkpoint.epoch import Epoch
from opchain.runtime.checkpoint.fall_back import fall_back
from opchain.runtime.checkpoint.metadata import latest_checkpoint
from opchain.runtime.checkpoint.storage import checkpoint_storage
from opchain.runtime.epochs.delivered_sources import deliveries_of, unbounded_sources
from opchain.runtime.epochs.epoch_progress import EpochHistory
from opchain.runtime.epochs.local_epochs import LocalEpochs
from opchain.runtime.job.epochs import Epochs
from opchain.runtime.job.run import CollectedRecords
from opchain.runtime.job.streaming_settings import StreamingSettings
from opchain.runtime.local.epoch_run import LocalEpochTasks
from opchain.runtime.task.stream_task import TaskEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opchain.runtime.checkpoint.storage import CheckpointStorage
    from opchain.runtime.program.vertex_program import JobProgram

Row = tuple[str, int, int]
"""Key, event time, number."""

LEASE_MS = 60_000
BATCHES: list[list[Row]] = [
    [(f"k{draw.randrange(4)}", 25 * batch + draw.randrange(30), 10 * batch + n) for n in range(8)]
    for batch, draw in ((batch, random.Random(batch)) for batch in range(3))
]
_STEPS = (
    (os, "fsync"),
    (os, "link"),
    (os, "unlink"),
    (os, "rename"),
    (Path, "replace"),
    (Path, "unlink"),
)


class DriverDiedError(BaseException):
    """Stands for the death of the process."""


class Steps:
    """Counts the steps of a run, and runs the action `then` at one of them.

    Attributes:
        count: The number of steps so far.
        dies_at: A pattern. If given, the process dies at the first later step that it matches.
    """

    def __init__(
        self,
        at: int | str | None = None,
        then: Callable[[], None] | None = None,
        dies_at: str | None = None,
    ) -> None:
        self.count = 0
        self.dies_at = dies_at
        self._at = at
        self._then = then or self.die
        self._is_dead = False

    def step(self, what: str = "") -> None:
        """Counts a step, named like `link PATH PATH`. `at` may be a pattern of such names."""
        if self._is_dead:
            raise DriverDiedError
        self.count += 1
        at = self._at
        if at == self.count - 1 or (isinstance(at, str) and re.search(at, what)):
            self._at = None
            self._then()
        elif self._at is None and self.dies_at is not None and re.search(self.dies_at, what):
            self.die()

    def die(self) -> None:
        self._is_dead = True
        raise DriverDiedError


_current: ContextVar[Steps | None] = ContextVar("steps", default=None)
"""Threads that run tasks have the variables of the thread that they work for."""

_counting: list[Steps] = []
_patches: list[Any] = []
_patching = threading.Lock()


@contextmanager
def counted(steps: Steps) -> Iterator[Steps]:
    """Counts all changes of files by this thread and by the threads of its tasks as steps."""
    with _patching:
        if not _counting:
            _patches[:] = [
                mock.patch.object(owner, name, _stepping(name, getattr(owner, name)))
                for owner, name in _STEPS
            ]
            for patch in _patches:
                patch.start()
        _counting.append(steps)
    token = _current.set(steps)
    try:
        yield steps
    finally:
        _current.reset(token)
        with _patching:
            _counting.remove(steps)
            if not _counting:
                for patch in _patches:
                    patch.stop()


def _stepping(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def stepped(*arguments: Any, **more: Any) -> Any:
        steps = _current.get()
        if steps is None:
            return original(*arguments, **more)
        steps.step(" ".join((name, *map(str, arguments))))
        # No real sync: the files need not survive a power loss.
        return None if name == "fsync" else original(*arguments, **more)

    return stepped


def in_process_epochs(
    job: JobProgram,
    coordinator: CheckpointCoordinator,
    storage: CheckpointStorage,
    *,
    allow_non_restored_state: bool = False,
    accepts_duplicates: bool = False,
    staging: str | None = None,
) -> Epochs:
    """The epochs of a job in this process."""
    lineage = lineage_of(storage)
    settings = StreamingSettings(
        allow_non_restored_state=allow_non_restored_state, accept_duplicates=accepts_duplicates
    )
    return Epochs(
        job,
        settings,
        coordinator.lease.run.run_id,
        LocalEpochTasks(job, storage, TaskEnvironment(lineage=lineage, staging=staging)),
        unbounded_sources(job),
        storage=storage,
        coordinator=coordinator,
        records=CollectedRecords(),
        history=EpochHistory(job),
        lineage=lineage,
        staging=staging,
    )


def delivered(rows: list[Row]) -> list[tuple[int, int, bytes]]:
    """The rows for the single task of the source."""
    return [(0, 0, pickle.dumps(rows))]


class Count(KeyedProcessFunction[str, Row, str]):
    """Counts the records of a key, and emits them at the end of each 20 ms."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.since = runtime_context.get_list_state(ListStateDescriptor("since", Types.LONG()))

    def process_element(self, value: Row, ctx: Any) -> Iterator[str]:
        key, time, number = value
        self.count.update((self.count.value() or 0) + 1)
        self.since.add(number)
        ctx.timer_service().register_event_time_timer(time - time % 20 + 19)
        yield f"{key} {self.count.value()} {number}"

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[str]:
        yield f"{ctx.get_current_key()} at {timestamp}: {list(self.since.get())}"
        self.since.clear()


cloudpickle.register_pickle_by_value(sys.modules[__name__])


def draw(folder: Path) -> Callable[[Any], None]:
    """A count with timers and a sum over windows, written to files."""

    def drawn(env: Any) -> None:
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(
            Duration.of_millis(10)
        ).with_timestamp_assigner(lambda row, _: row[1])
        # With one source subtask, the records of a key have the same order at any parallelism.
        rows = given(env, "rows", strategy).set_parallelism(1)
        keyed = rows.key_by(lambda row: row[0])
        keyed.process(Count()).uid("count").sink_to(files(folder, "counts")).uid("counts")
        windows = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(30)))
        sums = windows.reduce(lambda a, b: (a[0], a[1], a[2] + b[2])).uid("sum")
        sums.map(lambda row: f"{row[0]} {row[2]}").sink_to(files(folder, "sums")).uid("sums")

    return drawn


def files(folder: Path, name: str) -> Any:
    rows = FileSink.for_row_format(str(folder / "out" / name), Encoder.simple_string_encoder())
    return rows.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()


@dataclass
class CrashRun:
    """The job over the micro-batches of BATCHES, which continues wherever its last run came to.

    Attributes:
        folder: For checkpoints and output.
        parallelism: Of all operators.
        tolerable_failures: How many checkpoints in a row may fail within a run.
        accepts_duplicates: Whether output that is later than the last checkpoint may be written again.
        retained: How many checkpoints are kept.
        restore_from: The checkpoint to go back to, where later ones are damaged.
        noted: How many micro-batches Spark has noted as done.
        runs: How many runs there were.
    """

    folder: Path
    parallelism: int = 2
    tolerable_failures: int = 0
    accepts_duplicates: bool = False
    retained: int = 1
    restore_from: str | None = None
    noted: int = 0
    runs: int = 0

    @property
    def storage(self) -> CheckpointStorage:
        """Where its checkpoints are."""
        return checkpoint_storage(str(self.folder / "checkpoints"))

    def job(self) -> JobProgram:
        """The job at its parallelism."""
        return job_of(draw(self.folder), parallelism=self.parallelism, max_parallelism=8)

    def run(self, steps: Steps | None = None, *, until: int = len(BATCHES)) -> None:
        """One run, to the end of so many micro-batches or its own."""
        self.runs += 1
        job, storage = self.job(), self.storage
        steps = steps or Steps()
        with counted(steps):
            coordinator = CheckpointCoordinator.open(
                storage,
                "crashing",
                f"run-{self.runs}",
                tolerable_failures=self.tolerable_failures,
                retained=self.retained,
                lease_ms=LEASE_MS,
                keeps_alive=False,
                now_ms=lambda began=self.runs: began * LEASE_MS,  # type: ignore[misc]
            )
            if self.restore_from is not None:
                fall_back(storage, coordinator, self.restore_from)
            epochs = in_process_epochs(
                job, coordinator, storage, accepts_duplicates=self.accepts_duplicates
            )
            try:
                for batch in range(self.noted, until):
                    epochs.run(delivered(BATCHES[batch]), batch)
                    steps.step(f"note {batch}")
                    self.noted = max(self.noted, batch + 1)
                    steps.step(f"noted {batch}")
            finally:
                epochs.tasks.close()
            coordinator.sweep()
            coordinator.close()

    def run_attempt(self, steps: Steps, epoch: int) -> None:
        """An attempt of all tasks of an epoch, from the checkpoint before it; nobody hears of what it did."""
        latest = latest_checkpoint(self.storage)
        job = self.job()
        tasks = TaskEnvironment(lineage=lineage_of(self.storage))
        with counted(steps):
            LocalEpochs(job, self.storage, environment=tasks).run(
                Epoch(epoch, 0, is_first=latest is None),
                deliveries_of(unbounded_sources(job), delivered(BATCHES[epoch - 1])),
                latest,
            )

    def state(self) -> dict[str, Any]:
        """What the last checkpoint holds."""
        metadata = latest_checkpoint(self.storage)
        assert metadata is not None
        return state_in(self.storage, metadata)

    def left_over(self) -> list[str]:
        """State files that no checkpoint refers to, and output that is hidden."""
        metadata = latest_checkpoint(self.storage)
        assert metadata is not None
        hidden = [file.name for file in (self.folder / "out").rglob(".*.inprogress")]
        return sorted({*self.storage.names("shared"), *hidden} - set(metadata.files))

    def output(self) -> dict[str, list[str]]:
        """The lines of each folder of output, sorted; hidden files are none."""
        return {
            folder.name: sorted(
                line
                for file in folder.rglob("*")
                if file.is_file() and not file.name.startswith(".")
                for line in file.read_text("utf-8").splitlines()
            )
            for folder in sorted((self.folder / "out").iterdir())
        }
