"""Streams whose records one job writes and later jobs of the program read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Configuration, WatermarkStrategy
from opchain.compiler.graph.plan import StreamGraphError
from opchain.datastream import (
    MapFunction,
    OutputTag,
    ProcessFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from opchain.runtime.errors import GraphError

if TYPE_CHECKING:
    from opchain.datastream.data_stream import CachedDataStream

STAMPED: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda value, _: value
)
SMALL = OutputTag("small")


class Times(ProcessFunction[int, Any]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        yield value, ctx.timestamp()


class WithSubtask(MapFunction[int, Any]):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value: int) -> Any:
        return self.subtask, value


class SplitsOff(ProcessFunction[int, int]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        if value < 3:
            yield SMALL, value
        else:
            yield value


def environment(target: str = "local") -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.target", target)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    return env.set_parallelism(2)


def squares(env: StreamExecutionEnvironment, last: int = 100) -> CachedDataStream[int]:
    numbers = env.from_sequence(1, last).assign_timestamps_and_watermarks(STAMPED)
    return numbers.map(lambda n: n * n).name("square").cache()


def names_of(env: StreamExecutionEnvironment, stream: Any) -> tuple[list[Any], set[str]]:
    """The records of a stream, sorted, and the names of the operators that ran for them."""
    with stream.execute_and_collect() as records:
        found = sorted(records)
        assert records._client is not None
        metrics = records._client.get_job_execution_result().result().metrics
    return found, {operator.name for operator in metrics.operators}


def test_the_first_job_writes_the_cache_and_later_jobs_read_it() -> None:
    env = environment()
    cached = squares(env)
    expected = [n * n for n in range(1, 101)]
    records, ran = names_of(env, cached.map(lambda n: n))
    assert records == expected
    assert {"square", "CacheWrite"} <= ran
    for _ in range(2):
        records, ran = names_of(env, cached.key_by(lambda n: n % 3).process(Times()))
        assert records == [(n * n, n) for n in range(1, 101)]  # timestamps are kept
        assert "CacheRead" in ran
        assert not ran & {"square", "CacheWrite"}


def test_each_subtask_reads_the_cached_records_that_it_wrote() -> None:
    env = environment()
    cached = squares(env, 6)
    first, _ = names_of(env, cached.map(WithSubtask()))
    assert {subtask for subtask, _ in first} == {0, 1}
    assert names_of(env, cached.map(WithSubtask()))[0] == first


def test_an_invalidated_cache_is_written_again() -> None:
    env = environment()
    cached = squares(env)
    names_of(env, cached.map(str))
    for drop in (cached.invalidate, env.close):
        drop()
        assert {"square", "CacheWrite"} <= names_of(env, cached.map(str))[1]
        assert "CacheRead" in names_of(env, cached.map(str))[1]


def test_a_stream_without_records_is_cached_too() -> None:
    env = environment()
    cached = squares(env).filter(lambda n: n < 0).name("none").cache()
    assert names_of(env, cached.map(str))[0] == []
    assert "none" not in names_of(env, cached.map(str))[1]


def test_a_side_output_can_be_cached() -> None:
    env = environment()
    split = env.from_sequence(1, 9).process(SplitsOff()).name("split")
    cached = split.get_side_output(SMALL).cache()
    assert "split" in names_of(env, cached.map(int))[1]
    records, ran = names_of(env, cached.map(int))
    assert records == [1, 2]
    assert "split" not in ran


def test_a_failed_job_leaves_no_cache() -> None:
    env = environment()
    cached = squares(env)
    with pytest.raises(ZeroDivisionError):
        names_of(env, cached.map(lambda n: 1 // (n - 100)))
    assert "square" in names_of(env, cached.map(str))[1]


def test_a_cache_is_read_in_streaming_mode_and_not_written() -> None:
    env = environment()
    cached = squares(env)
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    with pytest.raises(StreamGraphError, match="a cache is written in batch mode only"):
        names_of(env, cached.map(int))
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    names_of(env, cached.map(int))
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    assert names_of(env, cached.map(int))[0] == [n * n for n in range(1, 101)]


@pytest.mark.parametrize("call", ["set_parallelism", "name", "uid", "get_name", "disable_chaining"])
def test_a_cached_stream_has_no_setters_of_operators(call: str) -> None:
    arguments = {"set_parallelism": (2,), "name": ("a",), "uid": ("a",)}
    with pytest.raises(GraphError, match=r"the cache of 'square' .* has no attributes"):
        getattr(squares(environment()), call)(*arguments.get(call, ()))


@pytest.mark.parametrize("before", [lambda s: s.rebalance(), lambda s: s.union(s)])
def test_only_operators_and_side_outputs_can_be_cached(before: Any) -> None:
    with pytest.raises(GraphError, match="only an operator or a side output"):
        before(environment().from_sequence(1, 9)).cache()
    with pytest.raises(GraphError, match="a keyed stream can't be cached"):
        environment().from_sequence(1, 9).key_by(lambda n: n).cache()
