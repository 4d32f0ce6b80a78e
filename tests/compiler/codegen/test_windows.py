"""The lines for windows; that they do what the operator does is tests/properties/test_window_jobs.py."""

from __future__ import annotations

import re
from typing import Any

import pytest
from forms import FORMS, failure_of, notes_of, run_form, seen

from opchain.common import Configuration, Types, WatermarkStrategy
from opchain.compiler.passes.pipeline import compile_program
from opchain.datastream import OutputTag, StreamExecutionEnvironment
from opchain.datastream.functions import (
    AggregateFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from opchain.datastream.state import ValueStateDescriptor
from opchain.datastream.window import (
    EventTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from opchain.runtime.windows.triggers import EventTimeTrigger

TEN = TumblingEventTimeWindows.of(10)


class Count(AggregateFunction[Any, int, int]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class CountBy(Count):
    def __init__(self, step: int) -> None:
        self.step = step

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + self.step


def source_of(draw: Any, *, has_time: bool = True, **settings: str) -> str:
    """The generated module of the window's vertex."""
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key.replace("_", "."), value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    stream = env.from_sequence(1, 9)
    if has_time:
        strategy: Any = WatermarkStrategy.for_monotonous_timestamps()
        stream = stream.assign_timestamps_and_watermarks(
            strategy.with_timestamp_assigner(lambda value, _: value)
        )
    draw(stream.key_by(lambda value: value % 3)).print()
    program = compile_program(env.program()).job_program
    assert program is not None
    vertex = next(item for item in program.vertices if item.operators[0].spec.kind == "window")
    return re.sub(r"  # .*", "", vertex.source or "")


def test_a_record_costs_a_subtraction_and_two_look_ups() -> None:
    source = source_of(lambda keyed: keyed.window(TEN).aggregate(Count()))
    loop = source.split("zip(values, timestamps):\n")[1].split("    op_0")[0]
    assert loop.splitlines() == [
        "        key_0 = value % 3",
        "        if timestamp is None:",
        "            refuse_0(value)",
        "        start_0 = timestamp - timestamp % 10",
        "        pane_0 = panes_0.get(start_0)",
        "        if pane_0 is None:",
        "            pane_0 = pane_for_0(start_0, key_0, value, timestamp)",
        "        if pane_0 is None:",
        "            continue",
        "        held_0 = pane_0.get(key_0)",
        "        if held_0 is None:",
        "            held_0 = 0",
        "        held_0 = held_0 + 1",
        "        pane_0[key_0] = held_0",
    ]


@pytest.mark.parametrize(
    ("draw", "line"),
    [
        (
            lambda keyed: keyed.window(TEN).reduce(lambda a, b: a - b),
            "            held_0 = held_0 - value",
        ),
        (
            lambda keyed: keyed.window(TEN).reduce(max),
            "            held_0 = max_0(held_0, value)",
        ),
        (
            lambda keyed: keyed.window(TEN).aggregate(CountBy(2)),
            "        held_0 = held_0 + self_0.step",
        ),
        (
            lambda keyed: keyed.window(TEN).apply(lambda key, window, values: values),
            "        held_0.append(value)",
        ),
        (
            lambda keyed: keyed.window(TumblingEventTimeWindows.of(10, -3)).reduce(max),
            "        start_0 = timestamp - (timestamp - -3) % 10",
        ),
        (
            lambda keyed: keyed.window(SlidingEventTimeWindows.of(10, 4, 3)).reduce(max),
            "        for start_0 in range(timestamp - (timestamp - 3) % 4, timestamp - 10, -4):",
        ),
        (
            lambda keyed: keyed.window(SlidingEventTimeWindows.of(4, 10)).reduce(max),
            "            skip_0(value, timestamp)",
        ),
    ],
)
def test_each_shape_has_its_line(draw: Any, line: str) -> None:
    assert line in source_of(draw).splitlines()


def test_without_inlining_every_function_is_called() -> None:
    source = source_of(
        lambda keyed: keyed.window(TEN).aggregate(Count()), opchain_codegen_inline="false"
    )
    assert "held_0 = count_fn_0(value, held_0)" in source


@pytest.mark.parametrize(
    "draw",
    [
        lambda keyed: keyed.window(EventTimeSessionWindows.with_gap(3)).reduce(max),
        lambda keyed: keyed.window(TumblingProcessingTimeWindows.of(3)).reduce(max),
        lambda keyed: keyed.window(TEN).trigger(PurgingTrigger(EventTimeTrigger())).reduce(max),
        lambda keyed: keyed.count_window(3).reduce(max),
    ],
)
def test_other_windows_are_called(draw: Any) -> None:
    source = source_of(draw)
    assert "window_0_0(value, " in source
    assert "panes_0" not in source


def test_records_without_time_are_the_operator_s_business() -> None:
    source = source_of(lambda keyed: keyed.window(TEN).reduce(max), has_time=False)
    assert "window_0_0(value, None)" in source


OLD = OutputTag("old", Types.INT())


class Line(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        for number in elements:
            yield f"{key} {context.window().start} {number}"


class WithState(ProcessWindowFunction[Any, Any, Any, Any]):
    """Uses keyed state, state of the window, a side output and `clear`."""

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        fired = context.global_state().get_state(ValueStateDescriptor("fired", Types.INT()))
        fired.update((fired.value() or 0) + 1)
        mark = context.window_state().get_state(ValueStateDescriptor("mark", Types.INT()))
        mark.update(key)
        if fired.value() > 2:
            yield OLD, key
        yield key, fired.value(), sorted(elements)

    def clear(self, context: Any) -> None:
        mark = context.window_state().get_state(ValueStateDescriptor("mark", Types.INT()))
        assert mark.value() is not None
        mark.clear()


class OfAll(ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: Any, elements: Any) -> Any:
        return [(context.window().end, sum(elements), context.current_watermark())]


class Applied(WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Any) -> Any:
        if key == 1:
            return None
        return [(key, window.max_timestamp(), value) for value in inputs]


class Fails(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        for value in elements:
            yield value // (key - 2)


def timed(env: Any) -> Any:
    strategy: Any = WatermarkStrategy.for_monotonous_timestamps()
    numbers = env.from_collection(list(range(60)))
    return numbers.assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda value, _: value)
    )


def test_the_function_of_a_window_is_inlined() -> None:
    source = source_of(lambda keyed: keyed.window(TEN).aggregate(Count(), Line()))
    fire = source.split("def fire_0(due, window):\n")[1].split("\n\n\n")[0]
    assert fire.splitlines()[1:] == [
        "    timestamp = window.max_timestamp()",
        "    for key_0, elements_0 in due:",
        "        for number_0 in elements_0:",
        "            value_0 = f'{key_0} {context_0.window().start} {number_0}'",
        "            emit_0(value_0, timestamp)",
    ]


@pytest.mark.parametrize(
    "draw",
    [
        lambda keyed: keyed.window(TEN).aggregate(Count(), Line()),
        lambda keyed: keyed.window(TEN).process(Line()),
        lambda keyed: keyed.window(TEN).process(WithState()),
        lambda keyed: keyed.window(SlidingEventTimeWindows.of(20, 10)).process(WithState()),
        lambda keyed: keyed.window(TEN).allowed_lateness(5).process(Line()),
        lambda keyed: keyed.window(TEN).apply(Applied()),
        lambda keyed: keyed.window_all(TEN).process(OfAll()),
    ],
)
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_window_functions_emit_the_same_in_every_form(draw: Any, mode: str) -> None:
    def drawn(env: Any) -> None:
        stream = timed(env)
        is_all = draw.__code__.co_names[0] == "window_all"
        results = draw(stream if is_all else stream.key_by(lambda value: value % 3))
        seen(results, "results")
        seen(results.get_side_output(OLD), "old")

    ran = {form: run_form(drawn, form, mode=mode, batch_size=7) for form in FORMS}
    assert ran["interpreted"].records("results")
    for form in FORMS[1:]:
        for name in ("results", "old"):
            assert ran[form].subtasks(name) == ran["interpreted"].subtasks(name)
        assert ran[form].counters() == ran["interpreted"].counters()


def test_a_failing_window_function_is_named_the_same_in_every_form() -> None:
    def drawn(env: Any) -> None:
        seen(timed(env).key_by(lambda value: value % 3).window(TEN).process(Fails()), "results")

    errors = [failure_of(drawn, form) for form in FORMS]
    assert [type(error) for error in errors] == [ZeroDivisionError] * len(FORMS)
    assert len({notes_of(error) for error in errors}) == 1
    assert ", key 2" in notes_of(errors[0])
