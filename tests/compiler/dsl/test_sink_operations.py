from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Types
from opchain.compiler.graph.transformation import OperatorTransformation, SinkTransformation
from opchain.compiler.interception import capturing
from opchain.datastream.connectors.discard import DiscardingSink, DiscardingSinkFunction
from opchain.runtime.connectors.simple_sinks import PrintSinkFunction
from opchain.runtime.errors import GraphError
from opchain.runtime.program.operator_specs import CollectSinkSpec, LegacySinkSpec, SinkSpec

if TYPE_CHECKING:
    from opchain.datastream import DataStream, StreamExecutionEnvironment


@pytest.fixture
def numbers(env: StreamExecutionEnvironment) -> DataStream[int]:
    return env.from_sequence(1, 3)


def test_a_sink_of_sink_to(env: StreamExecutionEnvironment, numbers: DataStream[int]) -> None:
    sink = DiscardingSink()
    added = numbers.sink_to(sink).transformation
    assert isinstance(added, SinkTransformation)
    assert env.get_transformations() == [added]
    assert (added.name, added.spec, added.key_by) == ("Sink", SinkSpec(sink), None)
    assert (added.parallelism, added.parallelism_configured) == (4, False)


def test_a_sink_is_told_the_declared_type(numbers: DataStream[int]) -> None:
    class Typed(DiscardingSink):
        record_type: Any = None

        def for_type(self, record_type: Any) -> Any:
            typed = Typed()
            typed.record_type = record_type
            return typed

    sink = Typed()
    untyped = numbers.map(str).sink_to(sink).transformation
    typed = numbers.map(str, output_type=Types.STRING()).sink_to(sink).transformation
    assert untyped.spec.sink is sink
    assert typed.spec.sink.record_type == Types.STRING()


def test_a_sink_of_add_sink(env: StreamExecutionEnvironment, numbers: DataStream[int]) -> None:
    added = numbers.add_sink(DiscardingSinkFunction()).transformation
    assert isinstance(added, OperatorTransformation)
    assert env.get_transformations() == [added]
    assert added.name == "Unnamed"
    assert isinstance(added.spec, LegacySinkSpec)
    assert isinstance(added.spec.function, DiscardingSinkFunction)


def test_sinks_on_keyed_streams_know_the_key(numbers: DataStream[int]) -> None:
    keyed = numbers.key_by(abs)
    new, old = keyed.sink_to(DiscardingSink()), keyed.add_sink(DiscardingSinkFunction())
    assert isinstance(new.transformation, SinkTransformation)
    assert isinstance(old.transformation, OperatorTransformation)
    assert new.transformation.key_by is keyed.state_key
    assert old.transformation.key_bys == (keyed.state_key,)


@pytest.mark.parametrize(
    ("call", "name", "to_stderr"),
    [("print", "Print to Std. Out", False), ("print_to_err", "Print to Std. Err", True)],
)
def test_print_is_a_legacy_sink(
    numbers: DataStream[int], call: str, name: str, to_stderr: bool
) -> None:
    sink = getattr(numbers, call)("numbers")
    function = sink.transformation.spec.function
    assert isinstance(function, PrintSinkFunction)
    assert sink.transformation.name == name
    assert (function.sink_identifier, function.to_stderr) == ("numbers", to_stderr)
    assert getattr(numbers, call)().transformation.spec.function.sink_identifier == ""


def test_print_knows_the_declared_type(numbers: DataStream[int]) -> None:
    spec: Any = numbers.map(str, Types.STRING()).print().transformation
    assert spec.spec.function.record_type == Types.STRING()


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        ("sink_to", DiscardingSinkFunction()),
        ("sink_to", None),
        ("add_sink", DiscardingSink()),
        ("add_sink", print),
        ("print", 5),
    ],
)
def test_a_sink_of_the_wrong_kind_is_refused(
    numbers: DataStream[int], call: str, argument: Any
) -> None:
    with pytest.raises(TypeError, match=rf"{call}\(\) \(test_sink_operations.py:"):
        getattr(numbers, call)(argument)


def test_collecting_adds_a_sink_that_is_found_by_its_uid(
    env: StreamExecutionEnvironment, numbers: DataStream[int]
) -> None:
    numbers.collect_async()
    (added,) = env.get_transformations()
    assert isinstance(added, OperatorTransformation)
    assert isinstance(added.spec, CollectSinkSpec)
    assert added.name == "Data stream collect sink"
    assert added.uid == "dataStreamCollect_2"
    assert (added.parallelism, added.parallelism_configured) == (1, True)


def test_collected_records_are_read_from_the_job(numbers: DataStream[int]) -> None:
    with capturing() as capture:
        with numbers.execute_and_collect() as records:
            assert list(records) == []
        assert numbers.execute_and_collect("mine", limit=3) == []
    assert [job.job_name for job in capture.jobs] == ["DataStream Collect", "mine"]
    sinks = [job.program.transformations[-1] for job in capture.jobs]
    assert [getattr(sink, "spec", None) for sink in sinks] == [
        CollectSinkSpec(),
        CollectSinkSpec(limit=3),
    ]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((None, 0), ValueError, "the limit is 0"),
        ((None, 1.5), TypeError, "the limit is 1.5"),
        ((3,), TypeError, "the job's name is 3"),
    ],
)
def test_a_wrong_name_or_limit_adds_no_sink(
    env: StreamExecutionEnvironment,
    numbers: DataStream[int],
    arguments: Any,
    error: type[Exception],
    message: str,
) -> None:
    where = r"execute_and_collect\(\) \(test_sink_operations.py:\d+\): "
    with pytest.raises(error, match=where + message):
        numbers.execute_and_collect(*arguments)
    assert env.get_transformations() == []


def test_collected_records_wait_for_the_job(numbers: DataStream[int]) -> None:
    collected = numbers.collect_async()
    with pytest.raises(
        GraphError,
        match=r"its job has not been started; call "
        r"env.execute_async\(\)",
    ):
        next(collected)
