"""Calls of state handles become dictionary lookups in generated code, without another visible change."""

from __future__ import annotations

import re
from typing import Any

import pytest
from forms import FORMS, failure_of, job_of, notes_of, run_form, run_job, seen
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.common import Row, Time, Types
from opchain.datastream import KeyedProcessFunction
from opchain.datastream.functions import (
    AggregateFunction,
    FlatMapFunction,
    KeyedCoProcessFunction,
    ReduceFunction,
)
from opchain.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from opchain.runtime.state.keyed.hash_map_backend import HashMapKeyedStateBackend
from opchain.runtime.state.keyed.hash_map_states import HashMapValueState
from opchain.runtime.state.keyed.ttl_states import TtlValueState


class Everything(KeyedProcessFunction[Any, Any, Any]):
    """A record is (key, what to do, a number)."""

    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))
        self.many = runtime_context.get_list_state(ListStateDescriptor("many", Types.LONG()))
        self.by_name = runtime_context.get_map_state(
            MapStateDescriptor("by_name", Types.LONG(), Types.LONG())
        )

    def process_element(self, value: Any, ctx: Any) -> Any:
        what, number = value[1], value[2]
        if what == 0:
            self.last.update(number if number % 3 else None)
        elif what == 1:
            self.many.add(number)
        elif what == 2:
            self.by_name.put(number % 3, number)
        elif what == 3:
            self.last.clear()
            self.many.clear()
        elif what == 4:
            self.by_name.remove(number % 3)
        elif what == 5:
            self.many.update([item for item in self.many.get() if item % 2])
        elif what == 6:
            self.many.add(len(self.many.get()))
            self.by_name.clear()
        elif what == 7:
            ctx.timer_service().register_event_time_timer(number)
        found = self.by_name.get(number % 3)
        yield (
            value,
            ctx.get_current_key(),
            found,
            self.last.value(),
            self.many.get(),
            self.by_name.contains(1),
            self.by_name.is_empty(),
            list(self.by_name.keys()),
            list(self.by_name.values()),
            list(self.by_name.items()),
        )

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield timestamp, ctx.get_current_key(), self.last.value(), self.many.get()


class Timers(KeyedProcessFunction[Any, Any, Any]):
    """A record is (key, what to do, a time)."""

    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        timers = ctx.timer_service()
        if value[1] == 0:
            timers.register_event_time_timer(value[2] + 0.5)
        elif value[1] == 1:
            timers.delete_event_time_timer(value[2] + 1)
        else:
            self.last.update(ctx.timestamp())
            ctx.timer_service().register_event_time_timer(value[2])
        yield value, ctx.timestamp()

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield timestamp, ctx.timestamp(), ctx.get_current_key(), self.last.value()
        if timestamp < 5:
            ctx.timer_service().register_event_time_timer(timestamp + 3)


class Notices(KeyedProcessFunction[Any, Any, Any]):
    """Catches what states refuse. A record is (key, what to do, a number)."""

    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))
        self.many = runtime_context.get_list_state(ListStateDescriptor("many", Types.LONG()))
        self.free = runtime_context.get_list_state(ListStateDescriptor("free"))
        self.by_name = runtime_context.get_map_state(
            MapStateDescriptor("by_name", Types.LONG(), Types.LONG())
        )

    def process_element(self, value: Any, ctx: Any) -> Any:
        what, number = value[1], value[2]
        refused = False
        try:
            self.many.add(number if what % 3 else "x")
            self.by_name.put(number % 3, number if what != 2 else "x")
            self.last.update(True if what % 2 else str(number) if number % 2 else number)
        except TypeError:
            refused = True
        if what == 7:
            self.last.clear()
            self.many.clear()
        elif what == 6:
            self.by_name.clear()
        elif what == 5:
            self.by_name.remove(number % 3)
        self.free.update(range(number % 3))
        ctx.timer_service().register_event_time_timer(number)
        yield (
            *(refused, self.last.value(), self.many.get(), self.free.get()),
            *(self.by_name.get(1), self.by_name.contains(2), self.by_name.is_empty()),
            *(list(self.by_name.keys()), list(self.by_name.values())),
            list(self.by_name.items()),
        )

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield timestamp, ctx.get_current_key(), self.last.value(), self.many.get()


class Collects(KeyedProcessFunction[Any, Any, Any]):
    """Has no timers. States convert half of the values. A record is (key, what to do, a number)."""

    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.FLOAT()))
        self.many = runtime_context.get_list_state(ListStateDescriptor("many", Types.DOUBLE()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.many.add(value[2] if value[1] % 2 else value[2] / 3)
        self.last.update(value[2] if value[1] % 3 else value[2] / 3)
        if value[1] == 2:
            self.many.clear()
        yield ctx.get_current_key(), self.last.value(), self.many.get()


class Greatest(ReduceFunction[Any]):
    def reduce(self, value1: Any, value2: Any) -> Any:
        if value2 is None:
            return value1
        return max(value1, value2)


class Average(AggregateFunction[Any, Any, Any]):
    def create_accumulator(self) -> Any:
        return 0, 0

    def add(self, value: Any, accumulator: Any) -> Any:
        total, count = accumulator
        return total + value, count + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


MOST = 3


class LastTexts(Average):
    """Changes its accumulator, and reads a global name."""

    def create_accumulator(self) -> Any:
        return []

    def add(self, value: Any, accumulator: Any) -> Any:
        accumulator.append(str(value))
        if len(accumulator) > MOST:
            accumulator.pop(0)
        return accumulator

    def get_result(self, accumulator: Any) -> Any:
        texts = sorted(accumulator)
        return ",".join(texts)


class Combines(KeyedProcessFunction[Any, Any, Any]):
    """Adds to reducing and aggregating states. A record is (key, what to do, a number)."""

    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_reducing_state(
            ReducingStateDescriptor("total", lambda a, b: a + b, Types.LONG())
        )
        greatest = Greatest()
        self.greatest = runtime_context.get_reducing_state(
            ReducingStateDescriptor("greatest", greatest)
        )
        self.least = runtime_context.get_reducing_state(
            ReducingStateDescriptor("least", min, Types.LONG())
        )
        pair = Types.TUPLE([Types.LONG(), Types.LONG()])
        self.average = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("average", Average(), pair)
        )
        self.texts = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("texts", agg_function=LastTexts())
        )

    def process_element(self, value: Any, ctx: Any) -> Any:
        what, number = value[1], value[2]
        refused = ""
        try:
            if what == 0:
                self.total.add(number if number % 3 else None)
            elif what == 1:
                self.average.add(number if number % 3 else None)
            elif what == 2:
                self.total.add(2**62)
                self.average.add(2**62)
            elif what == 3:
                self.average.add("text" if number % 2 else 1.5)
            elif what == 4:
                self.total.add("text" if number % 2 else 1.5)
            elif what == 5:
                self.total.clear()
                self.average.clear()
            elif what == 6:
                self.texts.clear()
                self.greatest.add(None)
            else:
                ctx.timer_service().register_event_time_timer(number)
            self.greatest.add(number)
            self.least.add(number)
            self.texts.add(number)
        except (TypeError, OverflowError) as error:
            refused = f"{type(error).__name__}: {error}"
        yield value, refused, self.total.get(), [self.average.get() for _ in range(2)]
        yield self.greatest.get(), self.least.get(), self.texts.get()


class CombinesAtTimers(Combines):
    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        self.total.add(timestamp)
        self.average.add(timestamp)
        yield timestamp, self.total.get(), self.average.get(), self.texts.get()


class AtTimers(Everything):
    """Does at a timer what the last digit of its time says. A record is (key, what to do, a number)."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.last.update(value[1])
        self.many.add(value[2])
        ctx.timer_service().register_event_time_timer(value[2] * 10 + value[1])
        yield value

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        what, number = timestamp % 10, timestamp // 10
        refused = False
        if what == 0:
            self.last.update(number if number % 3 else None)
        elif what == 1:
            self.many.add(number)
            self.by_name.put(number % 3, number)
        elif what == 2:
            self.last.clear()
            self.many.clear()
        elif what == 3:
            self.by_name.remove(number % 3)
        elif what == 4:
            ctx.timer_service().register_event_time_timer(
                timestamp - 3 if number % 2 else timestamp + 7
            )
            ctx.timer_service().register_event_time_timer(timestamp + 3.5)
        elif what == 5:
            ctx.timer_service().delete_event_time_timer(timestamp + 11)
        elif what == 6:
            try:
                self.last.update("x")
            except TypeError:
                refused = True
        yield (
            *(timestamp, ctx.timestamp(), ctx.get_current_key(), refused),
            *(self.last.value(), self.many.get(), list(self.by_name.items())),
        )


@pytest.mark.parametrize("cleared", [7, 6, 1])
def test_a_value_that_a_state_refuses_changes_no_state(cleared: int) -> None:
    draw = by_key(Notices(), [("a", 1, 0), ("a", 0, 0), ("a", 2, 0), ("a", cleared, 0)])
    interpreted, inlined = (
        run_form(draw, form, mode="BATCH").subtasks("results")
        for form in ("interpreted", "inlined")
    )
    assert inlined == interpreted


class First(FlatMapFunction[Any, Any]):
    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.BOOLEAN()))

    def flat_map(self, value: Any) -> Any:
        if self.seen.value() is None:
            self.seen.update(True)
            yield value


class FirstOfAnHour(First):
    def open(self, runtime_context: Any) -> None:
        descriptor = ValueStateDescriptor("seen", Types.BOOLEAN())
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self.seen = runtime_context.get_state(descriptor)


def for_an_hour(descriptor: Any) -> None:
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())


class FirstByHelper(First):
    """Has a time to live that the compiler does not see."""

    def open(self, runtime_context: Any) -> None:
        descriptor = ValueStateDescriptor("seen", Types.BOOLEAN())
        for_an_hour(descriptor)
        self.seen = runtime_context.get_state(descriptor)


class FirstForEver(First):
    """Has a time to live that is disabled."""

    def open(self, runtime_context: Any) -> None:
        descriptor = ValueStateDescriptor("seen", Types.BOOLEAN())
        disabled = StateTtlConfig.UpdateType.Disabled
        config = StateTtlConfig.new_builder(Time.hours(1)).set_update_type(disabled).build()
        descriptor.enable_time_to_live(config)
        self.seen = runtime_context.get_state(descriptor)


class AtTimersForAnHour(AtTimers):
    def open(self, runtime_context: Any) -> None:
        self.many = runtime_context.get_list_state(ListStateDescriptor("many"))
        self.by_name = runtime_context.get_map_state(MapStateDescriptor("by_name"))
        descriptor = ValueStateDescriptor("last", Types.LONG())
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self.last = runtime_context.get_state(descriptor)


def by_key(function: Any, records: list[Any]) -> Any:
    def draw(env: Any) -> None:
        keyed = env.from_collection(records).key_by(lambda record: record[0])
        method = keyed.process if isinstance(function, KeyedProcessFunction) else keyed.flat_map
        seen(method(function), "results")

    return draw


FUNCTIONS = [Everything(), Timers(), Notices(), Collects(), AtTimers()]
FUNCTIONS += [Combines(), CombinesAtTimers()]
KEYS = st.sampled_from(["a", "b", 1, 1.0, True, None, 0.0, -0.0, (1, "x")])


@settings(max_examples=8, deadline=None)
@given(st.lists(st.tuples(KEYS, st.integers(0, 7), st.integers(0, 9)), max_size=30))
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.slow
def test_each_state_method_behaves_the_same_in_each_form(
    function: Any, mode: str, records: list[Any]
) -> None:
    draw = by_key(function, records)
    interpreted = run_form(draw, "interpreted", mode=mode, batch_size=5)
    inlined = run_form(draw, "inlined", mode=mode, batch_size=5)
    assert repr(inlined.subtasks("results")) == repr(interpreted.subtasks("results"))
    assert inlined.counters() == interpreted.counters()


def fast_source(function: Any, records: Any = (("a", 1, 2),), mode: str = "STREAMING") -> str:
    source = job_of(by_key(function, list(records)), mode=mode).vertices[1].source
    assert source is not None
    return source.split("def calls_0")[0]


def test_state_handles_become_tables_and_the_key_is_set_if_it_is_read() -> None:
    source = fast_source(Everything())
    calls = [line.strip() for line in source.splitlines() if "self_0." in line]
    assert [line.partition("(")[0] for line in calls] == [
        *("self_0.last.update", "self_0.many.add", "self_0.by_name.put", "self_0.many.update"),
        "self_0.many.add",
    ]
    branches = source.index("if what_0 == 0:")
    assert source.index("set_state_key_0(state_key_0)") > branches
    source = fast_source(First())
    assert "table_0_seen[state_key_0] = True" in source
    assert source.count("set_state_key_0(state_key_0)") == 1
    assert source.index("set_state_key_0(state_key_0)") > source.index("if values:")


def test_on_timer_reads_state_from_tables() -> None:
    source = str(job_of(by_key(AtTimers(), TIMED)).vertices[1].source)
    _, fire = source.split("def fire_0(due):")
    lines = fire.split("def calls_fire_0")[0].splitlines()
    assert [line.strip() for line in lines if "context_0" in line] == []
    calls = [line.split("(")[0].strip() for line in lines if "self_0." in line]
    assert [call.rpartition(".")[2] for call in calls] == [*("update", "add", "put", "update")]
    assert [line for line in lines if line][-2:] == [
        "    if key_0 is not ABSENT:",
        "        set_state_key_0(key_0)",
    ]


TIMED: list[Any] = [
    (key, what, 3 * number) for number in range(4) for what in range(8) for key in "ab"
]


@pytest.mark.parametrize("function", [AtTimers(), AtTimersForAnHour()])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_on_timer_behaves_the_same_with_each_kind_of_state(backend: str, function: Any) -> None:
    draw = by_key(function, TIMED)
    interpreted, inlined = (
        run_form(draw, form, state_backend=backend) for form in ("interpreted", "inlined")
    )
    assert inlined.subtasks("results") == interpreted.subtasks("results")
    assert inlined.counters() == interpreted.counters()


class Refused(Timers):
    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        self.last.update("x")
        yield timestamp


def test_a_wrong_value_that_on_timer_writes_is_refused_in_each_form() -> None:
    draw = by_key(Refused(), [("a", 2, 5)])
    errors = [failure_of(draw, form) for form in ("interpreted", "inlined")]
    assert repr(errors[0]) == repr(errors[1])
    assert "state 'last'" in str(errors[0])
    assert notes_of(errors[0]) == notes_of(errors[1])


@pytest.mark.parametrize("function", [Timers(), Notices(), Collects(), First()])
def test_in_batch_mode_the_entries_of_a_key_are_in_variables(function: Any) -> None:
    source = fast_source(function, mode="BATCH")
    assert "if state_key_0 != last_key_0:" in source
    assert ".get(state_key_0)" not in source
    assert "[last_key_0] = held_0_" in source


def test_in_batch_mode_only_functions_with_timers_set_each_new_key() -> None:
    changes = [
        fast_source(function, mode="BATCH").split("!= last_key_0:")[1].split("last_key_0 = ")[0]
        for function in (Timers(), Collects(), First())
    ]
    assert ["set_state_key_0" in change for change in changes] == [True, False, False]
    assert ["held_0_" in change for change in changes] == [True, False, False]


class Asks(Timers):
    """Calls code that may look for the state."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.last.update((self.last.value() or 0) + 1)
        yield value, self.last.value(), ctx.timer_service().current_processing_time() > 0


def test_in_batch_mode_called_code_finds_the_state_entries() -> None:
    source = fast_source(Asks(), mode="BATCH")
    assert "table_0_last.get(state_key_0)" in source
    assert "last_key_0" not in source
    records = [("a", 1, 1), ("b", 2, 2), ("a", 3, 3)]
    interpreted = run_form(by_key(Asks(), records), "interpreted", mode="BATCH")
    inlined = run_form(by_key(Asks(), records), mode="BATCH")
    assert inlined.records("results") == interpreted.records("results")


class ByChangedName(KeyedProcessFunction[Any, Any, Any]):
    """Sets the variable of the key within the value, which Python evaluates before the key."""

    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_map_state(
            MapStateDescriptor("seen", Types.LONG(), Types.LONG())
        )

    def process_element(self, value: Any, ctx: Any) -> Any:
        number = value[1]
        self.seen[number] = (number := number + 1)
        yield list(self.seen.items())


class BySlice(KeyedProcessFunction[Any, Any, Any]):
    """Reads a map state by slices, which are keys since Python 3.12."""

    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_map_state(
            MapStateDescriptor("seen", Types.PICKLED_BYTE_ARRAY(), Types.LONG())
        )

    def process_element(self, value: Any, ctx: Any) -> Any:
        try:
            yield self.seen[1:2], self.seen[1:2, 3]
        except TypeError as error:
            yield str(error)


@pytest.mark.parametrize("function", [ByChangedName, BySlice])
def test_a_map_state_has_the_keys_that_python_evaluates(function: Any) -> None:
    def draw(env: Any) -> None:
        pairs = env.from_sequence(0, 9).map(lambda x: (x % 3, x))
        seen(pairs.key_by(lambda pair: pair[0]).process(function()), "results")

    runs = [run_form(draw, form).records("results") for form in FORMS]
    assert runs == [runs[0]] * len(runs)
    assert runs[0]


class BySyntax(KeyedProcessFunction[Any, Any, Any]):
    """Uses a map state without calls of its methods, beside a state that becomes a table."""

    def __init__(self, how: str) -> None:
        self.how = how

    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))
        self.seen = runtime_context.get_map_state(
            MapStateDescriptor("seen", Types.LONG(), Types.LONG())
        )

    def process_element(self, value: Any, ctx: Any) -> Any:
        key, number = value
        last = self.last.value() or 0
        self.last.update(last + number)
        if self.how == "set":
            self.seen[number % 3] = last
        elif self.how == "get":
            last = 0 if number % 2 else self.seen[number % 3]
        elif self.how == "in":
            last = int(number % 3 in self.seen)
        elif self.how == "for":
            for item in self.seen:
                last += item
        elif self.how == "comprehension":
            last = sum([item for item in self.seen])  # noqa: C416
        elif self.how == "star":
            last = len([*self.seen])
        elif self.how == "variable":
            seen = self.seen
            seen[number % 3] = number
        yield key, last

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield None


@pytest.mark.parametrize("how", ["set", "get", "in", "for", "comprehension", "star", "variable"])
@pytest.mark.parametrize("batch_size", [1, 4096])
def test_a_map_state_in_a_subscript_or_a_loop_has_the_current_key(
    how: str, batch_size: int
) -> None:
    def draw(env: Any) -> None:
        pairs = env.from_sequence(0, 9).map(lambda x: (x % 3, x))
        filled = pairs.key_by(lambda pair: pair[0]).process(BySyntax("set"))
        seen(filled.key_by(lambda pair: pair[0]).process(BySyntax(how)), "sums")

    expected = run_form(draw, "interpreted").records("sums")
    assert run_form(draw, batch_size=batch_size).records("sums") == expected


class InLoops(KeyedProcessFunction[Any, Any, Any]):
    """Never calls a method of its states by name."""

    def open(self, runtime_context: Any) -> None:
        self.many = runtime_context.get_list_state(ListStateDescriptor("many"))
        self.named = runtime_context.get_map_state(MapStateDescriptor("named"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        name = value[2] % 3
        if name in self.named and name + 1 not in self.named:
            yield "both", self.named[name], list(self.named), [*self.named]
        self.named[name] = value[2]
        total = sum(self.many)
        for number in self.many:
            total += number
        yield total, value[2] in self.many, sorted(self.many), [x for x in self.many if x % 2]
        self.many.add(value[2])


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_loops_and_operators_over_states_are_look_ups(mode: str) -> None:
    records = [(x % 2, 0, x * x % 7) for x in range(20)]
    fast = fast_source(InLoops(), records, mode=mode)
    assert "self_0." not in fast
    assert "set_state_key_0" not in fast.split("for value in values:")[1].split("if values:")[0]
    expected = run_form(by_key(InLoops(), records), "interpreted", mode=mode).records("results")
    assert run_form(by_key(InLoops(), records), mode=mode).records("results") == expected


class InSubscripts(KeyedProcessFunction[Any, Any, Any]):
    """Changes items of its states in the ways that Python has for dictionaries."""

    def open(self, runtime_context: Any) -> None:
        self.counts = runtime_context.get_map_state(MapStateDescriptor("counts"))
        self.lists = runtime_context.get_map_state(MapStateDescriptor("lists"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        name = value[2] % 3
        if name not in self.counts:
            self.counts[name] = 0
        if (name, "x") not in self.lists:
            self.lists[name, "x"] = []
        self.counts[name] += 1
        self.counts[value[2] % 3] -= value[2] * self.counts[name]
        self.lists[name, "x"] += [value[2]]
        self.lists[name + (name := name + 1)] = name
        self.counts[name % 3] = name
        if value[2] == 2:
            del self.counts[name - 1], self.lists[name - 1, "x"]
        del self.lists[name, name]
        yield name, list(self.counts.items()), [(key, self.lists[key]) for key in self.lists]


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_changes_of_items_of_a_map_state_are_look_ups(mode: str) -> None:
    records = [(x % 2, 0, x * x % 7) for x in range(20)]
    fast = fast_source(InSubscripts(), records, mode=mode)
    assert "table_0_counts.get(" in fast or "held_0_counts = " in fast
    assert not {"self_0", "attribute_0_counts", "attribute_0_lists"} & set(re.findall(r"\w+", fast))
    draw = by_key(InSubscripts(), records)
    runs = [run_form(draw, form, mode=mode).records("results") for form in FORMS]
    assert runs == [runs[0]] * len(FORMS)


class AddsToMissing(InSubscripts):
    def process_element(self, value: Any, ctx: Any) -> Any:
        self.counts[value[2]] += 1
        yield value


def test_adding_to_a_missing_item_of_a_map_state_fails_in_each_form() -> None:
    draw = by_key(AddsToMissing(), [("a", 0, 1)])
    failures = [failure_of(draw, form) for form in FORMS]
    assert ["unsupported operand type" in str(each) for each in failures] == [True] * len(FORMS)


def test_reducing_and_aggregating_states_become_tables_with_their_functions() -> None:
    fast = fast_source(Combines())
    calls = [line.strip() for line in fast.splitlines() if "self_0." in line]
    assert {line.partition("(")[0] for line in calls} == {"self_0.total.add", "self_0.least.add"}
    assert "new_0_total = held_0_total + " in fast
    assert "max(held_0_greatest, " in fast
    assert "new_0_average = (total_0 + " in fast
    assert "held_0_average[0] / held_0_average[1]" in fast
    called = {line.strip() for line in fast.splitlines() if " = functions_0_" in line}
    assert {line.partition(" = ")[0] for line in called} == {
        *("checked_0_total", "checked_0_least", "checked_0_average"),
        *("combined_0_least", "combined_0_texts", "result_0_texts"),
    }


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_reducing_and_aggregating_states_are_read_from_their_tables(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = entries_found(monkeypatch)
    run_form(by_key(Combines(), [("a", 1, 2), ("b", 0, 1), ("a", 1, 4)]), mode=mode)
    assert len(found) >= 5
    assert None not in found


class Named(KeyedProcessFunction[Any, Any, Any]):
    """Has states whose names begin with the name of another one."""

    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
        self.total_first = runtime_context.get_state(ValueStateDescriptor("first", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        if self.total_first.value() is None:
            self.total_first.update(value[2])
        self.total.update((self.total.value() or 0) + value[2])
        yield self.total.value(), self.total_first.value()


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_the_variables_of_a_state_are_not_those_of_another_one(mode: str) -> None:
    draw = by_key(Named(), [("a", 0, 1), ("a", 0, 2), ("a", 0, 4)])
    assert run_form(draw, mode=mode).records("results") == [(1, 1), (3, 1), (7, 1)]


class Reduces(KeyedProcessFunction[Any, Any, Any]):
    def __init__(self, reduce: Any) -> None:
        self.reduce = reduce

    def open(self, runtime_context: Any) -> None:
        self.state = runtime_context.get_reducing_state(
            ReducingStateDescriptor("state", self.reduce)
        )

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.state.add(value[2])
        yield self.state.get()


def test_a_function_of_a_state_that_changes_after_compilation_is_noticed() -> None:
    def results() -> list[Any]:
        return run_job(job).records("results")

    job = job_of(by_key(Reduces(lambda a, b: a + b), [("a", 0, 2), ("a", 0, 3), ("a", 0, 4)]))
    assert "held_0_state + " in str(job.vertices[1].source)
    assert results() == [2, 5, 9]
    job.vertices[1].operators[0].spec.function.reduce = lambda a, b: a * b
    assert results() == [2, 6, 24]


class Scales(First):
    """Has states that stay calls: the first one expires, and the compiler does not know the function of the second one."""

    def open(self, runtime_context: Any) -> None:
        super().open(runtime_context)
        descriptor = ReducingStateDescriptor("hour", lambda a, b: a + b)
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self.hour = runtime_context.get_reducing_state(descriptor)
        factor = value_of_configuration()
        self.scaled = runtime_context.get_reducing_state(
            ReducingStateDescriptor("scaled", lambda a, b: a + b * factor)
        )

    def flat_map(self, value: Any) -> Any:
        self.hour.add(value[2])
        self.scaled.add(value[2])
        if self.seen.value() is None:
            self.seen.update(True)
        yield self.hour.get(), self.scaled.get()


def value_of_configuration() -> int:
    return 3


def test_other_reducing_states_are_called_beside_tables() -> None:
    records = [("a", 0, 2), ("a", 0, 3), ("b", 0, 1)]
    assert "table_0_seen" in fast_source(Scales(), records)
    runs = [run_form(by_key(Scales(), records), form).records("results") for form in FORMS]
    assert runs == [[(2, 2), (5, 11), (1, 1)]] * len(FORMS)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_reducing_states_are_the_same_in_each_backend(backend: str) -> None:
    records = [(number % 2, number % 8, number) for number in range(40)]
    draw = by_key(CombinesAtTimers(), records)
    runs = [run_form(draw, form, state_backend=backend).subtasks("results") for form in FORMS]
    assert repr(runs) == repr([runs[0]] * len(FORMS))


def test_timers_are_registered_without_calling_the_timer_service() -> None:
    source = fast_source(Timers())
    assert "context_0" not in source
    assert source.count("add_timer_0(") == 2
    assert source.count("discard_timer_0(") == 1


class CountOfKey(KeyedProcessFunction[Any, Any, Any]):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ctx.get_current_key(), count


def test_get_current_key_needs_no_context_in_generated_code() -> None:
    source = fast_source(CountOfKey())
    assert "context_0" not in source
    assert "is_tagged" not in source
    records = [(key, 0) for key in (1, True, 1.0, None, 1, True)]
    interpreted = run_form(by_key(CountOfKey(), records), "interpreted").records("results")
    assert repr(run_form(by_key(CountOfKey(), records)).records("results")) == repr(interpreted)


class OfLongTypes(KeyedProcessFunction[Any, Any, Any]):
    """States of types whose values a call looks at. A record is (key, value of the row, number)."""

    def open(self, runtime_context: Any) -> None:
        row = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()])
        self.row = runtime_context.get_state(ValueStateDescriptor("row", row))
        self.many = runtime_context.get_list_state(ListStateDescriptor("many", Types.FLOAT()))
        self.map = runtime_context.get_map_state(
            MapStateDescriptor("map", Types.INT(), Types.LIST(Types.INT()))
        )

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.row.update(value[1])
        self.many.add(value[2])
        self.map.put(value[2], [value[2]])
        yield value[0], repr(self.row.value()), self.many.get(), list(self.map.items())


class Keeps(KeyedProcessFunction[Any, Any, Any]):
    """Changes the lists that it reads and writes. A record is (key, number or text)."""

    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_list_state(ListStateDescriptor("last", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        items = list(self.last.get())
        items.append(value[1])
        refused = False
        try:
            self.last.update(filter(None, items[-3:] if value[1] else ()))
        except TypeError:
            refused = True
        items = list(self.last.get())
        items.append("not stored")
        written = list(self.last.get())
        self.last.update(written)
        written.append("not stored")
        yield value, refused, self.last.get()


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_list_states_copy_lists_on_get_and_update(mode: str) -> None:
    values = [1, 0, 2, "x", 3, 0, True, 1.5, 4]
    records = [(key, value) for value in values for key in "ab"]
    source = fast_source(Keeps(), mode=mode)
    assert "fits_each_0_last_first(" in source
    assert "list([*" not in source
    ran = {form: run_form(by_key(Keeps(), records), form, mode=mode) for form in FORMS}
    for form in FORMS:
        assert ran[form].subtasks("results") == ran["interpreted"].subtasks("results")
    results = ran["inlined"].records("results")
    assert (("a", "x"), True, [2]) in results
    assert (("b", 0), False, []) in results


LONG_TYPES: list[Any] = [
    ("a", Row(1, "x"), 1),
    ("a", Row(b="x", a=1), 2.5),
    ("b", Row(None, "x"), 3),
    ("a", None, 4),
    ("a", (1, "x"), 5),
    ("b", {"a": 7}, 6),
]


def test_states_of_types_without_an_inline_check_become_tables() -> None:
    source = fast_source(OfLongTypes())
    assert "if fits_0_row_first(" in source
    assert "set_key_0(" not in source
    interpreted = run_form(by_key(OfLongTypes(), LONG_TYPES), "interpreted").records("results")
    assert run_form(by_key(OfLongTypes(), LONG_TYPES)).records("results") == interpreted
    assert len(interpreted) == len(LONG_TYPES)


@pytest.mark.parametrize(
    "record",
    [("a", Row("x", 1), 1), ("a", Row(1), 1), ("a", Row(c=1, d="x"), 1), ("a", Row(1, "x"), "x")],
)
def test_rows_that_do_not_fit_the_state_type_fail_in_each_form(record: Any) -> None:
    draw = by_key(OfLongTypes(), [*LONG_TYPES, record])
    errors = {repr(failure_of(draw, form)) for form in ("interpreted", "inlined")}
    assert len(errors) == 1
    assert "state '" in errors.pop()


class Wrong(Timers):
    def process_element(self, value: Any, ctx: Any) -> Any:
        self.last.update(1)
        ctx.timer_service().register_event_time_timer("soon")
        yield value


def test_a_timer_time_that_is_not_a_number_is_refused_in_each_form() -> None:
    errors = {
        repr(failure_of(by_key(Wrong(), [("a", 1, 2)]), form))
        for form in ("interpreted", "inlined")
    }
    assert len(errors) == 1
    assert "its time must be a number of milliseconds" in errors.pop()


@pytest.mark.parametrize(
    ("function", "lookups"),
    [(First(), True), (FirstOfAnHour(), True), (FirstByHelper(), False), (FirstForEver(), False)],
)
def test_a_state_whose_methods_do_more_than_lookups_is_called(
    function: Any, lookups: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[bool] = []
    plain_entries = HashMapKeyedStateBackend.plain_entries

    def noted(self: Any, *arguments: Any, **how: bool) -> Any:
        entries = plain_entries(self, *arguments, **how)
        found.append(entries is not None)
        return entries

    monkeypatch.setattr(HashMapKeyedStateBackend, "plain_entries", noted)
    records = [("a", 1), ("b", 2), ("a", 3)]
    assert run_form(by_key(function, records)).records("results") == records[:2]
    assert set(found) == {lookups}


def test_a_backend_that_tracks_changes_offers_no_plain_entries() -> None:
    backend = HashMapKeyedStateBackend()
    state = backend.get_state(ValueStateDescriptor("seen", Types.BOOLEAN()))
    backend.set_current_key("a")
    state.update(True)
    declared = repr(Types.BOOLEAN())
    assert backend.plain_entries(state, "value", declared) == {"a": True}
    assert backend.plain_entries(state, "value") is None
    assert backend.plain_entries(state, "value", repr(Types.INT())) is None
    assert backend.plain_entries(state, "list", declared) is None
    assert HashMapKeyedStateBackend().plain_entries(state, "value", declared) is None
    backend.track_changes()
    assert backend.plain_entries(state, "value", declared) is None


class Handed(First):
    """Gives its state away, so that its calls stay."""

    def flat_map(self, value: Any) -> Any:
        state = self.seen
        if state.value() is None:
            state.update(True)
            yield value


class Replaced(First):
    def flat_map(self, value: Any) -> Any:
        self.seen.update(True)
        self.seen = None  # type: ignore[assignment]
        yield value


@pytest.mark.parametrize("function", [Handed(), Replaced()])
def test_states_that_are_used_in_other_ways_are_called(function: Any) -> None:
    assert "table_0_seen" not in fast_source(function)


def test_an_error_names_the_line_of_the_call() -> None:
    class Unhashable(Everything):
        def process_element(self, value: Any, ctx: Any) -> Any:
            self.by_name.put([], value)  # type: ignore[arg-type]
            yield value

    errors = [
        failure_of(by_key(Unhashable(), [("a", 1, 2)]), form) for form in ("interpreted", "inlined")
    ]
    assert {type(error) for error in errors} == {TypeError}
    assert {str(error) for error in errors} == {
        "state 'by_name': [] is declared as LONG, and is a list; convert it to a number, or declare another type"
    }


INT = Types.INT()


class FirstAndCount(First):
    """Opens the state of its base class, and one of its own."""

    def open(self, runtime_context: Any) -> None:
        super().open(runtime_context)
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def flat_map(self, value: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        if self.seen.value() is None:
            self.seen.update(True)
            yield self.count.value(), value


def test_states_from_the_open_method_of_a_base_class_become_tables() -> None:
    def draw(env: Any) -> None:
        rows = env.from_collection([(x % 3, 0, x) for x in range(9)]).key_by(lambda row: row[0])
        seen(rows.flat_map(FirstAndCount()), "rows")

    source = str(job_of(draw).vertices[-1].source)
    assert "table_0_count" in source
    assert "table_0_seen" in source
    assert run_form(draw).records("rows") == run_form(draw, "interpreted").records("rows")


SEEN = ValueStateDescriptor("seen", Types.BOOLEAN())
SEEN_FOR_AN_HOUR = ValueStateDescriptor("seen", Types.BOOLEAN())
SEEN_FOR_AN_HOUR.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())


class OfModule(First):
    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_state(SEEN)


class OfModuleForAnHour(First):
    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_state(SEEN_FOR_AN_HOUR)


class OfClass(First):
    SEEN = ValueStateDescriptor("seen", Types.BOOLEAN())

    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_state(OfClass.SEEN)


class OfObject(First):
    def __init__(self, kind: Any = None, descriptor: Any = SEEN) -> None:
        self.kind = kind or Types.BOOLEAN()
        self.descriptor = descriptor

    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_state(self.descriptor)


class OfType(OfObject):
    def open(self, runtime_context: Any) -> None:
        seen = ValueStateDescriptor(f"seen {self.kind}", self.kind)
        self.seen = runtime_context.get_state(seen)


@pytest.mark.parametrize(
    "function", [OfModule(), OfModuleForAnHour(), OfClass(), OfObject(), OfType()]
)
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_a_descriptor_may_be_made_outside_of_open(
    function: Any, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    for state in (HashMapValueState, TtlValueState):
        monkeypatch.setattr(state, "value", lambda own, of=state.value: calls.append(1) or of(own))
    draw = by_key(function, [("a", 0, 1), ("b", 0, 2), ("a", 0, 3)])
    assert sorted(run_form(draw, mode=mode).records("results")) == [("a", 0, 1), ("b", 0, 2)]
    assert len(calls) == 0
    assert len(run_form(draw, "interpreted", mode=mode).records("results")) == 2
    assert len(calls) == 3


def test_a_descriptor_that_changes_after_compilation_is_noticed() -> None:
    function = OfObject()
    job = job_of(by_key(function, [("a", 0, 1), ("a", 0, 3)]))
    assert "table_0_seen" in str(job.vertices[1].source)
    job.vertices[1].operators[0].spec.function.descriptor = ValueStateDescriptor(
        "seen", Types.STRING()
    )
    with pytest.raises(Exception, match="True is declared as STRING"):
        run_job(job)


class Writes(KeyedProcessFunction[Any, Any, Any]):
    """Writes the second field of a record to states of a type that its subclasses declare."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.one.update(value[1])
        self.many.add(value[1])
        self.many.update([*self.many.get(), value[1]])
        self.named.put(value[1], value[1])
        yield self.one.value(), self.many.get(), list(self.named.items())


class Longs(Writes):
    def open(self, runtime_context: Any) -> None:
        self.one = runtime_context.get_state(ValueStateDescriptor("one", Types.LONG()))
        self.many = runtime_context.get_list_state(ListStateDescriptor("many", Types.LONG()))
        named = MapStateDescriptor("named", Types.LONG(), Types.LONG())
        self.named = runtime_context.get_map_state(named)


class Texts(Writes):
    def open(self, runtime_context: Any) -> None:
        one = ValueStateDescriptor("one", value_type_info=Types.STRING())
        self.one = runtime_context.get_state(one)
        self.many = runtime_context.get_list_state(ListStateDescriptor("many", Types.STRING()))
        self.named = runtime_context.get_map_state(
            MapStateDescriptor("named", Types.STRING(), Types.BOOLEAN())
        )


class Anything(Writes):
    def open(self, runtime_context: Any) -> None:
        self.one = runtime_context.get_state(ValueStateDescriptor("one"))
        self.many = runtime_context.get_list_state(
            ListStateDescriptor("many", Types.PICKLED_BYTE_ARRAY())
        )
        self.named = runtime_context.get_map_state(MapStateDescriptor("named", INT, INT))


class Tuples(Writes):
    def open(self, runtime_context: Any) -> None:
        kind = Types.TUPLE([Types.STRING(), Types.DOUBLE()])
        self.one = runtime_context.get_state(ValueStateDescriptor("one", kind))
        self.many = runtime_context.get_list_state(
            ListStateDescriptor("many", Types.TUPLE([Types.INT(), Types.INT()]))
        )
        self.named = runtime_context.get_map_state(
            MapStateDescriptor("named", Types.TUPLE([Types.INT(), Types.INT()]), Types.INT())
        )


class Rows(Writes):
    def open(self, runtime_context: Any) -> None:
        kind = Types.ROW([Types.LONG()])
        self.one = runtime_context.get_state(ValueStateDescriptor("one", kind))
        self.many = runtime_context.get_list_state(ListStateDescriptor("many", kind))
        self.named = runtime_context.get_map_state(MapStateDescriptor("named", INT, INT))


class Products(Writes):
    """Writes LONGs whose class is known, and which do not fit."""

    def open(self, runtime_context: Any) -> None:
        pair = Types.TUPLE([Types.STRING(), Types.LONG()])
        self.one = runtime_context.get_state(ValueStateDescriptor("one", Types.LONG()))
        self.many = runtime_context.get_list_state(ListStateDescriptor("many", pair))
        self.named = runtime_context.get_map_state(
            MapStateDescriptor("named", Types.STRING(), Types.LONG())
        )

    def process_element(self, value: Any, ctx: Any) -> Any:
        large = len(value) * 2**70
        refused = []
        try:
            self.one.update(large)
        except OverflowError as error:
            refused.append(str(error))
        try:
            self.many.add(("a", large))
        except OverflowError as error:
            refused.append(str(error))
        try:
            self.named.put("a", large)
        except OverflowError as error:
            refused.append(str(error))
        yield refused, self.one.value(), self.many.get(), list(self.named.items())


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_a_long_that_does_not_fit_is_refused_in_each_form(mode: str) -> None:
    found = {form: run_form(by_key(Products(), [("a", 1)]), form, mode=mode) for form in FORMS}
    for form in FORMS:
        ((refused, *kept),) = found[form].records("results")
        assert (len(refused), kept) == (3, [None, [], []])
        assert refused == found["interpreted"].records("results")[0][0]


WRITTEN = [1, 2**40, -(2**70), True, 1.5, "text", None, (1, 2), ("a", 2.0), [1], Row(1), Row(2**70)]
WRITTEN += [("a", 2**70)]


@pytest.mark.parametrize("value", WRITTEN, ids=repr)
@pytest.mark.parametrize("function", [Longs(), Texts(), Anything(), Tuples(), Rows()])
def test_each_form_accepts_and_refuses_the_same_state_values(function: Any, value: Any) -> None:
    def outcome(form: str) -> str:
        draw = by_key(function, [("a", value), ("a", value)])
        try:
            return repr(run_form(draw, form).records("results"))
        except Exception as error:  # noqa: BLE001 - its text is the outcome
            return f"{type(error).__name__}: {error}"

    assert outcome("inlined") == outcome("interpreted")


@pytest.mark.parametrize("function", [Longs(), Texts(), Anything(), Tuples()])
def test_values_of_the_declared_type_are_stored_without_a_call(
    function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = fast_source(function)
    assert "table_0_one[state_key_0] = " in source
    assert ("self_0.one.update" in source) == (type(function) is not Anything)
    found = entries_found(monkeypatch)
    failure_of(by_key(function, [("a", [])]))
    assert len(found) == 3
    assert None not in found


def entries_found(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What generated code gets for each state and batch."""
    found: list[Any] = []
    plain_entries = HashMapKeyedStateBackend.plain_entries

    def noted(self: Any, *arguments: Any, **how: bool) -> Any:
        found.append(plain_entries(self, *arguments, **how))
        return found[-1]

    monkeypatch.setattr(HashMapKeyedStateBackend, "plain_entries", noted)
    return found


def test_in_batch_mode_the_key_is_set_at_the_first_record_of_each_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = entries_found(monkeypatch)
    records = [(key, what, 4) for key in "aba" for what in (0, 1, 7, 2)]
    draw = by_key(Everything(), records)
    inlined = run_form(draw, mode="BATCH", batch_size=3)
    assert found
    assert None not in found
    interpreted = run_form(draw, "interpreted", mode="BATCH", batch_size=3)
    assert inlined.subtasks("results") == interpreted.subtasks("results")


class Both(KeyedCoProcessFunction[Any, Any, Any, Any]):
    """Pairs each record with the sum of the other side's, and emits the number of records at the end of the key."""

    def __init__(self) -> None:
        self.calls = 0

    def open(self, runtime_context: Any) -> None:
        self.left = runtime_context.get_state(ValueStateDescriptor("left", Types.LONG()))
        self.right = runtime_context.get_state(ValueStateDescriptor("right", Types.LONG()))

    def process_element1(self, value: Any, ctx: Any) -> Any:
        self.calls += 1
        self.left.update((self.left.value() or 0) + value[1])
        ctx.timer_service().register_event_time_timer(9)
        if self.right.value() is not None:
            yield value[0], self.right.value(), self.calls

    def process_element2(self, value: Any, ctx: Any) -> Any:
        self.calls += 1
        self.right.update((self.right.value() or 0) + len(value[1]))
        yield value[0], self.left.value(), self.calls

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), self.left.value(), self.right.value()


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_in_batch_mode_two_keyed_inputs_are_read_key_by_key(backend: str) -> None:
    def draw(env: Any) -> None:
        left = env.from_collection([(number % 5, number) for number in range(20)])
        right = env.from_collection([(number % 3, str(number), 1) for number in range(20)])
        both = left.key_by(lambda row: row[0]).connect(right.key_by(lambda row: row[0]))
        seen(both.process(Both()), "results")

    settings_of = {"mode": "BATCH", "batch_size": 7, "state_backend": backend}
    ran = {form: run_form(draw, form, **settings_of) for form in FORMS}
    sources = [vertex.source or "" for vertex in ran["inlined"].job.vertices]
    assert sum("turn = (yield)" in source for source in sources) == 1
    assert len(ran["interpreted"].records("results")) > 20
    for form in FORMS[1:]:
        assert ran[form].subtasks("results") == ran["interpreted"].subtasks("results")
        assert ran[form].counters() == ran["interpreted"].counters()


@settings(max_examples=8, deadline=None)
@given(st.lists(st.tuples(KEYS, st.integers(0, 7), st.integers(0, 9)), min_size=1, max_size=20))
@pytest.mark.parametrize("function", [Everything(), AtTimers()])
def test_changed_keys_are_recorded_if_the_backend_tracks_changes(
    function: Any, records: list[Any]
) -> None:
    touched: dict[str, set[str]] = {}
    make = HashMapKeyedStateBackend.__init__

    for form in ("interpreted", "inlined"):
        backends: list[HashMapKeyedStateBackend] = []

        def tracking(
            self: Any, *arguments: Any, made: list[Any] = backends, **settings: Any
        ) -> None:
            make(self, *arguments, **settings)
            self.track_changes()
            self._begin_changes(1)
            made.append(self)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(HashMapKeyedStateBackend, "__init__", tracking)
            found = entries_found(patched)
            run_form(by_key(function, records), form, batch_size=5)
        assert None not in found
        assert bool(found) == (form == "inlined")
        touched[form] = {repr(key) for backend in backends for key in backend.touched_keys()}
    assert touched["inlined"] == touched["interpreted"]
    assert touched["inlined"]


class Doubles(Everything):
    """Hands on no state."""

    def open(self, runtime_context: Any) -> None:
        super().open(runtime_context)
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.factor = 2
        self.names: list[str] = []

    def process_element(self, value: Any, ctx: Any) -> Any:
        if value[1] > self.factor:
            self.last.update(value[2] * self.factor)
            self.names.append(value[0])
        yield self.last.value()


def test_the_key_is_not_set_if_no_state_object_escapes() -> None:
    source = fast_source(Doubles())
    assert source.index("set_state_key_0(state_key_0)") > source.index("self_0.factor")


class Shown:
    def __init__(self, state: Any) -> None:
        self._state = state

    @property
    def total(self) -> int:
        return self._state.value() or 0


class HasProperty(KeyedProcessFunction[int, int, Any]):
    """A property reads the state, as the property of another object does."""

    def open(self, runtime_context: Any) -> None:
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))
        self.shown = Shown(self.sum)

    @property
    def total(self) -> int:
        return self.sum.value() or 0

    def process_element(self, value: int, ctx: Any) -> Any:
        self.last.update(value)
        self.sum.update((self.sum.value() or 0) + value)
        yield value, self.total


class HasObject(HasProperty):
    def process_element(self, value: int, ctx: Any) -> Any:
        self.last.update(value)
        self.sum.update((self.sum.value() or 0) + value)
        yield value, self.shown.total


class Total:
    """Reads a state by operators and conversions."""

    def __init__(self, read: Any) -> None:
        self._read = read

    def __bool__(self) -> bool:
        return bool(self._read())

    def __str__(self) -> str:
        return str(self._read() or 0)

    def __add__(self, number: int) -> int:
        return int((self._read() or 0) + number)

    def __lt__(self, number: int) -> bool:
        return bool((self._read() or 0) < number)


class AddsToTotal(HasProperty):
    def open(self, runtime_context: Any) -> None:
        super().open(runtime_context)
        self.shown: Any = self.made()

    def made(self) -> Any:
        return Total(self.sum.value)

    def process_element(self, value: int, ctx: Any) -> Any:
        self.last.update(value)
        self.sum.update((self.sum.value() or 0) + value)
        yield value, self.shown + 0


class FormatsTotal(AddsToTotal):
    def made(self) -> Any:
        return Total(lambda: self.sum.value() or 0)

    def process_element(self, value: int, ctx: Any) -> Any:
        self.last.update(value)
        self.sum.update((self.sum.value() or 0) + value)
        yield value, {"1": 1, "2": 2, "4": 4, "6": 6}[f"{self.shown}"]


class TestsTotal(AddsToTotal):
    def made(self) -> Any:
        return Total(self.read)

    def read(self) -> Any:
        return self.sum.value()

    def process_element(self, value: int, ctx: Any) -> Any:
        self.last.update(value)
        before = 0
        if self.shown:
            before = value - 2
        self.sum.update(before + value)
        yield value, before + value


class ComparesTotal(AddsToTotal):
    def open(self, runtime_context: Any) -> None:
        super().open(runtime_context)
        state = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))
        self.shown = Total(state.value)

    def process_element(self, value: int, ctx: Any) -> Any:
        self.last.update(value)
        self.sum.update((self.sum.value() or 0) + value)
        yield value, 1 if self.shown < 2 else 2 if self.shown < 3 else 4 if self.shown < 5 else 6


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "function",
    [HasProperty(), HasObject(), AddsToTotal(), FormatsTotal(), TestsTotal(), ComparesTotal()],
)
def test_a_property_reads_the_state_of_the_key_of_the_record(
    function: Any, form: str, mode: str
) -> None:
    def draw(env: Any) -> None:
        numbers = env.from_collection([1, 2, 3, 4]).key_by(lambda number: number % 2)
        seen(numbers.process(function), "out")

    assert sorted(run_form(draw, form, mode=mode).records("out")) == [
        (1, 1),
        (2, 2),
        (3, 4),
        (4, 6),
    ]
