"""The last lines of a terminal, which are drawn again and again, and make way for what the program prints.

How far the running job is: rows on a terminal, else lines in the log.

A bounded job has a bar for each stage, and a line in the log for each that is done; an unbounded one a table of
what its operators did in the last epoch, and a line for each epoch. A thread asks the job every fifth of a
second, and nobody does where there is neither terminal nor log. What the program prints is left alone: the
rows vanish before its text appears, and come back below it.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING, Any, Protocol

from opchain.compiler.commands.epoch_table import epoch_line, epoch_table
from opchain.compiler.plan.layout import counted
from opchain.runtime.job.client import JobStatus
from opchain.runtime.job.run import JobRun

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, MutableMapping, Sequence

    from rich.live import Live
    from rich.progress import Progress

    from opchain.compiler.interception import StartedJob
    from opchain.runtime.epochs.epoch_history import EpochHistory
    from opchain.runtime.job.progress import StageProgress


_SPARKS_BAR = "spark.ui.showConsoleProgress"


class TerminalArea:
    """Draws anything that rich can; nothing of it stays."""

    def __init__(self, terminal: IO[str]) -> None:
        self._terminal = terminal
        self._lock = threading.RLock()
        self._live: Live | None = None
        self._is_mid_line = False

    @property
    def is_drawn(self) -> bool:
        """Whether something is to be seen now."""
        return self._live is not None

    def draw(self, contents: Any) -> None:
        """Puts something in the place of what was there; not while the program is in the midst of a line."""
        with self._lock:
            if self._is_mid_line:
                return
            if self._live is None:
                self._live = _new_live(self._terminal)
            self._live.update(contents)
            if self._live.is_started:
                self._live.refresh()
            else:
                self._live.start(refresh=True)

    def step_aside(self, text: str) -> None:
        """Makes way for text, and waits with the next drawing until its line has ended."""
        with self._lock:
            self.clear()
            if text:
                self._is_mid_line = not text.endswith("\n")

    def clear(self) -> None:
        """Takes what is drawn off the terminal."""
        with self._lock:
            if self._live is not None:
                self._live.stop()
                self._live = None


@contextmanager
def terminal_area() -> Iterator[TerminalArea]:
    """An area on standard error; within the block text to a terminal makes it step aside."""
    area = TerminalArea(sys.stderr)
    _keep_sparks_bar_away(os.environ)
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
    """A terminal's stream, before which the area steps aside."""

    def __init__(self, stream: IO[str], area: TerminalArea) -> None:
        self._stream = stream
        self._area = area

    def write(self, text: str) -> int:
        self._area.step_aside(text)
        return self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _keep_sparks_bar_away(environment: MutableMapping[str, str]) -> None:
    """Lets a session that is made from now on draw no bar of its own, unless the user wants one."""
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


class Display(Protocol):
    """What is told, again and again, how far a job is."""

    def show(self, job: str, stages: Sequence[StageProgress]) -> None:
        """Takes the stages of the bounded job that runs now."""

    def show_epochs(self, history: EpochHistory) -> None:
        """Takes the epochs of the unbounded job that runs now."""

    def clear(self) -> None:
        """No job runs now."""


@contextmanager
def showing_progress(jobs: Sequence[StartedJob]) -> Iterator[None]:
    """Within the block the progress of the jobs in a growing list is shown where somebody can see it."""
    with ExitStack() as stack:
        display: Display
        if _LOG.isEnabledFor(logging.INFO):
            display = ProgressLog()
        elif sys.stderr.isatty():
            display = TerminalRows(stack.enter_context(terminal_area()))
        else:
            yield
            return
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
            _tell(jobs, display)
            display.clear()


class ProgressLog:
    """Logs each stage and each epoch once, when it is done."""

    def __init__(self) -> None:
        self._logged = 0
        self._job = ""
        self._epoch = ("", 0)

    def show(self, job: str, stages: Sequence[StageProgress]) -> None:
        """Logs what has come to its end since the last time."""
        if job != self._job:
            self._job, self._logged = job, 0
        while self._logged < len(stages) and stages[self._logged].is_done:
            stage = stages[self._logged]
            self._logged += 1
            _LOG.info(
                "stage %d of %d is done: %s: %s, %s",
                self._logged,
                len(stages),
                stage.name,
                counted(stage.tasks, "task"),
                counted(stage.records, "record"),
            )

    def show_epochs(self, history: EpochHistory) -> None:
        """Logs the epochs that have ended since the last time."""
        for epoch in history.recent:
            run_id, number = self._epoch
            if epoch.run_id != run_id or epoch.epoch > number:
                _LOG.info("%s", epoch_line(epoch))
                self._epoch = epoch.run_id, epoch.epoch

    def clear(self) -> None:
        """Nothing: what is logged stays."""


class TerminalRows:
    """Of a bounded job a row per stage: its name, a bar, its tasks, the records that have come in.

    Of an unbounded one a table of its operators in the last epoch.
    """

    def __init__(self, area: TerminalArea) -> None:
        self._area = area
        self._job = ""
        self._times: dict[int, tuple[float, float]] = {}
        self._epoch: tuple[str, int] | None = None

    def show(self, job: str, stages: Sequence[StageProgress]) -> None:
        """Draws the rows again."""
        if job != self._job:
            self._area.clear()
            self._job, self._times = job, {}
        self._take_times(stages)
        rows = _new_rows()
        for number, stage in enumerate(stages):
            rows.add_task(
                stage.name,
                total=stage.tasks,
                completed=stage.done,
                records=f"{stage.records:,} records" if stage.done else "",
                time=_clock(*self._times[number]) if number in self._times else "",
            )
        self._area.draw(rows.get_renderable())

    def show_epochs(self, history: EpochHistory) -> None:
        """Draws the table when an epoch has ended, or when it had to step aside."""
        epoch = history.last
        if epoch is None:
            return
        number = epoch.run_id, epoch.epoch
        if number != self._epoch or not self._area.is_drawn:
            self._area.draw(epoch_table(epoch, history.totals()))
            self._epoch = number

    def clear(self) -> None:
        """Takes the rows off the terminal."""
        self._area.clear()

    def _take_times(self, stages: Sequence[StageProgress]) -> None:
        """Notes when stages begin and end: rows come and go, and their times continue."""
        now = time.monotonic()
        for number, stage in enumerate(stages):
            begun, ended = self._times.get(number, (now, now))
            if stage.running or (stage.done and not stage.is_done):
                self._times[number] = begun, now
            elif stage.is_done:
                self._times[number] = begun, ended


def _watch(jobs: Sequence[StartedJob], display: Display, ended: threading.Event) -> None:
    while not ended.wait(PERIOD_S):
        _tell(jobs, display)


def _tell(jobs: Sequence[StartedJob], display: Display) -> None:
    """Tells the display about the job that was started last."""
    run = jobs[-1].client if jobs else None
    if not isinstance(run, JobRun):
        return
    if run.history is not None:
        display.show_epochs(run.history)
    elif run.progress is not None:
        stages = run.progress.stages()
        if stages:
            display.show(jobs[-1].name, stages)
    else:
        return
    if run.get_job_status().result() not in (JobStatus.RUNNING, JobStatus.CANCELLING):
        display.clear()


def _clock(begun: float, ended: float) -> str:
    minutes, seconds = divmod(int(ended - begun), 60)
    return f"{minutes}:{seconds:02}"


def _new_rows() -> Progress:
    from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415 - when there is something to show
    from rich.table import Column  # noqa: PLC0415

    name = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    return Progress(
        TextColumn("{task.description}", markup=False, table_column=name),
        BarColumn(bar_width=20),
        TextColumn("{task.completed:.0f}/{task.total:.0f} tasks", justify="right"),
        TextColumn("{task.fields[records]}", justify="right"),
        TextColumn("{task.fields[time]}", justify="right"),
        auto_refresh=False,
        expand=True,
    )
