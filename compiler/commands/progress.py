"""How far the running job is: rows of bars on a terminal, else a line in the log for each stage that is done.

A thread asks the job every fifth of a second, and nobody does where there is neither terminal nor log. What
the program prints is left alone: the rows vanish before its text appears, and come back below it.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING, Any, Protocol

from opchain.compiler.plan.layout import counted
from opchain.runtime.job.run import JobRun
from opchain.runtime.job.status import JobStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, MutableMapping, Sequence

    from opchain.compiler.dsl.interception import StartedJob
    from opchain.runtime.job.progress import StageProgress
    from rich.progress import Progress

_LOG = logging.getLogger("opchain.progress")

PERIOD_S = 0.2
_SPARKS_BAR = "spark.ui.showConsoleProgress"


class Display(Protocol):
    """What is told, again and again, how far a job is."""

    def show(self, job: str, stages: Sequence[StageProgress]) -> None:
        """Takes the stages of the job that runs now."""

    def clear(self) -> None:
        """No job runs now."""


@contextmanager
def showing_progress(jobs: Sequence[StartedJob]) -> Iterator[None]:
    """Within the block the progress of the jobs in a growing list is shown where somebody can see it."""
    with ExitStack() as stack:
        display: Display
        if _LOG.isEnabledFor(logging.INFO):
            display = StageLog()
        elif sys.stderr.isatty():
            display = stack.enter_context(terminal_rows())
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


class StageLog:
    """Logs each stage once, when it is done."""

    def __init__(self) -> None:
        self._logged = 0
        self._job = ""

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

    def clear(self) -> None:
        """Nothing: what is logged stays."""


@contextmanager
def terminal_rows() -> Iterator[TerminalRows]:
    """Rows on standard error; within the block text to a terminal makes them step aside."""
    rows = TerminalRows(sys.stderr)
    _keep_sparks_bar_away(os.environ)
    streams = {name: getattr(sys, name) for name in ("stdout", "stderr")}
    for name, stream in streams.items():
        if stream.isatty():
            setattr(sys, name, _AboveRows(stream, rows))
    try:
        yield rows
    finally:
        rows.clear()
        for name, stream in streams.items():
            setattr(sys, name, stream)


class TerminalRows:
    """A row per stage: its name, a bar, its tasks, the records that have come in."""

    def __init__(self, terminal: IO[str]) -> None:
        self._terminal = terminal
        self._lock = threading.RLock()
        self._progress: Progress | None = None
        self._rows: list[Any] = []
        self._job = ""
        self._times: dict[int, tuple[float, float]] = {}
        self._is_mid_line = False

    def show(self, job: str, stages: Sequence[StageProgress]) -> None:
        """Draws the rows anew."""
        with self._lock:
            if job != self._job:
                self.clear()
                self._job, self._times = job, {}
            self._take_times(stages)
            if self._is_mid_line:
                return
            if self._progress is None:
                self._progress = _new_progress(self._terminal)
                self._rows = [
                    self._progress.add_task(stage.name, total=stage.tasks, records="", time="")
                    for stage in stages
                ]
            for number, (row, stage) in enumerate(zip(self._rows, stages, strict=True)):
                self._progress.update(
                    row,
                    completed=stage.done,
                    records=f"{stage.records:,} records" if stage.done else "",
                    time=_clock(*self._times[number]) if number in self._times else "",
                )
            if self._progress.live.is_started:
                self._progress.refresh()
            else:
                self._progress.start()

    def _take_times(self, stages: Sequence[StageProgress]) -> None:
        """Notes when stages begin and end: rows come and go, and their times go on."""
        now = time.monotonic()
        for number, stage in enumerate(stages):
            begun, ended = self._times.get(number, (now, now))
            if stage.running or (stage.done and not stage.is_done):
                self._times[number] = begun, now
            elif stage.is_done:
                self._times[number] = begun, ended

    def step_aside(self, text: str) -> None:
        """Makes way for text, and waits with the next drawing until its line has ended."""
        with self._lock:
            self.clear()
            if text:
                self._is_mid_line = not text.endswith("\n")

    def clear(self) -> None:
        """Takes the rows off the terminal."""
        with self._lock:
            if self._progress is not None:
                self._progress.stop()
                self._progress = None


class _AboveRows:
    """A terminal's stream, before which rows step aside."""

    def __init__(self, stream: IO[str], rows: TerminalRows) -> None:
        self._stream = stream
        self._rows = rows

    def write(self, text: str) -> int:
        self._rows.step_aside(text)
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


def _watch(jobs: Sequence[StartedJob], display: Display, ended: threading.Event) -> None:
    while not ended.wait(PERIOD_S):
        _tell(jobs, display)


def _tell(jobs: Sequence[StartedJob], display: Display) -> None:
    """Tells the display about the job that was started last."""
    run = jobs[-1].client if jobs else None
    if not isinstance(run, JobRun) or run.progress is None:
        return
    stages = run.progress.stages()
    if stages:
        display.show(jobs[-1].name, stages)
    if run.get_job_status().result() is not JobStatus.RUNNING:
        display.clear()


def _clock(begun: float, ended: float) -> str:
    minutes, seconds = divmod(int(ended - begun), 60)
    return f"{minutes}:{seconds:02}"


def _new_progress(terminal: IO[str]) -> Progress:
    from rich.console import Console  # noqa: PLC0415 - loaded when there is something to show
    from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415
    from rich.table import Column  # noqa: PLC0415

    name = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    return Progress(
        TextColumn("{task.description}", markup=False, table_column=name),
        BarColumn(bar_width=20),
        TextColumn("{task.completed:.0f}/{task.total:.0f} tasks", justify="right"),
        TextColumn("{task.fields[records]}", justify="right"),
        TextColumn("{task.fields[time]}", justify="right"),
        console=Console(file=terminal),
        auto_refresh=False,
        transient=True,
        expand=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
