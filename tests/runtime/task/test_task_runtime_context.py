from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle
import pytest
from aggregates import Count
from forms import FORMS, run_form, seen

from opchain.common import Configuration, Types
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.functions import KeyedProcessFunction, MapFunction
from opchain.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from opchain.runtime.errors import StateError
from opchain.runtime.metrics.accumulators import (
    AverageAccumulator,
    DoubleCounter,
    Histogram,
    IntCounter,
    LongCounter,
)
from opchain.runtime.operators.operator import TaskInfo
from opchain.runtime.program.operator_specs import MapSpec
from opchain.runtime.program.vertex_program import OperatorProgram, VertexProgram
from opchain.runtime.task.operator_services import TaskRuntimeContext, operator_group
from opchain.runtime.task.stream_task import TaskEnvironment

if TYPE_CHECKING:
    from opchain.runtime.functions.function import RuntimeContext

cloudpickle.register_pickle_by_value(sys.modules[__name__])

OPERATOR = OperatorProgram(1, "parse", "0b5c", "job.py:3", MapSpec(str), parent=0)
TASK = TaskInfo(VertexProgram("7f", "lines -> parse", 4, 128, 8, (OPERATOR,)), 2, 1, "17", "clicks")


@pytest.fixture
def context() -> TaskRuntimeContext:
    return TaskRuntimeContext(
        OPERATOR,
        TASK,
        TaskEnvironment(files={"names": Path("names.txt")}),
        keyed_state=None,
        metric_group=operator_group(TASK, OPERATOR),
        job_parameters={"user": "ann"},
        send_to_driver=lambda _: None,
    )


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("get_task_name", "lines -> parse"),
        ("get_task_name_with_subtasks", "lines -> parse (3/4)#1"),
        ("get_number_of_parallel_subtasks", 4),
        ("get_max_number_of_parallel_subtasks", 128),
        ("get_index_of_this_subtask", 2),
        ("get_attempt_number", 1),
    ],
)
def test_the_context_has_job_task_and_subtask(
    context: TaskRuntimeContext, method: str, expected: Any
) -> None:
    assert getattr(context, method)() == expected


def test_job_parameters_have_defaults(context: TaskRuntimeContext) -> None:
    assert context.get_job_parameter("user", "nobody") == "ann"
    assert context.get_job_parameter("other", "nobody") == "nobody"
    assert context.get_job_parameter("other", None) is None


def test_the_metric_group_is_that_of_the_operator(context: TaskRuntimeContext) -> None:
    assert context.get_metric_group() is context.get_metrics_group()
    assert context.get_metrics_group().get_all_variables()["<operator_name>"] == "parse"


def test_cached_files_are_found_by_name(context: TaskRuntimeContext) -> None:
    cache = context.get_distributed_cache()
    assert cache.get_file("names") == Path("names.txt")
    with pytest.raises(KeyError, match="no file is registered as 'towns'; registered are: 'names'"):
        cache.get_file("towns")


@pytest.mark.parametrize(
    ("method", "descriptor", "kind"),
    [
        ("get_state", ValueStateDescriptor("s", Types.LONG()), "value"),
        ("get_list_state", ListStateDescriptor("s", Types.LONG()), "list"),
        ("get_map_state", MapStateDescriptor("s", Types.LONG(), Types.LONG()), "map"),
        ("get_reducing_state", ReducingStateDescriptor("s", max, Types.LONG()), "reducing"),
        (
            "get_aggregating_state",
            AggregatingStateDescriptor("s", Count(), Types.LONG()),
            "aggregating",
        ),
    ],
)
def test_state_requires_a_keyed_stream(
    context: TaskRuntimeContext, method: str, descriptor: Any, kind: str
) -> None:
    with pytest.raises(
        StateError,
        match=rf"'parse' \(job.py:3\) uses the {kind}.* state 's', but its stream has",
    ):
        getattr(context, method)(descriptor)


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("get_int_counter", IntCounter),
        ("get_long_counter", LongCounter),
        ("get_double_counter", DoubleCounter),
        ("get_histogram", Histogram),
    ],
)
def test_simple_accumulators_are_created_on_request(
    context: TaskRuntimeContext, method: str, kind: type
) -> None:
    made = getattr(context, method)("n")
    assert type(made) is kind
    assert getattr(context, method)("n") is context.get_accumulator("n") is made
    assert context.get_accumulators() == {"n": made}


def test_an_accumulator_name_has_one_kind(context: TaskRuntimeContext) -> None:
    context.add_accumulator("n", AverageAccumulator())
    with pytest.raises(TypeError, match="'n' is a AverageAccumulator, but was requested as Lo"):
        context.get_long_counter("n")


def test_an_accumulator_can_be_added_once(context: TaskRuntimeContext) -> None:
    first = AverageAccumulator()
    context.add_accumulator("mean", first)
    with pytest.raises(ValueError, match=r"'parse' \(job.py:3\) already has an accumulator 'mean'"):
        context.add_accumulator("mean", AverageAccumulator())
    assert context.get_accumulator("mean") is first
    assert context.get_accumulator("median") is None


class Ask(MapFunction[Any, Any]):
    """Emits values of its context."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.answers = (
            runtime_context.get_task_name_with_subtasks(),
            runtime_context.get_job_parameter("user", "nobody"),
            runtime_context.get_attempt_number(),
        )

    def map(self, value: Any) -> Any:
        return self.answers


def test_functions_of_a_job_get_the_runtime_context(capsys: Any) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        env.get_config().set_global_job_parameters({"user": "ann"})
        env.from_collection([1, 2]).name("numbers").rebalance().map(Ask()).name("ask").print()

    run_form(draw, parallelism=2)
    assert sorted(capsys.readouterr().out.splitlines()) == [
        f"{subtask}> ('ask -> Sink: Print to Std. Out ({subtask}/2)#0', 'ann', 0)"
        for subtask in (1, 2)
    ]


class Read(MapFunction[Any, Any]):
    """Emits the text of a cached file, and how often each function requested it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.names = runtime_context.get_distributed_cache().get_file("names").read_text("utf-8")
        self.reads = runtime_context.get_long_counter("reads")

    def map(self, value: Any) -> Any:
        self.reads.add(1)
        return self.names


def test_cached_files_and_accumulators_work_in_a_job(tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_text("Ann", encoding="utf-8")
    configuration = Configuration()
    configuration.set_string("execution.target", "local")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    env.register_cached_file(str(file), "names")
    numbers = env.from_collection(list(range(5))).rebalance()
    records = numbers.map(Read()).collect_async()
    client = env.execute_async()
    result = client.get_job_execution_result().result()
    assert list(records) == ["Ann"] * 5
    assert result.get_accumulator_result("reads") == 5
    assert result.get_all_accumulator_results() == {"reads": 5}
    assert client.get_accumulators().result() == {"reads": 5}
    assert result.metrics.operator("Map").records_in == 5


class AsksFor(KeyedProcessFunction[Any, Any, Any]):
    """Opens a state."""

    def __init__(self, method: str, descriptor: Any) -> None:
        self.method = method
        self.descriptor = descriptor

    def open(self, runtime_context: RuntimeContext) -> None:
        getattr(runtime_context, self.method)(self.descriptor)

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


@pytest.mark.parametrize(
    ("method", "descriptor", "text"),
    [
        (
            "get_list_state",
            ValueStateDescriptor("seen", Types.INT()),
            "a list state with the ValueStateDescriptor 'seen'; it takes a ListStateDescriptor",
        ),
        ("get_state", "seen", "a value state with 'seen'; it takes a StateDescriptor"),
        (
            "get_map_state",
            ListStateDescriptor("seen", Types.INT()),
            "a map state with the ListStateDescriptor 'seen'; it takes a MapStateDescriptor",
        ),
    ],
)
def test_a_state_requires_a_descriptor_of_its_kind(method: str, descriptor: Any, text: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        keyed = env.from_collection([1]).key_by(lambda x: x)
        keyed.process(AsksFor(method, descriptor)).name("count").print()

    with pytest.raises(TypeError, match=rf"'count' \(.*\) asks for {text}"):
        run_form(draw)


class KeepsValues(KeyedProcessFunction[Any, Any, Any]):
    """Has a list and a map as values: PyFlink's get_state takes any descriptor."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen: Any = runtime_context.get_state(ListStateDescriptor("seen", Types.LONG()))  # type: ignore[arg-type]
        pairs = MapStateDescriptor("pairs", Types.STRING(), Types.LONG())
        self.pairs: Any = runtime_context.get_state(pairs)  # type: ignore[arg-type]

    def process_element(self, value: Any, ctx: Any) -> Any:
        seen = self.seen.value() or []
        seen.append(value)
        self.seen.update(seen)
        pairs = self.pairs.value() or {}
        pairs[str(value)] = value
        self.pairs.update(pairs)
        yield self.seen.value(), self.pairs.value()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_get_state_accepts_a_list_or_map_descriptor(form: str, backend: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        keyed = env.from_collection([1, 2, 3], Types.LONG()).key_by(lambda x: x % 2)
        seen(keyed.process(KeepsValues()), "rows")

    found = run_form(draw, form, state_backend=backend).records("rows")
    assert sorted(found, key=str) == [
        ([1, 3], {"1": 1, "3": 3}),
        ([1], {"1": 1}),
        ([2], {"2": 2}),
    ]
