from __future__ import annotations

import io
import logging
import os
import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from opchain.compiler.commands.progress import StageLog, TerminalRows, terminal_rows
from opchain.runtime.job.progress import StageProgress

if TYPE_CHECKING:
    from pathlib import Path

FIRST = StageProgress("read x1", 1, done=1, records=1_500)
HALF = StageProgress("count x4", 4, running=1, done=2, records=800)
NOT_YET = StageProgress("count x4", 4)


class Terminal(io.StringIO):
    """A terminal; `rows` is what it shows of the last drawing."""

    def isatty(self) -> bool:
        return True

    def shown(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue()).replace("\r", "")

    def clear(self) -> None:
        self.seek(0)
        self.truncate()


def terminal_of(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard output and standard error, 80 wide; pytest would take back what a fixture sets."""
    terminal = Terminal()
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    return terminal


def test_a_stage_is_logged_once_when_it_is_done(caplog: pytest.LogCaptureFixture) -> None:
    log = StageLog()
    with caplog.at_level(logging.INFO, "opchain.progress"):
        log.show("job", [FIRST, NOT_YET])
        log.show("job", [FIRST, HALF])
        assert len(caplog.messages) == 1
        log.show("job", [FIRST, StageProgress("count x4", 4, done=4, records=1_500)])
        log.show("other job", [FIRST])
        log.clear()
    assert caplog.messages == [
        "stage 1 of 2 is done: read x1: 1 task, 1500 records",
        "stage 2 of 2 is done: count x4: 4 tasks, 1500 records",
        "stage 1 of 1 is done: read x1: 1 task, 1500 records",
    ]


def test_rows_have_names_tasks_and_records(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    rows = TerminalRows(terminal)
    rows.show("job", [FIRST, HALF])
    first, second = terminal.shown().splitlines()
    assert re.fullmatch(r"read x1 +━+ 1/1 tasks 1,500 records 0:00", first)
    assert re.fullmatch(r"count x4 +[━╺╸]+ 2/4 tasks +800 records 0:00", second)
    assert max(map(len, (first, second))) == 80


def test_time_does_not_run_before_a_stage_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    TerminalRows(terminal).show("job", [NOT_YET])
    assert re.fullmatch(r"count x4 +━+ 0/4 tasks *", terminal.shown())


def test_times_go_on_when_rows_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, now = terminal_of(monkeypatch), 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    rows = TerminalRows(terminal)
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


def test_what_the_program_prints_is_all_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    with terminal_rows() as rows:
        rows.show("job", [FIRST, HALF])
        terminal.clear()
        sys.stdout.write("a line of the program\n")
        assert terminal.shown().splitlines()[-1] == "a line of the program"
        terminal.clear()
        rows.show("job", [FIRST, HALF])
        assert "count x4" in terminal.shown()
    assert sys.stdout is terminal


def test_rows_wait_until_a_line_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    with terminal_rows() as rows:
        sys.stdout.write("half a line")
        rows.show("job", [FIRST])
        assert terminal.shown() == "half a line"
        sys.stdout.writelines([" and", " the rest\n"])
        rows.show("job", [FIRST])
        assert terminal.shown().startswith("half a line and the rest\nread x1 ")


def test_a_pipe_beside_the_terminal_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal_of(monkeypatch)
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stdout", pipe)
    with terminal_rows():
        assert sys.stdout is pipe


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("pyspark-shell", "--conf spark.ui.showConsoleProgress=false pyspark-shell"),
        (
            "--conf spark.ui.showConsoleProgress=true pyspark-shell",
            "--conf spark.ui.showConsoleProgress=true pyspark-shell",
        ),
    ],
)
def test_sparks_own_bar_stays_away_unless_it_is_wanted(
    monkeypatch: pytest.MonkeyPatch, before: str, after: str
) -> None:
    terminal_of(monkeypatch)
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", before)
    with terminal_rows():
        assert os.environ["PYSPARK_SUBMIT_ARGS"] == after


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
def test_a_real_terminal_shows_rows_and_then_the_table_alone(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, "utf-8")
    master, slave = os.openpty()
    command = [sys.executable, "-m", "opchain", "run", "--local", str(tmp_path / "program.py")]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=slave, env=environment, text=True
    ) as process:
        os.close(slave)
        terminal = _read_all(master)
        assert process.stdout is not None
        assert process.stdout.read().split() == ["1", "2", "3", "4", "5", "6"]
    rows, _, table = terminal.partition("job 'numbers' ran for")
    assert "0/1 tasks" in rows
    assert "slow -> Sink: Print to Std. Out x1" in rows
    assert "records in" in table
    assert "/1 tasks" not in table


def _read_all(terminal: int) -> str:
    """What is written until the other side is closed."""
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


def test_verbose_logs_the_job_and_its_stages(write: Any, run: Any) -> None:
    write(PROGRAM)
    done = run("run", "--local", "--quiet", "-v", "clicks.py")
    assert "opchain.job: job 'numbers' runs" in done.stderr
    assert "opchain.job: job 'numbers' has finished after " in done.stderr
    assert "opchain.progress" not in done.stderr
    done = run("run", "--local", "-v", "clicks.py")
    assert "opchain.progress: stage 1 of 2 is done: " in done.stderr


def test_without_a_terminal_and_without_v_nothing_is_said(write: Any, run: Any) -> None:
    write(PROGRAM)
    done = run("run", "--local", "clicks.py")
    assert done.stderr.startswith("\njob 'numbers' ran for ")
