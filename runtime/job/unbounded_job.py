"""An unbounded job, epoch by epoch, on any engine; and its run, which a JobClient watches and controls.

The engine decides when an epoch begins and what it reads. It logs both before it reads anything, so a retry reads the
same input. Everything else is done here. When all tasks of an epoch have acknowledged, its checkpoint is completed in
one atomic step, and then the sinks commit. Only then does the engine record that the micro-batch is over. So a
micro-batch that runs again although it has a checkpoint only commits again.
"""

from __future__ import annotations

import logging
import shlex
import sys
import tempfile
import threading
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.checkpoint_key import read_key
from opchain.runtime.checkpoint.coordinator import CheckpointCoordinator, lineage_of
from opchain.runtime.checkpoint.epoch_files import checkpoint_name
from opchain.runtime.checkpoint.job_requests import FOLDER as REQUESTS
from opchain.runtime.checkpoint.job_requests import JobRequest, Kind
from opchain.runtime.checkpoint.run_lease import FOLDER as RUNS
from opchain.runtime.checkpoint.savepoint import Located, adopt, empty_target, write_savepoint
from opchain.runtime.checkpoint.storage import CheckpointStorage, checkpoint_storage
from opchain.runtime.epochs.delivered_sources import can_be_replayed, unbounded_sources
from opchain.runtime.epochs.epoch_progress import EpochHistory, EpochListener, ProgressLog
from opchain.runtime.epochs.input_log import (
    InputRestoredError,
    require_log,
    reset_to_checkpoint,
)
from opchain.runtime.errors import (
    CheckpointError,
    CorruptCheckpointError,
    TaskFailedError,
    add_note,
)
from opchain.runtime.job.client import CompletableFuture, JobStatus
from opchain.runtime.job.epochs import Epochs, EpochTasks
from opchain.runtime.job.job_control import JobControl
from opchain.runtime.job.restarts import Restarts
from opchain.runtime.job.run import CANCELLING_S, CollectedRecords, HeldInterrupts, JobRun
from opchain.runtime.redaction import is_secret
from opchain.runtime.shipping.outcome import JobOutcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from opchain.runtime.checkpoint.metadata import CheckpointMetadata
    from opchain.runtime.job.progress import JobProgress
    from opchain.runtime.job.streaming_settings import StreamingSettings
    from opchain.runtime.program.vertex_program import JobProgram


_LOG = logging.getLogger("opchain.job")

PATIENCE_S = 20.0
"""How long a job that is cancelled may continue with its epoch."""

_WITH_OWN_ADVICE = (CorruptCheckpointError, InputRestoredError)
"""Errors that say from which checkpoint the job can resume."""

_CHECK_EVERY_S = 0.2
"""How often an epoch that waits for its turn checks whether the job is cancelled."""

STAGING = "outbox"
"""The folder, below the checkpoints of a job, in which output of sinks waits for its commit."""

NO_LIMIT = -1.0
"""The value of `patience_s` without a limit."""


_FINISHED_HERE: set[str] = set()
"""The URLs of the checkpoint directories of jobs that have finished in this process."""


def _warn_of_another_job(url: str, job_name: str, latest: CheckpointMetadata | None) -> None:
    """Warns if a directory may have the checkpoints of another job.

    In Flink, each job has a sub-folder of its own, so programs may give several jobs the same directory.
    """
    if latest is None:
        return
    if url in _FINISHED_HERE or latest.job_name != job_name:
        _LOG.warning(
            "job '%s' continues from checkpoint %d of job '%s' in %s; if it is another job, give it its own "
            "execution.checkpointing.dir",
            *(job_name, latest.checkpoint_id, latest.job_name, url),
        )


class _CheckpointCleanup:
    """Deletes the checkpoints of a job that has ended, if its retention says so.

    Leases and answers to requests are kept, because other processes read them.
    """

    def __init__(self, job: UnboundedJob, storage: CheckpointStorage) -> None:
        self.owns_checkpoints = False
        self._job = job
        self._storage = storage

    def __call__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Runs after the lease is closed. `kind` is the class of the job's failure, if it failed."""
        if self.owns_checkpoints and not self._job.keeps_checkpoints(has_failed=kind is not None):
            for name in self._storage.children():
                if name not in (RUNS, REQUESTS):
                    # Also deletes hidden and unfinished files: Spark would take what is left for a damaged log.
                    self._storage.delete_folder(name)


class UnboundedJob(ABC):
    """One unbounded job. `run` may be called once, `cancel` at any time, from any thread.

    Args:
        job: The job.
        settings: Its settings.
        progress: Knows the current counts of running tasks.
        plan: The job's plan, for its checkpoints.
        listeners: Called after each epoch.

    Attributes:
        records: The records of its collecting sinks.
        history: Its epochs.
        begins_with: The start of the run as text, such as "restored chk-12"; None until it is known.
        restarts: Its restarts.
        control: Takes its savepoints, and stops it.

    Raises:
        OSError: The progress log can't be written.
        UnsupportedFeatureError: A source can't be read epoch by epoch.
    """

    def __init__(
        self,
        job: JobProgram,
        settings: StreamingSettings,
        progress: JobProgress,
        plan: Mapping[str, Any] | None = None,
        listeners: Iterable[EpochListener] = (),
    ) -> None:
        self.job = job
        self.run_id = uuid.uuid4().hex
        self.settings = settings
        self.progress = progress
        self._plan = plan
        self._sources = unbounded_sources(job)
        self.is_bounded = not self._sources
        self.cancelled = threading.Event()
        self._between_epochs = threading.Lock()
        self._failure: BaseException | None = None
        self._folder: Path | None = None
        self.records = CollectedRecords()
        self.control = JobControl(
            self.run_id,
            self._between_epochs,
            stop_query=self._stop_epochs,
            cancel=self.cancel,
            wake=self._begin_epoch_soon,
            default_directory=settings.savepoint_directory,
        )
        self.restarts = Restarts(settings.restarts, job.job_name, start="from its last checkpoint")
        self.history = EpochHistory(job, listeners)
        self.begins_with: str | None = None
        if settings.progress_log is not None:
            self.history.listen(ProgressLog(settings.progress_log))

    # What an engine does

    @abstractmethod
    def _open_tasks(
        self, storage: CheckpointStorage, lineage: str, staging: str, stack: ExitStack
    ) -> EpochTasks:
        """The object that runs the tasks of epochs.

        Args:
            storage: The storage of state.
            lineage: The id with which sinks mark staged output.
            staging: The folder of output that waits for its commit.
            stack: Closes resources when the run ends.
        """

    @abstractmethod
    def _run_epochs(self, epochs: Epochs) -> bool:
        """Runs epochs until the job ends. Returns whether to start again, because the log of offsets was restored."""

    @abstractmethod
    def _cancel_epoch(self) -> None:
        """Ends the epoch that runs, with an error; any thread may call it."""

    @abstractmethod
    def _stop_epochs(self) -> None:
        """Stops after the current epoch; any thread may call it."""

    @abstractmethod
    def _begin_epoch_soon(self) -> None:
        """Starts an epoch even without input; any thread may call it."""

    def _around_epoch(self) -> AbstractContextManager[object]:
        """The context in which an epoch runs."""
        return nullcontext()

    def _require_input(self, storage: CheckpointStorage, last_batch: int) -> None:
        """Checks that the input files of all started micro-batches still exist.

        Raises:
            CheckpointError: A file is missing.
        """

    # The run

    def run(self) -> JobOutcome:
        """Runs epochs until the job ends: forever, until it is cancelled, or until all is read.

        Raises:
            Exception: The exception of a user's function, with notes about the operator.
            CheckpointError: The checkpoints belong to another job, are damaged, or do not fit the program.
            StreamError: The job failed for another reason.
        """
        with ExitStack() as stack:
            # Readers of collected records must see the end of the job, even if any of the next steps fails.
            stack.callback(self.records.end)
            folder = tempfile.TemporaryDirectory(prefix="opchain-", ignore_cleanup_errors=True)
            self._folder = Path(stack.enter_context(folder))
            return self._run_in(stack)

    def _run_in(self, stack: ExitStack) -> JobOutcome:
        """Runs epochs. The stack closes all resources."""
        url = self.settings.checkpoint_dir or str(self.folder / "checkpoints")
        key_file = self.settings.checkpoint_key_file
        storage = checkpoint_storage(url, None if key_file is None else read_key(key_file))
        at_end = self.settings.savepoint_at_end
        if at_end is not None:  # fails now, and not at the end of the job
            empty_target(checkpoint_storage(at_end, storage.key))
        cleanup = _CheckpointCleanup(self, storage)
        stack.push(cleanup)
        epochs = self._resumed(storage, stack)
        cleanup.owns_checkpoints = True
        self.control.begin(storage, epochs.latest)
        stack.callback(self.control.end)
        require_log(storage, epochs.last_batch)
        self._require_input(storage, epochs.last_batch)
        self.restarts.run(partial(self._attempt, epochs), self.cancelled)
        if at_end is not None and epochs.latest is not None:
            write_savepoint(Located(storage, epochs.latest), at_end, holds_state_alone=True)
            _LOG.info("state at the end of job '%s': %s", self.job.job_name, at_end)
        if not self.control.is_stopped:
            _FINISHED_HERE.add(storage.url)
        outcome = epochs.outcome or JobOutcome()
        outcome.metrics = self.history.totals()
        return outcome

    def _resumed(self, storage: CheckpointStorage, stack: ExitStack) -> Epochs:
        """The epochs after the last checkpoint, or after the one that the settings name. Takes the directory's lease."""
        coordinator = CheckpointCoordinator.open(
            storage,
            self.job.job_name,
            self.run_id,
            # A replay of an epoch needs the checkpoint before it.
            retained=max(
                self.settings.retained_checkpoints, 2 if self.settings.record_epochs else 1
            ),
            tolerable_failures=self.settings.tolerable_checkpoint_failures,
        )
        stack.callback(coordinator.close)
        lineage, staging = lineage_of(storage), f"{storage.url}/{STAGING}"
        tasks = self._open_tasks(storage, lineage, staging, stack)
        restore_from = self.settings.restore_from
        if restore_from is not None:
            reset_to_checkpoint(storage, coordinator, restore_from)
            if coordinator.latest() is None:
                adopt(storage, restore_from, coordinator.lease)
                restore_from = None
        else:
            _warn_of_another_job(storage.url, self.job.job_name, coordinator.latest())

        def resumed(_: int) -> Epochs:
            return Epochs(
                self.job,
                self.settings,
                self.run_id,
                tasks,
                self._sources,
                storage=storage,
                coordinator=coordinator,
                records=self.records,
                history=self.history,
                lineage=lineage,
                staging=staging,
                plan=self._plan,
            )

        # It commits the last checkpoint again, and a sink may be away for a while.
        epochs = self.restarts.run(resumed, self.cancelled)
        self.begins_with = restored_text(epochs.latest, self.job, restore_from)
        return epochs

    def _attempt(self, epochs: Epochs, number: int) -> None:
        """Runs epochs after this number of restarts."""
        self._failure = None
        epochs.tasks.restarts = number
        self._finish_failed_epoch(epochs)
        while not (self.control.is_stopped or epochs.are_over()) and self._run_epochs(epochs):
            pass

    @property
    def folder(self) -> Path:
        """The temporary folder of the run."""
        assert self._folder is not None, "the run has begun"
        return self._folder

    @property
    def checkpoints(self) -> str | None:
        """The directory of checkpoints that are kept after the job; None if they are deleted."""
        return self.settings.checkpoint_dir

    def keeps_checkpoints(self, *, has_failed: bool) -> bool:
        """Whether the checkpoints are kept if the job ends now."""
        is_cancelled = self.cancelled.is_set()
        return self.settings.checkpoint_retention.keeps(
            is_cancelled=is_cancelled, has_failed=has_failed
        )

    def cancelled_error(self, when: str) -> TaskFailedError:
        """The error that ends a cancelled job."""
        return TaskFailedError(
            f"job '{self.job.job_name}' was cancelled {when}: its next start resumes from the last checkpoint"
        )

    def cancel(self, patience_s: float = PATIENCE_S) -> None:
        """Ends the job after the current epoch, or aborts the epoch if it takes too long. A later run repeats it.

        Args:
            patience_s: How long the current epoch may still take; negative for no limit.
        """
        self.cancelled.set()
        self.records.end()
        is_between = self._between_epochs.acquire(timeout=max(patience_s, NO_LIMIT))
        try:
            if not is_between:
                self._cancel_epoch()
            self._stop_epochs()
        finally:
            if is_between:
                self._between_epochs.release()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Holds `_between_epochs` for an epoch.

        `cancel` holds it while it waits for the engine, which may wait for this thread. So a cancellation ends the
        wait. A stop releases it first, and `require_not_stopped` refuses the epoch.
        """
        while not self._between_epochs.acquire(timeout=_CHECK_EVERY_S):
            if self.cancelled.is_set():
                raise self.cancelled_error("between two epochs")
        try:
            yield
        finally:
            self._between_epochs.release()

    def _run_epoch(
        self,
        epochs: Epochs,
        rows: Any,
        batch: int,
        read_to: Mapping[str, Any] | None = None,
    ) -> None:
        """Runs the epoch of a micro-batch, and serves a request to drain the job. See `Epochs.run`."""
        with self._turn(), self._around_epoch():
            self.control.require_not_stopped()
            epochs.saved_input.require(batch)
            drains = self.control.drains
            ends = self.is_bounded and self.settings.savepoint_at_end is None
            try:
                has_drained = epochs.run(rows, batch, drains=drains or ends, read_to=read_to)
            finally:
                self.control.checkpointed(epochs.committed)
            epochs.saved_input.forget(batch)
            if drains and has_drained:
                self.control.drained()

    def _finish_failed_epoch(self, epochs: Epochs) -> None:
        """Finishes the last epoch if its commit failed before a restart of the job."""
        with self._turn(), self._noting_failure(epochs, epochs.last_batch):
            has_drained = epochs.finish_failed_epoch()
            self.control.checkpointed(epochs.committed)
            if self.control.drains and has_drained:
                self.control.drained()

    @contextmanager
    def _noting_failure(self, epochs: Epochs, batch: int) -> Iterator[None]:
        """Adds notes to an error within the block: from where the job resumes, and how to replay the epoch."""
        try:
            yield
        except BaseException as error:
            self._failure = error
            if isinstance(error, Exception) and not isinstance(error, _WITH_OWN_ADVICE):
                add_note(error, self._where_it_failed(epochs, batch))
                command = self._replay_command(epochs, batch)
                if command is not None:
                    add_note(error, f"to run this epoch here, without Spark: {command}")
            raise

    def _next_due_ms(self, epochs: Epochs) -> int | None:
        """When the next epoch begins even without input; None if there is no timer."""
        return 0 if self.control.drains or self.is_bounded else epochs.next_timer_ms

    def _where_it_failed(self, epochs: Epochs, batch: int) -> str:
        """The epoch of a failure, and from where the job resumes."""
        number, checkpoint = epochs.epoch_of_batch(batch)
        if self.checkpoints is None:
            resumes = "begins again, because its checkpoints were temporary: set execution.checkpointing.dir"
        elif batch <= epochs.last_batch:
            resumes = f"commits this epoch, whose checkpoint is complete: {checkpoint}"
        elif checkpoint is None:
            resumes = "begins with this epoch, which has committed no output"
        else:
            resumes = f"resumes from {checkpoint}; this epoch has committed no output"
        return f"in epoch {number}; if it is started again, the job {resumes}"

    def _replay_command(self, epochs: Epochs, batch: int) -> str | None:
        """The command that replays a failed epoch, or None if it can't be replayed."""
        number, checkpoint = epochs.epoch_of_batch(batch)
        is_next = batch == epochs.last_batch + 1
        if self.checkpoints is None or checkpoint is None or not is_next:
            return None
        program = sys.argv[0] if sys.argv and sys.argv[0].endswith(".py") else None
        if program is None or not can_be_replayed(self._sources):
            return None
        words = ["opchain", "replay", "--epoch", str(number), str(self.checkpoints), program]
        arguments = sys.argv[1:]
        named = any(is_secret(word) for word in arguments)
        return shlex.join([*words, *arguments]) if not named else f"{shlex.join(words)} ARGUMENTS"


def restored_text(
    latest: CheckpointMetadata | None, job: JobProgram, asked: str | None = None
) -> str:
    """The checkpoint that a run continues, and the parallelisms that have changed.

    `asked` is the checkpoint that the settings name, if the directory of the job had a checkpoint already.
    """
    if latest is None:
        return "no checkpoint, it starts without state"
    before = Counter(task.vertex_id for task in latest.tasks)
    changed = {
        f"{before[vertex.vertex_id]} -> {vertex.parallelism}": None
        for vertex in job.vertices
        if before.get(vertex.vertex_id, vertex.parallelism) != vertex.parallelism
    }
    parallelism = f", parallelism {', '.join(changed)}" if changed else ""
    name = checkpoint_name(latest.checkpoint_id)
    is_ignored = asked is not None and PurePath(asked).name != name
    why = f"; {asked} is ignored, because the job has checkpoints of its own" if is_ignored else ""
    return f"restored {name}{parallelism}{why}"


class UnboundedRun(JobRun):
    """The run of an unbounded job. Records of its collecting sinks can be read while it runs."""

    def __init__(self, unbounded: UnboundedJob) -> None:
        super().__init__(
            unbounded.run,
            unbounded.cancel,
            waits_for_others=True,
            name=unbounded.job.job_name,
            progress=unbounded.progress,
            history=unbounded.history,
            restarts=unbounded.restarts,
            records=unbounded.records,
        )
        self._unbounded = unbounded
        unbounded.control.cancel = self.cancel

    def end_on_interrupt(self) -> None:
        """Finishes the current epoch. A second Ctrl-C aborts it.

        An aborted epoch commits nothing. The next start of the job repeats it.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed a second time.
        """
        with HeldInterrupts() as interrupts:
            self._is_cancelled.set()
            self._status = JobStatus.CANCELLING
            # In separate threads, because the first call may take as long as the epoch, and the second one aborts it.
            _on_a_thread(self._unbounded.cancel, NO_LIMIT)
            _LOG.warning(
                "job '%s' stops after the current epoch; press Ctrl-C again to abort the epoch",
                self._name,
            )
            try:
                interrupts.wait(self._ended)
            except KeyboardInterrupt:
                _on_a_thread(self._unbounded.cancel, 0.0)
                interrupts.wait(self._ended, CANCELLING_S)
                raise

    @property
    def begins_with(self) -> str | None:
        """The checkpoint that the run continues; None until it has been read."""
        return self._unbounded.begins_with

    def resume_hint(self) -> str:
        """The last checkpoint, and how to resume from there."""
        last = self.last_progress
        if self._unbounded.checkpoints is None:
            return "its checkpoints were temporary, because execution.checkpointing.dir is not set"
        if not self._unbounded.keeps_checkpoints(has_failed=False):
            return "its checkpoints are deleted, because of execution.checkpointing.externalized-checkpoint-retention"
        if last is None:
            return "no epoch of this run has ended: when it is started again, it resumes where this run started"
        return f"when it is started again, it resumes from {last.checkpoint}"

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Keeps the job's state as of the end of the epoch that runs; see JobClient."""
        return self._request("savepoint", savepoint_directory)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """Stops the job after the current epoch, or after one more epoch if it drains; see JobClient.

        The future is completed when the job has ended and another job can use its checkpoint directory.
        """
        saved = self._request("stop", savepoint_directory, drain=advance_to_end_of_event_time)
        stopped: CompletableFuture[str] = CompletableFuture()

        def complete(saved: CompletableFuture[str]) -> None:
            failure = saved.exception()
            if failure is not None:
                stopped.set_exception(failure)
            else:
                self._result.add_done_callback(lambda _: stopped.set_result(saved.result()))

        saved.add_done_callback(complete)
        return stopped

    def _request(
        self, kind: Kind, directory: str | None, *, drain: bool = False
    ) -> CompletableFuture[str]:
        request = JobRequest(uuid.uuid4().hex, kind, directory=directory, drain=drain)
        try:
            return self._unbounded.control.ask(request)
        except CheckpointError as refused:
            future: CompletableFuture[str] = CompletableFuture()
            future.set_exception(refused)
            return future


def _on_a_thread(cancel: Callable[[float], None], patience_s: float) -> None:
    threading.Thread(target=cancel, args=(patience_s,), name="stop", daemon=True).start()
