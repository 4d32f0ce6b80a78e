"""Sessions that opchain creates; they run in separate processes, since this one has the session of the fixture."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from own_process import Program, run_program

from opchain.runtime.spark.session import (
    active_or_new_session,
    keep_py4j_quiet,
    launch_environment,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNSET = {"PYSPARK_SUBMIT_ARGS": None, "PYSPARK_PYTHON": None, "SPARK_LOCAL_IP": None}

JOB = """
import sys
from opchain import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 2, 3]).map(lambda x: x * 2).print()
env.execute("doubles")
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A program that prints 2, 4, 6."""
    program = tmp_path / "program.py"
    program.write_text(JOB, "utf-8")
    return program


def program(file: Path, **environment: str | None) -> Program:
    return run_program(str(file), **(UNSET | environment))


def lines_of_our_own(text: str) -> list[str]:
    """The output without the line of the JVM that no setting turns off."""
    return [line for line in text.splitlines() if "Using incubator modules" not in line]


# Tests without a JVM


def test_the_error_of_a_job_without_java_is_one_sentence(written: Path, tmp_path: Path) -> None:
    done = program(written, JAVA_HOME=str(tmp_path / "none"))
    assert done.exit_code == 1
    last = done.err.splitlines()[-1]
    assert "SparkUnavailableError: JAVA_HOME is " in last
    assert "opchain run --local" in last
    assert "JAVA_GATEWAY_EXITED" not in done.err


def test_the_error_of_a_job_on_an_old_java_is_one_sentence(written: Path, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n", "utf-8")
    java.chmod(0o755)
    done = program(written, JAVA_HOME=str(tmp_path))
    assert "is too old: Spark needs Java 17 or newer" in done.err.splitlines()[-1]


def test_the_error_of_a_job_with_a_wrong_spark_home_is_one_sentence(
    written: Path, tmp_path: Path
) -> None:
    done = program(written, SPARK_HOME=str(tmp_path))
    assert "SparkUnavailableError: SPARK_HOME is " in done.err.splitlines()[-1]


def test_a_program_run_with_local_needs_no_java(written: Path, tmp_path: Path) -> None:
    done = run_program("-m", "opchain", "run", "--local", str(written), JAVA_HOME=str(tmp_path))
    assert (done.exit_code, done.out.split()) == (0, ["2", "4", "6"])


def test_the_error_about_a_missing_pyspark_names_the_package(written: Path, tmp_path: Path) -> None:
    hidden = tmp_path / "sitecustomize.py"
    hidden.write_text(
        "import sys\n"
        "class Hide:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'pyspark':\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Hide())\n"
        "import importlib.util as util\n"
        "real = util.find_spec\n"
        "util.find_spec = lambda name, package=None: None if name == 'pyspark' else real(name, package)\n",
        "utf-8",
    )
    done = program(written, PYTHONPATH=str(tmp_path))
    assert "pyspark is not installed: `pip install 'opchain[spark]'`" in done.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("variables", "expected", "missing"),
    [
        ({}, ["--name opchain", "log4j2.properties", " pyspark-shell"], []),
        (
            {"PYSPARK_SUBMIT_ARGS": "--master local[1] pyspark-shell"},
            ["--name opchain", "--master local[1] pyspark-shell"],
            ["SPARK_LOCAL_IP"],
        ),
        (
            {"PYSPARK_SUBMIT_ARGS": "--driver-java-options -Dx=1 pyspark-shell"},
            ["--driver-java-options -Dx=1"],
            ["log4j2"],
        ),
        (
            {"PYSPARK_SUBMIT_ARGS": "--conf spark.ui.showConsoleProgress=true pyspark-shell"},
            ["showConsoleProgress=true"],
            ["showConsoleProgress=false"],
        ),
    ],
)
def test_settings_of_the_user_take_precedence(
    variables: dict[str, str], expected: list[str], missing: list[str]
) -> None:
    launched = launch_environment(variables)
    text = " ".join(f"{name} {value}" for name, value in launched.items())
    assert all(word in text for word in expected)
    assert not any(word in text for word in missing)


@pytest.mark.parametrize("folder", ["runtime/spark", "spark-conf"])
def test_the_log_shows_that_a_job_waits_for_workers(folder: str) -> None:
    lines = (
        Path(__file__)
        .parents[2]
        .joinpath(folder, "log4j2.properties")
        .read_text("utf-8")
        .splitlines()
    )
    assert "rootLogger.level = error" in lines
    assert "logger.scheduler.name = org.apache.spark.scheduler.TaskSchedulerImpl" in lines
    assert "logger.scheduler.level = warn" in lines


def test_a_configuration_folder_of_the_user_is_used(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# spark.x 1\nspark.master spark://host:7077\n", "utf-8"
    )
    (tmp_path / "log4j2.properties").touch()
    launched = launch_environment({"SPARK_CONF_DIR": str(tmp_path)})
    assert "SPARK_LOCAL_IP" not in launched
    assert "log4j2" not in launched["PYSPARK_SUBMIT_ARGS"]


@pytest.mark.parametrize(
    ("before", "after"),
    [(logging.NOTSET, logging.WARNING), (logging.DEBUG, logging.DEBUG)],
)
def test_py4j_logs_warnings_only_unless_it_was_configured(before: int, after: int) -> None:
    logger = logging.getLogger("py4j")
    found = logger.level
    try:
        logger.setLevel(before)
        keep_py4j_quiet()
        assert logger.level == after
    finally:
        logger.setLevel(found)


def test_a_local_address_set_by_the_user_is_kept() -> None:
    assert launch_environment({"SPARK_LOCAL_IP": "10.0.0.1"})["SPARK_LOCAL_IP"] == "10.0.0.1"


# Tests with a JVM


@pytest.mark.spark
def test_an_existing_session_is_used_unchanged(session: SparkSession) -> None:
    settings = session.sparkContext.getConf().getAll()
    assert active_or_new_session() is session
    assert session.sparkContext.getConf().getAll() == settings


@pytest.mark.spark
@pytest.mark.usefixtures("needs_spark")
def test_a_new_session_is_local_and_logs_little(written: Path) -> None:
    asked = "\nfrom pyspark import SparkContext\nc = SparkContext.getOrCreate()\n"
    asked += "print(c.master, c.appName, c.pythonExec == sys.executable)\n"
    written.write_text(JOB + asked, "utf-8")
    done = program(written)
    assert done.out.splitlines() == ["2", "4", "6", "local[*] opchain True"]
    assert lines_of_our_own(done.err) == []


@pytest.mark.spark
@pytest.mark.usefixtures("needs_spark")
def test_a_context_without_a_session_is_used(written: Path) -> None:
    written.write_text(
        "from pyspark import SparkContext\n"
        "context = SparkContext('local[1]', 'mine')\n" + JOB + "print(context.appName)\n"
        "assert SparkContext.getOrCreate() is context\n",
        "utf-8",
    )
    done = program(written, PYSPARK_PYTHON=sys.executable)
    assert done.out.splitlines() == ["2", "4", "6", "mine"]


@pytest.mark.spark
@pytest.mark.usefixtures("needs_spark")
def test_spark_submit_decides_about_the_master(written: Path) -> None:
    import pyspark  # noqa: PLC0415

    written.write_text(
        JOB
        + "from pyspark import SparkContext\nc = SparkContext.getOrCreate()\nprint(c.master, c.appName)\n",
        "utf-8",
    )
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    done = subprocess.run(
        [str(submit), "--master", "local[1]", "--name", "theirs", str(written)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={key: value for key, value in os.environ.items() if not key.startswith("PYSPARK_")}
        | {"PYSPARK_DRIVER_PYTHON": sys.executable},
    )
    assert done.stdout.splitlines() == ["2", "4", "6", "local[1] theirs"]


@pytest.mark.spark
@pytest.mark.usefixtures("needs_spark")
def test_the_error_about_an_invalid_master_is_one_sentence(written: Path) -> None:
    done = program(written, PYSPARK_SUBMIT_ARGS="--master nonsense pyspark-shell")
    assert done.exit_code == 1
    assert "SparkUnavailableError: " in done.err
    assert "opchain run --local" in done.err


def another_python() -> str | None:
    """A Python of another minor version, if this machine has one."""
    for minor in (10, 11, 12, 13):
        found = shutil.which(f"python3.{minor}")
        if minor != sys.version_info.minor and found is not None:
            answer = subprocess.run([found, "-V"], capture_output=True, text=True, check=False)
            if f"3.{minor}" in answer.stdout:
                return found
    return None


@pytest.mark.spark
@pytest.mark.usefixtures("needs_spark")
@pytest.mark.skipif(another_python() is None, reason="there is no second Python on the path")
def test_the_error_about_workers_with_another_python_is_one_sentence(written: Path) -> None:
    done = program(written, PYSPARK_PYTHON=another_python())
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    last = done.err.splitlines()[-1]
    assert "SparkUnavailableError: the executors run Python 3." in last
    assert f"and the driver {here}" in last
    assert done.out == ""


@pytest.mark.spark
@pytest.mark.usefixtures("needs_spark")
def test_the_error_about_a_missing_interpreter_is_one_sentence(written: Path) -> None:
    done = program(written, PYSPARK_PYTHON="/nowhere/python")
    last = done.err.splitlines()[-1]
    assert "SparkUnavailableError: the executors have no '/nowhere/python'" in last


@pytest.mark.spark
@pytest.mark.usefixtures("needs_spark")
def test_control_c_ends_the_job_and_the_program(tmp_path: Path) -> None:
    file = tmp_path / "endless.py"
    file.write_text(
        f"""
from pathlib import Path
import time
from opchain import StreamExecutionEnvironment
def wait(x):
    Path({str(tmp_path / "running")!r}).touch()
    time.sleep(600)
    Path({str(tmp_path / "finished")!r}).touch()
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1]).map(wait).print()
env.execute()
""",
        "utf-8",
    )
    process = subprocess.Popen(
        [sys.executable, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        while not (tmp_path / "running").exists():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode != 0
    assert "KeyboardInterrupt" in err.splitlines()[-1]
    assert "ERROR" not in err
    assert not (tmp_path / "finished").exists()
