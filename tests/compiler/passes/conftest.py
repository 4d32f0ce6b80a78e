"""A small program to compile: an environment with parallelism 4, and short words for its parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from opchain.common import Configuration, WatermarkStrategy
from opchain.compiler.passes.pipeline import Plan, compile_program
from opchain.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from opchain.runtime.connectors.collection import NumberSequenceSource

Compile = Callable[..., Plan]


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(4)


@pytest.fixture
def batch_env() -> StreamExecutionEnvironment:
    made = StreamExecutionEnvironment.get_execution_environment().set_parallelism(4)
    return made.set_runtime_mode(RuntimeExecutionMode.BATCH)


@pytest.fixture
def source() -> Callable[..., DataStream[Any]]:
    def begin(env: StreamExecutionEnvironment, name: str = "numbers") -> DataStream[Any]:
        numbers = NumberSequenceSource(1, 9)
        return env.from_source(numbers, WatermarkStrategy.no_watermarks(), name)

    return begin


@pytest.fixture
def compiled() -> Compile:
    def run(env: StreamExecutionEnvironment, until: str = "job-graph", **keys: str) -> Plan:
        configuration = Configuration()
        for name, value in keys.items():
            configuration.set_string(_KEYS[name], value)
        env.configure(configuration)
        return compile_program(env.program(), until)

    return run


_KEYS = {
    "state_backend": "state.backend.type",
    "shuffle": "execution.batch-shuffle-mode",
    "scheduler": "jobmanager.scheduler",
    "auto_parallelism": "execution.batch.adaptive.auto-parallelism.enabled",
    "generate_uids": "pipeline.auto-generate-uids",
    "index_prefix": "pipeline.vertex-name-include-index-prefix",
    "different_max": "pipeline.operator-chaining.chain-operators-with-different-max-parallelism",
}
