"""Programs with DataFrames can be compiled and planned without Spark. Running them in process is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from forms import job_of

from opchain.common import Configuration
from opchain.compiler.execution import refuse_dataframes
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.errors import UnsupportedFeatureError


def dataframe() -> Any:
    field = {"name": "n", "type": "long", "nullable": True, "metadata": {}}
    schema = SimpleNamespace(jsonValue=lambda: {"type": "struct", "fields": [field]})
    return SimpleNamespace(schema=schema, isStreaming=False, _jdf=None)


def test_a_dataframe_is_read_in_the_first_stage() -> None:
    """Another source would stand just before its consumer."""

    def draw(env: StreamExecutionEnvironment) -> None:
        rows = env.from_dataframe(dataframe()).map(lambda row: row.n)
        numbers = env.from_sequence(1, 3).key_by(lambda n: n).map(lambda n: n).rebalance()
        late = numbers.map(lambda n: n).set_parallelism(2)
        late.union(rows).rebalance().map(lambda n: n).print()

    job = job_of(draw)
    (fed,) = [vertex for vertex in job.vertices if vertex.name.startswith("Source: DataFrame")]
    first = [job.vertices[number] for number in job.stages[0].vertices]
    assert fed in first
    assert len(job.stages) > 2


@pytest.mark.parametrize(
    "run",
    [
        lambda env: (env.from_dataframe(dataframe()).print(), env.execute()),
        lambda env: env.from_sequence(1, 3).to_dataframe("bigint"),
    ],
)
def test_from_dataframe_is_refused_in_process(run: Any) -> None:
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    with pytest.raises(UnsupportedFeatureError, match="only a job on Spark can have, and this"):
        run(env)


def test_a_job_without_dataframes_runs_in_process() -> None:
    refuse_dataframes(job_of(lambda env: env.from_sequence(1, 3).print()))
