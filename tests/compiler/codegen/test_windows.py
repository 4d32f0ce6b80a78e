"""The lines for windows; that they do what the operator does is tests/properties/test_window_jobs.py."""

from __future__ import annotations

import re
from typing import Any

import pytest

from opchain.common import Configuration, WatermarkStrategy
from opchain.compiler.passes.pipeline import compile_program
from opchain.datastream import StreamExecutionEnvironment
from opchain.datastream.functions import AggregateFunction
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
