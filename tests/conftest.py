"""Which tests `pytest` runs by default, in what order, and how Hypothesis draws examples."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from opchain.runtime.errors import SparkUnavailableError
from opchain.runtime.spark.session import active_or_new_session, require_java, require_pyspark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_broker import Kafka
    from pyspark.sql import SparkSession

TESTS = Path(__file__).parent

FULL_FOLDERS = {"spark", "properties"}
QUICK_FILES = {
    *(
        "test_equals_in_process.py",
        "test_generated_equals_interpreted.py",
        "test_random_functions.py",
    ),
    *("test_combined_programs.py", "test_state_evolution.py"),
}
"""Files of these folders that belong to the default run, which takes at most five minutes."""

# Hundreds of tests start a Python process. Without cached bytecode, each would compile all modules of opchain.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# The JVMs of tests run for seconds, so the C2 compiler and a parallel garbage collector would cost more than they gain.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# A shell starts background processes with SIGINT ignored, and the processes of tests would inherit this.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

MASTER = "local[2,3]"
"""Two cores, and three attempts per task. A plain `local[2]` retries no task."""

LEFT_OUT = pytest.StashKey[Counter[str]]()

# No deadline and no limit for drawing examples: results would depend on the load of the machine.
any_speed = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("opchain", any_speed)
settings.register_profile("ci", any_speed, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "opchain")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run the tests in another order")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist starts its workers
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Chooses what to run: without arguments the quick tests, in folders all but clusters, in files all."""
    options = config.option
    if options.markexpr or any(Path(arg.split("::")[0]).is_file() for arg in config.args):
        return
    is_default = config.args_source is not pytest.Config.ArgsSource.ARGS
    options.markexpr = "not cluster and not full" if is_default else "not cluster"
    is_worker = "PYTEST_XDIST_WORKER" in os.environ  # it gets the arguments, not the options
    if is_default and not is_worker and options.numprocesses is None:
        options.numprocesses, options.dist = min(os.cpu_count() or 1, 4), "loadfile"


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEFT_OUT] = Counter()
    if config.pluginmanager.hasplugin("xdist"):
        config.pluginmanager.register(FromWorkers(config))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks the tests of the full run; `--shuffle` shuffles files, and the tests in each file."""
    for item in items:
        if is_of_the_full_run(item):
            item.add_marker(pytest.mark.full)
    seed = config.getoption("--shuffle")
    if seed is None:
        return
    shuffled = random.Random(seed)
    places: dict[object, list[float]] = {}
    for item in items:
        places.setdefault(item.path, [shuffled.random()])
    items.sort(key=lambda item: (places[item.path], shuffled.random()))


def is_of_the_full_run(item: pytest.Item) -> bool:
    """Whether a test starts Spark, Kafka or a browser, draws many random jobs, or takes long."""
    folder = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
    if folder in FULL_FOLDERS:
        return item.path.name not in QUICK_FILES
    if "kafka" in getattr(item, "fixturenames", ()):
        return True
    return any(item.get_closest_marker(name) for name in ("browser", "slow", "spark"))


def pytest_deselected(items: list[pytest.Item]) -> None:
    for item in items:
        kind = "cluster" if item.get_closest_marker("cluster") else "full"
        if item.get_closest_marker(kind):
            item.config.stash[LEFT_OUT][kind] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = dict(session.config.stash[LEFT_OUT])


class FromWorkers:
    """Takes the number of deselected tests from a worker of pytest-xdist. All workers collect the same tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._config.stash[LEFT_OUT] = Counter(
            getattr(node, "workeroutput", {}).get("left_out", {})
        )


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for kind, number in sorted(config.stash[LEFT_OUT].items()):
        what = "on a cluster" if kind == "cluster" else "on Spark, Kafka or a browser, or slow"
        terminalreporter.write_line(f"left out: {number} tests {what} (pytest -m {kind})")


@pytest.fixture(scope="session", autouse=True)
def _stay_pytest() -> Iterator[None]:
    """Makes `os.execv` fail: `opchain submit` would replace the process of the tests with spark-submit."""

    def refuse(program: str, arguments: list[str]) -> None:
        raise AssertionError(f"this test would replace pytest by {program} {arguments}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "execv", refuse)
        yield


@pytest.fixture(scope="session")
def needs_spark() -> None:
    """Skips the test without Java or pyspark."""
    try:
        require_pyspark()
        require_java()
    except SparkUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def session(needs_spark: None) -> Iterator[SparkSession]:
    """The session of this process, on MASTER."""
    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.default.parallelism": "2",
        "spark.sql.shuffle.partitions": "2",
        # On a busy machine a Python worker may take longer than Spark's 15 s to connect.
        "spark.python.authenticate.socketTimeout": "120s",
    }
    confs = " ".join(f"--conf {key}={value}" for key, value in options.items())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"--master {MASTER} {confs} pyspark-shell")
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = active_or_new_session()
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _start_no_other_session() -> Iterator[None]:
    """Requires the fixture `session`. A session that a test starts itself would retry no task, in all later tests, too."""
    yield
    pyspark = sys.modules.get("pyspark")
    context = pyspark and pyspark.SparkContext._active_spark_context
    if context and context.master != MASTER:
        context.stop()
        pytest.fail("this test needs the fixture `session`: it started Spark by itself")


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    """One broker, shared by all tests that need one."""
    from kafka_broker import running_kafka  # noqa: PLC0415 - few runs need it

    with running_kafka() as running:
        yield running
