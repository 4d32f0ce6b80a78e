"""The generated code for process functions. tests/properties compares its results with interpreted code."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any

import pytest
from forms import FORMS, failure_of, job_of, run_form, seen

from opchain.common import Types, WatermarkStrategy
from opchain.common.watermark_strategy import TimestampAssigner
from opchain.datastream import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
)
from opchain.datastream.state import MapStateDescriptor, ValueStateDescriptor

SIDE = OutputTag("side")


class Zero(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return 0


class Count(KeyedProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


class CountLater(Count):
    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield timestamp


class Split(ProcessFunction[Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield SIDE, value


class Pair(KeyedCoProcessFunction[Any, Any, Any, Any]):
    def process_element1(self, value: Any, ctx: Any) -> Any:
        yield value

    def process_element2(self, value: Any, ctx: Any) -> Any:
        yield value


class PairLater(Pair):
    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield timestamp


class PlainPair(CoProcessFunction[Any, Any, Any]):
    process_element1 = Pair.process_element1  # type: ignore[assignment]
    process_element2 = Pair.process_element2  # type: ignore[assignment]


def module_of(draw: Any) -> str:
    """The generated module of the last vertex, without comments."""
    source = job_of(draw, "generated").vertices[-1].source
    assert source is not None
    return "\n".join(line.split("  #")[0] for line in source.splitlines())


def keyed(function: Any, *, has_times: bool = False) -> Any:
    def draw(env: Any) -> None:
        stream = env.from_sequence(1, 9)
        if has_times:
            strategy: Any = WatermarkStrategy.for_monotonous_timestamps()
            stream = stream.assign_timestamps_and_watermarks(
                strategy.with_timestamp_assigner(Zero())
            )
        stream.key_by(lambda value: value).process(function).map(str).print()

    return draw


def test_a_keyed_process_function_without_timers_becomes_a_loop() -> None:
    source = module_of(keyed(Count()))
    assert (
        "    for value in values:\n"
        "        key_0 = key_fn_of_0(value)\n"
        "        set_key_0(key_0)\n"
        "        found_0 = count_fn_0(value, context_0)\n"
        "        for value_0 in () if found_0 is None else found_0:\n"
        "            if value_0.__class__ is tuple and len(value_0) == 2 and value_0[0].__class__ not in IMMUTABLE"
        " and is_tagged(value_0):\n"
        "                continue\n"
    ) in source
    assert "str_1(value_0)" in source
    assert "emit_0" not in source


def test_a_process_function_with_timers_emits_through_one_function() -> None:
    source = module_of(keyed(CountLater()))
    batch, _, later = source.partition("def emit_0(value, timestamp):")
    assert "            emit_0(value_0, None)" in batch
    assert "str_1" not in batch
    assert later.count("str_1(value)") == 1


def test_the_context_has_the_timestamp_if_records_have_one() -> None:
    assert "context_0._timestamp = timestamp" in module_of(keyed(Count(), has_times=True))
    assert "_timestamp" not in module_of(keyed(Count()))


def test_only_side_outputs_that_are_read_are_emitted() -> None:
    def draw(env: Any, *, is_read: bool) -> None:
        out = env.from_sequence(1, 9).process(Split())
        (out.get_side_output(SIDE) if is_read else out).print()

    read = module_of(lambda env: draw(env, is_read=True))
    assert "                emit_side_1(value_1, None)\n                continue" in read
    assert "def emit_1_0(value, timestamp):" in read
    assert "emit_side" not in module_of(lambda env: draw(env, is_read=False))


@pytest.mark.parametrize(
    "function", [Pair(), PairLater(), PlainPair()], ids=["pair", "later", "plain"]
)
def test_each_of_two_inputs_calls_its_own_method_with_its_key(function: Any) -> None:
    def draw(env: Any) -> None:
        one, other = env.from_sequence(1, 9), env.from_sequence(1, 9)
        if not isinstance(function, PlainPair):
            one, other = one.key_by(lambda value: value), other.key_by(lambda value: -value)
        one.connect(other).process(function).print()

    source = module_of(draw)
    first, second = source.split("def process_1(values)")
    kind = {Pair: "pair", PairLater: "pair_later", PlainPair: "plain_pair"}[type(function)]
    assert f"found_0 = {kind}_0_1(value, context_0)" in first
    assert f"found_0 = {kind}_0_2(value, context_0)" in second
    if not isinstance(function, PlainPair):
        assert "key_0 = key_fn_of_0(value)" in first
        assert "key_0 = key_fn_of_0_2(value)" in second
    assert source.count("def emit_0(") == (1 if isinstance(function, PairLater) else 0)


class Undecided(list[Any]):
    """As an array of numpy: neither true nor false."""

    def __bool__(self) -> bool:
        raise ValueError


class Undecidedly(ProcessFunction[int, int]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        return Undecided([value, value]) if value % 2 else None


class KeyedUndecidedly(KeyedProcessFunction[int, int, int]):
    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Any:
        return Undecided([value, value]) if value % 2 else None


class EitherUndecidedly(CoFlatMapFunction[int, int, int]):
    def flat_map1(self, value: int) -> Any:
        return Undecided([value, value]) if value % 2 else None

    def flat_map2(self, value: int) -> Any:
        return None


class Number(ProcessFunction[int, int]):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Any:
        return 0


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(lambda numbers: numbers.process(Undecidedly()), id="process"),
        pytest.param(
            lambda numbers: numbers.key_by(lambda x: 0).process(KeyedUndecidedly()), id="keyed"
        ),
        pytest.param(
            lambda numbers: numbers.connect(numbers).flat_map(EitherUndecidedly()), id="co flat map"
        ),
    ],
)
def test_a_function_may_return_any_iterable_or_none(draw: Any, form: str) -> None:
    ran = run_form(lambda env: seen(draw(env.from_sequence(1, 3)), "out"), form)
    assert ran.records("out") == [1, 1, 3, 3]


@pytest.mark.parametrize("form", FORMS)
def test_a_function_that_returns_zero_is_a_type_error(form: str) -> None:
    error = failure_of(lambda env: env.from_sequence(1, 3).process(Number()).print(), form)
    assert type(error) is TypeError


LIMITS = MapStateDescriptor("limits", Types.STRING(), Types.LONG())
WRONG = MapStateDescriptor("limits", Types.LONG(), Types.LONG())
OTHERS = MapStateDescriptor("others", Types.STRING(), Types.LONG())
TOTAL = ValueStateDescriptor("total", Types.LONG())


class First(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        number: int = value[1]
        return number


class Limited(BroadcastProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        limit = ctx.get_broadcast_state(LIMITS).get(value[0])
        if limit is None or value[1] > limit:
            yield SIDE, (value[0], ctx.timestamp())
        else:
            yield value[0], limit

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        ctx.get_broadcast_state(LIMITS).put(*value)
        yield "limit", value


class LimitedByAttribute(Limited):
    """Asks for the state where no variable can be set, too."""

    def __init__(self) -> None:
        self.limits = LIMITS

    def process_element(self, value: Any, ctx: Any) -> Any:
        names = [name for name in ctx.get_broadcast_state(self.limits).keys()]  # noqa: C416, SIM118
        if value[0] in names and ctx.get_broadcast_state(self.limits).contains(value[0]):
            yield SIDE, (value[0], len(names))
        yield value[0], ctx.get_broadcast_state(self.limits).get(value[0])


class LimitedTotal(KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_state(TOTAL)

    def process_element(self, value: Any, ctx: Any) -> Any:
        total = (self.total.value() or 0) + value[1]
        self.total.update(total)
        limit = ctx.get_broadcast_state(LIMITS).get(value[0])
        ctx.timer_service().register_event_time_timer(value[1] + 10)
        if limit is None or total > limit:
            yield SIDE, (ctx.get_current_key(), total)
        yield value[0], total

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        ctx.get_broadcast_state(LIMITS).put(*value)
        totals: list[Any] = []
        ctx.apply_to_keyed_state(TOTAL, lambda key, state: totals.append((key, state.value())))
        yield "limit", value, totals

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield "timer", ctx.get_current_key(), timestamp, self.total.value()


class OnlyLimits(KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        limit = ctx.get_broadcast_state(LIMITS).get(value[0])
        yield value[0], limit or value[1]

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(LIMITS).put(*value)


class ByName(LimitedTotal):
    """Reads the state by a variable, in loops, by operators, and at timers. It registers a second state at a record."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        limits = ctx.get_broadcast_state(LIMITS)
        if value[0] in limits and not limits.is_empty():
            yield SIDE, (value[0], limits[value[0]])
        if value[0] not in limits:
            yield value[0], [*limits], list(limits.values())
        for name, limit in limits.items():
            yield name, -limit
        if value[1] == 7:
            others = ctx.get_broadcast_state(OTHERS)
            yield value, [*others], "a" in others, others.get("a"), list(others.items())
        ctx.timer_service().register_event_time_timer(value[1] + 10)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield timestamp, sorted(ctx.get_broadcast_state(LIMITS).keys())


class ByHelper(Limited):
    """Hands the state on, to code that is not inlined."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        limits = ctx.get_broadcast_state(LIMITS)
        limit = limit_in(limits, value[0])
        yield SIDE, (value[0], limit)


def limit_in(limits: Any, name: str) -> Any:
    found = list(filter(lambda item: item[0] == name, limits.items()))
    return found[0] if found else limits.get(name)


class Writes(Limited):
    """Only logs what the state refuses."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        limits = ctx.get_broadcast_state(LIMITS)
        name = value[0]
        try:
            limits[name] = 1
        except TypeError as error:
            yield SIDE, (name, str(error))


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize(
    "function", [Limited, LimitedByAttribute, LimitedTotal, ByName, ByHelper, Writes]
)
def test_a_broadcast_process_function_is_inlined(function: Any, mode: str) -> None:
    def draw(env: Any) -> None:
        limits = env.from_collection([("a", 5), ("b", 40), ("a", 30)]).broadcast(LIMITS)
        pairs = env.from_collection([(key, number) for number in range(12) for key in "abc"])
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(First())
        pairs = pairs.assign_timestamps_and_watermarks(strategy)
        if issubclass(function, LimitedTotal):
            pairs = pairs.key_by(lambda pair: pair[0])
        results = pairs.connect(limits).process(function())
        seen(results.map(lambda result: result), "results")
        seen(results.get_side_output(SIDE), "side")

    runs = [run_form(draw, form, mode=mode, batch_size=5) for form in FORMS]
    assert all(ran.records("results") == runs[0].records("results") for ran in runs)
    assert all(ran.records("side") == runs[0].records("side") for ran in runs)
    assert runs[0].records("side")
    assert any(result[0] == "limit" for result in runs[0].records("results"))
    source = job_of(draw).vertices[-1].source.partition("def process_1")[0]
    assert "broadcast_process_" not in source
    assert "get_broadcast_state" not in source
    assert function in (ByHelper, Writes) or "entries_0_0" in source


def test_the_key_is_not_set_for_a_function_that_does_not_read_it() -> None:
    def draw(env: Any) -> None:
        limits = env.from_collection([("a", 5)]).broadcast(LIMITS)
        pairs = env.from_collection([("a", 3), ("b", 4)]).key_by(lambda pair: pair[0])
        seen(pairs.connect(limits).process(OnlyLimits()), "results")

    for mode in ("STREAMING", "BATCH"):
        sources = [vertex.source or "" for vertex in job_of(draw, mode=mode).vertices]
        (source,) = [text for text in sources if "entries_0_0" in text]
        before, after = source.partition("def fallback_0")[0].split("    if values:\n")
        assert "set_key_0" not in before
        assert "set_key_0(" in after
        runs = [run_form(draw, form, mode=mode).records("results") for form in FORMS]
        assert runs == [runs[0]] * len(runs)
        assert runs[0]


class WithoutLimits(Limited):
    """Has forgotten to set the attribute that it reads."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        if value[1] == 3:
            yield ctx.get_broadcast_state(self.limits).get(value[0])  # type: ignore[attr-defined]
        yield SIDE, value


@pytest.mark.parametrize("form", FORMS)
def test_a_missing_descriptor_of_a_broadcast_state_is_named_where_a_record_reads_it(
    form: str,
) -> None:
    def draw(env: Any, last: int = 4) -> None:
        limits = env.from_collection([("a", 5)]).broadcast(LIMITS)
        pairs = env.from_collection([("a", number) for number in range(last)])
        seen(pairs.connect(limits).process(WithoutLimits()).get_side_output(SIDE), "side")

    assert len(run_form(lambda env: draw(env, 3), form).records("side")) == 3
    assert "'WithoutLimits' object has no attribute 'limits'" in str(failure_of(draw, form))


class IsTrue(Limited):
    """Asks whether a state is true. The stream does not declare the second state."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        others = ctx.get_broadcast_state(OTHERS)
        yield SIDE, (bool(ctx.get_broadcast_state(LIMITS)), bool(others), others.is_empty())


@pytest.mark.parametrize("form", FORMS)
def test_a_broadcast_state_is_true_even_if_it_is_empty(form: str) -> None:
    def draw(env: Any) -> None:
        limits = env.from_collection([("a", 5)]).filter(lambda pair: False).broadcast(LIMITS)
        pairs = env.from_collection([("a", number) for number in range(4)])
        seen(pairs.connect(limits).process(IsTrue()).get_side_output(SIDE), "side")

    assert run_form(draw, form).records("side") == [(True, True, True)] * 4


class OtherLimits(Limited):
    """Declares the state otherwise than the stream."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        if value[1] == 3:
            yield ctx.get_broadcast_state(WRONG).get(value[0])
        yield SIDE, value


@pytest.mark.parametrize("form", FORMS)
def test_another_descriptor_of_a_broadcast_state_fails_where_a_record_reads_it(form: str) -> None:
    def draw(env: Any, last: int = 4) -> None:
        limits = env.from_collection([("a", 5)]).broadcast(LIMITS)
        pairs = env.from_collection([("a", number) for number in range(last)])
        seen(pairs.connect(limits).process(OtherLimits()).get_side_output(SIDE), "side")

    assert len(run_form(lambda env: draw(env, 3), form).records("side")) == 3
    assert "pass the same descriptor to both" in str(failure_of(draw, form))


TYPED = OutputTag("typed", Types.TUPLE([Types.LONG(), Types.DOUBLE()]))


def by_remainder(typed: OutputTag[Any]) -> type[ProcessFunction[Any, Any]]:
    """A function with one tag of its module, one of an enclosing function, and one in an attribute."""
    enclosed = typed

    class ByRemainder(ProcessFunction[Any, Any]):
        def __init__(self) -> None:
            self.side = SIDE

        def process_element(self, value: Any, ctx: Any) -> Any:
            if value % 4 == 0:
                yield enclosed, (value, value / 2)
            elif value % 4 == 1:
                yield self.side, [value]
                yield TYPED, (value, 0.5)
            elif value % 4 == 2:
                yield OutputTag("unread"), value
                yield (SIDE, [value]) if value % 3 else (value, value)
            else:
                yield self.side, [-value]
                yield value

    return ByRemainder


class Halves(ProcessFunction[Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield SIDE, value[0]
        yield value[1]


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("object_reuse", ["false", "true"])
def test_side_outputs_are_inlined(mode: str, object_reuse: str) -> None:
    def draw(env: Any) -> None:
        numbers = env.from_sequence(0, 40)
        results = numbers.process(by_remainder(TYPED)())
        seen(results.map(lambda value: (value, 1)), "results")
        side = results.get_side_output(SIDE)
        side.map(lambda row: row.append(1))
        seen(side.map(lambda row: row[0] + 1).key_by(lambda row: row % 3).sum(), "side")
        halves = results.get_side_output(TYPED).process(Halves())
        seen(halves.filter(lambda half: half > 3), "halves")
        seen(halves.get_side_output(SIDE).map(lambda value: value * 2), "whole")

    runs = [
        run_form(draw, form, mode=mode, object_reuse=object_reuse, batch_size=5) for form in FORMS
    ]
    for name in ("results", "side", "halves", "whole"):
        assert runs[0].records(name)
        assert all(ran.subtasks(name) == runs[0].subtasks(name) for ran in runs)
    assert all(ran.counters() == runs[0].counters() for ran in runs)
    loop = runs[-1].job.vertices[0].source.partition("def process_0")[2].partition("\ndef ")[0]
    assert loop.count("emit_side_") == 1  # of a tag that is made for a record


TAGS = [SIDE]


class Lengths(ProcessFunction[str, Any]):
    """A tag that the compiler knows, and one that it does not."""

    def __init__(self, *, is_known: bool) -> None:
        self.is_known = is_known

    def process_element(self, value: str, ctx: Any) -> Any:
        if self.is_known:
            yield SIDE, len(value)
        else:
            yield TAGS[0], len(value)
        yield Length(value, len(value))


@dataclass(frozen=True)
class Length:
    text: str
    length: int


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("is_read", [True, False])
def test_a_tagged_pair_with_a_typed_value_goes_to_the_side_output(
    form: str, is_known: bool, is_read: bool
) -> None:
    def draw(env: Any) -> None:
        lengths = env.from_collection(["a", "bcd"]).process(Lengths(is_known=is_known))
        seen(lengths.rebalance().map(lambda record: record.text), "main")
        if is_read:
            seen(lengths.get_side_output(SIDE), "side")

    ran = run_form(draw, form)
    assert ran.records("main") == ["a", "bcd"]
    assert ran.records("side") == ([1, 3] if is_read else [])


class SumOfTuples(ProcessFunction[int, Any]):
    """Yields pairs that are sums of tuples, and a number that is a sum."""

    def process_element(self, value: int, ctx: Any) -> Any:
        head, rest = (SIDE,), (value,)
        yield (SIDE,) + (value,)  # noqa: RUF005 - a sum is the case to test
        yield head + rest
        yield value + 10


@pytest.mark.parametrize("form", FORMS)
def test_a_tagged_pair_built_by_adding_tuples_goes_to_the_side_output(form: str) -> None:
    def draw(env: Any) -> None:
        sums = env.from_collection([1, 2]).process(SumOfTuples())
        seen(sums, "main")
        seen(sums.get_side_output(SIDE), "side")

    ran = run_form(draw, form)
    assert ran.records("main") == [11, 12]
    assert ran.records("side") == [1, 1, 2, 2]


def test_records_of_an_unread_side_output_are_not_built() -> None:
    def draw(env: Any) -> None:
        env.from_collection(["a"]).process(Halves()).print()

    source = job_of(draw).vertices[0].source
    assert "OutputTag" not in source[: source.index("def fallback_0")]


class Alarms(KeyedProcessFunction[Any, Any, Any]):
    """Uses everything that the context of a timer has. A record is (key, number)."""

    def __init__(self) -> None:
        self.fired = 0

    def open(self, runtime_context: Any) -> None:
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.sum.update((self.sum.value() or 0) + value[1])
        for later in (value[1], value[1] + 3):
            ctx.timer_service().register_event_time_timer(later)
        try:
            ctx.time_domain()
        except RuntimeError:
            yield "record", value, self.fired

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        self.fired += 1
        timers = ctx.timer_service()
        timers.delete_event_time_timer(timestamp + 1)
        if timestamp % 4 == 0:
            timers.register_event_time_timer(timestamp - 2)
            timers.register_event_time_timer(timestamp + 30)
            return
        yield ctx.get_current_key(), timestamp, ctx.timestamp(), ctx.time_domain(), self.sum.value()
        yield SIDE, (timestamp, self.fired, timers.current_watermark())


class Values(KeyedProcessFunction[Any, Any, Any]):
    """Its results are a list, or None."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(value[1] + 5)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        if timestamp % 2:
            return None
        return [timestamp, ctx.get_current_key()]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        number: int = value[1]
        return number


def timers_of(function: Any) -> Any:
    def draw(env: Any) -> None:
        strategy: Any = WatermarkStrategy.for_monotonous_timestamps()
        stream = env.from_collection([(key, number) for number in range(40) for key in "abba"])
        stream = stream.assign_timestamps_and_watermarks(
            strategy.with_timestamp_assigner(SecondField())
        )
        results = stream.key_by(lambda record: record[0]).process(function)
        seen(results, "results")
        seen(results.get_side_output(SIDE), "side")

    return draw


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("function", [Alarms(), Values()], ids=["alarms", "values"])
def test_on_timer_is_inlined(function: Any, mode: str) -> None:
    draw = timers_of(function)
    inlined, expected = (
        run_form(draw, form, mode=mode, batch_size=7) for form in ("inlined", "interpreted")
    )
    source = inlined.job.vertices[1].source
    assert source is not None
    assert "on_timer_0(" not in source.split("def fire_0(due):")[1].split("\n\n\n")[0]
    for name in ("results", "side"):
        assert inlined.subtasks(name) == expected.subtasks(name)
    assert inlined.counters() == expected.counters()
    assert inlined.records("results")


class Zeroes(Values):
    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield timestamp // (timestamp - 9)


@pytest.mark.parametrize("form", FORMS)
def test_an_error_in_on_timer_names_its_line_and_its_operator(form: str) -> None:
    error = failure_of(timers_of(Zeroes()), form)
    assert isinstance(error, ZeroDivisionError)
    assert "timestamp // (timestamp - 9)" in "".join(traceback.format_exception(error))
    assert "KeyedProcess" in "".join(error.__notes__)


class AsksForAWindow(Values):
    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.window()


@pytest.mark.parametrize("form", FORMS)
def test_the_context_of_a_timer_has_no_window(form: str) -> None:
    error = failure_of(timers_of(AsksForAWindow()), form)
    assert type(error) is AttributeError
    assert "'window'" in str(error)
