from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from epoch_runs import EpochRun, given
from example_metrics import TASK
from forms import seen
from terminal import terminal_of

from opchain.common import Configuration
from opchain.compiler.interception import watching_jobs
from opchain.compiler.monitoring import progress
from opchain.compiler.monitoring.progress import (
    PLAIN_PERIOD_S,
    ProgressLines,
    TerminalArea,
    TerminalRows,
    watched,
)
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.checkpoint.epoch import Epoch
from opchain.runtime.epochs.epoch_progress import EpochHistory, epoch_progress
from opchain.runtime.job.progress import StageProgress

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FIRST = StageProgress("read x1", 1, done=1, records=1_500)
HALF = StageProgress("count x4", 4, running=1, done=2, records=800)
NOT_YET = StageProgress("count x4", 4)


def test_a_finished_stage_is_logged_once() -> None:
    lines: list[str] = []
    log = ProgressLines(lines.append)
    log.begin("job 'words' begins")
    log.show("job", [FIRST, NOT_YET])
    log.show("job", [FIRST, HALF])
    assert len(lines) == 1
    log.show("job", [FIRST, StageProgress("count x4", 4, done=4, records=1_500)])
    log.show("other job", [FIRST])
    log.clear()
    assert lines == [
        "stage 1 of 2 is done: read x1: 1 task, 1500 records",
        "stage 2 of 2 is done: count x4: 4 tasks, 1500 records",
        "stage 1 of 1 is done: read x1: 1 task, 1500 records",
    ]


def test_progress_rows_have_names_tasks_and_records(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    rows = TerminalRows(TerminalArea(terminal))
    rows.show("job", [FIRST, HALF])
    first, second = terminal.shown().splitlines()
    assert re.fullmatch(r"read x1 +━+ 1/1 tasks 1,500 records +0:00", first)
    assert re.fullmatch(r"count x4 +[━╺╸]+ 2/4 tasks +800 records +0:00", second)
    assert max(map(len, (first, second))) == 80


def test_the_row_of_a_running_stage_has_its_records_and_their_rate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal, now = terminal_of(monkeypatch), 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    rows = TerminalRows(TerminalArea(terminal))
    for records in (0, 20_000, 50_000):
        terminal.clear()
        rows.show("job", [StageProgress("count x4", 4, running=4, records=records)])
        now += 1
    assert re.fullmatch(
        r"count x4 +━+ 0/4 tasks 50,000 records 25\.0 k/s 0:02", terminal.shown().splitlines()[-1]
    )


def test_without_a_terminal_a_running_stage_is_logged_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, lines = 0.0, []
    monkeypatch.setattr(time, "monotonic", lambda: now)
    log = ProgressLines(lines.append, PLAIN_PERIOD_S)
    log.begin("job 'words' (2 vertices, 5 tasks) begins: restored chk-12, parallelism 2 -> 4")
    for second in range(25):
        now = float(second)
        log.show("job", [FIRST, StageProgress("count x4", 4, running=4, records=100 * second)])
    assert lines == [
        "job 'words' (2 vertices, 5 tasks) begins: restored chk-12, parallelism 2 -> 4",
        "stage 1 of 2 is done: read x1: 1 task, 1500 records",
        "stage 2 of 2 runs: count x4: 0 of 4 tasks done, 1000 records, 100/s",
        "stage 2 of 2 runs: count x4: 0 of 4 tasks done, 2000 records, 100/s",
    ]


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (50, r"count the clicks of each user x4 +2/4 800 0:00"),
        (60, r"count the clicks of each user x4 +2/4 800 +0:00"),
        (80, r"count the clicks of each user x4 +[━╺╸]{10} 2/4 tasks 800 records +0:00"),
        (200, r"count the clicks of each user x4 +[━╺╸]{20} 2/4 tasks 800 records +0:00"),
    ],
)
def test_on_a_narrow_terminal_rows_drop_other_columns_before_names(
    monkeypatch: pytest.MonkeyPatch, width: int, expected: str
) -> None:
    terminal = terminal_of(monkeypatch)
    monkeypatch.setenv("COLUMNS", str(width))
    stage = StageProgress("count the clicks of each user x4", 4, running=1, done=2, records=800)
    TerminalRows(TerminalArea(terminal)).show("job", [stage])
    assert re.fullmatch(expected, terminal.shown().strip())


def test_a_stage_that_has_not_started_shows_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    TerminalRows(TerminalArea(terminal)).show("job", [NOT_YET])
    assert re.fullmatch(r"count x4 +━+ 0/4 tasks *\n", terminal.shown())


def test_a_row_that_is_drawn_again_shows_the_time_since_its_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal, now = terminal_of(monkeypatch), 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    rows = TerminalRows(TerminalArea(terminal))
    for later, stages in ((0, [HALF]), (65, [HALF]), (5, [FIRST, HALF][:1]), (60, [FIRST])):
        now += later
        rows.clear()
        terminal.clear()
        rows.show("job", stages)
    assert terminal.shown().split()[-1] == "1:05"
    rows.clear()
    terminal.clear()
    rows.show("next job", [HALF])
    assert terminal.shown().split()[-1] == "0:00"


@pytest.fixture
def history(tmp_path: Path) -> EpochHistory:
    """Two epochs of five records and of two."""
    run = EpochRun(lambda env: seen(given(env, "words"), "words"), tmp_path)
    history = EpochHistory(run.job)
    for number, count in enumerate((5, 2), start=1):
        outcome = run.run(words=["a"] * count).outcome
        progress = epoch_progress(
            run.job,
            outcome,
            Epoch(number, 0),
            run_id="run",
            batch=number,
            checkpoint="",
            durations_ms={"waiting": 500.0, "tasks": 500.0},
        )
        history.add(progress, outcome)
    run.close()
    return history


def test_each_epoch_is_logged_once(history: EpochHistory) -> None:
    lines: list[str] = []
    log, job = ProgressLines(lines.append), history.recent[0].job
    log.show_epochs(history, {})
    log.show_epochs(history, {})
    assert [line.partition(";")[0] for line in lines] == [
        f"epoch 1 of '{job}': records: 5 in, 5 out, 5 a second",
        f"epoch 2 of '{job}': records: 2 in, 2 out, 2 a second",
    ]


def test_no_epoch_line_is_repeated_without_a_new_epoch(history: EpochHistory) -> None:
    lines: list[str] = []
    log = ProgressLines(lines.append, period_s=0.0)
    log.begin("begins")
    log.show_epochs(history, {})
    log.show_epochs(history, {})
    assert [line.partition(" of ")[0] for line in lines] == ["begins", "epoch 2"]


def test_an_epoch_row_is_drawn_again_only_after_it_was_cleared(
    monkeypatch: pytest.MonkeyPatch, history: EpochHistory
) -> None:
    terminal = terminal_of(monkeypatch)
    area = TerminalArea(terminal)
    rows = TerminalRows(area)
    rows.show_epochs(history, {})
    assert "  epoch 2" in terminal.shown()
    terminal.clear()
    rows.show_epochs(history, {})
    assert terminal.shown() == ""
    area.print_above("a line of the program\n")
    rows.show_epochs(history, {})
    assert "  epoch 2" in terminal.shown()


def test_the_running_epoch_has_a_row(
    monkeypatch: pytest.MonkeyPatch, history: EpochHistory
) -> None:
    terminal = terminal_of(monkeypatch)
    source = replace(TASK, records_in=5_000, elapsed_ns=2 * 10**9)
    source = replace(source, operators=(replace(TASK.operators[0], input_watermarks=()),))
    TerminalRows(TerminalArea(terminal)).show_epochs(history, {0: source, 1: TASK})
    assert "the current epoch has read 5,000 records, 2,500/s" in terminal.shown()


PROGRAM = """
from threading import Event
from opchain import StreamExecutionEnvironment

def slow(number):
    Event().wait(0.1)
    return number

env = StreamExecutionEnvironment.get_execution_environment()
env.from_sequence(1, 6).rebalance().map(slow).name("slow").print()
env.execute("numbers")
"""


@pytest.mark.skipif(os.name != "posix", reason="a pseudo-terminal is POSIX's")
def test_a_terminal_shows_rows_during_the_job_and_then_only_the_table(tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    until_shown = f"while not __import__('os').path.exists({str(shown)!r}): Event().wait(0.02)"
    program = PROGRAM.replace("Event().wait(0.1)", until_shown)
    (tmp_path / "program.py").write_text(program, "utf-8")
    master, slave = os.openpty()
    command = [sys.executable, "-m", "opchain", "run", "--local", str(tmp_path / "program.py")]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=slave, env=environment, text=True
    ) as process:
        os.close(slave)
        terminal = _read_all(master, "0/1 tasks", shown.touch)
        assert process.stdout is not None
        assert process.stdout.read().split() == ["1", "2", "3", "4", "5", "6"]
    rows, _, table = terminal.partition("job 'numbers' ran for")
    assert "0/1 tasks" in rows
    assert "slow -> Sink: Print to Std. Out x1" in rows
    assert "records in" in table
    assert "/1 tasks" not in table


@pytest.mark.skipif(os.name != "posix", reason="a pseudo-terminal is POSIX's")
@pytest.mark.parametrize(
    ("width", "left"),
    [
        (60, ["records in", "records out", "busy"]),
        (80, ["tasks", "records in", "records out", "busy", "skew"]),
        (200, ["tasks", "records in", "records out", "bytes in", "bytes out", "busy", "skew"]),
    ],
)
def test_names_are_shown_on_terminals_of_every_width(
    tmp_path: Path, width: int, left: list[str]
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.replace("wait(0.1)", "wait(0)"), "utf-8")
    master, slave = os.openpty()
    fcntl, termios = map(pytest.importorskip, ("fcntl", "termios"))
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    command = [sys.executable, "-m", "opchain", "run", "--local", str(tmp_path / "program.py")]
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=slave, env=environment | {"TERM": "xterm"}
    ) as process:
        os.close(slave)
        shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", _read_all(master, "nothing", lambda: None))
        assert process.stdout is not None
        process.stdout.read()
    table = shown.partition("job 'numbers' ran for")[2].splitlines()[1:]
    header = next(line for line in table if "vertex, operator" in line)
    assert re.split(r" {2,}", header.strip()) == ["vertex, operator", *left]
    assert sum("  slow" in line for line in table) == 1
    assert all(len(line) <= width for line in table)


def _read_all(terminal: int, awaited: str, then: Callable[[], None]) -> str:
    """What is written until the other side is closed; does something once there is a text."""
    found = b""
    while True:
        try:
            data = os.read(terminal, 65_536)
        except OSError:  # how Linux says that nobody has it open
            data = b""
        if not data:
            os.close(terminal)
            return found.decode()
        found += data
        if awaited in found.decode(errors="replace"):
            then()


def test_option_verbose_logs_the_job_and_its_stages(write: Any, run: Any) -> None:
    write(PROGRAM)
    done = run("run", "--local", "--quiet", "-v", "clicks.py")
    assert "opchain.job: job 'numbers' is running" in done.stderr
    assert "opchain.job: job 'numbers' has finished after " in done.stderr
    assert "opchain.progress" not in done.stderr
    done = run("run", "--local", "-v", "clicks.py")
    assert "opchain.progress: stage 1 of 2 is done: " in done.stderr


@pytest.mark.slow
def test_without_a_terminal_the_start_and_each_stage_are_logged(write: Any, run: Any) -> None:
    write(PROGRAM.replace("wait(0.1)", "wait(0.4)"))
    done = run("run", "--local", "clicks.py")
    said, _, table = done.stderr.partition("\n\n")
    assert said.splitlines() == [
        "opchain: job 'numbers' (2 vertices, 2 tasks) begins",
        "opchain: stage 1 of 2 is done: Source: Sequence Source x1: 1 task, 6 records",
        "opchain: stage 2 of 2 is done: slow -> Sink: Print to Std. Out x1: 1 task, 6 records",
    ]
    assert table.startswith("job 'numbers' ran for ")
    assert run("run", "--local", "--quiet", "clicks.py").stderr == ""


class TwoJobs:
    """A display that waits for the beginnings of two jobs, and for progress of the first one."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.have_begun, self.shows_first = threading.Event(), threading.Event()

    def begin(self, job: str) -> None:
        self.begun.append(job.partition(" (")[0])
        if len(self.begun) == 2:
            self.have_begun.set()

    def show(self, job: str, stages: Any) -> None:
        if self.have_begun.is_set() and job == "first":
            self.shows_first.set()

    def show_epochs(self, history: Any, running: Any) -> None:
        raise AssertionError("no job is unbounded")

    def clear(self) -> None:
        pass


def test_of_several_jobs_the_running_one_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "BEGINS_AFTER_S", 0.0)
    display, go_on = TwoJobs(), {name: threading.Event() for name in ("first", "second")}
    WAITS.update(go_on)
    with watching_jobs() as jobs, watched(jobs, display):
        clients = []
        for name in go_on:
            env = StreamExecutionEnvironment.get_execution_environment(
                Configuration().set_string("execution.target", "local")
            )
            env.from_collection([name]).map(waits).print()
            clients.append(env.execute_async(name))
        assert display.have_begun.wait(60)
        go_on["second"].set()
        clients[1].get_job_execution_result().result()
        assert display.shows_first.wait(60)
        go_on["first"].set()
        clients[0].get_job_execution_result().result()
    assert display.begun == ["job 'first'", "job 'second'"]


WAITS: dict[str, threading.Event] = {}


def waits(name: str) -> str:
    assert WAITS[name].wait(60)
    return name
