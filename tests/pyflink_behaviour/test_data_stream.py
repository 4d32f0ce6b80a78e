"""Streams without key and with one, as PyFlink programs use them."""

from __future__ import annotations

import datetime as dt
import decimal
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

import pytest

from opchain.common import Row, RowKind, Types, WatermarkStrategy
from opchain.common.watermark_strategy import TimestampAssigner
from opchain.datastream import (
    AggregateFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessFunction,
    ReduceFunction,
    RuntimeContext,
)
from opchain.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.datastream import DataStream, StreamExecutionEnvironment

NOON = dt.datetime(2024, 2, 29, 12)  # noqa: DTZ001 - SQL's timestamps have no zone
PETS = [("cat", 3), ("dog", 4), ("cat", 1), ("emu", 2), ("dog", 5)]


def collected(stream: DataStream[Any]) -> list[Any]:
    with stream.execute_and_collect() as found:
        return list(found)


def is_batch(env: StreamExecutionEnvironment) -> bool:
    return "BATCH" in env.get_configuration().to_dict().values()


# Functions


@pytest.mark.parametrize("targets", ["lambda", "key", "object"])
def test_a_function_is_serialized_when_it_is_passed(
    env: StreamExecutionEnvironment, targets: str
) -> None:
    numbers = env.from_collection([1, 2, 3], Types.INT())
    found: list[DataStream[Any]] = []
    scale = Scale()
    for number in (2, 3):
        scale.factor = number
        found.append(
            {
                "lambda": lambda: numbers.map(lambda value: value * number),  # noqa: B023 - that is the test
                "key": lambda: numbers.key_by(lambda value: value * number).process(Keys()),  # noqa: B023
                "object": lambda: numbers.map(scale),
            }[targets]()
        )
    scale.factor = 0
    assert [sorted(collected(stream)) for stream in found] == [[2, 4, 6], [3, 6, 9]]


class Keys(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield ctx.get_current_key()


class Scale(MapFunction):
    factor = 1

    def map(self, value: Any) -> Any:
        return value * self.factor


class Louder(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.mark = "!" * runtime_context.get_number_of_parallel_subtasks()

    def map(self, value: Any) -> Any:
        return value[0].upper() + self.mark, value[1]


class Letters(FlatMapFunction):
    def flat_map(self, value: Any) -> Iterator[str]:
        yield from value[0]


class Odd(FilterFunction):
    def filter(self, value: Any) -> bool:
        return bool(value[1] % 2)


def test_functions_can_be_objects_or_callables(env: StreamExecutionEnvironment) -> None:
    pets = env.from_collection(PETS)
    assert sorted(collected(pets.map(Louder()).filter(Odd()))) == [
        *(("CAT!!", 1), ("CAT!!", 3), ("DOG!!", 5))
    ]
    assert sorted(collected(pets.flat_map(Letters()))) == sorted("catdogcatemudog")
    assert sorted(collected(pets.map(lambda pet: pet[1]).filter(lambda n: n > 3))) == [4, 5]


def test_a_flat_map_may_return_a_list_or_yield_nothing(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([0, 1, 2])
    assert sorted(collected(stream.flat_map(lambda n: [n] * n))) == [1, 2, 2]


@dataclass
class Pet:
    name: str
    age: int


def test_records_can_be_any_objects(env: StreamExecutionEnvironment) -> None:
    stream = env.from_collection([Pet("cat", 3), Pet("dog", 4), Pet("cat", 1)])
    oldest = stream.key_by(lambda pet: pet.name).reduce(lambda a, b: max(a, b, key=lambda p: p.age))
    assert {(pet.name, pet.age) for pet in collected(oldest)} == {("cat", 3), ("dog", 4)}


def test_a_failing_function_fails_the_job(env: StreamExecutionEnvironment) -> None:
    env.from_collection([1, 0]).map(lambda n: 1 // n).print()
    with pytest.raises(ZeroDivisionError):
        env.execute("divides")


# Declared types


def test_tuples_of_a_named_row_type_have_attributes(env: StreamExecutionEnvironment) -> None:
    rows = env.from_collection(
        PETS, type_info=Types.ROW_NAMED(["kind", "age"], [Types.STRING(), Types.INT()])
    )
    assert sorted(collected(rows.map(lambda row: (row.kind, row["age"] + row[1])))) == [
        *(("cat", 2), ("cat", 6), ("dog", 8), ("dog", 10), ("emu", 4))
    ]


def test_values_of_every_type_are_collected_unchanged(env: StreamExecutionEnvironment) -> None:
    record = Row(
        *(1, "text", True, 1.5, b"bytes", decimal.Decimal("1.20"), dt.date(2024, 2, 29)),
        *(dt.time(12, 30, 1), NOON, [1, 2], {"a": 1.0}, None),
    )
    types = Types.ROW(
        [
            *(Types.LONG(), Types.STRING(), Types.BOOLEAN(), Types.DOUBLE()),
            *(Types.PICKLED_BYTE_ARRAY(), Types.BIG_DEC(), Types.SQL_DATE(), Types.SQL_TIME()),
            *(Types.SQL_TIMESTAMP(), Types.LIST(Types.LONG())),
            *(Types.MAP(Types.STRING(), Types.DOUBLE()), Types.STRING()),
        ]
    )
    (found,) = collected(env.from_collection([record], type_info=types).map(lambda row: row))
    assert list(found) == list(record)
    assert found.get_row_kind() is RowKind.INSERT


# Keys


class ByKind(KeySelector):
    def get_key(self, value: Any) -> Any:
        return value[0]


@pytest.mark.parametrize("selector", [ByKind(), lambda pet: pet[0]])
def test_a_rolling_reduce_emits_each_step(env: StreamExecutionEnvironment, selector: Any) -> None:
    reduced = env.from_collection(PETS).key_by(selector).reduce(lambda a, b: (a[0], a[1] + b[1]))
    by_key: dict[str, list[int]] = {}
    for kind, total in collected(reduced):
        by_key.setdefault(kind, []).append(total)
    assert by_key == {"cat": [3, 4], "dog": [4, 9], "emu": [2]}


AGGREGATED = [
    ("sum", [("cat", 3), ("cat", 4), ("dog", 4), ("dog", 9), ("emu", 2)]),
    ("min", [("cat", 3), ("cat", 1), ("dog", 4), ("dog", 4), ("emu", 2)]),
    ("max", [("cat", 3), ("cat", 3), ("dog", 4), ("dog", 5), ("emu", 2)]),
    ("min_by", [("cat", 3), ("cat", 1), ("dog", 4), ("dog", 4), ("emu", 2)]),
    ("max_by", [("cat", 3), ("cat", 3), ("dog", 4), ("dog", 5), ("emu", 2)]),
]


@pytest.mark.parametrize(("aggregation", "expected"), AGGREGATED)
def test_rolling_aggregations_emit_a_result_for_each_record(
    env: StreamExecutionEnvironment, aggregation: str, expected: list[Any]
) -> None:
    keyed = env.from_collection(PETS).key_by(lambda pet: pet[0])
    found = collected(getattr(keyed, aggregation)(1))
    assert sorted(found) == sorted(expected)


def test_an_aggregation_may_name_a_field_of_rows(env: StreamExecutionEnvironment) -> None:
    rows = env.from_collection(
        PETS, type_info=Types.ROW_NAMED(["kind", "age"], [Types.STRING(), Types.INT()])
    )
    found = collected(rows.key_by(lambda row: row.kind).sum("age"))
    assert sorted(row.age for row in found) == [2, 3, 4, 4, 9]


def test_batch_mode_emits_only_final_results(env_of_each_mode: StreamExecutionEnvironment) -> None:
    keyed = env_of_each_mode.from_collection(PETS).key_by(lambda pet: pet[0])
    reduced = collected(keyed.reduce(lambda a, b: (a[0], a[1] + b[1])))
    assert dict(reduced) == {"cat": 4, "dog": 9, "emu": 2}
    assert len(reduced) == (3 if is_batch(env_of_each_mode) else 5)


def test_a_stream_may_be_keyed_again(env: StreamExecutionEnvironment) -> None:
    counted = (
        env.from_collection(PETS)
        .key_by(lambda pet: pet[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .key_by(lambda pet: pet[1] % 2, key_type=Types.INT())
        .map(lambda pet: pet[1])
    )
    assert sorted(collected(counted)) == [2, 3, 4, 4, 9]


# State


class EveryState(KeyedProcessFunction):
    """Counts, remembers, groups, sums and averages with one state of each kind."""

    def open(self, runtime_context: RuntimeContext) -> None:
        class Add(ReduceFunction):
            def reduce(self, value1: int, value2: int) -> int:
                return value1 + value2

        class Mean(AggregateFunction):
            def create_accumulator(self) -> tuple[int, int]:
                return 0, 0

            def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
                return accumulator[0] + value, accumulator[1] + 1

            def get_result(self, accumulator: tuple[int, int]) -> float:
                return accumulator[0] / accumulator[1]

            def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
                return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]

        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.all = runtime_context.get_list_state(ListStateDescriptor("all", Types.LONG()))
        self.times = runtime_context.get_map_state(
            MapStateDescriptor("times", Types.LONG(), Types.LONG())
        )
        self.total = runtime_context.get_reducing_state(
            ReducingStateDescriptor("total", Add(), Types.LONG())
        )
        self.mean = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("mean", Mean(), Types.PICKLED_BYTE_ARRAY())
        )

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        number = value[1]
        self.count.update((self.count.value() or 0) + 1)
        self.all.add(number)
        self.times.put(number, (self.times.get(number) or 0) + 1)
        self.total.add(number)
        self.mean.add(number)
        yield (
            *(ctx.get_current_key(), self.count.value(), list(self.all.get())),
            *(sorted(self.times.items()), self.total.get(), self.mean.get()),
        )


def test_states_of_every_kind_belong_to_a_key(env_of_each_mode: StreamExecutionEnvironment) -> None:
    data = [("a", 1), ("b", 10), ("a", 3), ("a", 3), ("b", 20)]
    found = collected(
        env_of_each_mode.from_collection(data).key_by(lambda pair: pair[0]).process(EveryState())
    )
    assert sorted(found, key=lambda each: each[:2]) == [
        ("a", 1, [1], [(1, 1)], 1, 1.0),
        ("a", 2, [1, 3], [(1, 1), (3, 1)], 4, 2.0),
        ("a", 3, [1, 3, 3], [(1, 1), (3, 2)], 7, 7 / 3),
        ("b", 1, [10], [(10, 1)], 10, 10.0),
        ("b", 2, [10, 20], [(10, 1), (20, 1)], 30, 15.0),
    ]


class Chain(ReduceFunction):
    """Joins names, and counts its own calls per key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.calls = runtime_context.get_state(ValueStateDescriptor("calls", Types.INT()))

    def reduce(self, value1: Any, value2: Any) -> Any:
        calls = (self.calls.value() or 0) + 1
        self.calls.update(calls)
        return f"{value1[0]}{calls}{value2[0]}", value1[1]


def test_a_rich_reduce_may_use_keyed_state(env_of_each_mode: StreamExecutionEnvironment) -> None:
    letters = [("a", 0), ("c", 1), ("d", 1), ("b", 0), ("e", 1)]
    stream = env_of_each_mode.from_collection(letters).key_by(lambda pair: pair[1]).reduce(Chain())
    steps = [("a", 0), ("a1b", 0), ("c", 1), ("c1d", 1), ("c1d2e", 1)]
    last = [("a1b", 0), ("c1d2e", 1)]
    assert sorted(collected(stream)) == (last if is_batch(env_of_each_mode) else steps)


def test_rich_map_and_filter_may_use_keyed_state(env: StreamExecutionEnvironment) -> None:
    class Numbered(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.INT()))

        def map(self, value: Any) -> Any:
            number = (self.seen.value() or 0) + 1
            self.seen.update(number)
            return value[0], number

    class FirstOnly(FilterFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.BOOLEAN()))

        def filter(self, value: Any) -> bool:
            is_new = self.seen.value() is None
            self.seen.update(value=True)
            return is_new

    keyed = env.from_collection(PETS).key_by(lambda pet: pet[0])
    assert sorted(collected(keyed.map(Numbered()))) == [
        *(("cat", 1), ("cat", 2), ("dog", 1), ("dog", 2), ("emu", 1))
    ]
    assert sorted(collected(keyed.filter(FirstOnly()))) == [("cat", 3), ("dog", 4), ("emu", 2)]


# Time


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())


def test_a_process_function_sees_timestamps(env: StreamExecutionEnvironment) -> None:
    class Timed(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield value[0], ctx.timestamp()

    stream = env.from_collection(PETS).assign_timestamps_and_watermarks(MONOTONOUS)
    assert sorted(collected(stream.process(Timed()))) == sorted(PETS)


def test_event_time_timers_fire_in_order_and_may_be_deleted(
    env_of_each_mode: StreamExecutionEnvironment,
) -> None:
    class Reminders(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            timers = ctx.timer_service()
            timers.register_event_time_timer(value[1] + 100)
            timers.register_event_time_timer(value[1] + 100)
            timers.register_event_time_timer(value[1] + 200)
            timers.delete_event_time_timer(value[1] + 200)
            return ()

        def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
            yield ctx.get_current_key(), timestamp, ctx.time_domain().name
            if timestamp == 104:
                ctx.timer_service().register_event_time_timer(150)

    stream = env_of_each_mode.from_collection(PETS).assign_timestamps_and_watermarks(MONOTONOUS)
    fired = collected(stream.key_by(lambda pet: pet[0]).process(Reminders()))
    by_key: dict[str, list[int]] = {}
    for kind, timestamp, domain in fired:
        assert domain == "EVENT_TIME"
        by_key.setdefault(kind, []).append(timestamp)
    # In batch mode a key has ended when its timers fire: Flink ignores what they register then.
    later = [] if is_batch(env_of_each_mode) else [150]
    assert by_key == {"cat": [101, 103], "dog": [104, 105, *later], "emu": [102]}


# Partitioning


@pytest.mark.parametrize("method", ["rebalance", "rescale", "shuffle", "forward"])
def test_each_partitioning_keeps_every_record(env: StreamExecutionEnvironment, method: str) -> None:
    spread = getattr(env.from_sequence(1, 50), method)()
    assert sorted(collected(spread.map(lambda n: n))) == list(range(1, 51))


def test_broadcast_sends_every_record_to_every_subtask(env: StreamExecutionEnvironment) -> None:
    spread = env.from_sequence(1, 5).broadcast().map(lambda n: n)
    assert sorted(collected(spread)) == sorted([*range(1, 6)] * 2)


def test_a_custom_partitioner_chooses_subtasks(env: StreamExecutionEnvironment) -> None:
    class Halves(Partitioner):
        def partition(self, key: Any, num_partitions: int) -> int:
            return 0 if key <= 3 else num_partitions - 1

    class WithSubtask(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.subtask = runtime_context.get_index_of_this_subtask()

        def map(self, value: Any) -> Any:
            return value, self.subtask

    spread = env.from_sequence(1, 6).partition_custom(Halves(), lambda n: n).map(WithSubtask())
    assert sorted(collected(spread)) == [(n, 0) for n in (1, 2, 3)] + [(n, 1) for n in (4, 5, 6)]


def test_streams_of_any_key_may_be_united(env: StreamExecutionEnvironment) -> None:
    by_name = env.from_collection(PETS).key_by(lambda pet: pet[0])
    by_age = env.from_collection([("fox", 7)]).key_by(lambda pet: pet[1])
    assert sorted(collected(by_name.union(by_age))) == sorted([*PETS, ("fox", 7)])


def test_a_keyed_stream_is_collected_with_its_keys(env: StreamExecutionEnvironment) -> None:
    pets = env.from_collection(PETS, type_info=Types.TUPLE([Types.STRING(), Types.INT()]))
    by_kind = pets.key_by(lambda pet: pet[0], key_type=Types.STRING())
    assert collected(by_kind) == [Row(f0=kind, f1=(kind, age)) for kind, age in PETS]
    assert by_kind.execute_and_collect(limit=1) == [Row(f0="cat", f1=("cat", 3))]


def test_floats_are_collected_with_the_shortest_exact_digits(
    env: StreamExecutionEnvironment,
) -> None:
    record_type = Types.ROW_NAMED(
        ["single", "list", "map", "pair", "double"],
        [
            Types.FLOAT(),
            Types.LIST(Types.FLOAT()),
            Types.MAP(Types.STRING(), Types.FLOAT()),
            Types.TUPLE([Types.INT(), Types.FLOAT()]),
            Types.DOUBLE(),
        ],
    )
    row = Row(single=0.1, list=[0.2, 1e10], map={"a": 0.3}, pair=(1, 0.7), double=0.1)
    rows = env.from_collection(
        [row, Row.of_kind(RowKind.DELETE, None, None, None, None, 1.0)], record_type
    )
    first, second = rows.execute_and_collect(limit=2)
    assert first == row
    assert second.get_row_kind() is RowKind.DELETE
    assert second.as_dict()["single"] is None
    numbers = env.from_collection([0.1, inf], Types.FLOAT())
    assert numbers.execute_and_collect(limit=2) == [0.1, inf]
    # Functions get the 32-bit float.
    wide = numbers.map(lambda number: number, Types.DOUBLE())
    assert wide.execute_and_collect(limit=1) == [0.10000000149011612]


def test_execute_and_collect_returns_an_iterator_or_a_limited_list(
    env: StreamExecutionEnvironment,
) -> None:
    with env.from_sequence(1, 3).execute_and_collect() as numbers:
        assert sorted(numbers) == [1, 2, 3]
    assert env.from_sequence(1, 100).set_parallelism(1).execute_and_collect(limit=4) == [1, 2, 3, 4]


def early(number: int) -> int:
    """Refuses records that are not at the beginning of the sequence, or of one of its two halves."""
    if number % 500_000_000 > 10_000:
        raise ValueError(number)
    return number


@pytest.mark.parametrize("parallelism", [1, 2])
def test_execute_and_collect_with_a_limit_stops_the_source(
    env_of_each_mode: StreamExecutionEnvironment, parallelism: int
) -> None:
    env = env_of_each_mode.set_parallelism(parallelism)
    numbers = env.from_sequence(1, 10**9).filter(lambda number: number % 2).map(early)
    assert numbers.execute_and_collect(limit=3) == [1, 3, 5]


def test_execute_and_collect_with_a_limit_does_not_limit_other_sinks(
    env: StreamExecutionEnvironment,
) -> None:
    numbers = env.from_sequence(1, 20_000).set_parallelism(1)
    for stream in (numbers, numbers.rebalance().map(lambda number: number)):
        everything = numbers.collect_async()
        assert len(stream.execute_and_collect(limit=3)) == 3
        assert sum(1 for _ in everything) == 20_000


def test_functions_can_read_job_parameters(env: StreamExecutionEnvironment) -> None:
    class Greeting(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.word = runtime_context.get_job_parameter("greeting", "hello")
            self.other = runtime_context.get_job_parameter("other", "none")

        def map(self, value: Any) -> str:
            return f"{self.word} {value} {self.other}"

    env.get_config().set_global_job_parameters({"greeting": "good morning"})
    assert collected(env.from_collection(["you"]).map(Greeting())) == ["good morning you none"]
