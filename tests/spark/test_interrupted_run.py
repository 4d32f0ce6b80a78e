"""Ctrl-C in `opchain run`, with real processes: which processes end, and which output is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("needs_spark"),
    pytest.mark.skipif(os.name != "posix", reason="signals and sessions are POSIX's"),
]

LONGEST_S = 60.0
"""How long a process of the job may outlive the command."""

ENDLESS = """
import sys, time
from pathlib import Path
from opchain import StreamExecutionEnvironment

def wait(number):
    Path(sys.argv[0]).with_name("running").touch()
    time.sleep(600)
    return number

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
env.from_sequence(1, 4).map(wait).print()
"""
WAITS = ENDLESS + "env.execute('endless')\n"
IN_THE_BACKGROUND = ENDLESS + "env.execute_async('endless')\ntime.sleep(600)\n"

Start = Any


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `opchain run` of a program in its own session, and waits until a function runs."""
    started: list[subprocess.Popen[str]] = []

    def command(text: str, *options: str) -> subprocess.Popen[str]:
        program = tmp_path / "program.py"
        program.write_text(text.replace("sys.argv[0]", repr(str(program))), "utf-8")
        process = subprocess.Popen(
            [sys.executable, "-m", "opchain", "run", *options, str(program)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        while not (tmp_path / "running").exists():
            with suppress(subprocess.TimeoutExpired):
                pytest.fail(f"it ended with {process.wait(0.1)}: {process.communicate()}")
        return process

    yield command
    for process in started:
        for pid in session_of(process):
            os.kill(pid, signal.SIGKILL)
        process.communicate()


def session_of(process: subprocess.Popen[str]) -> list[int]:
    """All living processes of the session of the command: Python, the JVM, and its workers."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,sess=,stat="], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in listed.stdout.splitlines()]
    return [
        int(pid)
        for pid, session, state in rows
        if int(session) == process.pid and not state.startswith("Z")
    ]


def check_all_ended(process: subprocess.Popen[str]) -> None:
    """All processes of the session end within a short time."""
    deadline = time.monotonic() + LONGEST_S
    while session_of(process):
        assert time.monotonic() < deadline, session_of(process)
        threading.Event().wait(0.1)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code and the standard error, without the greeting of the JVM."""
    _, err = process.communicate(timeout=240)
    said = [line for line in err.splitlines() if "incubator modules" not in line]
    return process.returncode, "\n".join(said)


CANCELLED = "opchain: interrupted; cancelled: 'endless'"


def check_cancelled(process: subprocess.Popen[str]) -> None:
    """After the progress there is one line without a traceback, and no process or output is left."""
    code, err = ended(process)
    *progress, last = err.splitlines()
    assert (code, last) == (130, CANCELLED)
    assert [line for line in progress if not line.startswith("opchain: ")] == []
    check_all_ended(process)


@pytest.mark.parametrize("program", [WAITS, IN_THE_BACKGROUND], ids=["waits", "in the background"])
def test_control_c_cancels_the_job_and_leaves_no_process(start: Start, program: str) -> None:
    process = start(program)
    assert len(session_of(process)) > 2  # the JVM and its workers are in the session
    os.killpg(process.pid, signal.SIGINT)  # like a terminal: to all processes of the foreground
    check_cancelled(process)


def test_an_interrupt_of_the_command_alone_cancels_the_job_too(start: Start) -> None:
    process = start(WAITS)
    process.send_signal(signal.SIGINT)
    check_cancelled(process)


def test_a_job_in_process_is_cancelled_too(start: Start) -> None:
    process = start(WAITS, "--local")
    process.send_signal(signal.SIGINT)
    check_cancelled(process)


UNBOUNDED = """
import sys, time
from pathlib import Path
from opchain import StreamExecutionEnvironment
from opchain.common import Configuration, Encoder, WatermarkStrategy
from opchain.datastream.connectors.datagen import DataGeneratorSource
from opchain.datastream.connectors.file_system import FileSink

folder = Path(sys.argv[0]).parent

def wait(number):
    (folder / "running").touch()
    while not (folder / "go").exists():
        time.sleep(0.05)
    return str(number)

configuration = Configuration()
configuration.set_string("execution.checkpointing.dir", str(folder / "checkpoints"))
env = StreamExecutionEnvironment.get_execution_environment(configuration)
numbers = DataGeneratorSource(lambda index: index, records_per_second=50)
waited = env.from_source(numbers, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers").map(wait)
waited.sink_to(FileSink.for_row_format(str(folder / "output"), Encoder.simple_string_encoder()).build()).uid("files")
env.execute('endless')
"""


def output_of(folder: Path) -> list[int]:
    """The numbers in the visible files."""
    files = [path for path in (folder / "output").rglob("part-*") if path.is_file()]
    return sorted(int(line) for path in files for line in path.read_text("utf-8").split())


def test_control_c_finishes_the_epoch_and_says_where_the_job_resumes(
    start: Start, tmp_path: Path
) -> None:
    process = start(UNBOUNDED)
    os.killpg(process.pid, signal.SIGINT)
    line = process.stderr.readline()
    while "stops after the current epoch; press Ctrl-C again" not in line:
        assert line, "it ended silently"
        line = process.stderr.readline()
    assert output_of(tmp_path) == []
    (tmp_path / "go").touch()
    code, err = ended(process)
    (checkpoint,) = (tmp_path / "checkpoints").glob("chk-*")
    assert code == 130
    assert f"\n{CANCELLED}\n" in f"\n{err}\n"
    assert err.splitlines()[-1] == (
        f"opchain: job 'endless': when it is started again, it resumes from {checkpoint}"
    )
    assert "job 'endless' was stopped" in err
    written = output_of(tmp_path)
    assert written == list(range(len(written)))
    assert written
    check_all_ended(process)


def test_a_second_control_c_aborts_the_epoch(start: Start, tmp_path: Path) -> None:
    process = start(UNBOUNDED)
    os.killpg(process.pid, signal.SIGINT)
    while "Ctrl-C again" not in process.stderr.readline():
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    code, err = ended(process)
    assert code == 130
    assert CANCELLED in err.splitlines()
    assert output_of(tmp_path) == []
    check_all_ended(process)
