from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Types
from opchain.compiler.graph.partitioner import ExchangeMode, PartitionerKind
from opchain.compiler.graph.plan import JobGraphError
from opchain.compiler.passes.share_data_sets import every_cut_edge_reads_one_data_set
from opchain.compiler.plan.explain import explain
from opchain.datastream import OutputTag, SlotSharingGroup, StreamExecutionEnvironment
from opchain.runtime.errors import GraphError, InternalError

if TYPE_CHECKING:
    from opchain.compiler.graph.plan import Plan

BLOCKING = "ALL_EXCHANGES_BLOCKING"
PIPELINED = "ALL_EXCHANGES_PIPELINED"
FULL = "ALL_EXCHANGES_HYBRID_FULL"
SELECTIVE = "ALL_EXCHANGES_HYBRID_SELECTIVE"


def data_sets(plan: Plan, head: int = 1) -> list[tuple[str, int]]:
    """Type and number of readers of a vertex's data sets."""
    assert plan.data_sets is not None
    return [
        (data_set.result_partition_type.value, len(data_set.edges))
        for data_set in plan.data_sets[head]
    ]


@pytest.mark.parametrize(
    ("shuffle", "expected"),
    [
        (BLOCKING, [("BLOCKING", 2)]),
        (PIPELINED, [("PIPELINED_BOUNDED", 1), ("PIPELINED_BOUNDED", 1)]),
        (FULL, [("HYBRID_FULL", 2)]),
        (SELECTIVE, [("HYBRID_FULL", 2)]),
    ],
)
def test_readers_with_equal_partitioning_share_a_blocking_data_set(
    batch_env: Any, source: Any, compiled: Any, shuffle: str, expected: Any
) -> None:
    numbers = source(batch_env)
    numbers.rebalance().map(str)
    numbers.rebalance().map(str)
    assert data_sets(compiled(batch_env, shuffle=shuffle)) == expected


def test_in_streaming_mode_data_sets_are_pipelined(env: Any, source: Any, compiled: Any) -> None:
    source(env).rebalance().map(str)
    assert data_sets(compiled(env, shuffle=BLOCKING)) == [("PIPELINED_BOUNDED", 1)]


def differing(numbers: Any, what: str) -> None:
    """Two consumers that differ in one thing."""
    if what == "partitioner":
        numbers.rebalance().map(str)
        numbers.shuffle().map(str)
    elif what == "parallelism":
        numbers.rebalance().map(str).set_parallelism(2)
        numbers.rebalance().map(str).set_parallelism(3)
    elif what == "max parallelism":
        numbers.rebalance().map(str).set_max_parallelism(8)
        numbers.rebalance().map(str)
    elif what == "tag":
        numbers.get_side_output(OutputTag("late")).rebalance().map(str)
        numbers.rebalance().map(str)
    elif what == "key":
        numbers.key_by(lambda value: value).map(str)
        numbers.key_by(lambda value: value).map(str)
    else:
        numbers.partition(PartitionerKind.REBALANCE, exchange_mode=ExchangeMode.PIPELINED).map(str)
        numbers.rebalance().map(str)


@pytest.mark.parametrize(
    "what", ["partitioner", "parallelism", "max parallelism", "tag", "key", "exchange mode"]
)
def test_readers_with_different_partitioning_share_no_data_set(
    batch_env: Any, source: Any, compiled: Any, what: str
) -> None:
    differing(source(batch_env), what)
    assert [readers for _, readers in data_sets(compiled(batch_env))] == [1, 1]


def test_readers_of_one_key_by_share_a_data_set(batch_env: Any, source: Any, compiled: Any) -> None:
    keyed = source(batch_env).key_by(str)
    keyed.map(str)
    keyed.map(str)
    assert data_sets(compiled(batch_env)) == [("BLOCKING", 2)]


def test_outputs_of_different_operators_of_a_vertex_are_not_shared(
    batch_env: Any, source: Any, compiled: Any
) -> None:
    numbers = source(batch_env)
    numbers.rebalance().map(str)
    numbers.filter(bool).rebalance().map(str)
    assert data_sets(compiled(batch_env)) == [("BLOCKING", 1), ("BLOCKING", 1)]


def test_a_broadcast_is_never_selective(batch_env: Any, source: Any, compiled: Any) -> None:
    numbers = source(batch_env)
    numbers.broadcast().map(str)
    numbers.rebalance().map(str)
    assert data_sets(compiled(batch_env, shuffle=SELECTIVE)) == [
        ("HYBRID_FULL", 1),
        ("HYBRID_SELECTIVE", 1),
    ]


def test_an_operator_that_emits_only_at_the_end_blocks_in_streaming_mode(
    env: Any, source: Any, compiled: Any
) -> None:
    #  whole -> a -> b ~~> c
    #        \-> d ~~> e
    whole = source(env).key_by(str).full_window_partition().map_partition(list)
    a = whole.map(str)
    a.map(str).rebalance().map(str)
    whole.map(str).rebalance().map(str)
    plan = compiled(env)
    assert data_sets(plan, whole.transformation.id) == [("BLOCKING", 1), ("BLOCKING", 1)]
    assert data_sets(plan, 1) == [("PIPELINED_BOUNDED", 1)]


@pytest.mark.parametrize(
    ("has_resources", "expected"), [(True, "BLOCKING"), (False, "PIPELINED_BOUNDED")]
)
def test_groups_with_resources_make_batch_exchanges_blocking(
    batch_env: Any, source: Any, compiled: Any, has_resources: bool, expected: str
) -> None:
    builder = SlotSharingGroup.builder("big")
    if has_resources:
        builder.set_cpu_cores(1.0).set_task_heap_memory_mb(64)
    source(batch_env).slot_sharing_group(builder.build()).rebalance().map(str)
    assert data_sets(compiled(batch_env, shuffle=PIPELINED)) == [(expected, 1)]


def test_a_hybrid_exchange_is_refused_in_streaming(env: Any, source: Any, compiled: Any) -> None:
    mode = ExchangeMode.HYBRID_FULL
    source(env).partition(PartitionerKind.REBALANCE, exchange_mode=mode).map(str)
    with pytest.raises(JobGraphError, match="has a hybrid exchange, which needs batch mode"):
        compiled(env)


def test_a_buffer_timeout_is_refused_for_a_blocking_exchange(
    batch_env: Any, source: Any, compiled: Any
) -> None:
    source(batch_env, "in").set_buffer_timeout(50).rebalance().map(str)
    with pytest.raises(JobGraphError) as raised:
        compiled(batch_env)
    assert "'Source: in' (conftest.py:" in str(raised.value)
    assert "has a buffer timeout of 50 ms" in str(raised.value)


@pytest.mark.parametrize("timeout", [-1, None])
def test_a_blocking_exchange_without_its_own_buffer_timeout_is_accepted(
    batch_env: Any, source: Any, compiled: Any, timeout: int | None
) -> None:
    numbers = source(batch_env)
    if timeout is not None:
        numbers.set_buffer_timeout(timeout)
    numbers.rebalance().map(str)
    assert data_sets(compiled(batch_env)) == [("BLOCKING", 1)]


def test_the_invariant_finds_data_sets_that_do_not_match_the_outputs(
    env: Any, source: Any, compiled: Any
) -> None:
    source(env).rebalance().map(str)
    plan = compiled(env)
    with pytest.raises(InternalError, match="do not match its outputs"):
        every_cut_edge_reads_one_data_set(replace(plan, data_sets={**plan.data_sets, 1: ()}))


def test_disabled_generic_types_refuse_records_without_a_declared_type() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.get_config().disable_generic_types()
    numbers = env.from_collection([1], Types.LONG())
    numbers.rebalance().map(str, Types.STRING()).rebalance().map(len).print()
    plan = json.loads(str(explain(env.program(), "job-graph", "json")))
    edges = [edge["serializer"] for edge in plan["edges"] if not edge["is_chained"]]
    assert len(edges) == 2
    assert "pickle" not in edges
    numbers.map(str).name("untyped").rebalance().print()
    with pytest.raises(GraphError, match="would pickle its records"):
        env.get_job_graph()


def test_the_plan_names_edges_with_pickled_records() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1], Types.LONG()).map(str).rebalance().print()
    plan = json.loads(str(explain(env.program(), "job-graph", "json")))
    assert [edge["serializer"] for edge in plan["edges"] if not edge["is_chained"]][-1] == "pickle"
