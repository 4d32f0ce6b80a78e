"""spark-submit runs an unbounded program on a cluster that has pyarrow but not opchain; the driver is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import venv
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from opchain.runtime.spark.session import spark_home

if TYPE_CHECKING:
    from collections.abc import Callable

    from standalone_cluster import StandaloneCluster

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

PROGRAM = """
import sys
import visits
from opchain import Configuration, StreamExecutionEnvironment
from opchain.common import Encoder, WatermarkStrategy
from opchain.datastream.connectors.file_system import BucketAssigner, FileSink
from opchain.spark import SparkSource

def foreign(line):
    import importlib.util
    missing = [name for name in ("networkx", "pydantic", "click") if not importlib.util.find_spec(name)]
    assert len(missing) == 3, "this is not the Python of the executors"
    import opchain
    assert ".zip" in opchain.__file__, opchain.__file__
    return line

if __name__ == "__main__":
    folder = sys.argv[1]
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", f"{folder}/checkpoints")
    configuration.set_string("opchain.streaming.trigger", "available-now")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    rows = env.from_source(
        SparkSource("json", {"maxFilesPerTrigger": "1"}, "user string", f"{sys.argv[2]}", is_streaming=True),
        WatermarkStrategy.no_watermarks(),
        "rows",
    ).uid("rows")
    counts = rows.map(visits.user_of).key_by(lambda user: user).process(visits.Count()).uid("counts")
    sink = FileSink.for_row_format(f"{folder}/output", Encoder.simple_string_encoder())
    sink = sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    counts.map(foreign).sink_to(sink).uid("files")
    env.execute("visits")
"""

MODULE = """
from opchain.common import Types
from opchain.datastream.functions import KeyedProcessFunction
from opchain.datastream.state import ValueStateDescriptor

def user_of(row):
    return row["user"]

class Count(KeyedProcessFunction):
    def open(self, context):
        self.count = context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, user, context):
        self.count.update((self.count.value() or 0) + 1)
        yield f"{user} {self.count.value()}"
"""

FILES = 8
USERS = ("ann", "bob", "cy")
PATIENCE_S = 600


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a virtual environment without packages."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a virtual environment with pyarrow only."""
    import pyarrow as pa  # noqa: PLC0415 - it comes with Spark's requirements

    folder = tmp_path_factory.mktemp("with-pyarrow")
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    found = Path(pa.__file__).parent
    for source in found.parent.glob("pyarrow*"):
        (packages / source.name).symlink_to(source)
    return folder / "bin" / "python"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A program with a module beside it, its input, and a configuration."""
    app = tmp_path / "app"
    app.mkdir()
    (app / "endless.py").write_text(PROGRAM, "utf-8")
    (app / "visits.py").write_text(MODULE, "utf-8")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.executor.memory 512m\n", "utf-8")
    (tmp_path / "input").mkdir()
    for number in range(FILES):
        rows = "".join(json.dumps({"user": user}) + "\n" for user in USERS[: 1 + number % 3])
        (tmp_path / "input" / f"{number}.json").write_text(rows, "utf-8")
    return tmp_path


def expected() -> Counter[str]:
    seen = Counter(user for number in range(FILES) for user in USERS[: 1 + number % 3])
    return Counter(f"{user} {n}" for user in USERS for n in range(1, seen[user] + 1))


def written(folder: Path) -> Counter[str]:
    """The lines of the visible files."""
    shown = [path for path in (folder / "output").glob("*") if not path.name.startswith(".")]
    return Counter(line for path in shown for line in path.read_text("utf-8").splitlines())


def started(folder: Path, *command: str, **variables: str) -> subprocess.Popen[str]:
    clean = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYSPARK_", "SPARK_", "PYTHONPATH"))
    }
    return subprocess.Popen(
        command,
        cwd=folder,
        env=clean | {"SPARK_LOCAL_IP": "127.0.0.1"} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finished(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, output
    return output


def killed_once(process: subprocess.Popen[str], is_time: Callable[[], bool]) -> None:
    """Kills both processes of the driver as soon as the condition is met."""
    end = time.monotonic() + PATIENCE_S
    while not is_time():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def test_a_killed_driver_resumes_with_the_same_command(
    cluster: StandaloneCluster, folder: Path, python: Path
) -> None:
    command = (
        *(sys.executable, "-m", "opchain", "submit", "app/endless.py"),
        *("--master", cluster.url, "--conf-dir", "conf"),
        *("--conf", f"spark.pyspark.python={python}"),
        *("--", str(folder), str(folder / "input")),
    )
    killed_once(started(folder, *command), lambda: sum(written(folder).values()) > 1)
    assert written(folder) != expected()
    finished(started(folder, *command))
    assert written(folder) == expected()


def test_plain_spark_submit_runs_an_unbounded_program(
    cluster: StandaloneCluster, folder: Path, python: Path
) -> None:
    subprocess.run(
        [sys.executable, "-m", "opchain", "package"], cwd=folder, check=True, capture_output=True
    )
    command = (
        *(str(spark_home() / "bin" / "spark-submit"), "--master", cluster.url),
        *("--properties-file", "conf/spark-defaults.conf", "--py-files", "dist/opchain.zip"),
        *("app/endless.py", str(folder), str(folder / "input")),
    )
    pythons = {"PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": sys.executable}
    finished(started(folder, *command, **pythons))
    assert written(folder) == expected()


def test_the_error_about_executors_without_pyarrow_says_so(
    cluster: StandaloneCluster, folder: Path, bare_python: Path
) -> None:
    process = started(
        folder,
        *(sys.executable, "-m", "opchain", "submit", "app/endless.py"),
        *("--master", cluster.url, "--conf-dir", "conf"),
        *("--conf", f"spark.pyspark.python={bare_python}"),
        *("--", str(folder), str(folder / "input")),
    )
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert "the Python that runs tasks has no pyarrow" in output, output
