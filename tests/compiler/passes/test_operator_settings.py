"""Settings of single operators from outside the program."""

from __future__ import annotations

import pytest

from opchain.common import Configuration
from opchain.compiler.graph.transformation import ChainingStrategy
from opchain.datastream import StreamExecutionEnvironment
from opchain.runtime.errors import GraphError


def environment(**settings: str) -> StreamExecutionEnvironment:
    """A program with an operator that has a name, and one that has a uid; the settings are for them."""
    configuration = Configuration()
    for key, value in settings.items():
        operator, _, setting = key.rpartition("_")
        configuration.set_string(f"opchain.operator.{operator}.{setting.replace('0', '-')}", value)
    configuration.set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    numbers = env.from_collection(list(range(10)))
    plus = numbers.map(lambda n: n + 1).name("plus")
    plus.key_by(lambda n: n % 3).sum().uid("sums").print()
    plus.filter(bool).name("twin").print()
    plus.filter(bool).name("twin").print()
    return env


def test_operator_settings_override_the_program() -> None:
    env = environment(
        sums_parallelism="8", sums_max0parallelism="64", plus_chaining="never", plus_name="Add",
        sums_buffer0timeout="7", sums_slot0sharing0group="wide", plus_uid="plus-1",
    )  # fmt: skip
    before = [item.name for item in env._transformations]
    graph = env.get_stream_graph()
    found = {node.uid or node.name: node for node in graph.nodes()}
    sums, plus = found["sums"], found["plus-1"]
    assert (sums.parallelism, sums.max_parallelism, sums.buffer_timeout) == (8, 64, 7)
    assert sums.slot_sharing_group == "wide"
    assert (plus.name, plus.chaining_strategy) == ("Add", ChainingStrategy.NEVER)
    assert [item.name for item in env._transformations] == before
    assert env.get_stream_graph().to_networkx().nodes == graph.to_networkx().nodes


def test_a_job_runs_with_operator_settings() -> None:
    env = environment(sums_parallelism="3")
    metrics = env.execute("j").metrics
    assert [
        vertex.parallelism for vertex in metrics.vertices if vertex.name == "Keyed Aggregation"
    ] == [3]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sum_parallelism": "8"}, "no operator has the uid or the name 'sum'; did you mean 'sums'"),
        ({"sums_width": "8"}, "there is no setting 'width'; there are parallelism, max-parallelism"),
        ({"sums_paralelism": "8"}, "no setting 'paralelism'; did you mean 'parallelism'"),
        ({"sums_parallelism": "many"}, "parallelism is 'many'; it must be a number"),
        ({"sums_parallelism": "0"}, "parallelism is 0; it must be at least 1"),
        ({"plus_chaining": "no"}, "chaining is 'no'; it must be always, head or never"),
        ({"twin_parallelism": "8"}, r"2 operators are named 'twin' \(test_operator_settings.py:\d+"),
    ],
)  # fmt: skip
def test_invalid_operator_settings_are_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        environment(**settings).get_stream_graph()
