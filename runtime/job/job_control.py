"""Savepoint and stop requests for a running job: from its client, or through the folder of its checkpoints.

Requests are queued, and served one by one between two epochs, where the last checkpoint is the whole state of the job.
Draining takes one more epoch, in which event time ends.

Flink: `CheckpointCoordinator.triggerSavepoint`, `StopWithSavepointTerminationManager`.
"""

from __future__ import annotations

import logging
import queue
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.job_requests import (
    JobRequest,
    answer_request,
    pending_requests,
    refuse_old_requests,
)
from opchain.runtime.checkpoint.savepoint import Located, write_savepoint
from opchain.runtime.checkpoint.storage import CheckpointStorage, LocalStorage, checkpoint_storage
from opchain.runtime.errors import CheckpointError, TaskFailedError
from opchain.runtime.job.client import CompletableFuture

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.checkpoint.metadata import CheckpointMetadata

_LOG = logging.getLogger("opchain.job")

_LOOK_EVERY_S, _LOOK_FAR_EVERY_S = 1.0, 10.0
"""How often a folder on a disk, or in an object store, is checked for requests."""


class JobControl:
    """Serves the requests of one run, in its own thread between `begin` and `end`.

    Args:
        run_id: The unique id of the run.
        between_epochs: The lock of an epoch, also used by code that must run between two epochs.
        stop_query: Ends the epochs of a job that is stopped.
        cancel: Cancels the job, and may be replaced.
        wake: Starts an epoch, even if there is no input.
        default_directory: The directory of savepoints without a target.
    """

    def __init__(
        self,
        run_id: str,
        between_epochs: threading.Lock,
        *,
        stop_query: Callable[[], None],
        cancel: Callable[[], object],
        wake: Callable[[], None],
        default_directory: str | None = None,
    ) -> None:
        self._run_id = run_id
        self._between_epochs = between_epochs
        self._stop_query = stop_query
        self.cancel = cancel
        self._wake = wake
        self._default_directory = default_directory
        self._storage: CheckpointStorage | None = None
        self._latest: CheckpointMetadata | None = None
        self._requests: queue.SimpleQueue[_PendingRequest | None] = queue.SimpleQueue()
        self._known: set[str] = set()
        self._lock = threading.Lock()
        self._stop: _PendingRequest | None = None
        self._has_ended = threading.Event()
        self._has_checkpoint = threading.Event()
        self._threads: list[threading.Thread] = []
        self.is_stopped = False

    # From any thread

    def ask(self, request: JobRequest) -> CompletableFuture[str]:
        """Submits a request. The future's result is the savepoint, or "" if the request takes none.

        Raises:
            CheckpointError: The job has ended, or is about to stop.
        """
        pending = _PendingRequest(request)
        with self._lock:
            if self._stop is not None:
                raise CheckpointError(
                    f"request {self._stop.request.request_id} already stops the job "
                    f"({self._stop.request.kind}{', drained' if self._stop.request.drain else ''})"
                )
            if self._has_ended.is_set():
                raise CheckpointError("the job has ended")
            if request.kind != "cancel":
                self._place(request)  # a request without a directory fails now
            if request.kind != "savepoint":
                self._stop = pending
            if request.kind != "cancel":
                self._requests.put(
                    pending
                )  # under the lock: `end` answers all requests that it finds
        if request.kind == "cancel":  # without waiting
            threading.Thread(target=self.cancel, name="cancel", daemon=True).start()
        return pending.answer

    # From the thread that runs the job

    def begin(self, storage: CheckpointStorage, latest: CheckpointMetadata | None) -> None:
        """Serves requests from now on.

        Args:
            storage: The checkpoint directory.
            latest: The last checkpoint.
        """
        self._storage = storage
        refuse_old_requests(storage)
        self.checkpointed(latest)
        for target, name in ((self._serve, "savepoints"), (self._watch, "requests")):
            thread = threading.Thread(target=target, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def checkpointed(self, committed: CheckpointMetadata | None) -> None:
        """Sets the last checkpoint, which all sinks have committed. Called after an epoch.

        None makes savepoints wait. A savepoint of an earlier checkpoint would repeat the output of sinks that have
        committed a later one.
        """
        self._latest = committed
        if committed is None:
            self._has_checkpoint.clear()
        else:
            self._has_checkpoint.set()

    def end(self) -> None:
        """Answers all waiting requests, and accepts no more."""
        with self._lock:
            self._has_ended.set()
        self._has_checkpoint.set()
        self._requests.put(None)
        stop = self._stop
        if stop is not None:
            stop.is_served.set()
        for thread in self._threads:
            thread.join()
        if self._storage is not None:
            self._look(self._storage)  # refuses requests that came since the last look
        with self._lock:
            self._stop = None  # later requests hear that the job has ended
        while not self._requests.empty():
            pending = self._requests.get()
            if pending is not None:
                pending.answer.set_exception(CheckpointError("the job has ended"))
        if stop is not None and (stop.path is not None or stop.request.kind == "cancel"):
            stop.answer.set_result(stop.path or "")
        elif stop is not None:
            stop.answer.set_exception(CheckpointError("the job ended before it was stopped"))

    @property
    def drains(self) -> bool:
        """Whether the next epoch must end event time."""
        return self._stop is not None and self._stop.request.drain and not self.is_stopped

    def require_not_stopped(self) -> None:
        """Checks that the job was not stopped with a savepoint, after which no epoch may begin.

        Raises:
            TaskFailedError: The job was stopped.
        """
        if self.is_stopped:
            raise TaskFailedError("the job was stopped before this epoch")

    def drained(self) -> None:
        """Takes the savepoint of a drained job. Called after the epoch that ended event time."""
        pending = self._stop
        assert pending is not None
        self._serve_between_epochs(pending)

    # The threads

    def _serve(self) -> None:
        while (pending := self._requests.get()) is not None:
            while not pending.is_served.is_set():
                self._has_checkpoint.wait()
                if self._has_ended.is_set():
                    pending.answer.set_exception(CheckpointError("the job has ended"))
                    return
                if pending.request.drain:
                    self._wake()
                    pending.is_served.wait()
                    continue
                with self._between_epochs:
                    if self._latest is not None:  # the epoch before may have failed to commit
                        self._serve_between_epochs(pending)
            if self.is_stopped:
                self._stop_query()

    def _watch(self) -> None:
        storage = self._storage
        assert storage is not None
        pause_s = _LOOK_EVERY_S if isinstance(storage, LocalStorage) else _LOOK_FAR_EVERY_S
        while not self._has_ended.wait(pause_s):
            self._look(storage)

    def _look(self, storage: CheckpointStorage) -> None:
        try:
            for request in pending_requests(storage):
                self._take(request)
        except (OSError, CheckpointError):
            _LOG.exception("requests in %s can't be read", storage.url)

    def _take(self, request: JobRequest) -> None:
        storage = self._storage
        assert storage is not None
        if request.request_id in self._known:
            return
        self._known.add(request.request_id)
        try:
            answer = self.ask(request)
        except CheckpointError as refused:
            answer_request(storage, request.request_id, error=str(refused))
            return

        def write(done: CompletableFuture[str]) -> None:
            failure = done.exception()
            if failure is None:
                answer_request(storage, request.request_id, path=done.result())
            else:
                answer_request(storage, request.request_id, error=str(failure))

        answer.add_done_callback(write)

    # Savepoints

    def _serve_between_epochs(self, pending: _PendingRequest) -> None:
        assert self._storage is not None
        assert self._latest is not None
        stops = pending.request.kind == "stop"
        try:
            target = self._place(pending.request)
            # The sinks have committed this checkpoint. A job that starts from the savepoint must not look for output that
            # was moved or deleted since.
            committed = replace(self._latest, committables=())
            write_savepoint(Located(self._storage, committed), target)
        except Exception as error:  # noqa: BLE001 - the requester gets it
            _LOG.warning("a savepoint failed; the job continues: %s", error)
            if stops:
                with self._lock:
                    self._stop = None  # another request may follow
            pending.answer.set_exception(error)
        else:
            _LOG.info("savepoint of checkpoint %d: %s", self._latest.checkpoint_id, target)
            if stops:
                pending.path, self.is_stopped = target, True  # answered when the job has ended
            else:
                pending.answer.set_result(target)
        pending.is_served.set()

    def _place(self, request: JobRequest) -> str:
        """The folder of a savepoint, named by run and checkpoint."""
        if request.target is not None:
            return request.target
        directory = request.directory or self._default_directory
        if directory is None:
            raise CheckpointError(
                "the savepoint has no directory: pass one, or set execution.checkpointing.savepoint-dir"
            )
        checkpoint_id = 0 if self._latest is None else self._latest.checkpoint_id
        name = f"{directory.rstrip('/')}/savepoint-{self._run_id[:6]}-{checkpoint_id}"
        number, target = 1, name
        while checkpoint_storage(target).children():
            number += 1
            target = f"{name}-{number}"
        return target


class _PendingRequest:
    """A request and its future."""

    def __init__(self, request: JobRequest) -> None:
        self.request = request
        self.answer: CompletableFuture[str] = CompletableFuture()
        self.path: str | None = None
        self.is_served = threading.Event()
