"""What the page of a running job is told: its status, how far it is, and its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.compiler.graph.plan import made
from opchain.compiler.plan.page.numbers import page_numbers
from opchain.runtime.job.run import JobRun
from opchain.runtime.job.status import JobStatus
from opchain.runtime.metrics.job_metrics import metrics_so_far

if TYPE_CHECKING:
    from opchain.compiler.dsl.interception import StartedJob
    from opchain.runtime.epochs.epoch_history import EpochHistory

_OVER = (JobStatus.FINISHED, JobStatus.FAILED, JobStatus.CANCELED)


class PageNews:
    """The news of one job for one reader."""

    def __init__(self, job: StartedJob) -> None:
        self._job = job
        self._told: Any = None

    def take(self) -> dict[str, Any] | None:
        """What is new since the last time; None where nothing is.

        `status` is the job's, `isOver` whether that is its last. `epoch` has the facts of the last epoch of an
        unbounded job, `tasks` how many of a bounded one are done; each is None for the other kind. `numbers` are
        those of `page_numbers`: of an unbounded job the totals of this run, with the shares of time in its last
        epoch; of a bounded one those of the tasks that are done, for vertices that have some. None where
        there are none yet.
        """
        run = self._job.client
        status = run.get_job_status().result()
        history = run.history if isinstance(run, JobRun) else None
        news: dict[str, Any] = {
            "status": status.name.lower(),
            "isOver": status in _OVER,
            "epoch": None,
            "tasks": None,
        }
        version: Any
        if history is not None:
            last = history.last
            version = (status, None if last is None else last.epoch)
        else:
            news["tasks"] = _tasks(run)
            version = (status, news["tasks"])
        if version == self._told:
            return None
        self._told = version
        news["numbers"] = self._of_tasks(status) if history is None else _of_epochs(history)
        news["epoch"] = None if history is None else _epoch(history)
        return news

    def _of_tasks(self, status: JobStatus) -> dict[str, Any] | None:
        run = self._job.client
        if status is JobStatus.FINISHED:
            return page_numbers(run.get_job_execution_result().result().metrics)
        finished = (
            run.progress.finished_tasks() if isinstance(run, JobRun) and run.progress else None
        )
        if not finished:
            return None
        return page_numbers(metrics_so_far(made(self._job.plan.job_program), finished))


def _tasks(run: Any) -> dict[str, int] | None:
    if not isinstance(run, JobRun) or run.progress is None:
        return None
    stages = run.progress.stages()
    return {
        "done": sum(stage.done for stage in stages),
        "all": sum(stage.tasks for stage in stages),
    }


def _of_epochs(history: EpochHistory) -> dict[str, Any] | None:
    totals = history.totals()
    return page_numbers(totals, history.last_metrics) if totals.vertices else None


def _epoch(history: EpochHistory) -> dict[str, Any] | None:
    last = history.last
    if last is None:
        return None
    return {
        "epoch": last.epoch,
        "recordsPerSecond": round(last.records_per_second, 1),
        "durationMs": last.duration_ms,
        "stateBytes": last.state_bytes,
        "watermarkLagMs": last.watermark_lag_ms,
    }
