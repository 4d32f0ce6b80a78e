"""One local session for all tests that need one; a cluster where a local master shows nothing."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from standalone_cluster import StandaloneCluster, standalone_cluster

from opchain.runtime.errors import SparkUnavailableError
from opchain.runtime.spark.session import active_or_new_session, require_java, require_pyspark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

MASTER = "local[2,3]"
"""Two cores, and three attempts: a plain `local[2]` tries no task again."""


@pytest.fixture(scope="session")
def needs_spark() -> None:
    """Skips where there is no Java, or no pyspark."""
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


@pytest.fixture(scope="session")
def cluster(
    needs_spark: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StandaloneCluster]:
    """A master and two workers; programs use them from processes of their own."""
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            # Executors inherit it from their worker.
            patch.setenv("JAVA_TOOL_OPTIONS", os.environ["SPARK_SUBMIT_OPTS"])
            started = standalone_cluster(tmp_path_factory.mktemp("cluster"), timeout_s=240)
            running = stack.enter_context(started)
        yield running
