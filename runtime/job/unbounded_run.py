"""The client that watches an unbounded job, and steers it."""

from __future__ import annotations

import logging
import threading
import uuid
from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.job_requests import JobRequest
from opchain.runtime.errors import CheckpointError
from opchain.runtime.job.client import CompletableFuture, JobStatus
from opchain.runtime.job.run import CANCELLING_S, HeldInterrupts, JobRun
from opchain.runtime.job.unbounded_job import NO_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.checkpoint.job_requests import Kind
    from opchain.runtime.job.unbounded_job import UnboundedJob


_LOG = logging.getLogger("opchain.job")


class UnboundedRun(JobRun):
    """The run of an unbounded job: what its sinks collect can be read while it continues."""

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
        """Lets the epoch that runs end, however long it takes; a second Ctrl-C aborts it.

        An epoch that is aborted leaves nothing behind, and is run again when the job is started again.

        Raises:
            KeyboardInterrupt: Ctrl-C came again.
        """
        with HeldInterrupts() as interrupts:
            self._is_cancelled.set()
            self._status = JobStatus.CANCELLING
            # Threads of their own: the first call may take as long as the epoch, and the second ends it.
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

    def what_is_left(self) -> str:
        """The last checkpoint, and how to resume from there."""
        last = self.last_progress
        if self._unbounded.checkpoints is None:
            return "its checkpoints are gone: execution.checkpointing.dir names no place for them"
        if not self._unbounded.keeps_checkpoints(has_failed=False):
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
            return self._unbounded.control.ask(request)
        except CheckpointError as refused:
            future: CompletableFuture[str] = CompletableFuture()
            future.set_exception(refused)
            return future


def _on_a_thread(cancel: Callable[[float], None], patience_s: float) -> None:
    threading.Thread(target=cancel, args=(patience_s,), name="stop", daemon=True).start()
