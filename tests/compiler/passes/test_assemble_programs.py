from __future__ import annotations

import re
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, run_form, seen

from opchain.common import Types, WatermarkStrategy
from opchain.compiler.graph.partitioner import PartitionerKind
from opchain.compiler.passes.assemble_programs import SHIPPING, every_task_has_a_program
from opchain.datastream import OutputTag, RuntimeExecutionMode
from opchain.datastream.functions import (
    CoMapFunction,
    KeySelector,
    ProcessFunction,
    ReduceFunction,
)
from opchain.runtime.errors import GraphError, InternalError
from opchain.runtime.program.vertex_program import Shipping
from opchain.runtime.state.disk.rocksdb import RocksDBBackend
from opchain.runtime.state.keyed.hash_map_backend import HashMapBackend

if TYPE_CHECKING:
    from opchain.runtime.program.vertex_program import JobProgram, VertexProgram

STAMPED: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda value, _: value
)


class Splits(ProcessFunction[int, int]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        yield OutputTag("side"), value


class Both(CoMapFunction[int, int, int]):
    def map1(self, value: int) -> int:
        return value

    map2 = map1


class Sum(ReduceFunction[int]):
    def reduce(self, value1: int, value2: int) -> int:
        return value1 + value2


class OpenedSum(Sum):
    def open(self, runtime_context: Any) -> None:
        self.start = 0

    def reduce(self, value1: int, value2: int) -> int:
        return self.start + value1 + value2


class ClosedSum(Sum):
    def close(self) -> None:
        pass


class First(KeySelector[Any, Any]):
    def get_key(self, value: Any) -> Any:
        return value[0]


def programs(env: Any, compiled: Any, **keys: Any) -> dict[str, VertexProgram]:
    """The vertices by the names of their heads."""
    job = compiled(env, "programs", **keys).job_program
    return {vertex.operators[0].name: vertex for vertex in job.vertices}


def test_operators_of_a_chain_have_parents_and_output_tags(
    env: Any, source: Any, compiled: Any
) -> None:
    processed = source(env, "in").process(Splits())
    processed.map(int).name("main")
    processed.get_side_output(OutputTag("side")).map(int).name("side").map(int).name("end")
    (vertex,) = programs(env, compiled).values()
    assert [(op.name, op.parent, op.tag) for op in vertex.operators] == [
        ("Source: in", -1, None),
        ("Process", 0, None),
        ("main", 1, None),
        ("side", 1, "side"),
        ("end", 3, None),
    ]
    assert [operator.index for operator in vertex.operators] == [0, 1, 2, 3, 4]
    assert all("test_assemble_programs.py" in op.call_site for op in vertex.operators[1:])


def test_the_two_ends_of_an_exchange_match(env: Any, source: Any, compiled: Any) -> None:
    numbers = source(env, "in").set_parallelism(3)
    numbers.rescale().map(int).name("end").set_parallelism(6).set_max_parallelism(12)
    vertices = programs(env, compiled)
    (output,), (edge,) = vertices["Source: in"].outputs, vertices["end"].inputs
    assert output.shipping is Shipping.RESCALE
    assert (output.first_target, output.target_parallelism) == (3, 6)
    assert output.target_max_parallelism == 12
    assert (output.operator, output.tag, output.key) == (0, None, None)
    assert (edge.channel_base, edge.producer_parallelism) == (output.channel_base, 3)
    assert (edge.input_number, edge.is_pointwise) == (0, True)
    assert (output.label, edge.label) == ("end (rescale)", "Source: in -> end (rescale)")


def test_inputs_are_numbered_and_streams_of_a_union_share_a_number(
    env: Any, source: Any, compiled: Any
) -> None:
    left, right = source(env, "l"), source(env, "r").rebalance().union(source(env, "s"))
    left.connect(right).map(Both()).name("both")
    vertex = programs(env, compiled)["both"]
    assert sorted(edge.input_number for edge in vertex.inputs) == [0, 1, 1]
    assert vertex.operators[0].keys == (None, None)
    (only,) = programs(env, compiled)["Source: l"].outputs
    assert only.shipping is Shipping.FORWARD


def test_every_partitioner_has_a_ship_strategy() -> None:
    assert set(SHIPPING) == set(PartitionerKind)
    assert set(SHIPPING.values()) == set(Shipping)


def test_keys_are_selectors_with_the_hash_of_their_type(
    env: Any, source: Any, compiled: Any
) -> None:
    keyed = source(env, "in").map(lambda x: (x, x)).key_by(First(), Types.INT())
    keyed.reduce(max).name("a")
    keyed.reduce(min).name("b")
    vertices = programs(env, compiled)
    (key,) = vertices["a"].operators[0].keys
    assert key is not None
    assert key.selector(("k", 1)) == "k"
    assert key.name == "First"
    assert key.hasher is not None
    assert key.hasher(7) == 62 + 7  # PyFlink's Row around it
    keys = {id(output.key) for output in vertices["Source: in"].outputs}
    assert keys == {id(key)}
    assert vertices["b"].operators[0].keys == (key,)


def test_a_custom_partitioner_has_its_key_selector(env: Any, source: Any, compiled: Any) -> None:
    source(env, "in").partition_custom(max, itemgetter(0)).map(int)
    (output,) = programs(env, compiled)["Source: in"].outputs
    assert output.custom_partitioner is max
    assert output.key is not None
    assert output.key.selector([5]) == 5


@pytest.mark.parametrize(
    ("mode", "function", "combines"),
    [
        ("batch_env", lambda a, b: a + b, True),
        ("batch_env", Sum(), True),
        ("batch_env", OpenedSum(), False),
        ("batch_env", ClosedSum(), False),
        ("env", Sum(), False),
    ],
)
def test_batch_mode_combines_with_functions_that_need_no_open(
    request: pytest.FixtureRequest,
    source: Any,
    compiled: Any,
    mode: str,
    function: Any,
    combines: bool,
) -> None:
    env = request.getfixturevalue(mode)
    source(env, "in").key_by(str).reduce(function)
    (output,) = programs(env, compiled)["Source: in"].outputs
    assert (output.combine is None) is not combines


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("function", [Sum(), OpenedSum(), ClosedSum()])
def test_a_rich_reduce_gives_correct_sums_in_batch_mode(function: Any, form: str) -> None:
    def draw(env: Any) -> None:
        seen(env.from_sequence(1, 6).key_by(lambda x: x % 2).reduce(function), "sums")

    assert sorted(run_form(draw, form, mode="BATCH", parallelism=2).records("sums")) == [9, 12]


def test_both_ends_of_an_exchange_know_whether_timestamps_are_sent(
    env: Any, source: Any, compiled: Any
) -> None:
    stamped = source(env, "in").assign_timestamps_and_watermarks(STAMPED)
    stamped.rebalance().process(Splits()).name("reads")
    stamped.rebalance().map(int).name("does not")
    vertices = programs(env, compiled)
    assert [output.carries_timestamps for output in vertices["Source: in"].outputs] == [True, False]
    for name, carries in (("reads", True), ("does not", False)):
        assert vertices[name].inputs[0].carries_timestamps is carries
        assert vertices[name].operators[0].timestamps is carries
    assert [operator.timestamps for operator in vertices["Source: in"].operators] == [False, False]


@pytest.mark.parametrize(("own", "expected"), [(None, 100), (0, 0), (-1, -1), (7, 7)])
def test_the_buffer_timeout_of_an_operator_overrides_the_environments(
    env: Any, source: Any, compiled: Any, own: int | None, expected: int
) -> None:
    numbers = source(env, "in")
    if own is not None:
        numbers.set_buffer_timeout(own)
    numbers.rebalance().map(int)
    (output,) = programs(env, compiled)["Source: in"].outputs
    assert output.buffer_timeout_ms == expected


def test_stages_know_their_vertices_and_tasks(env: Any, source: Any, compiled: Any) -> None:
    numbers = source(env, "in")
    numbers.rebalance().map(int).name("a").set_parallelism(2)
    numbers.rebalance().map(int).name("b").set_parallelism(3)
    job: JobProgram = compiled(env, "programs").job_program
    assert [(stage.index, stage.tasks) for stage in job.stages] == [
        (0, range(4)),
        (1, range(4, 9)),
    ]
    names = [[job.vertices[number].name for number in stage.vertices] for stage in job.stages]
    assert names == [["Source: in"], ["a", "b"]]
    assert [job.vertex_of(task)[1] for task in range(9)] == [0, 1, 2, 3, 0, 1, 0, 1, 2]


def test_job_parameters_are_sent_as_strings(env: Any, source: Any, compiled: Any) -> None:
    env.get_config().set_global_job_parameters({"limit": "3", "name": "x"})
    source(env, "in").map(int)
    assert compiled(env, "programs").job_program.job_parameters == {"limit": "3", "name": "x"}


def test_the_invariant_finds_a_lost_task(env: Any, source: Any, compiled: Any) -> None:
    source(env).map(int)
    plan = compiled(env, "programs")
    lost = replace(plan, job_program=replace(plan.job_program, vertices=()))
    with pytest.raises(InternalError, match="lost or duplicated a task"):
        every_task_has_a_program(lost)


def test_job_programs_refer_to_no_class_of_the_compiler(
    env: Any, source: Any, compiled: Any
) -> None:
    """What is shipped must be read where the compiler is not installed."""
    import cloudpickle  # noqa: PLC0415

    source(env).key_by(str).reduce(max).print()
    shipped = cloudpickle.dumps(compiled(env, "generated").job_program)
    assert b"opchain.runtime" in shipped
    assert b"opchain.compiler" not in shipped


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("no_module.Backend", "'no_module.Backend', which cannot be imported (No module named"),
        ("collections.Backend", "'collections.Backend', which cannot be imported"),
        ("collections.OrderedDict", "must be a class that extends StateBackendSpec"),
    ],
)
def test_a_class_that_is_not_a_state_backend_is_refused(
    env: Any, source: Any, compiled: Any, name: str, says: str
) -> None:
    source(env).key_by(str).reduce(max).print()
    with pytest.raises(GraphError, match=re.escape(says)):
        compiled(env, "programs", state_backend=name)


def test_batch_mode_keeps_state_in_memory(env: Any, source: Any, compiled: Any) -> None:
    source(env).key_by(str).reduce(max).print()
    for mode, backend in (("STREAMING", RocksDBBackend()), ("BATCH", HashMapBackend())):
        env.set_runtime_mode(RuntimeExecutionMode[mode])
        job = compiled(env, "programs", state_backend="rocksdb").job_program
        assert {vertex.state_backend for vertex in job.vertices} == {backend}


def outputs(vertex: VertexProgram) -> list[tuple[str, int]]:
    """The label and the number of readers of each output."""
    return [(output.label, len(output.readers)) for output in vertex.outputs]


def test_readers_of_one_data_set_share_one_output(batch_env: Any, compiled: Any) -> None:
    numbers = batch_env.from_sequence(1, 9).name("in").rebalance()
    numbers.map(int).name("a")
    numbers.map(int).name("b")
    numbers.shuffle().map(int).name("c")
    vertices = programs(batch_env, compiled)
    assert outputs(vertices["Source: in"]) == [
        ("a (rebalance) and b (rebalance)", 2),
        ("c (shuffle)", 1),
    ]
    (shared, _) = vertices["Source: in"].outputs
    assert shared.readers == tuple(
        (vertices[name].first_task, vertices[name].inputs[0].channel_base) for name in "ab"
    )


def test_readers_of_one_pipelined_result_have_an_output_each(env: Any, compiled: Any) -> None:
    numbers = env.from_sequence(1, 9).name("in").rebalance()
    numbers.map(int).name("a")
    numbers.map(int).name("b")
    vertices = programs(env, compiled)
    assert outputs(vertices["Source: in"]) == [("a (rebalance)", 1), ("b (rebalance)", 1)]


def test_a_reduce_that_combines_at_the_sender_has_its_own_output(
    batch_env: Any, compiled: Any
) -> None:
    keyed = batch_env.from_sequence(1, 9).name("in").key_by(lambda n: n % 2)
    keyed.map(int).name("a")
    keyed.reduce(lambda a, b: a + b).name("sum")
    keyed.map(int).name("b")
    readers = [count for _, count in outputs(programs(batch_env, compiled)["Source: in"])]
    assert sorted(readers) == [1, 2]


class Times(ProcessFunction[int, Any]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        yield value, ctx.timestamp()


@pytest.mark.parametrize("form", FORMS)
def test_a_shared_output_has_timestamps_if_one_reader_needs_them(form: str) -> None:
    def draw(env: Any) -> None:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        numbers = env.from_sequence(1, 100).assign_timestamps_and_watermarks(STAMPED).rebalance()
        seen(numbers.map(lambda n: n + 1), "mapped", reads_timestamps=False)
        seen(numbers.process(Times()), "timed")

    ran = run_form(draw, form, parallelism=2)
    (output,) = ran.job.vertices[0].outputs
    assert (len(output.readers), output.carries_timestamps) == (2, True)
    assert sorted(ran.records("mapped")) == list(range(2, 102))
    assert sorted(ran.records("timed")) == [(n, n) for n in range(1, 101)]
