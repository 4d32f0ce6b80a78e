"""Reports a running job from a separate thread, so a slow receiver never delays an epoch.

Reporters are notified of the start, of each epoch, of the metrics at intervals, and of the end. Exceptions of a
reporter are logged, and the job continues.
"""

from __future__ import annotations

import logging
import queue
import threading
from typing import TYPE_CHECKING, Any

from opchain.runtime.job.client import JobStatus
from opchain.runtime.reporting.samples import JobSamples, Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.runtime.epochs.epoch_progress import EpochProgress
    from opchain.runtime.job.run import JobRun
    from opchain.runtime.program.vertex_program import JobProgram

_LOG = logging.getLogger("opchain.reporting")

LAST_REPORTS_S = 15.0
"""How long the end of a job waits for its last reports, in seconds."""


class Reporter:
    """Receives reports of one job. The methods do nothing by default."""

    def started(self) -> None:
        """Called when the job starts."""

    def epoch(self, progress: EpochProgress) -> None:
        """Called when an epoch has ended."""

    def report(self, samples: list[Sample]) -> None:
        """Called with the current metrics: at intervals, after epochs, and at the end."""

    def ended(self, status: JobStatus, error: BaseException | None) -> None:
        """Called when the job has ended."""

    def close(self) -> None:
        """Called once, after all other methods."""


class Reporting:
    """The reporters of one run.

    Args:
        job: The job.
        run: Its run.
        reporters: Functions that create the reporters from the samples of the run.
        interval_s: The interval of reports of the metrics, in seconds.

    Raises:
        StreamError: A reporter cannot be created. Reporters that were created before are closed.
    """

    def __init__(
        self,
        job: JobProgram,
        run: JobRun,
        reporters: Sequence[Callable[[JobSamples], Reporter]],
        interval_s: float,
    ) -> None:
        self.samples = JobSamples(job, run)
        self._job_name = job.job_name
        self._interval_s = interval_s
        self._told: queue.SimpleQueue[EpochProgress | None] = queue.SimpleQueue()
        self._failing: set[tuple[int, str]] = set()
        self.reporters: list[Reporter] = []
        try:
            self.reporters += (make(self.samples) for make in reporters)
        except BaseException:
            self._each("close")
            raise
        self._end: tuple[JobStatus, BaseException | None] = (JobStatus.CREATED, None)
        self._thread = threading.Thread(target=self._run, name="reporting", daemon=True)
        run.at_end.append(self.end)
        run.at_start.append(self._thread.start)
        if run.history is not None:
            run.history.listen(self._told.put)

    def end(self, status: JobStatus, error: BaseException | None) -> None:
        """Sends the last reports, and waits for them."""
        self._end = status, error
        self._told.put(None)
        if self._thread.is_alive():
            self._thread.join(LAST_REPORTS_S)
            if self._thread.is_alive():
                _LOG.warning(
                    "job '%s': the last reports of its metrics took longer than %.0f s and may be lost",
                    self._job_name,
                    LAST_REPORTS_S,
                )

    def _run(self) -> None:
        self._each("started")
        while True:
            try:
                epoch = self._told.get(timeout=self._interval_s)
            except queue.Empty:
                self._each("report", self.samples.now())
                continue
            if epoch is None:
                break
            self._each("epoch", epoch)
            if self._told.empty():
                self._each("report", self.samples.now())
        self._each("report", self.samples.now())
        self._each("ended", *self._end)
        self._each("close")

    def _each(self, what: str, *arguments: Any) -> None:
        for number, reporter in enumerate(self.reporters):
            try:
                getattr(reporter, what)(*arguments)
            except Exception as error:  # noqa: BLE001, PERF203 - reporting must not end a job
                if (number, what) not in self._failing:
                    self._failing.add((number, what))
                    _LOG.warning(
                        "job '%s': %s failed (%s: %s); the job continues, and further failures of this kind are "
                        "not logged",
                        self._job_name,
                        type(reporter).__name__,
                        type(error).__name__,
                        error,
                    )
