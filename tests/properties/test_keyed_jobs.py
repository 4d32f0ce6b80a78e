"""Keyed process functions in whole jobs: each form, mode and parallelism against a plain model."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from forms import FORMS, failure_of, notes_of, run_form, seen
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.common import WatermarkStrategy
from opchain.common.watermark_strategy import TimestampAssigner
from opchain.datastream import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
)
from opchain.runtime.errors import StateError
from opchain.runtime.functions.state_descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    ValueStateDescriptor,
)
from opchain.runtime.time import MAX_LONG_VALUE

ODD = OutputTag("odd")
RULES: MapStateDescriptor[Any, Any] = MapStateDescriptor("rules")
MODES = ("STREAMING", "BATCH")
KEYS = st.sampled_from(["a", "b", 1, True, 1.0, ("a", 2), ("a", 2.0)])
RECORDS = st.lists(st.tuples(KEYS, st.integers(-20, 20)), max_size=25)


class ByTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        time: int = value[1]
        return time


class CountAndFlush(KeyedProcessFunction[Any, Any, Any]):
    """Emits a running count; 10 ms after a record all values gathered until then; odd ones aside."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.values = runtime_context.get_list_state(ListStateDescriptor("values"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        self.values.add(value[1])
        ctx.timer_service().register_event_time_timer(value[1] + 10)
        yield "count", value[0], self.count.value(), ctx.timestamp()
        if value[1] % 2:
            yield ODD, value

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        gathered = sorted(self.values.get())
        if gathered:
            self.values.clear()
            yield "flush", ctx.get_current_key(), timestamp, gathered


class PlainCount(KeyedProcessFunction[Any, Any, Any]):
    """Has no timers, so all downstream operators are inlined into the loop."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        yield value[0], self.count.value()


def streams(env: Any, records: list[Any], name: str = "source") -> Any:
    strategy: Any = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByTime())
    return env.from_collection(records).name(name).assign_timestamps_and_watermarks(strategy)


def by_repr(items: Any) -> Counter[str]:
    return Counter(map(repr, items))


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=15)
@given(records=RECORDS, form=st.sampled_from(FORMS), parallelism=st.integers(1, 3))
def test_counts_timers_and_side_outputs_of_random_records_are_correct(
    mode: str, records: list[Any], form: str, parallelism: int
) -> None:
    def draw(env: Any) -> None:
        out = streams(env, records).key_by(lambda value: value[0]).process(CountAndFlush())
        seen(out.map(lambda value: value), "out")
        seen(out.get_side_output(ODD), "odd")

    ran = run_form(draw, form, mode=mode, parallelism=parallelism)
    of_key: dict[str, list[int]] = {}
    for key, number in records:
        of_key.setdefault(repr(key), []).append(number)
    assert by_repr(ran.records("odd")) == by_repr(record for record in records if record[1] % 2)
    out = ran.records("out")
    counts = Counter((repr(key), number) for kind, key, number, _ in out if kind == "count")
    assert counts == Counter(
        (key, n + 1) for key, numbers in of_key.items() for n in range(len(numbers))
    )
    gathered: dict[str, list[int]] = {}
    for kind, key, _, values in out:
        if kind == "flush":
            gathered.setdefault(repr(key), []).extend(values)
    assert {key: sorted(v) for key, v in gathered.items()} == {
        key: sorted(v) for key, v in of_key.items()
    }
    flushes = {repr(key): time for kind, key, time, _ in reversed(out) if kind == "flush"}
    if mode == "BATCH":  # a key is complete before its first timer fires
        assert flushes == {key: min(numbers) + 10 for key, numbers in of_key.items()}
        times = [time for kind, _, _, time in out if kind == "count"]
        assert sorted(times) == sorted(number for _, number in records)


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=10)
@given(records=RECORDS, parallelism=st.integers(1, 3))
def test_each_form_emits_the_same_records_in_the_same_order(
    mode: str, records: list[Any], parallelism: int
) -> None:
    def draw(env: Any) -> None:
        keyed = streams(env, records).key_by(lambda value: value[0])
        out = keyed.process(CountAndFlush())
        seen(out.filter(lambda value: value[0] == "count"), "counts")
        seen(out, "out")
        seen(keyed.process(PlainCount()).map(str), "plain")

    ran = [run_form(draw, form, mode=mode, parallelism=parallelism) for form in FORMS]
    for name in ("counts", "out", "plain"):
        first = {k: list(map(repr, v)) for k, v in ran[0].subtasks(name).items()}
        for other in ran[1:]:
            assert {k: list(map(repr, v)) for k, v in other.subtasks(name).items()} == first
    assert ran[0].counters() == ran[1].counters() == ran[2].counters()


class Match(KeyedCoProcessFunction[Any, Any, Any, Any]):
    """Pairs each right record with all left ones of its key once event time has ended."""

    def open(self, runtime_context: Any) -> None:
        self.left = runtime_context.get_list_state(ListStateDescriptor("left"))
        self.right = runtime_context.get_list_state(ListStateDescriptor("right"))

    def process_element1(self, value: Any, ctx: Any) -> Any:
        self.left.add(value[1])
        ctx.timer_service().register_event_time_timer(MAX_LONG_VALUE)

    def process_element2(self, value: Any, ctx: Any) -> Any:
        self.right.add(value[1])
        ctx.timer_service().register_event_time_timer(MAX_LONG_VALUE)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        for right in self.right.get():
            for left in self.left.get():
                yield ctx.get_current_key(), left, right


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=10)
@given(left=RECORDS, right=RECORDS, form=st.sampled_from(FORMS), parallelism=st.integers(1, 3))
def test_connected_keyed_streams_share_state_by_key(
    mode: str, left: list[Any], right: list[Any], form: str, parallelism: int
) -> None:
    def draw(env: Any) -> None:
        lefts = streams(env, left, "left").key_by(lambda value: value[0])
        rights = streams(env, right, "right").key_by(lambda value: value[0])
        seen(lefts.connect(rights).process(Match()), "pairs")

    ran = run_form(draw, form, mode=mode, parallelism=parallelism)
    expected = by_repr(
        (key, one, other)
        for other_key, other in right
        for key, one in left
        if repr(key) == repr(other_key)
    )
    assert by_repr(ran.records("pairs")) == expected


class Lookup(BroadcastProcessFunction[Any, Any, Any]):
    """Emits each record with the rules that it sees; keeps the ones that come before any rule."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, sorted(ctx.get_broadcast_state(RULES).items())

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        ctx.get_broadcast_state(RULES).put(*value)
        yield "rule", value


class KeyedLookup(KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
    process_element = Lookup.process_element  # type: ignore[assignment]
    process_broadcast_element = Lookup.process_broadcast_element  # type: ignore[assignment]


@pytest.mark.parametrize("is_keyed", [True, False], ids=["keyed", "not keyed"])
@settings(max_examples=10)
@given(
    records=st.lists(st.integers(0, 9), max_size=9),
    rules=st.lists(st.tuples(st.integers(0, 2), st.integers()), max_size=4),
    form=st.sampled_from(FORMS),
    parallelism=st.integers(1, 3),
    mode=st.sampled_from(MODES),
)
def test_broadcast_records_reach_every_subtask(
    is_keyed: bool, records: list[int], rules: list[Any], form: str, parallelism: int, mode: str
) -> None:
    def draw(env: Any) -> None:
        stream = env.from_collection(records)
        if is_keyed:
            stream = stream.key_by(lambda value: value % 3)
        connected = stream.connect(env.from_collection(rules).broadcast(RULES))
        seen(connected.process(KeyedLookup() if is_keyed else Lookup()), "out")

    ran = run_form(draw, form, mode=mode, parallelism=parallelism)
    for records_of_one in ran.subtasks("out").values():
        found = [value[1] for value, _ in records_of_one if value[0] == "rule"]
        assert sorted(found) == sorted(rules)
    looked_up = [value for value in ran.records("out") if value[0] != "rule"]
    assert sorted(value for value, _ in looked_up) == sorted(records)
    if mode == "BATCH":
        names = {name for name, _ in rules}
        assert all({name for name, _ in state} == names for _, state in looked_up)


class Remember(MapFunction[Any, Any]):
    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last"))

    def map(self, value: Any) -> Any:
        before = self.last.value()
        self.last.update(value[1])
        return value[0], before, value[1]


@settings(max_examples=10)
@given(records=RECORDS, form=st.sampled_from(FORMS), parallelism=st.integers(1, 3))
def test_rich_functions_on_keyed_streams_have_state(
    records: list[Any], form: str, parallelism: int
) -> None:
    def draw(env: Any) -> None:
        keyed = env.from_collection(records).key_by(lambda value: value[0])
        seen(keyed.map(Remember()), "out")

    ran = run_form(draw, form, parallelism=parallelism)
    last: dict[str, Any] = {}
    expected = []
    for key, number in records:
        expected.append((key, last.get(repr(key)), number))
        last[repr(key)] = number
    assert by_repr(ran.records("out")) == by_repr(expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("form", FORMS)
def test_full_window_partition_is_evaluated_at_the_end(mode: str, form: str) -> None:
    def draw(env: Any) -> None:
        numbers = env.from_collection(list(range(10)))
        whole = numbers.full_window_partition().map_partition(lambda values: [sum(values)])
        keyed = numbers.key_by(lambda number: number % 3).full_window_partition()
        seen(whole, "whole")
        seen(keyed.map_partition(lambda values: [list(values)]), "keyed")

    ran = run_form(draw, form, mode=mode, parallelism=2)
    assert sum(ran.records("whole")) == 45
    assert sorted(ran.records("keyed")) == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]


class FailsLater(KeyedProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield 1 // (timestamp - 5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("form", FORMS)
def test_a_failing_timer_names_its_operator_and_key(mode: str, form: str) -> None:
    def draw(env: Any) -> None:
        keyed = streams(env, [("a", 1), ("b", 5)]).key_by(lambda value: value[0])
        seen(keyed.process(FailsLater()).name("late division"), "out")

    error = failure_of(draw, form, mode=mode)
    assert isinstance(error, ZeroDivisionError)
    assert "in 'late division' (test_keyed_jobs.py:" in notes_of(error)
    assert "key 'b'" in notes_of(error)


@pytest.mark.parametrize("form", FORMS)
def test_a_failing_record_names_its_key(form: str) -> None:
    class Fails(KeyedProcessFunction[Any, Any, Any]):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield 1 // value[1]

    def draw(env: Any) -> None:
        keyed = env.from_collection([("a", 1), ("b", 0)]).key_by(lambda value: value[0])
        seen(keyed.process(Fails()).name("division"), "out")

    notes = notes_of(failure_of(draw, form))
    assert "in 'division' (test_keyed_jobs.py:" in notes
    assert "at record ('b', 0), key 'b'" in notes


@pytest.mark.parametrize("form", FORMS)
def test_state_used_without_key_is_an_error_that_names_the_operator(form: str) -> None:
    def draw(env: Any) -> None:
        seen(env.from_collection([("a", 1)]).map(Remember()).name("remember"), "out")

    error = failure_of(draw, form)
    assert isinstance(error, StateError)
    assert "'remember' (test_keyed_jobs.py:" in str(error)
    assert "needs key_by()" in str(error)
