"""Spark's JVM is killed while a job runs: the program ends with one sentence, not with a refused connection."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("needs_spark")]

PROGRAM = """
import os, signal, sys
from pathlib import Path
from opchain.common import Configuration, WatermarkStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.connectors.data_generator import DataGeneratorSource

def die(number):
    os.kill(jvm, signal.SIGKILL)
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


@pytest.mark.parametrize("kind", ["bounded", "unbounded"])
def test_the_end_of_the_jvm_is_told_in_one_sentence(tmp_path: Path, kind: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "opchain", "run", "program.py", kind, str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("opchain: program.py failed at program.py:")
    assert "job 'killed' lost Spark's JVM, the Java process that the driver talks to" in last
    assert ("resumes from its last checkpoint" in last) is (kind == "unbounded")
