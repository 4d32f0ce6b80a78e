"""What a killed driver of a bounded job leaves behind, as docs/faults.md says, and how to remove it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from own_process import run_program
from postgres_server import postgres_server

from opchain.runtime.connectors.jdbc.options import JdbcExecutionOptions
from opchain.runtime.connectors.jdbc.staging import JdbcWriter
from opchain.runtime.connectors.jdbc.statement import parse_statement
from opchain.runtime.functions.sink import SinkOrigin

PAGE = (Path(__file__).parents[3] / "docs" / "faults.md").read_text("utf-8")
SECTION = PAGE.partition("## What a killed bounded job leaves")[2].partition("\n## ")[0]

PROGRAM = """
import os, signal, sys
from opchain.common import Configuration, Encoder
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.connectors.file_system import FileSink
from opchain.runtime.connectors.staged_files import FileCommitter

folder, dies = sys.argv[1:]

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def write(number):
    if dies == "writing" and number == 90:
        die()
    return str(number)

if dies == "committing":
    commit = FileCommitter.commit
    def half(self, committables):
        commit(self, committables[:1])
        die()
    FileCommitter.commit = half

configuration = Configuration()
configuration.set_string("execution.target", "local")
configuration.set_string("opchain.batch-size", "10")
env = StreamExecutionEnvironment.get_execution_environment(configuration)
env.set_parallelism(2)
sink = FileSink.for_row_format(folder, Encoder.simple_string_encoder()).build()
env.from_sequence(1, 100).map(write).sink_to(sink)
env.execute("numbers")
"""

pytestmark = pytest.mark.slow


def run(folder: Path, dies: str = "never") -> int:
    return run_program("-c", PROGRAM, str(folder / "out"), dies).exit_code


def lines(folder: Path, *, hidden: bool) -> list[int]:
    files = [file for file in (folder / "out").rglob("*") if file.is_file()]
    found = [file for file in files if file.name.startswith(".") is hidden]
    return sorted(int(line) for file in found for line in file.read_text("utf-8").split())


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", SECTION, re.DOTALL)
    assert found is not None
    return found[1]


def be_rid_of_it(folder: Path) -> None:
    """Removes it with the commands of docs/faults.md."""
    command = block("sh").replace("OUTPUT", str(folder / "out"))
    subprocess.run(["/bin/sh", "-ec", command], check=True)


NUMBERS = list(range(1, 101))


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is POSIX's")
def test_a_driver_killed_while_tasks_write_leaves_hidden_files_only(tmp_path: Path) -> None:
    assert run(tmp_path, "writing") == -signal.SIGKILL
    assert lines(tmp_path, hidden=False) == []
    left = {file for file in (tmp_path / "out").rglob(".*") if file.is_file()}
    assert left
    assert run(tmp_path) == 0
    assert lines(tmp_path, hidden=False) == NUMBERS
    # Another run can't know whether the run that wrote them is alive.
    assert {file for file in (tmp_path / "out").rglob(".*") if file.is_file()} == left
    be_rid_of_it(tmp_path)
    assert lines(tmp_path, hidden=True) == []
    assert lines(tmp_path, hidden=False) == NUMBERS


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is POSIX's")
def test_a_driver_killed_during_its_commit_leaves_a_part_of_its_output(tmp_path: Path) -> None:
    assert run(tmp_path, "committing") == -signal.SIGKILL
    shown, hidden = lines(tmp_path, hidden=False), lines(tmp_path, hidden=True)
    assert shown
    assert hidden
    assert sorted(shown + hidden) == NUMBERS
    assert run(tmp_path) == 0
    assert lines(tmp_path, hidden=False) == sorted(shown + NUMBERS)


def test_staged_rows_of_a_killed_job_are_removed_by_lineage() -> None:
    with postgres_server() as server:
        server.run("CREATE TABLE t (id int, name text)")
        for lineage in ("dead", "alive"):
            origin = SinkOrigin(lineage, "operator", "'books' (job.py:7)")
            insert = parse_statement("INSERT INTO t (id, name) VALUES (?, ?)")
            defaults = JdbcExecutionOptions.defaults()
            with closing(JdbcWriter(insert, server.options, defaults, origin)) as writer:
                writer.write_batch([(1, lineage), (2, lineage)], None)
                writer.flush(end_of_input=True)
        assert server.waiting() == 6
        (staged,) = {
            staged for _, staged in server.rows("SELECT batch, staged FROM opchain_batches")
        }
        commands = block("sql").replace("LINEAGE", "dead").replace("STAGED", staged)
        server.run(*commands.strip().removesuffix(";").split(";"))
        assert server.waiting() == 3
        assert server.rows("SELECT lineage FROM opchain_batches") == [("alive",)]
