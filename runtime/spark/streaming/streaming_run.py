"""An unbounded job on the active session, and the client that watches it."""

from __future__ import annotations

import logging
import signal
import threading
import uuid
from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.job_requests import JobRequest
from opchain.runtime.errors import CheckpointError
from opchain.runtime.job.client import CompletableFuture, JobStatus
from opchain.runtime.job.dependencies import NO_DEPENDENCIES
from opchain.runtime.job.run import CANCELLING_S, HeldInterrupts, JobRun
from opchain.runtime.shipping.functions import ship_vertices
from opchain.runtime.spark.session import active_or_new_session
from opchain.runtime.spark.streaming.streaming_job import NO_LIMIT, StreamingJob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from opchain.runtime.checkpoint.job_requests import Kind
    from opchain.runtime.epochs.epoch_history import EpochListener
    from opchain.runtime.job.dependencies import JobDependencies
    from opchain.runtime.program.vertex_program import JobProgram, SlotResources
    from opchain.runtime.spark.streaming.settings import StreamingSettings


_LOG = logging.getLogger("opchain.job")


class StreamingRun(JobRun):
    """The run of an unbounded job: what its sinks collect can be read while it continues."""

    def __init__(self, streaming: StreamingJob) -> None:
        super().__init__(
            streaming.run,
            streaming.cancel,
            waits_for_others=True,
            name=streaming.job.job_name,
            progress=streaming.live,
            history=streaming.history,
            restarts=streaming.restarts,
            records=streaming.records,
        )
        self._streaming = streaming
        streaming.control.cancel = self.cancel

    def end_on_interrupt(self) -> None:
        """Lets the epoch that runs end, however long it takes; a second Ctrl-C aborts it.

        An epoch that is aborted leaves nothing behind, and is run again when the job is started again.

        Raises:
            KeyboardInterrupt: Ctrl-C came again.
        """
        with HeldInterrupts() as interrupts:
            self._is_cancelled.set()
            self._status = JobStatus.CANCELLING
            # Threads of their own: the first call may take as long as the epoch, and the second ends it.
            _on_a_thread(self._streaming.cancel, NO_LIMIT)
            _LOG.warning(
                "job '%s' stops after the current epoch; press Ctrl-C again to abort the epoch",
                self._name,
            )
            try:
                interrupts.wait(self._ended)
            except KeyboardInterrupt:
                _on_a_thread(self._streaming.cancel, 0.0)
                interrupts.wait(self._ended, CANCELLING_S)
                raise

    @property
    def begins_with(self) -> str | None:
        """The checkpoint that the run continues; None until it has been read."""
        return self._streaming.begins_with

    def what_is_left(self) -> str:
        """The last checkpoint, and how to resume from there."""
        last = self.last_progress
        if self._streaming.checkpoints is None:
            return "its checkpoints are gone: execution.checkpointing.dir names no place for them"
        if not self._streaming.keeps_checkpoints(has_failed=False):
            return "its checkpoints are deleted: execution.checkpointing.externalized-checkpoint-retention says so"
        if last is None:
            return "no epoch of this run has ended: when it is started again, it resumes where this run started"
        return f"when it is started again, it resumes from {last.checkpoint}"

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Keeps the job's state as of the end of the epoch that runs; see JobClient."""
        return self._asked("savepoint", savepoint_directory)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture[str]:
        """Stops the job behind the epoch that runs; drained, behind one more; see JobClient."""
        return self._asked("stop", savepoint_directory, drain=advance_to_end_of_event_time)

    def _asked(
        self, kind: Kind, directory: str | None, *, drain: bool = False
    ) -> CompletableFuture[str]:
        request = JobRequest(uuid.uuid4().hex, kind, directory=directory, drain=drain)
        try:
            return self._streaming.control.ask(request)
        except CheckpointError as refused:
            future: CompletableFuture[str] = CompletableFuture()
            future.set_exception(refused)
            return future


def _on_a_thread(cancel: Callable[[float], None], patience_s: float) -> None:
    threading.Thread(target=cancel, args=(patience_s,), name="stop", daemon=True).start()


def _leave_interrupts_to_python() -> None:
    """Takes SIGINT back from pyspark, whose handler breaks off all of Spark's jobs, and so an epoch."""
    if threading.current_thread() is threading.main_thread():
        module = getattr(signal.getsignal(signal.SIGINT), "__module__", None) or ""
        if module.startswith("pyspark."):
            signal.signal(signal.SIGINT, signal.default_int_handler)


def streaming_run(
    job: JobProgram,
    settings: StreamingSettings,
    dependencies: JobDependencies = NO_DEPENDENCIES,
    resources: Sequence[SlotResources | None] = (),
    listeners: Iterable[EpochListener] = (),
    plan: Mapping[str, Any] | None = None,
) -> JobRun:
    """The run of an unbounded job on the active session, or a new one.

    Args:
        job: The job.
        settings: How it runs.
        dependencies: The files that it needs.
        resources: What a slot of each vertex needs, None where nothing was said; empty for no resources.
        listeners: Who hears of each epoch.
        plan: The job's plan, which its checkpoints keep.

    Raises:
        UnpicklableFunctionError: A function cannot be pickled.
        UnsupportedFeatureError: A source can't be read epoch by epoch.
        SparkUnavailableError: There is no Spark to run on.
        OSError: The progress log can't be written.
    """
    shipped = ship_vertices(job)
    session = active_or_new_session()
    _leave_interrupts_to_python()
    streaming = StreamingJob(
        session, job, shipped, settings, dependencies, resources, plan, listeners
    )
    return StreamingRun(streaming)
