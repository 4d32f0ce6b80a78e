from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from programs import CountingDiscardingSink

from opchain.compiler.dsl.keyed_stream import DataStreamUtils
from opchain.compiler.graph.partitioner import ExchangeMode, PartitionerKind
from opchain.compiler.graph.plan import Plan, StreamGraphError
from opchain.compiler.graph.transformation import CallSite, ChainingStrategy, OperatorTransformation
from opchain.compiler.passes.generate_stream_graph import generate_stream_graph, inputs_come_first
from opchain.compiler.passes.pipeline import Program, compile_program
from opchain.compiler.settings.job_settings import JobSettings
from opchain.datastream import (
    BroadcastProcessFunction,
    OutputTag,
    ReduceFunction,
    RuntimeExecutionMode,
    SourceFunction,
)
from opchain.datastream.state import MapStateDescriptor
from opchain.runtime.connectors.simple_sinks import DiscardingSink
from opchain.runtime.errors import GraphError, InternalError
from opchain.runtime.program.operator_specs import MapSpec


class Endless(SourceFunction[int]):
    def run(self, ctx: Any) -> None: ...

    def cancel(self) -> None: ...


class Sum(ReduceFunction[int]):
    def reduce(self, value1: int, value2: int) -> int:
        return value1 + value2


class Rules(BroadcastProcessFunction[int, int, int]):
    def process_element(self, value: int, ctx: Any) -> Any: ...

    def process_broadcast_element(self, value: int, ctx: Any) -> Any: ...


def edges(plan: Plan) -> list[tuple[str, str, str]]:
    graph = plan.stream_graph
    assert graph is not None
    return [
        (graph.node(edge.source).name, graph.node(edge.target).name, edge.partitioner.kind.value)
        for edge in graph.edges()
    ]


def names(plan: Plan) -> list[str]:
    assert plan.stream_graph is not None
    return [node.name for node in plan.stream_graph.nodes()]


def test_nodes_are_in_call_order_with_sources_before_their_first_consumer(
    env: Any, source: Any, compiled: Any
) -> None:
    late, early = source(env, "late"), source(env, "early")
    early.map(str).name("first")
    late.map(str).name("second")
    source(env, "never read")
    assert names(compiled(env)) == ["Source: early", "first", "Source: late", "second"]


def test_unions_partitionings_and_side_outputs_become_edges(
    env: Any, source: Any, compiled: Any
) -> None:
    a, b = source(env, "a"), source(env, "b").rebalance()
    merged = a.union(b).map(str).name("merged")
    merged.get_side_output(OutputTag("late")).shuffle().map(str).name("late")
    plan = compiled(env)
    assert edges(plan) == [
        ("Source: a", "merged", "FORWARD"),
        ("Source: b", "merged", "REBALANCE"),
        ("merged", "late", "SHUFFLE"),
    ]
    tags = [edge.tag and edge.tag.tag_id for edge in plan.stream_graph.edges()]
    assert tags == [None, None, "late"]


def test_of_several_partitioners_the_one_next_to_the_consumer_counts(
    env: Any, source: Any, compiled: Any
) -> None:
    source(env).rebalance().rescale().map(str)
    assert edges(compiled(env)) == [("Source: numbers", "Map", "RESCALE")]


def test_of_several_exchange_modes_the_one_next_to_the_producer_counts(
    batch_env: Any, source: Any, compiled: Any
) -> None:
    near_producer = source(batch_env).partition(
        PartitionerKind.REBALANCE, exchange_mode=ExchangeMode.PIPELINED
    )
    near_producer.partition(PartitionerKind.RESCALE, exchange_mode=ExchangeMode.BATCH).map(str)
    (edge,) = compiled(batch_env).stream_graph.edges()
    assert (edge.exchange_mode, edge.partitioner.kind.value) == (ExchangeMode.PIPELINED, "RESCALE")


def test_batch_exchange_modes_are_ignored_in_streaming_mode(
    env: Any, source: Any, compiled: Any
) -> None:
    source(env).partition(PartitionerKind.REBALANCE, exchange_mode=ExchangeMode.BATCH).map(str)
    (edge,) = compiled(env).stream_graph.edges()
    assert edge.exchange_mode is ExchangeMode.UNDEFINED


@pytest.mark.parametrize(
    ("mode", "parallelism", "kind"),
    [
        ("STREAMING", 4, "FORWARD"),
        ("STREAMING", 2, "REBALANCE"),
        ("BATCH", 4, "FORWARD_FOR_UNSPECIFIED"),
        ("BATCH", 2, "REBALANCE"),
    ],
)
def test_without_a_partitioner_equal_parallelism_means_forward(
    env: Any, source: Any, compiled: Any, mode: str, parallelism: int, kind: str
) -> None:
    env.set_runtime_mode(RuntimeExecutionMode[mode])
    source(env).map(str).set_parallelism(parallelism)
    plan = compiled(env)
    assert edges(plan) == [("Source: numbers", "Map", kind)]
    assert not next(plan.stream_graph.edges()).partitioner_is_explicit


def test_edges_between_the_same_operators_are_distinct(
    env: Any, source: Any, compiled: Any
) -> None:
    numbers = source(env)
    numbers.union(numbers).map(str)
    graph = compiled(env).stream_graph
    first, second = graph.in_edges(2 + 1)
    assert (first.source, second.source) == (1, 1)
    assert first != second


def test_slot_sharing_groups_are_inherited_if_all_inputs_agree(
    env: Any, source: Any, compiled: Any
) -> None:
    heavy = source(env, "a").slot_sharing_group("heavy")
    light = source(env, "b")
    heavy.rebalance().map(str).name("inherits")
    heavy.union(light).map(str).name("differ")
    heavy.map(str).name("cut").slot_sharing_group("default").map(str).name("below cut")
    heavy.sink_to(CountingDiscardingSink()).name("out")
    graph = compiled(env).stream_graph
    assert {node.name: node.slot_sharing_group for node in graph.nodes()} == {
        "Source: a": "heavy",
        "inherits": "heavy",
        "Source: b": "default",
        "differ": "default",
        "cut": "default",
        "below cut": "default",
        "out: Writer": "heavy",
        "out: Committer": "heavy",
    }


def test_a_sink_becomes_writer_and_committer(batch_env: Any, source: Any, compiled: Any) -> None:
    sink = source(batch_env).sink_to(CountingDiscardingSink())
    sink.name("files").uid("files").set_parallelism(4).set_max_parallelism(16).disable_chaining()
    writer, committer = list(compiled(batch_env).stream_graph.nodes())[1:]
    assert (writer.name, writer.uid) == ("files: Writer", "files")
    assert (committer.name, committer.uid) == ("files: Committer", "Sink Committer: files")
    for node in (writer, committer):
        assert (node.parallelism, node.parallelism_configured) == (4, True)
        assert node.max_parallelism == 16
        assert node.chaining_strategy is ChainingStrategy.NEVER
        assert node.transformation_id == sink.transformation.id
    (edge,) = compiled(batch_env).stream_graph.out_edges(writer.id)
    assert edge.partitioner.kind is PartitionerKind.FORWARD
    assert edge.exchange_mode is ExchangeMode.BATCH


def test_node_ids_count_virtual_nodes_as_in_flink(env: Any, source: Any, compiled: Any) -> None:
    numbers = source(env)  # 1
    numbers.rebalance().map(str).sink_to(CountingDiscardingSink())  # 2, 3, 4
    # Translated: 5 for the rebalance, then writer, partitioning, committer, virtual node.
    numbers.sink_to(DiscardingSink())
    ids = [node.id for node in compiled(env).stream_graph.nodes()]
    assert ids == [1, 3, 7, 9, 11]


def test_in_batch_mode_keyed_operators_start_a_chain(
    batch_env: Any, source: Any, compiled: Any
) -> None:
    keyed = source(batch_env).key_by(str)
    keyed.reduce(Sum()).name("reduce")
    keyed.map(str).name("never").disable_chaining()
    keyed.sink_to(DiscardingSink()).name("out")
    source(batch_env, "other").map(str).name("plain")
    graph = compiled(batch_env).stream_graph
    strategies = {node.name: node.chaining_strategy.value for node in graph.nodes()}
    assert strategies == {
        "Source: numbers": "ALWAYS",
        "reduce": "HEAD",
        "never": "NEVER",
        "out: Writer": "HEAD",
        "Source: other": "ALWAYS",
        "plain": "ALWAYS",
    }


def test_in_streaming_mode_only_operators_that_emit_at_the_end_start_a_chain(
    env: Any, source: Any, compiled: Any
) -> None:
    keyed = source(env).key_by(str)
    keyed.reduce(Sum()).name("reduce")
    keyed.full_window_partition().map_partition(list).name("whole")
    graph = compiled(env).stream_graph
    strategies = {node.name: node.chaining_strategy.value for node in graph.nodes()}
    assert strategies == {"Source: numbers": "ALWAYS", "reduce": "ALWAYS", "whole": "HEAD"}


def test_an_operator_with_broadcast_state_ignores_disable_chaining(
    env: Any, source: Any, compiled: Any
) -> None:
    rules = source(env, "rules").broadcast(MapStateDescriptor("rules"))
    source(env).connect(rules).process(Rules()).disable_chaining()
    *_, last = compiled(env).stream_graph.nodes()
    assert last.chaining_strategy is ChainingStrategy.ALWAYS


@pytest.mark.parametrize(
    ("mode", "unbounded", "is_batch"),
    [
        ("STREAMING", False, False),
        ("BATCH", False, True),
        ("AUTOMATIC", False, True),
        ("AUTOMATIC", True, False),
    ],
)
def test_the_runtime_mode_and_the_sources_decide_about_batch_mode(
    env: Any, source: Any, compiled: Any, mode: str, unbounded: bool, is_batch: bool
) -> None:
    env.set_runtime_mode(RuntimeExecutionMode[mode])
    numbers = env.add_source(Endless()) if unbounded else source(env)
    numbers.map(str)
    graph = compiled(env).stream_graph
    assert (graph.is_batch, graph.is_dynamic) == (is_batch, is_batch)
    assert graph.job_name == ("Flink Batch Job" if is_batch else "Flink Streaming Job")


def test_with_the_default_scheduler_the_graph_is_not_dynamic(
    batch_env: Any, source: Any, compiled: Any
) -> None:
    source(batch_env).map(str)
    graph = compiled(batch_env, scheduler="Default").stream_graph
    assert (graph.is_batch, graph.is_dynamic) == (True, False)


def test_batch_mode_accepts_an_unbounded_broadcast_side(
    batch_env: Any, source: Any, compiled: Any
) -> None:
    rules = batch_env.add_source(Endless()).broadcast(MapStateDescriptor("rules"))
    source(batch_env).connect(rules).process(Rules())
    assert compiled(batch_env).stream_graph.is_batch


def refused(env: Any, compiled: Any, **keys: str) -> str:
    with pytest.raises(GraphError) as raised:
        compiled(env, **keys)
    assert raised.value.phase == "stream_graph"
    return str(raised.value)


def test_an_empty_program_is_refused(env: Any, source: Any, compiled: Any) -> None:
    source(env)
    assert "the program has no operator or sink" in refused(env, compiled)


def test_an_unbounded_source_is_refused_in_batch_mode(batch_env: Any, compiled: Any) -> None:
    batch_env.add_source(Endless(), "clicks").map(str)
    message = refused(batch_env, compiled)
    assert "source 'clicks' (test_generate_stream_graph.py:" in message
    assert "is unbounded; use a bounded source" in message


@pytest.mark.parametrize("how", ["forward", "reinterpret"])
def test_forward_between_different_parallelisms_is_refused(
    env: Any, source: Any, compiled: Any, how: str
) -> None:
    numbers = source(env)
    if how == "forward":
        numbers.forward().map(str).set_parallelism(2)
    else:
        DataStreamUtils.reinterpret_as_keyed_stream(numbers, str).map(str).set_parallelism(2)
    message = refused(env, compiled)
    assert "'Source: numbers' (conftest.py:" in message
    assert "runs 4 tasks and 'Map' (test_generate_stream_graph.py:" in message
    assert "runs 2, but forward()" in message


def test_a_missing_uid_is_refused_if_generated_ids_are_disabled(
    env: Any, source: Any, compiled: Any
) -> None:
    source(env).uid("a").map(str).set_uid_hash("ab" * 16).map(str).name("forgotten")
    message = refused(env, compiled, generate_uids="false")
    assert message.startswith("'forgotten' (test_generate_stream_graph.py:")
    assert "neither a uid nor a uid hash" in message


def operator(number: int, inputs: list[OperatorTransformation]) -> OperatorTransformation:
    return OperatorTransformation(
        number,
        f"op {number}",
        inputs,
        spec=MapSpec(str),
        parallelism=1,
        call_site=CallSite("loop.py", number),
    )


def test_a_cycle_is_refused_with_the_names_of_both_ends() -> None:
    first = operator(1, [])
    second = operator(2, [first])
    first.inputs = (second,)
    with pytest.raises(StreamGraphError, match="must not have cycles") as raised:
        compile_program(Program((second,), JobSettings(), next_id=3))
    assert "'op 2' (loop.py:2) reads its own output through 'op 1' (loop.py:1)" in str(raised.value)


@pytest.mark.slow
def test_a_very_long_chain_does_not_overflow_the_stack() -> None:
    last = operator(1, [])
    for number in range(2, 20_001):
        last = operator(number, [last])
    plan = compile_program(Program((last,), JobSettings(), next_id=20_001), "job-graph")
    assert plan.job_graph is not None
    assert [len(vertex.operators) for vertex in plan.job_graph.vertices] == [20_000]


def test_the_invariant_finds_an_edge_to_an_earlier_node(
    env: Any, source: Any, compiled: Any
) -> None:
    source(env).map(str)
    plan = generate_stream_graph(Plan(env.program()))
    assert plan.stream_graph is not None
    edge = plan.stream_graph.edge(0)
    plan.stream_graph.add_edge(replace(edge, index=1, source=edge.target, target=edge.source))
    with pytest.raises(InternalError, match="runs backwards"):
        inputs_come_first(plan)
