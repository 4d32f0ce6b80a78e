"""The epochs of a run as those who watch it know them: the latest ones, the totals, and listeners."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from opchain.runtime.measurements.job_metrics import (
    JobMetrics,
    RunTotals,
    added,
    merge_task_metrics,
    metrics_so_far,
)
from opchain.runtime.measurements.late_records import LateRecordWarnings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from opchain.runtime.epochs.epoch_progress import EpochProgress
    from opchain.runtime.measurements.task_metrics import TaskMetrics
    from opchain.runtime.program.vertex_program import JobProgram
    from opchain.runtime.shipping.outcome import JobOutcome

_LOG = logging.getLogger("opchain.epochs")

EPOCHS_KEPT = 100
"""As many as Spark keeps by default (`spark.sql.streaming.numRecentProgressUpdates`)."""

EpochListener = Callable[["EpochProgress"], object]
"""Called on the driver at the end of each epoch, which waits for it; what it raises is logged."""


class EpochHistory:
    """The epochs of one run; may be asked from any thread.

    Args:
        job: The job.
        listeners: Who hears of each epoch, in this order.

    Attributes:
        count: How many epochs of this run are over.
    """

    def __init__(self, job: JobProgram, listeners: Iterable[EpochListener] = ()) -> None:
        self._job = job
        self._listeners = list(listeners)
        self._lock = threading.Lock()
        self._recent: deque[EpochProgress] = deque(maxlen=EPOCHS_KEPT)
        self._totals = RunTotals()
        self._of_last_epoch: JobMetrics | None = None
        self._late_records = LateRecordWarnings(job)
        self.count = 0

    @property
    def recent(self) -> list[EpochProgress]:
        """The last 100 epochs of this run, the latest at the end."""
        with self._lock:
            return list(self._recent)

    @property
    def last(self) -> EpochProgress | None:
        """The last epoch of this run; None before the first has ended."""
        with self._lock:
            return self._recent[-1] if self._recent else None

    @property
    def last_metrics(self) -> JobMetrics | None:
        """What the tasks counted in the last epoch."""
        with self._lock:
            return self._of_last_epoch

    def totals(self) -> JobMetrics:
        """What the tasks have counted in all epochs of this run."""
        with self._lock:
            tasks = dict(self._totals.tasks)
        return merge_task_metrics(self._job, tasks) if tasks else JobMetrics()

    def totals_with(self, running: Mapping[int, TaskMetrics]) -> JobMetrics:
        """What the tasks have counted in all epochs of this run, and in the one that runs, by task number."""
        with self._lock:
            tasks = dict(self._totals.tasks)
        now = {task: added(tasks.get(task), counts) for task, counts in running.items()}
        return metrics_so_far(self._job, tasks | now)

    def listen(self, listener: EpochListener) -> None:
        """Lets somebody hear of each epoch from the next one on."""
        with self._lock:
            self._listeners.append(listener)

    def add(self, progress: EpochProgress, outcome: JobOutcome) -> None:
        """Takes in an epoch that is over, and tells the listeners."""
        tasks = {task: report.metrics for task, report in outcome.reports.items()}
        with self._lock:
            self._recent.append(progress)
            self.count += 1
            self._totals.add(tasks)
            self._of_last_epoch = outcome.metrics
            listeners = list(self._listeners)
        if any(operator.late_records_dropped for operator in outcome.metrics.operators):
            self._late_records.look_at(self.totals())
        for listener in listeners:
            _tell(listener, progress)


def _tell(listener: EpochListener, progress: EpochProgress) -> None:
    try:
        listener(progress)
    except Exception:  # noqa: BLE001 - watching must not end a job that may have run for weeks
        _LOG.exception("a listener failed on epoch %d of '%s'", progress.epoch, progress.job)
