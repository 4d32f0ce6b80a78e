"""A standalone cluster, for tests that a local master cannot do."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from standalone_cluster import StandaloneCluster, standalone_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def cluster(
    needs_spark: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StandaloneCluster]:
    """A master and two workers; programs use them from their own processes."""
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            # Executors inherit the variable from their worker.
            patch.setenv("JAVA_TOOL_OPTIONS", os.environ["SPARK_SUBMIT_OPTS"])
            started = standalone_cluster(tmp_path_factory.mktemp("cluster"), timeout_s=240)
            running = stack.enter_context(started)
        yield running
