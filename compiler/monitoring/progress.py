"""The progress of a running job: rows on a terminal, or lines in the log.

A terminal shows a bar for each stage of a bounded job, and a table of the operators in the last epoch of an unbounded
job. The log gets a line for each finished stage, or for each epoch. Without terminal and log, standard error gets a
line at the start, one for each stage, and one every ten seconds. A thread asks the job five times per second. Before
the program prints something, the rows are cleared; then they are drawn again below the text.
"""

from __future__ import annotations

import html
import logging
import math
import os
import sys
import threading
import time
from collections import deque
from contextlib import ExitStack, contextmanager
from datetime import datetime, timezone
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol

from opchain.compiler.command_line.output import to_stderr
from opchain.compiler.graph.plan import required
from opchain.compiler.interception import StartedJob, watching_jobs
from opchain.compiler.plan.layout import counted
from opchain.runtime.epochs.epoch_progress import (
    WAITING,
    EpochProgress,
    VertexProgress,
    WatermarkMs,
)
from opchain.runtime.errors import imported, one_line_name
from opchain.runtime.job.client import JobStatus
from opchain.runtime.measurements.table import LATE, FoldingTable, late_cells, size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence

    from rich.console import Console, ConsoleOptions
    from rich.live import Live

    from opchain.runtime.epochs.epoch_progress import EpochHistory
    from opchain.runtime.job.progress import StageProgress
    from opchain.runtime.job.run import JobRun
    from opchain.runtime.measurements.job_metrics import JobMetrics
    from opchain.runtime.measurements.task_metrics import TaskMetrics


COLUMNS = ("vertex, operator", "tasks", "in", "in so far", "out", "busy", "watermark", "state")

_DROPPED_FIRST = ("in so far", "state", "tasks", "watermark", "out", "in")
"""The columns that a narrow terminal leaves out, in this order."""

_BUSY_PERCENT = 90
_NONE_YET = "-"
_EARLIEST_DATE_MS, _LATEST_DATE_MS = 10**11, 10**13
_MINUTE_MS, _HOUR_MS, _DAY_MS = 60_000, 3_600_000, 86_400_000
_LONGEST_LAG_MS = 1000 * _DAY_MS
_LONGEST_NAME = 10_000


def epoch_line(epoch: EpochProgress) -> str:
    """One line with the main numbers."""
    return f"epoch {epoch.epoch} of '{epoch.job}': {'; '.join(_facts(epoch))}"


def epoch_table(epoch: EpochProgress, totals: JobMetrics) -> FoldingTable:
    """A table of the operators.

    Args:
        epoch: The last epoch.
        totals: The counts of the operators in this run so far.
    """
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - loaded when there is something to show
    from rich.text import Text  # noqa: PLC0415

    body = list(_rows(epoch, totals))
    titles: tuple[str, ...] = COLUMNS
    if any(operator.late_records_dropped for operator in totals.operators):
        titles = (*COLUMNS, LATE)
        body = [(*cells, late) for cells, late in zip(body, late_cells(totals), strict=True)]
    return FoldingTable(
        titles,
        body,
        _DROPPED_FIRST,
        {LATE: lambda _: "red", "busy": lambda cell: "yellow" if _is_busy(cell) else None},
        box=SIMPLE_HEAD,
        title=Text(f"{_one_line(epoch.job)}  epoch {epoch.epoch}", style="bold"),
        title_justify="left",
        caption=Text("; ".join(_facts(epoch))),
        caption_justify="left",
    )


def running_line(tasks: Mapping[int, TaskMetrics]) -> str | None:
    """The progress of the current epoch; None before its tasks have reported."""
    sources = [task for task in tasks.values() if not task.operators[0].input_watermarks]
    if not sources:
        return None
    records = sum(task.records_in for task in sources)
    seconds = max(task.seconds for task in sources)
    per_second = f", {rate_text(records / seconds)}" if seconds else ""
    return f"the current epoch has read {records:,} records{per_second}"


def rate_text(per_second: float) -> str:
    """Records per second, with three or four digits.

    >>> [rate_text(rate) for rate in (0.42, 7, 812.6, 9_900, 12_345, 4_200_000)]
    ['0.4/s', '7/s', '813/s', '9,900/s', '12.3 k/s', '4.2 M/s']
    """
    for least, unit_size, unit in ((1e6, 1e6, " M"), (1e4, 1e3, " k")):
        if per_second >= least:
            return f"{per_second / unit_size:.1f}{unit}/s"
    return f"{per_second:.1f}/s" if 0 < per_second < 1 else f"{per_second:,.0f}/s"


def _is_busy(cell: str) -> bool:
    return cell.endswith("%") and int(cell[:-1]) >= _BUSY_PERCENT


def _facts(epoch: EpochProgress) -> Iterator[str]:
    spent = ", ".join(
        f"{name} {_duration(ms)}" for name, ms in epoch.durations_ms.items() if name != WAITING
    )
    yield (
        f"records: {epoch.records_in:,} in, {epoch.records_out:,} out, "
        f"{epoch.records_per_second:,.0f} a second"
    )
    yield f"{_duration(epoch.duration_ms)} ({spent})"
    yield f"waited {_duration(epoch.durations_ms.get(WAITING, 0.0))}"
    busiest = max(epoch.vertices, key=lambda vertex: vertex.busy or 0.0, default=None)
    if busiest is not None and busiest.busy is not None:
        yield (
            f"busiest '{_one_line(busiest.name)}': {busiest.busy:.0%} busy, {busiest.idle:.0%} idle, "
            f"{busiest.back_pressured:.0%} back-pressured"
        )
    slowest = max(
        epoch.vertices, key=lambda vertex: vertex.mail_latency_ms.get("p95", 0.0), default=None
    )
    if slowest is not None and slowest.mail_latency_ms:
        yield (
            f"mail waited up to {_duration(slowest.mail_latency_ms['max'])}, at most "
            f"{max(vertex.mail_queue for vertex in epoch.vertices)} at once"
        )
    yield f"state {size_text(epoch.state_bytes)}, {epoch.state_entries:,} held"
    if epoch.watermark is not None:
        lag = epoch.watermark_lag_ms
        # A lag of more than 1,000 days means that event time is not the time of a clock.
        behind = (
            f", {_duration(lag)} behind" if lag is not None and 0 <= lag < _LONGEST_LAG_MS else ""
        )
        yield f"watermark {_watermark(epoch.watermark)}{behind}"


def _rows(epoch: EpochProgress, totals: JobMetrics) -> Iterator[tuple[str, ...]]:
    for vertex, total in zip(epoch.vertices, totals.vertices, strict=True):
        yield _vertex_row(vertex, total.records_in)
        if len(vertex.operators) > 1:
            for operator, counted_so_far in zip(vertex.operators, total.operators, strict=True):
                yield (
                    f"  {_one_line(operator.name)}",
                    "",
                    f"{operator.records_in:,}",
                    f"{counted_so_far.records_in:,}",
                    f"{operator.records_out:,}",
                    "",
                    _watermark(operator.watermark),
                    f"{operator.state_entries:,} held" if operator.state_entries else "",
                )


def _vertex_row(vertex: VertexProgress, so_far: int) -> tuple[str, ...]:
    watermarks = {operator.watermark for operator in vertex.operators}
    return (
        _one_line(vertex.name),
        str(vertex.parallelism),
        f"{vertex.records_in:,}",
        f"{so_far:,}",
        f"{vertex.records_out:,}",
        "?" if vertex.busy is None else f"{vertex.busy:.0%}",
        _watermark(watermarks.pop()) if len(watermarks) == 1 else "",
        size_text(vertex.state_bytes) if vertex.state_bytes else "",
    )


def _watermark(watermark: WatermarkMs) -> str:
    """A watermark as on the plan page: as a date if it looks like a present-day timestamp."""
    if watermark is None:
        return _NONE_YET
    if not isinstance(watermark, int):
        return watermark
    if _EARLIEST_DATE_MS < watermark < _LATEST_DATE_MS:
        return f"{datetime.fromtimestamp(watermark / 1000, timezone.utc):%Y-%m-%d %H:%M:%S}"
    return f"{watermark:,} ms"


def _duration(milliseconds: float) -> str:
    """A rounded duration.

    >>> [_duration(ms) for ms in (0.4, 812.6, 1608.3, 75_000, 8_000_000, 200_000_000)]
    ['0 ms', '813 ms', '1.6 s', '1 min 15 s', '2 h 13 min', '2 d 7 h']
    """
    for limit_ms, text in (
        (1_000, f"{milliseconds:.0f} ms"),
        (_MINUTE_MS, f"{milliseconds / 1000:.1f} s"),
    ):
        if milliseconds < limit_ms:
            return text
    whole = int(milliseconds)
    for limit_ms, (large_ms, large), (small_ms, small) in (
        (_HOUR_MS, (_MINUTE_MS, "min"), (1000, "s")),
        (_DAY_MS, (_HOUR_MS, "h"), (_MINUTE_MS, "min")),
    ):
        if whole < limit_ms:
            return f"{whole // large_ms} {large} {whole % large_ms // small_ms} {small}"
    return f"{whole // _DAY_MS} d {whole % _DAY_MS // _HOUR_MS} h"


def _one_line(name: str) -> str:
    return one_line_name(" ".join(name.split()), _LONGEST_NAME)


_SPARKS_BAR = "spark.ui.showConsoleProgress"


class TerminalArea:
    """Draws a renderable of rich at the end of a terminal, and removes it again."""

    def __init__(self, terminal: IO[str]) -> None:
        self._terminal = terminal
        self._lock = threading.RLock()
        self._live: Live | None = None
        self._is_mid_line = False

    @property
    def is_drawn(self) -> bool:
        """Whether something is drawn now."""
        return self._live is not None

    def draw(self, contents: Any) -> None:
        """Replaces the contents. Draws nothing while the program has printed only a part of a line.

        The last line is empty, because the terminal writes ^C at its end. After a full line ^C would begin another
        row, and a row would remain when the contents are removed.
        """
        with self._lock:
            if self._is_mid_line:
                return
            from rich.console import Group  # noqa: PLC0415 - when there is something to show
            from rich.text import Text  # noqa: PLC0415

            if self._live is None:
                self._live = _new_live(self._terminal)
            self._live.update(Group(contents, Text()))
            if self._live.is_started:
                self._live.refresh()
            else:
                self._live.start(refresh=True)

    def print_above(self, text: str) -> None:
        """Makes room for text of the program. The rows are drawn again when its line has ended."""
        with self._lock:
            self.clear()
            if text:
                self._is_mid_line = not text.endswith("\n")

    def clear(self) -> None:
        """Removes the contents from the terminal."""
        with self._lock:
            if self._live is not None:
                self._live.stop()
                self._live = None


@contextmanager
def terminal_area() -> Iterator[TerminalArea]:
    """An area on standard error. Within the block it is cleared before text is printed to the terminal."""
    area = TerminalArea(sys.stderr)
    _hide_bar_of_spark(os.environ)
    streams = {name: getattr(sys, name) for name in ("stdout", "stderr")}
    for name, stream in streams.items():
        if stream.isatty():
            setattr(sys, name, _AboveArea(stream, area))
    try:
        yield area
    finally:
        area.clear()
        for name, stream in streams.items():
            setattr(sys, name, stream)


class _AboveArea:
    """A stream of the terminal. The area is cleared before each write."""

    def __init__(self, stream: IO[str], area: TerminalArea) -> None:
        self._stream = stream
        self._area = area

    def write(self, text: str) -> int:
        self._area.print_above(text)
        return self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _hide_bar_of_spark(environment: MutableMapping[str, str]) -> None:
    """Turns off Spark's own progress bar in new sessions, unless the user has turned it on."""
    arguments = environment.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    if _SPARKS_BAR not in arguments:
        environment["PYSPARK_SUBMIT_ARGS"] = f"--conf {_SPARKS_BAR}=false {arguments}"


def _new_live(terminal: IO[str]) -> Live:
    from rich.console import Console  # noqa: PLC0415 - loaded when there is something to show
    from rich.live import Live  # noqa: PLC0415

    return Live(
        console=Console(file=terminal),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


_LOG = logging.getLogger("opchain.progress")

PERIOD_S = 0.2
BEGINS_AFTER_S = 1.0
"""A job that ends earlier gets no lines: the table at its end is enough."""

PLAIN_PERIOD_S = 10.0
"""Without a terminal: the time between two lines of a running stage or epoch."""


class Display(Protocol):
    """Shows the progress of jobs. It is called repeatedly."""

    def show(self, job: str, stages: Sequence[StageProgress]) -> None:
        """Shows the stages of a running bounded job."""

    def show_epochs(self, history: EpochHistory, running: Mapping[int, TaskMetrics]) -> None:
        """Shows the epochs of a running unbounded job, and the counts of its tasks in the current epoch."""

    def begin(self, job: str) -> None:
        """Shows that a job begins; the text names it and its checkpoint."""

    def clear(self) -> None:
        """Shows that no job is running."""


@contextmanager
def showing_progress(jobs: Sequence[StartedJob]) -> Iterator[None]:
    """Within the block the progress of the jobs in a growing list is shown: in the log, or on standard error."""
    with ExitStack() as stack:
        display: Display
        if _LOG.isEnabledFor(logging.INFO):
            display = ProgressLines(_LOG.info)
        elif sys.stderr.isatty():
            display = TerminalRows(stack.enter_context(terminal_area()))
        else:
            display = ProgressLines(_to_stderr, PLAIN_PERIOD_S)
        with watched(jobs, display):
            yield


@contextmanager
def watched(jobs: Sequence[StartedJob], display: Display) -> Iterator[None]:
    """Within the block a thread shows the jobs of a growing list on a display."""
    ended = threading.Event()
    thread = threading.Thread(
        target=_watch, args=(jobs, display, ended), name="progress", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        _show_jobs(jobs, display)
        display.clear()


class ProgressLines:
    """A line for each finished stage and epoch, and regular lines for running ones.

    Args:
        write: Takes each line.
        period_s: The time between two lines of a running stage or of an unbounded job. None: a line for each epoch,
            and no lines for running stages.
    """

    def __init__(self, write: Callable[[str], object], period_s: float | None = None) -> None:
        self._write = write
        self._period_s = period_s
        self._logged = 0
        self._job = ""
        self._epoch = ("", 0)
        self._next_s = 0.0
        self._has_begun = period_s is None
        self._rates = Rates()

    def begin(self, job: str) -> None:
        """See Display."""
        if self._period_s is not None:
            self._write(job)
            self._has_begun = True
            self._next_s = time.monotonic() + self._period_s

    def show(self, job: str, stages: Sequence[StageProgress]) -> None:
        """Logs the stages that have finished since the last call."""
        if job != self._job:
            self._job, self._logged = job, 0
        if not self._has_begun:
            return
        while self._logged < len(stages) and stages[self._logged].is_done:
            stage = stages[self._logged]
            self._logged += 1
            self._write(
                f"stage {self._logged} of {len(stages)} is done: {stage.name}: "
                f"{counted(stage.tasks, 'task')}, {counted(stage.records, 'record')}"
            )
            self._next_s = time.monotonic() + (self._period_s or 0.0)
        self._rates.take(stages)
        if self._logged == len(stages) or not self._is_due():
            return
        stage, rate = stages[self._logged], self._rates.of(self._logged)
        self._write(
            f"stage {self._logged + 1} of {len(stages)} runs: {stage.name}: {stage.done} of "
            f"{counted(stage.tasks, 'task')} done, {counted(stage.records, 'record')}"
            f"{'' if rate is None else f', {rate_text(rate)}'}"
        )

    def show_epochs(self, history: EpochHistory, running: Mapping[int, TaskMetrics]) -> None:
        """Logs the epochs that have ended since the last call; with a period only the last one."""
        if self._period_s is not None:
            if self._has_begun and self._is_due():
                last = history.last
                if last is not None and (last.run_id, last.epoch) != self._epoch:
                    self._write(epoch_line(last))
                    self._epoch = last.run_id, last.epoch
                line = running_line(running)
                if line is not None:
                    self._write(line)
            return
        for epoch in history.recent:
            run_id, number = self._epoch
            if epoch.run_id != run_id or epoch.epoch > number:
                self._write(epoch_line(epoch))
                self._epoch = epoch.run_id, epoch.epoch

    def clear(self) -> None:
        """Does nothing: the log stays."""

    def _is_due(self) -> bool:
        now = time.monotonic()
        if self._period_s is None or now < self._next_s:
            return False
        self._next_s = now + self._period_s
        return True


class Rates:
    """Records per second of running stages, over the last three seconds."""

    def __init__(self) -> None:
        self._seen: dict[int, deque[tuple[float, int]]] = {}

    def take(self, stages: Sequence[StageProgress]) -> None:
        """Takes the current counts of the stages."""
        now = time.monotonic()
        for number, stage in enumerate(stages):
            seen = self._seen.setdefault(number, deque())
            if seen and stage.records < seen[-1][1]:
                seen.clear()  # an attempt that failed
            seen.append((now, stage.records))
            while len(seen) > 2 and now - seen[1][0] >= _RATE_OVER_S:  # noqa: PLR2004 - the ends of a span
                seen.popleft()

    def of(self, number: int) -> float | None:
        """The rate of a stage; None before the second call of `take`."""
        seen = self._seen.get(number)
        if seen is None or len(seen) < 2:  # noqa: PLR2004 - as above
            return None
        (begun, before), (ended, after) = seen[0], seen[-1]
        return (after - before) / (ended - begun) if ended > begun else None


_RATE_OVER_S = 3.0


class TerminalRows:
    """The rows of a job on a terminal.

    A bounded job has a row per stage: name, bar, tasks, records, and records per second. An unbounded job has a table of
    its operators in the last epoch.
    """

    def __init__(self, area: TerminalArea) -> None:
        self._area = area
        self._job = ""
        self._times: dict[int, tuple[float, float]] = {}
        self._rates = Rates()
        self._shown: Any = None

    def begin(self, job: str) -> None:
        """Prints a line above the rows."""
        self._area.clear()
        _to_stderr(job)

    def show(self, job: str, stages: Sequence[StageProgress]) -> None:
        """Draws the rows."""
        if job != self._job:
            self._area.clear()
            self._job, self._times = job, {}
        self._take_times(stages)
        self._rates.take(stages)
        rows = []
        for number, stage in enumerate(stages):
            rate = self._rates.of(number) if stage.running else None
            rows.append(
                StageRow(
                    stage.name,
                    stage.done,
                    stage.tasks,
                    f"{stage.records:,} records" if stage.records or stage.done else "",
                    "" if rate is None else rate_text(rate),
                    _clock(*self._times[number]) if number in self._times else "",
                )
            )
        self._area.draw(StageTable(rows))

    def show_epochs(self, history: EpochHistory, running: Mapping[int, TaskMetrics]) -> None:
        """Draws the table and below it the current epoch, if something has changed or the area was cleared."""
        epoch, line = history.last, running_line(running)
        number = None if epoch is None else (epoch.run_id, epoch.epoch)
        shown = number, line
        if shown == (None, None) or (shown == self._shown and self._area.is_drawn):
            return
        from rich.console import Group  # noqa: PLC0415 - when there is something to show
        from rich.text import Text  # noqa: PLC0415

        parts: list[Any] = [] if epoch is None else [epoch_table(epoch, history.totals())]
        self._area.draw(Group(*parts, *([] if line is None else [Text(line)])))
        self._shown = shown

    def clear(self) -> None:
        """Removes the rows."""
        self._area.clear()

    def _take_times(self, stages: Sequence[StageProgress]) -> None:
        """Keeps the times at which stages begin and end, also while no rows are drawn."""
        now = time.monotonic()
        for number, stage in enumerate(stages):
            begun, ended = self._times.get(number, (now, now))
            if stage.running or (stage.done and not stage.is_done):
                self._times[number] = begun, now
            elif stage.is_done:
                self._times[number] = begun, ended


class StageRow(NamedTuple):
    """The row of a stage."""

    name: str
    done: int
    tasks: int
    records: str
    rate: str
    time: str


class StageTable:
    """The rows of stages. A narrow terminal leaves out the bar first, then the rate."""

    def __init__(self, rows: Sequence[StageRow]) -> None:
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        from rich.progress_bar import ProgressBar  # noqa: PLC0415 - when there is something to show
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        bar = next((size for least, size in _BARS if options.max_width >= least), 0)
        has_rate = options.max_width >= _RATE_FROM
        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        if bar:
            table.add_column(width=bar)
        for _ in range(4 if has_rate else 3):
            table.add_column(justify="right", no_wrap=True)
        for row in self._rows:
            tasks = f"{row.done}/{row.tasks}{' tasks' if bar else ''}"
            records = row.records if bar else row.records.removesuffix(" records")
            table.add_row(
                Text(row.name),
                *([ProgressBar(total=row.tasks, completed=row.done, width=bar)] if bar else []),
                *(tasks, records, *([row.rate] if has_rate else []), row.time),
            )
        yield table


_BARS = ((100, 20), (80, 10))
"""The least width of the terminal, and the length of the bar."""

_RATE_FROM = 60


def _to_stderr(line: str) -> None:
    to_stderr(f"opchain: {line}")


def _watch(jobs: Sequence[StartedJob], display: Display, ended: threading.Event) -> None:
    begun: dict[int, float] = {}
    while not ended.wait(PERIOD_S):
        _show_jobs(jobs, display, begun)


def _show_jobs(
    jobs: Sequence[StartedJob], display: Display, begun: dict[int, float] | None = None
) -> None:
    """Shows the running job that was started last, and once that each job begins."""
    if not jobs:
        return
    for number, job in enumerate(jobs):
        if begun is not None and is_running(job.run):
            first_seen_s = begun.setdefault(number, time.monotonic())
            if time.monotonic() - first_seen_s >= BEGINS_AFTER_S:
                begins = _begins(job)
                if begins is not None:
                    display.begin(begins)
                    begun[number] = math.inf
    job = next((each for each in reversed(jobs) if is_running(each.run)), jobs[-1])
    run = job.run
    running = {} if run.progress is None else run.progress.running_tasks()
    if run.history is not None:
        display.show_epochs(run.history, running)
    elif run.progress is not None:
        stages = run.progress.stages()
        if stages:
            display.show(job.name, stages)
    else:
        return
    if not is_running(run):
        display.clear()


def is_running(run: JobRun) -> bool:
    """Whether a job has not ended."""
    return run.get_job_status().result() in (JobStatus.RUNNING, JobStatus.CANCELLING)


def _begins(job: StartedJob) -> str | None:
    """The job, its size and its checkpoint; None before an unbounded job knows its checkpoint."""
    if not job.run.has_begun:
        return None
    program = required(job.plan.job_program)
    begins = "" if job.run.begins_with is None else f": {job.run.begins_with}"
    size = f"{counted(len(program.vertices), 'vertex', 'vertices')}, {counted(len(program.tasks), 'task')}"
    return f"job '{job.name}' ({size}) begins{begins}"


def _clock(begun: float, ended: float) -> str:
    minutes, seconds = divmod(int(ended - begun), 60)
    return f"{minutes}:{seconds:02}"


def is_in_notebook() -> bool:
    """Whether this program runs in a notebook, which shows HTML."""
    shell: Any = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None


@contextmanager
def progress_in_cell() -> Iterator[None]:
    """Within the block the notebook cell shows the progress of jobs."""
    with watching_jobs() as jobs, watched(jobs, CellDisplay()):
        yield


class CellDisplay:
    """One output of a notebook cell. It is replaced while the job runs, and empty at the end."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._shown = ""
        self._rates = Rates()

    def begin(self, job: str) -> None:
        """Does nothing: the output names the job."""

    def show(self, job: str, stages: Sequence[StageProgress]) -> None:
        """Shows a line with a bar for each stage."""
        self._rates.take(stages)
        rows = []
        for number, stage in enumerate(stages):
            rate = self._rates.of(number) if stage.running else None
            records = f"{stage.records:,} records" + (
                "" if rate is None else f", {rate_text(rate)}"
            )
            rows.append(
                f'<tr><td style="text-align: left">{html.escape(stage.name)}</td>'
                f'<td><progress max="{stage.tasks}" value="{stage.done}"></progress></td>'
                f"<td>{stage.done}/{stage.tasks} tasks</td><td>{records}</td></tr>"
            )
        self._put(f"<b>{html.escape(job)}</b><table>{''.join(rows)}</table>")

    def show_epochs(self, history: EpochHistory, running: Mapping[int, TaskMetrics]) -> None:
        """Shows the last epoch and the current one."""
        last = history.last
        lines = [None if last is None else epoch_line(last), running_line(running)]
        self._put("".join(f"<div>{html.escape(line)}</div>" for line in lines if line))

    def clear(self) -> None:
        """Empties the output."""
        if self._handle is not None:
            self._put("")

    def _put(self, text: str) -> None:
        if text == self._shown:
            return
        shell = imported("IPython.display", "notebook", "progress in a cell")
        self._shown = text
        if self._handle is None:
            self._handle = shell.display(shell.HTML(text), display_id=True)
        else:
            self._handle.update(shell.HTML(text))
