"""The updates for the page of a running job: states, metrics, epochs, exceptions, times.

One JobWatch observes a job for all of its pages. It keeps the times at which each vertex began and ended, the epochs and
the failures, for pages that are opened or saved later.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opchain.compiler.graph.plan import required
from opchain.compiler.plan.page.numbers import page_numbers
from opchain.runtime.errors import failure_lines, user_frames
from opchain.runtime.job.client import JobStatus
from opchain.runtime.redaction import redacted_setting
from opchain.runtime.reporting.samples import JobSamples, Sample
from opchain.runtime.spark.remote_error import frames_on_executor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.compiler.interception import StartedJob
    from opchain.runtime.epochs.epoch_progress import EpochHistory, EpochProgress
    from opchain.runtime.job.run import JobRun
    from opchain.runtime.measurements.task_metrics import TaskMetrics

OVER = (JobStatus.FINISHED, JobStatus.FAILED, JobStatus.CANCELED)

_EPOCHS_KEPT = 1_000
_LOOK_EVERY_S = 1.0
_RATE_OVER_S = 3.0
_MOST_LINES = 60

# What runtime/task/failure_site.py and runtime/job/unbounded_job.py add to an error.
_SITE = re.compile(r"in '(?P<operator>.+)' \((?P<line>[^()]*)\)")
_EPOCH = re.compile(r"in epoch (\d+);")
_REPLAY = re.compile(r"to run this epoch here, without Spark: (.+)", re.DOTALL)


class JobWatch:
    """Observes one job. Thread-safe."""

    def __init__(self, job: StartedJob) -> None:
        self.job = job
        self._lock = threading.Lock()
        self._states: dict[str, str] = {}
        self._spans: dict[str, list[int | None]] = {}
        self._epochs: deque[dict[str, Any]] = deque(maxlen=_EPOCHS_KEPT)
        self._last_epoch = 0
        self._samples: deque[tuple[float, dict[str, tuple[int, int]]]] = deque()
        self._version = 0
        self._seen: Any = None
        self._update: dict[str, Any] = {}
        self._samples_of_run: JobSamples | None = None

    def samples(self) -> list[Sample]:
        """The metrics of the job, with the names that they have in Flink."""
        if self._samples_of_run is None:
            self._samples_of_run = JobSamples(required(self.job.plan.job_program), self.job.run)
        return self._samples_of_run.now()

    @property
    def is_over(self) -> bool:
        """Whether the job has ended."""
        return self.job.run.get_job_status().result() in OVER

    @property
    def title(self) -> dict[str, str]:
        """The name and status of the job, for the list of all jobs."""
        status = self.job.run.get_job_status().result()
        return {"name": self.job.name, "status": status.name.lower()}

    def latest(self) -> tuple[int, dict[str, Any]]:
        """The current update for pages, and a version number that grows with each change.

        - `status` is the status of the job, and `isOver` whether the job has ended.
        - `states` has "waiting", "running", "finished", "failed" or "canceled" for each vertex; `spans` has the times at
          which it began and ended.
        - `numbers` are those of `page_numbers`, with `rateIn` and `rateOut` in records per second. For an unbounded job
          they are the totals of this run, with the shares of time in the last epoch.
        - `tasks` has the number of finished tasks of a bounded job.
        - `at` is the time in milliseconds.
        - `exceptions` has the failures that were followed by a restart, and the one that ended the job. Each has the
          operator, its line, the epoch, and the command that replays the epoch; None if unknown.
        """
        run = self.job.run
        status = run.get_job_status().result()
        history = run.history
        running = {} if run.progress is None else dict(run.progress.running_tasks())
        with self._lock:
            now_ms = time.time_ns() // 1_000_000
            self._take_epochs(history)
            numbers = self._numbers(status, running)
            self._take_states(status, running, now_ms, has_epochs=history is not None)
            seen = (
                status,
                self._last_epoch,
                dict(self._states),
                {vertex: _counts(found) for vertex, found in numbers.items()},
                self._restarts(),
                None if history is not None else _tasks(run),
            )
            if seen != self._seen:
                self._seen = seen
                self._version += 1
                self._update = {
                    "at": now_ms,
                    "status": status.name.lower(),
                    "isOver": status in OVER,
                    "restarts": self._restarts(),
                    "tasks": seen[-1],
                    "states": seen[2],
                    "spans": {vertex: list(span) for vertex, span in self._spans.items()},
                    "numbers": numbers or None,
                    "exceptions": self._exceptions(status),
                }
            return self._version, self._update

    def epochs(self, after: int = 0) -> list[dict[str, Any]]:
        """The epochs of this run after epoch `after`; the last 1,000 are kept."""
        with self._lock:
            return [epoch for epoch in self._epochs if epoch["epoch"] > after]

    def whole(self) -> dict[str, Any]:
        """The current update and all epochs, for a file."""
        return self.latest()[1] | {"epochs": self.epochs()}

    def updates(self) -> Iterator[dict[str, Any] | None]:
        """The updates for one open page, with the epochs since the last one; None if nothing has changed."""
        version = epoch = 0
        while True:
            before, (version, update) = version, self.latest()
            if version == before:
                yield None
                continue
            epochs = self.epochs(epoch)
            if epochs:
                epoch = epochs[-1]["epoch"]
            yield update | {"epochs": epochs}

    def _take_epochs(self, history: EpochHistory | None) -> None:
        for epoch in () if history is None else history.recent:
            if epoch.epoch > self._last_epoch:
                self._epochs.append(epoch_values(epoch))
                self._last_epoch = epoch.epoch

    def _numbers(self, status: JobStatus, running: Mapping[int, TaskMetrics]) -> dict[str, Any]:
        program, run = required(self.job.plan.job_program), self.job.run
        history = run.history
        last = None if history is None else history.last
        lately = None if history is None or last is None else history.last_metrics
        found = page_numbers(run.current_metrics(program, running), lately)
        if last is None:
            self._add_rates(found, is_over=history is None and status in OVER)
            return found
        span_s = (last.duration_ms + last.durations_ms.get("waiting", 0.0)) / 1000
        for vertex in last.vertices:
            counts = found[vertex.id]
            counts["rateIn"] = _rate(vertex.records_in, span_s)
            counts["rateOut"] = _rate(vertex.records_out, span_s)
            for operator in vertex.operators:
                rate = _rate(operator.records_out, span_s)
                counts["operators"][operator.id]["rateOut"] = rate
        for vertex_program in program.vertices:
            reports = [running[task] for task in vertex_program.tasks if task in running]
            seconds = max((task.seconds for task in reports), default=0.0)
            if seconds:
                counts = found[vertex_program.vertex_id]
                counts["rateIn"] = _rate(sum(task.records_in for task in reports), seconds)
                counts["rateOut"] = _rate(sum(task.records_out for task in reports), seconds)
        return found

    def _add_rates(self, numbers: dict[str, Any], *, is_over: bool) -> None:
        """Adds records per second, over the last three seconds."""
        now = time.monotonic()
        sample = {
            key: (counts["recordsIn"], counts["recordsOut"])
            for vertex, found in numbers.items()
            for key, counts in (
                (vertex, found),
                *((f"{vertex} {name}", counts) for name, counts in found["operators"].items()),
            )
        }
        samples = self._samples
        samples.append((now, sample))
        while len(samples) > 2 and now - samples[1][0] >= _RATE_OVER_S:  # noqa: PLR2004 - both ends of the span
            samples.popleft()
        begun, before = samples[0]
        for vertex, found in numbers.items():
            for key, counts in (
                (vertex, found),
                *((f"{vertex} {name}", counts) for name, counts in found["operators"].items()),
            ):
                old = before.get(key, (0, 0))
                for name, at in (("rateIn", 0), ("rateOut", 1)):
                    more = max(0, sample[key][at] - old[at])
                    counts[name] = 0.0 if is_over else _rate(more, now - begun)

    def _take_states(
        self,
        status: JobStatus,
        running: Mapping[int, TaskMetrics],
        now_ms: int,
        *,
        has_epochs: bool,
    ) -> None:
        run = self.job.run
        program = required(self.job.plan.job_program)
        progress = run.progress
        finished = {} if progress is None else progress.finished_tasks()
        stages = [] if progress is None or has_epochs else list(progress.stages())
        active = {
            number
            for stage, found in zip(program.stages, stages, strict=False)
            if found.running or found.done
            for number in stage.vertices
        }
        ended = self._ended_sources() if has_epochs else set()
        failed = self._vertex_of(self._error(status))
        for number, vertex in enumerate(program.vertices):
            before = self._states.get(vertex.vertex_id, "waiting")
            is_finished = vertex.vertex_id in ended or all(
                task in finished for task in vertex.tasks
            )
            has_begun = (
                (has_epochs and status is not JobStatus.CREATED)
                or number in active
                or any(task in running or task in finished for task in vertex.tasks)
            )
            state = _next_state(
                before,
                status,
                is_finished=is_finished,
                has_begun=has_begun,
                has_failed=vertex.vertex_id == failed,
            )
            self._note(vertex.vertex_id, before, state, now_ms)

    def _note(self, vertex: str, before: str, state: str, now_ms: int) -> None:
        if state != before and before == "waiting":
            self._spans[vertex] = [now_ms, None]
        if state not in ("waiting", "running") and vertex in self._spans:
            span = self._spans[vertex]
            span[1] = span[1] or now_ms
        self._states[vertex] = state

    def _ended_sources(self) -> set[str]:
        """Vertices of an unbounded job that have ended: their watermark is the last one."""
        last = self.job.run.last_progress
        return {
            vertex.id
            for vertex in (() if last is None else last.vertices)
            if all(operator.watermark == "end" for operator in vertex.operators)
        }

    def _vertex_of(self, error: BaseException | None) -> str | None:
        notes = _notes(error)
        for vertex in required(self.job.plan.job_program).vertices:
            if any(note.startswith(f"in task {vertex.name} (") for note in notes):
                return vertex.vertex_id
        return None

    def _error(self, status: JobStatus) -> BaseException | None:
        if status is not JobStatus.FAILED:
            return None
        return self.job.run.failure

    def _exceptions(self, status: JobStatus) -> list[dict[str, Any]]:
        restarts = self.job.run.restarts
        found = [
            failure_values(failure.error)
            | {
                "vertex": self._vertex_of(failure.error),
                "at": failure.at_ms,
                "restart": failure.restart,
                "delayMs": failure.delay_ms,
            }
            for failure in (() if restarts is None else list(restarts.failures))
        ]
        error = self._error(status)
        if error is not None:
            at = max((span[1] or 0 for span in self._spans.values()), default=0) or None
            found.append(failure_values(error) | {"vertex": self._vertex_of(error), "at": at})
        return found

    def _restarts(self) -> int:
        restarts = self.job.run.restarts
        return 0 if restarts is None else restarts.count


class JobWatches:
    """A JobWatch for each job of a program, including jobs that start later."""

    def __init__(self, jobs: Sequence[StartedJob]) -> None:
        self.jobs = jobs
        self._watches: list[JobWatch] = []
        self._adding = threading.Lock()

    def all(self) -> list[JobWatch]:
        """All watches, in the order in which the jobs began."""
        with self._adding:
            self._watches += map(JobWatch, self.jobs[len(self._watches) :])
            return list(self._watches)


@contextmanager
def watching(jobs: Sequence[StartedJob]) -> Iterator[JobWatches]:
    """Within the block a thread observes the jobs once a second, to know when each vertex began and ended."""
    watches = JobWatches(jobs)
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_LOOK_EVERY_S):
            for watch in watches.all():
                if not watch.is_over:
                    watch.latest()

    looking = threading.Thread(target=look, name="job watch", daemon=True)
    looking.start()
    try:
        yield watches
    finally:
        ended.set()
        looking.join()


def _next_state(
    before: str, status: JobStatus, *, is_finished: bool, has_begun: bool, has_failed: bool
) -> str:
    if before in ("finished", "failed", "canceled"):
        return before
    if status is JobStatus.FINISHED or is_finished:
        return "finished"
    if has_failed:
        return "failed"
    if status in OVER:
        return "canceled" if before == "running" or has_begun else before
    return "running" if has_begun else before


def settings_of(job: StartedJob) -> list[dict[str, Any]]:
    """The settings of a job, without passwords. `isDefault` marks settings that have their default value."""
    settings = job.plan.program.settings
    found = []
    for name, field in type(settings).model_fields.items():
        extra = field.json_schema_extra
        key = extra.get("key") if isinstance(extra, dict) else None
        value = getattr(settings, name)
        if isinstance(key, str):
            _, _, shown = redacted_setting(f"{key}={shown_value(value)}").partition("=")
            default = field.get_default(call_default_factory=True)
            found.append({"key": key, "value": shown, "isDefault": value == default})
    return sorted(found, key=lambda setting: (setting["isDefault"], setting["key"]))


def shown_value(value: Any) -> str:
    """A value of a setting, as in a configuration. None and empty maps are empty."""
    if value is None or value in ({}, (), []):
        return ""
    if isinstance(value, Mapping):
        return ",".join(f"{key}:{item}" for key, item in value.items())
    return str(value)


def epoch_values(epoch: EpochProgress) -> dict[str, Any]:
    """The numbers of an epoch, for the chart on the page."""
    return {
        "epoch": epoch.epoch,
        "at": epoch.timestamp_ms,
        "recordsIn": epoch.records_in,
        "recordsOut": epoch.records_out,
        "recordsPerSecond": round(epoch.records_per_second, 1),
        "durationMs": epoch.duration_ms,
        "phases": epoch.durations_ms,
        "stateBytes": epoch.state_bytes,
        "stateEntries": epoch.state_entries,
        "writtenBytes": epoch.written_bytes,
        "watermark": epoch.watermark,
        "watermarkLagMs": epoch.watermark_lag_ms,
        "checkpoint": epoch.checkpoint,
        "slowestSnapshotMs": max((vertex.snapshot_ms for vertex in epoch.vertices), default=0.0),
        "splits": {
            operator.id: operator.splits
            for vertex in epoch.vertices
            for operator in vertex.operators
            if operator.splits
        },
        "stateOf": {
            vertex.id: vertex.state_bytes for vertex in epoch.vertices if vertex.state_bytes
        },
    }


def failure_values(error: BaseException) -> dict[str, Any]:
    """An error: its first line, the other lines, and the place, epoch and replay command from its notes."""
    title = f"{type(error).__name__}: {error}".splitlines()[0]
    notes = _notes(error)
    site = next(filter(None, map(_SITE.match, notes)), None)
    epoch = next(filter(None, map(_EPOCH.match, notes)), None)
    replay = next(filter(None, map(_REPLAY.match, notes)), None)
    return {
        "title": title,
        "lines": [
            line
            for line in failure_lines(
                error, frames_on_executor(error) or user_frames(error), _MOST_LINES
            )
            if not line.endswith(title) and not _REPLAY.match(line)
        ],
        "operator": site and site["operator"],
        "line": site and site["line"],
        "epoch": epoch and int(epoch[1]),
        "replay": replay and replay[1],
    }


def _notes(error: BaseException | None) -> list[str]:
    return [str(note) for note in getattr(error, "__notes__", ())]


def _rate(records: int, seconds: float) -> float:
    return round(records / seconds, 1) if seconds > 0 else 0.0


def _counts(found: Mapping[str, Any]) -> tuple[Any, ...]:
    return found["recordsIn"], found["recordsOut"], found["watermark"], found.get("rateIn")


def _tasks(run: JobRun) -> dict[str, int] | None:
    if run.progress is None:
        return None
    stages = run.progress.stages()
    return {
        "done": sum(stage.done for stage in stages),
        "all": sum(stage.tasks for stage in stages),
    }
