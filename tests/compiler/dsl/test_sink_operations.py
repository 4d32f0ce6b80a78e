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


def test_sink_to_adds_a_sink(env: StreamExecutionEnvironment, numbers: DataStream[int]) -> None:
    sink = DiscardingSink()
    added = numbers.sink_to(sink).transformation
    assert isinstance(added, SinkTransformation)
    assert env.get_transformations() == [added]
    assert (added.name, added.spec, added.key_by) == ("Sink", SinkSpec(sink), None)
    assert (added.parallelism, added.parallelism_configured) == (4, False)


def test_sink_to_passes_the_declared_type_to_the_sink(numbers: DataStream[int]) -> None:
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


def test_add_sink_adds_a_legacy_sink(
    env: StreamExecutionEnvironment, numbers: DataStream[int]
) -> None:
    added = numbers.add_sink(DiscardingSinkFunction()).transformation
    assert isinstance(added, OperatorTransformation)
    assert env.get_transformations() == [added]
    assert added.name == "Unnamed"
    assert isinstance(added.spec, LegacySinkSpec)
    assert isinstance(added.spec.function, DiscardingSinkFunction)


def test_a_sink_on_a_keyed_stream_has_the_key(numbers: DataStream[int]) -> None:
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
def test_print_adds_a_legacy_sink(
    numbers: DataStream[int], call: str, name: str, to_stderr: bool
) -> None:
    sink = getattr(numbers, call)("numbers")
    function = sink.transformation.spec.function
    assert isinstance(function, PrintSinkFunction)
    assert sink.transformation.name == name
    assert (function.sink_identifier, function.to_stderr) == ("numbers", to_stderr)
    assert getattr(numbers, call)().transformation.spec.function.sink_identifier == ""


def test_print_uses_the_declared_type(numbers: DataStream[int]) -> None:
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
def test_sink_to_and_add_sink_refuse_sinks_of_the_wrong_kind(
    numbers: DataStream[int], call: str, argument: Any
) -> None:
    with pytest.raises(TypeError, match=rf"{call}\(\) \(test_sink_operations.py:"):
        getattr(numbers, call)(argument)


def test_collect_async_adds_a_sink_with_a_uid(
    env: StreamExecutionEnvironment, numbers: DataStream[int]
) -> None:
    numbers.collect_async()
    (added,) = env.get_transformations()
    assert isinstance(added, OperatorTransformation)
    assert isinstance(added.spec, CollectSinkSpec)
    assert added.name == "Data stream collect sink"
    assert added.uid == "dataStreamCollect_2"
    assert (added.parallelism, added.parallelism_configured) == (1, True)


def test_execute_and_collect_runs_a_job_with_its_own_sink(numbers: DataStream[int]) -> None:
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
def test_execute_and_collect_with_a_wrong_argument_adds_no_sink(
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


def test_reading_collect_async_before_its_job_starts_is_an_error(numbers: DataStream[int]) -> None:
    collected = numbers.collect_async()
    with pytest.raises(
        GraphError,
        match=r"its job has not been started; call "
        r"env.execute_async\(\)",
    ):
        next(collected)
