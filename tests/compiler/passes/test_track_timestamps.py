from __future__ import annotations

from typing import Any

import pytest
from forms import FORMS, run_form, seen

from opchain.common import WatermarkStrategy
from opchain.compiler.passes.assemble_programs import edges_with_timestamps
from opchain.datastream.functions import (
    FlatMapFunction,
    KeyedProcessFunction,
    ProcessFunction,
    SourceFunction,
)

STAMPED: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda value, _: -value
)


class Reads(ProcessFunction[int, int]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        yield value


class Function(SourceFunction[int]):
    def run(self, ctx: SourceFunction.SourceContext[int]) -> None:
        pass

    def cancel(self) -> None:
        pass


def carried(env: Any, compiled: Any) -> set[str]:
    """The edges with timestamps, by the names of their ends."""
    graph = compiled(env, "stream-graph").stream_graph
    return {
        f"{graph.node(edge.source).name} -> {graph.node(edge.target).name}"
        for edge in graph.edges()
        if edge.index in edges_with_timestamps(graph)
    }


def test_no_edge_carries_timestamps_without_an_assigner(
    env: Any, source: Any, compiled: Any
) -> None:
    source(env).map(str).process(Reads()).print()
    assert carried(env, compiled) == set()


def test_no_edge_carries_timestamps_without_a_reader(env: Any, source: Any, compiled: Any) -> None:
    stamped = source(env).assign_timestamps_and_watermarks(STAMPED)
    stamped.map(str).key_by(str).reduce(max).collect_async()
    assert carried(env, compiled) == set()


def test_only_edges_from_an_assigner_to_a_reader_carry_timestamps(
    env: Any, source: Any, compiled: Any
) -> None:
    before = source(env, "in").map(int).name("before")
    stamped = before.assign_timestamps_and_watermarks(STAMPED).name("stamp").map(int).name("a")
    stamped.process(Reads()).name("reads").map(int).name("behind").collect_async()
    stamped.filter(bool).name("b").collect_async()
    assert carried(env, compiled) == {"stamp -> a", "a -> reads"}


def test_a_second_assigner_makes_earlier_timestamps_unnecessary(
    env: Any, source: Any, compiled: Any
) -> None:
    first = source(env, "in").assign_timestamps_and_watermarks(STAMPED).name("first").map(int)
    first.name("between").assign_timestamps_and_watermarks(STAMPED).name("second").process(
        Reads()
    ).name("reads").collect_async()
    # An assigner sees the old timestamp.
    assert carried(env, compiled) == {
        *("first -> between", "between -> second"),
        "second -> reads",
    }


def test_a_strategy_without_an_assigner_creates_no_timestamps(
    env: Any, source: Any, compiled: Any
) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    source(env, "in").assign_timestamps_and_watermarks(strategy).name("none").process(Reads())
    assert carried(env, compiled) == set()


def test_a_source_function_may_emit_timestamps(env: Any, compiled: Any) -> None:
    env.add_source(Function(), "f").map(int).name("a").process(Reads()).name("reads")
    assert carried(env, compiled) == {"Source: f -> a", "a -> reads"}


@pytest.mark.parametrize(("mode", "expected"), [("env", set()), ("batch_env", {"sum -> reads"})])
def test_in_batch_mode_the_result_of_a_reduce_has_a_timestamp(
    request: pytest.FixtureRequest, source: Any, compiled: Any, mode: str, expected: set[str]
) -> None:
    env = request.getfixturevalue(mode)
    source(env).key_by(str).reduce(max).name("sum").process(Reads()).name("reads")
    assert carried(env, compiled) == expected


class KeepsOrder(FlatMapFunction[int, int]):
    def open(self, runtime_context: Any) -> None:
        pass

    def flat_map(self, value: int) -> Any:
        yield value


@pytest.mark.parametrize("form", FORMS)
def test_in_batch_mode_records_of_a_key_are_sorted_by_time(form: str) -> None:
    def draw(env: Any) -> None:
        stamped = env.from_sequence(1, 6).assign_timestamps_and_watermarks(STAMPED)
        seen(stamped.key_by(lambda x: x % 2).flat_map(KeepsOrder()), "s", reads_timestamps=False)

    records = run_form(draw, form, mode="BATCH").records("s")
    assert [x for x in records if x % 2] == [5, 3, 1]
    assert [x for x in records if not x % 2] == [6, 4, 2]


class Alarm(KeyedProcessFunction[int, int, int]):
    def process_element(self, value: int, ctx: KeyedProcessFunction.Context[int]) -> Any:
        ctx.timer_service().register_event_time_timer(value)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext[int]) -> Any:
        yield timestamp


class Tells(ProcessFunction[int, Any]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        yield value, ctx.timestamp()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("between", [lambda stream: stream, lambda stream: stream.rebalance()])
def test_results_of_timers_have_the_timestamp_of_the_timer(between: Any, form: str) -> None:
    """Also where no record had a timestamp."""

    def draw(env: Any) -> None:
        alarms = env.from_sequence(1, 3).key_by(lambda x: x % 2).process(Alarm())
        seen(between(alarms).process(Tells()), "all")

    ran = run_form(draw, form)
    assert sorted(ran.records("all")) == [(1, 1), (2, 2), (3, 3)]
    assert sorted(ran.timestamps("all")) == [1, 2, 3]  # type: ignore[type-var]
