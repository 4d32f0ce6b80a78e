from __future__ import annotations

import pytest

from opchain.common import Configuration
from opchain.datastream import RuntimeExecutionMode, StreamExecutionEnvironment


def environment(parallelism: int = 2) -> StreamExecutionEnvironment:
    configuration = Configuration().set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    return env.set_parallelism(parallelism)


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    """An environment that runs jobs in process with parallelism 2."""
    return environment()


@pytest.fixture(params=[RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH], ids=str)
def env_of_each_mode(request: pytest.FixtureRequest) -> StreamExecutionEnvironment:
    return environment().set_runtime_mode(request.param)
