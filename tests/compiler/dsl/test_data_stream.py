from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Duration, Types, WatermarkStrategy
from opchain.compiler.graph.transformation import (
    ChainingStrategy,
    OperatorTransformation,
    SideOutputTransformation,
    UnionTransformation,
)
from opchain.datastream import (
    ConnectedStreams,
    DataStream,
    DataStreamSink,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    KeyedStream,
    KeySelector,
    MapFunction,
    OutputTag,
    ProcessFunction,
    SlotSharingGroup,
    StreamExecutionEnvironment,
)
from opchain.datastream.connectors.discard import DiscardingSink, DiscardingSinkFunction
from opchain.runtime.errors import GraphError
from opchain.runtime.functions.key_selectors import Projection
from opchain.runtime.program.operator_specs import (
    FilterSpec,
    FlatMapSpec,
    MapSpec,
    OperatorSpec,
    ProcessSpec,
    TimestampsWatermarksSpec,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class Double(MapFunction[int, int]):
    def map(self, value: int) -> int:
        return 2 * value


class Twice(FlatMapFunction[int, int]):
    def flat_map(self, value: int) -> Any:
        yield value
        yield value


class Odd(FilterFunction[int]):
    def filter(self, value: int) -> bool:
        return value % 2 == 1


class PassOn(ProcessFunction[int, int]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        yield value


class PerKey(KeyedProcessFunction[int, int, int]):
    def process_element(self, value: int, ctx: KeyedProcessFunction.Context[int]) -> Any:
        yield value


class LastDigit(KeySelector[int, int]):
    def get_key(self, value: int) -> int:
        return value % 10


@pytest.fixture
def numbers(env: StreamExecutionEnvironment) -> DataStream[int]:
    return env.from_sequence(1, 30)


def operator(stream: DataStream[Any]) -> OperatorTransformation:
    assert isinstance(stream.transformation, OperatorTransformation)
    return stream.transformation


STRATEGY: WatermarkStrategy[Any] = WatermarkStrategy.for_bounded_out_of_orderness(
    Duration.of_seconds(1)
)
OPERATIONS: dict[str, tuple[Callable[[DataStream[int]], DataStream[Any]], OperatorSpec]] = {
    "Map": (lambda stream: stream.map(abs), MapSpec(abs)),
    "Flat Map": (lambda stream: stream.flat_map(range), FlatMapSpec(range)),
    "Filter": (lambda stream: stream.filter(bool), FilterSpec(bool)),
    "Timestamps/Watermarks": (
        lambda stream: stream.assign_timestamps_and_watermarks(STRATEGY),
        TimestampsWatermarksSpec(STRATEGY),
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_adds_its_operator_under_flinks_name(
    env: StreamExecutionEnvironment, numbers: DataStream[int], name: str
) -> None:
    call, spec = OPERATIONS[name]
    added = operator(call(numbers))
    assert env.get_transformations() == [added]
    assert (added.name, added.spec, added.inputs) == (name, spec, (numbers.transformation,))
    assert added.key_bys == (None,)
    assert str(added.call_site).startswith("test_data_stream.py:")


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda stream: stream.map(Double()), MapSpec),
        (lambda stream: stream.flat_map(Twice()), FlatMapSpec),
        (lambda stream: stream.filter(Odd()), FilterSpec),
        (lambda stream: stream.process(PassOn()), ProcessSpec),
    ],
)
def test_operators_keep_the_function_object_that_they_are_given(
    numbers: DataStream[int], call: Any, kind: type[OperatorSpec]
) -> None:
    spec: Any = operator(call(numbers)).spec
    assert type(spec) is kind
    assert type(spec.function) in {Double, Twice, Odd, PassOn}


@pytest.mark.parametrize(
    "call",
    [
        lambda stream: stream.map(Odd()),
        lambda stream: stream.flat_map(Double()),
        lambda stream: stream.filter(None),
        lambda stream: stream.process(Double()),
        lambda stream: stream.process(abs),
        lambda stream: stream.key_by("field"),
        lambda stream: stream.assign_timestamps_and_watermarks(abs),
        lambda stream: stream.map(abs, str),
    ],
)
def test_a_function_of_the_wrong_kind_is_refused_at_the_call(
    numbers: DataStream[int], call: Any
) -> None:
    with pytest.raises(TypeError, match=r"test_data_stream.py"):
        call(numbers)


def test_a_keyed_function_runs_without_a_key(numbers: DataStream[int]) -> None:
    stream: Any = numbers
    assert stream.process(PerKey()).get_name() == "Process"


@pytest.mark.parametrize(
    "name", ["reduce", "sum", "min_by", "window", "count_window", "interval_join"]
)
def test_an_operation_that_needs_a_key_suggests_key_by(numbers: DataStream[int], name: str) -> None:
    with pytest.raises(AttributeError, match=rf"has no key, but {name}\(\) needs one; call key_by"):
        getattr(numbers, name)
    assert not hasattr(numbers, name)


def test_other_missing_names_are_plain_attribute_errors(numbers: DataStream[int]) -> None:
    with pytest.raises(AttributeError, match="a DataStream has no attribute 'keyBy'"):
        getattr(numbers, "keyBy")  # noqa: B009 - mypy knows that there is none


def test_the_end_of_a_name_suggests_the_whole_name(numbers: DataStream[int]) -> None:
    with pytest.raises(
        AttributeError, match=r"'collect'; did you mean execute_and_collect\?$"
    ) as raised:
        numbers.collect()  # type: ignore[attr-defined]
    assert raised.value.name is None  # otherwise Python adds a suggestion


def test_watermarks_run_with_the_parallelism_of_their_input(numbers: DataStream[int]) -> None:
    stream = numbers.map(abs).set_parallelism(2).assign_timestamps_and_watermarks(STRATEGY)
    assert (stream.get_parallelism(), operator(stream).parallelism_configured) == (2, False)


@pytest.mark.parametrize("selector", [LastDigit(), lambda value: value % 10])
def test_key_by_keys_the_stream(numbers: DataStream[int], selector: Any) -> None:
    keyed = numbers.key_by(selector, Types.LONG())
    assert isinstance(keyed, KeyedStream)
    assert type(keyed.state_key.selector) is type(selector)
    assert keyed.state_key.key_type == Types.LONG()


def test_project_picks_fields(numbers: DataStream[int]) -> None:
    added = operator(numbers.map(lambda n: (n, str(n))).project(1, 0))
    assert added.name == "Projection"
    assert isinstance(added.spec, MapSpec)
    assert isinstance(added.spec.function, Projection)
    assert added.spec.function.map(("a", "b")) == ("b", "a")


def test_project_declares_the_types_of_its_fields(numbers: DataStream[int]) -> None:
    for make in (Types.TUPLE, Types.ROW):
        pairs = numbers.map(lambda n: (n, str(n)), make([Types.INT(), Types.STRING()]))
        assert pairs.project(1, 0).get_type() == Types.TUPLE([Types.STRING(), Types.INT()])
        with pytest.raises(ValueError, match=r"no field 2; their fields are 0 to 1"):
            pairs.project(0, 2)


@pytest.mark.parametrize(
    ("indexes", "error"), [((), ValueError), ((-1,), ValueError), (("a",), TypeError)]
)
def test_project_refuses_arguments_that_are_not_field_indexes(
    numbers: DataStream[int], indexes: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match="project"):
        numbers.project(*indexes)


def test_union_keeps_the_order_of_its_inputs(
    env: StreamExecutionEnvironment, numbers: DataStream[int]
) -> None:
    second, third = env.from_sequence(1, 2), env.from_sequence(3, 4).map(abs)
    united = numbers.map(abs).set_parallelism(2).union(second, third).transformation
    assert isinstance(united, UnionTransformation)
    assert united.inputs[1:] == (second.transformation, third.transformation)
    assert (united.parallelism, united.parallelism_configured) == (2, True)


def test_operations_refuse_a_stream_of_another_environment(numbers: DataStream[int]) -> None:
    far = StreamExecutionEnvironment().from_sequence(1, 2)
    for call in (numbers.union, numbers.connect, numbers.join, numbers.co_group):
        with pytest.raises(GraphError, match="belongs to another StreamExecutionEnvironment"):
            call(far)


@pytest.mark.parametrize("call", ["union", "connect", "join", "co_group"])
def test_operations_on_two_streams_refuse_none(numbers: DataStream[int], call: str) -> None:
    with pytest.raises(TypeError, match=f"{call}.*got None; it takes a DataStream"):
        getattr(numbers, call)(None)


def test_connect_pairs_two_streams(
    env: StreamExecutionEnvironment, numbers: DataStream[int]
) -> None:
    words = env.from_collection(["a"])
    connected = numbers.connect(words)
    assert isinstance(connected, ConnectedStreams)
    assert (connected.stream1, connected.stream2) == (numbers, words)


def test_a_side_output_is_read_by_its_tag(numbers: DataStream[int]) -> None:
    side = numbers.process(PassOn()).get_side_output(OutputTag("late")).transformation
    assert isinstance(side, SideOutputTransformation)
    assert side.tag.tag_id == "late"


def test_a_side_output_may_be_read_twice_with_one_type(numbers: DataStream[int]) -> None:
    processed = numbers.process(PassOn())
    processed.get_side_output(OutputTag("late", Types.LONG()))
    processed.get_side_output(OutputTag("late", Types.LONG()))
    with pytest.raises(GraphError, match="already has a side output 'late' of type"):
        processed.get_side_output(OutputTag("late", Types.STRING()))


def test_a_side_output_needs_a_tag_and_an_operator(numbers: DataStream[int]) -> None:
    stream: Any = numbers
    with pytest.raises(TypeError, match="the tag is 'late' of type str; it must be an OutputTag"):
        stream.get_side_output("late")
    with pytest.raises(GraphError, match="side outputs belong to operators"):
        numbers.rebalance().get_side_output(OutputTag("late"))


@pytest.fixture(params=["sink_to", "add_sink"])
def sink(env: StreamExecutionEnvironment, request: pytest.FixtureRequest) -> DataStreamSink[int]:
    stream = env.from_sequence(1, 3)
    if request.param == "sink_to":
        return stream.sink_to(DiscardingSink())
    return stream.add_sink(DiscardingSinkFunction())


@pytest.mark.parametrize(
    ("setter", "value", "attribute"),
    [
        ("name", "out", "name"),
        ("uid", "out-1", "uid"),
        ("set_parallelism", 2, "parallelism"),
        ("set_max_parallelism", 64, "max_parallelism"),
        ("set_description", "writes", "description"),
        ("slot_sharing_group", "slow", "slot_sharing_group"),
    ],
)
def test_setters_of_a_sink_return_the_sink(
    sink: DataStreamSink[int], setter: str, value: Any, attribute: str
) -> None:
    assert getattr(sink, setter)(value) is sink
    assert getattr(sink.transformation, attribute) == value


def test_disable_chaining_of_a_sink_sets_the_strategy_never(sink: DataStreamSink[int]) -> None:
    sink.disable_chaining()
    assert sink.transformation.chaining_strategy is ChainingStrategy.NEVER


def test_a_uid_hash_is_for_sinks_of_one_operator(env: StreamExecutionEnvironment) -> None:
    stream = env.from_sequence(1, 3)
    digits = "0123456789abcdef" * 2
    legacy = stream.add_sink(DiscardingSinkFunction()).set_uid_hash(digits)
    assert legacy.transformation.uid_hash == digits
    with pytest.raises(GraphError, match="which becomes several operators; use uid"):
        stream.sink_to(DiscardingSink()).set_uid_hash(digits)


def test_a_slot_sharing_group_with_resources_is_registered(
    env: StreamExecutionEnvironment, sink: DataStreamSink[int]
) -> None:
    group = SlotSharingGroup.builder("disk").set_cpu_cores(1).set_task_heap_memory_mb(8).build()
    sink.slot_sharing_group(group)
    assert env.program().slot_group_resources == {"disk": group}


@pytest.mark.parametrize(
    ("setter", "value", "error"),
    [
        ("name", None, TypeError),
        ("uid", "", ValueError),
        ("set_parallelism", 0, GraphError),
        ("set_max_parallelism", 0, GraphError),
        ("set_description", 1, TypeError),
        ("slot_sharing_group", "", ValueError),
    ],
)
def test_setters_of_a_sink_refuse_wrong_values(
    sink: DataStreamSink[int], setter: str, value: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        getattr(sink, setter)(value)


def test_repr_of_a_sink_has_its_name_and_line(sink: DataStreamSink[int]) -> None:
    assert "<DataStreamSink 'out' (test_data_stream.py:" in repr(sink.name("out"))


def test_functions_cannot_refer_to_streams_or_environments(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([1])
    connected = stream.connect(stream)
    for captured, name in ((stream, "DataStream"), (env, "StreamExec"), (connected, "DataStream")):
        with pytest.raises(GraphError, match=f"test_data_stream.py:.*refers to a {name}"):
            stream.map(lambda _, captured=captured: captured)
        with pytest.raises(GraphError, match=f"refers to a {name}"):
            stream.key_by(lambda _, captured=captured: captured)
