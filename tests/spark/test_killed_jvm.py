"""Spark's JVM or its Python process for sources is killed: the program ends with a one-sentence error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("needs_spark")]

PROGRAM = """
import os, signal, sys
from pathlib import Path
from opchain.common import Configuration, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.connectors.data_generator import DataGeneratorSource

def command_of(process):
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except FileNotFoundError:  # it has ended meanwhile
        return b""

def victims():
    if kind != "sources":
        return [jvm]
    children = " ".join(path.read_text() for path in Path(f"/proc/{jvm}/task").glob("*/children")).split()
    return [
        int(child)
        for child in children
        if b"python_streaming_source_runner" in command_of(child)
    ]

def die(number):
    for victim in victims():
        os.kill(victim, signal.SIGKILL)
    return number

kind, folder = sys.argv[1:]
configuration = Configuration()
configuration.set_string("execution.checkpointing.dir", folder + "/checkpoints")
env = StreamExecutionEnvironment.get_execution_environment(configuration)
env.set_parallelism(1)
from opchain.runtime.spark.session import active_or_new_session
jvm = active_or_new_session().sparkContext._gateway.proc.pid
if kind == "bounded":
    numbers = env.from_sequence(1, 9)
else:
    source = DataGeneratorSource(lambda index: index, records_per_second=5)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
numbers.map(die).print()
env.execute("killed")
"""


def run_killed(folder: Path, kind: str) -> str:
    """The last line of the program."""
    (folder / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "opchain", "run", "program.py", kind, str(folder)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("opchain: program.py failed at program.py:")
    return last


@pytest.mark.parametrize("kind", ["bounded", "unbounded"])
def test_the_error_about_a_killed_jvm_is_one_sentence(tmp_path: Path, kind: str) -> None:
    last = run_killed(tmp_path, kind)
    assert "job 'killed' lost Spark's JVM, the Java process that the driver talks to" in last
    assert ("resumes from its last checkpoint" in last) is (kind == "unbounded")


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="the process is found in /proc")
def test_the_error_about_a_killed_source_process_is_one_sentence(tmp_path: Path) -> None:
    assert "Spark lost the Python process on the driver's machine" in run_killed(
        tmp_path, "sources"
    )
