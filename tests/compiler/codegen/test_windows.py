"""The generated lines for windows. tests/properties/test_window_jobs.py compares their results with the operator's."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, failure_of, notes_of, run_form, seen

from opchain.common import Configuration, Types, WatermarkStrategy
from opchain.compiler.passes.pipeline import compile_program
from opchain.datastream import OutputTag, StreamExecutionEnvironment
from opchain.datastream.connectors.file_system import FileSource, StreamFormat
from opchain.datastream.functions import (
    AggregateFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from opchain.datastream.state import ValueStateDescriptor
from opchain.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from opchain.runtime.windows.triggers import EventTimeTrigger

if TYPE_CHECKING:
    from pathlib import Path

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


class OpenedCount(Count):
    def open(self, runtime_context: Any) -> None:
        """It may have state, for which a key is selected."""


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


def test_a_tumbling_window_needs_a_subtraction_and_two_lookups_per_record() -> None:
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


def test_a_sliding_window_needs_two_lookups_and_one_per_pane() -> None:
    windows = SlidingEventTimeWindows.of(10, 2)
    source = source_of(lambda keyed: keyed.window(windows).aggregate(Count()))
    loop = source.split("zip(values, timestamps):\n")[1].split("    op_0")[0]
    assert loop.splitlines()[3:] == [
        "        start_0 = timestamp - timestamp % 2",
        "        panes_0 = panes_since_0.get(start_0)",
        "        if panes_0 is None:",
        "            panes_0 = panes_for_0(start_0, key_0, value, timestamp)",
        "        for pane_0 in panes_0:",
        "            held_0 = pane_0.get(key_0)",
        "            if held_0 is None:",
        "                held_0 = 0",
        "            held_0 = held_0 + 1",
        "            pane_0[key_0] = held_0",
    ]


def test_a_processing_time_window_reads_the_clock_per_record() -> None:
    windows = TumblingProcessingTimeWindows.of(10)
    source = source_of(lambda keyed: keyed.window(windows).aggregate(Count()), has_time=False)
    loop = source.split("in values:\n")[1].split("    op_0")[0]
    assert loop.splitlines() == [
        "        key_0 = value % 3",
        "        for pane_0 in open_panes_0():",
        "            if key_0 not in pane_0:",
        "                await_end_0(key_0, pane_0)",
        "            held_0 = pane_0.get(key_0)",
        "            if held_0 is None:",
        "                held_0 = 0",
        "            held_0 = held_0 + 1",
        "            pane_0[key_0] = held_0",
    ]


def test_a_record_of_the_latest_session_needs_one_lookup() -> None:
    source = source_of(
        lambda keyed: keyed.window(EventTimeSessionWindows.with_gap(3)).aggregate(Count())
    )
    loop = source.split("zip(values, timestamps):\n")[1].split("    op_0")[0]
    is_other = (
        "session_0 is None or not session_0.start <= timestamp <= session_0.end or "
        "session_end_0 > 9223372036854775807"
    )
    assert loop.splitlines() == [
        "        key_0 = value % 3",
        "        if timestamp is None:",
        "            refuse_0(value)",
        "        session_end_0 = timestamp + 3",
        "        session_0 = latest_session_0.get(key_0)",
        f"        if {is_other}:",
        "            session_0 = session_for_0(key_0, value, timestamp, session_end_0)",
        "        elif session_end_0 > session_0.end:",
        "            session_0.end = session_end_0",
        "            session_0.change = next_change_0()",
        "        if session_0 is None:",
        "            continue",
        "        if sessions_changed_0 is not None:",
        "            sessions_changed_0[key_0] = None",
        "        held_0 = session_0.held",
        "        if held_0 is None:",
        "            held_0 = 0",
        "        held_0 = held_0 + 1",
        "        session_0.held = held_0",
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
            "        held_0 = held_0 + 2",
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
            "        start_0 = timestamp - (timestamp - 3) % 4",
        ),
        (
            lambda keyed: keyed.window(SlidingEventTimeWindows.of(4, 10)).reduce(max),
            "            skip_0(value, timestamp)",
        ),
    ],
)
def test_each_kind_of_window_generates_its_line(draw: Any, line: str) -> None:
    assert line in source_of(draw).splitlines()


def test_without_inlining_every_function_is_called() -> None:
    source = source_of(
        lambda keyed: keyed.window(TEN).aggregate(Count()), opchain_codegen_inline="false"
    )
    assert "held_0 = count_fn_0(value, held_0)" in source


@pytest.mark.parametrize(
    "draw",
    [
        lambda keyed: keyed.window(ProcessingTimeSessionWindows.with_gap(3)).reduce(max),
        lambda keyed: keyed.window(TumblingProcessingTimeWindows.of(3)).aggregate(OpenedCount()),
        lambda keyed: keyed.window(TEN).trigger(PurgingTrigger(EventTimeTrigger())).reduce(max),
        lambda keyed: keyed.count_window(3, 2).trigger(CountTrigger(3)).reduce(max),
    ],
)
def test_other_kinds_of_windows_are_called(draw: Any) -> None:
    source = source_of(draw)
    assert "window_0_0(value, " in source
    assert "panes_0" not in source


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize(
    ("size", "slide"), [(1, 0), (2, 0), (3, 0), (100, 0), (3, 1), (3, 2), (6, 2)]
)
def test_count_windows_are_inlined(mode: str, size: int, slide: int) -> None:
    def draw(env: Any) -> None:
        pairs = env.from_sequence(0, 60).map(lambda x: (x % 5, x)).key_by(lambda pair: pair[0])
        windows = pairs.count_window(size, slide)
        seen(windows.reduce(lambda a, b: (a[0], a[1] + b[1])), "reduced")
        seen(windows.aggregate(Count()), "aggregated")
        seen(windows.apply(Listed()), "applied")

    ran = run_form(draw, mode=mode, batch_size=7)
    assert "counts_0.left -= 1" in str(ran.job.vertices[1].source)
    for form in ("interpreted", "generated"):
        expected = run_form(draw, form, mode=mode, batch_size=7)
        for name in ("reduced", "aggregated", "applied"):
            assert ran.subtasks(name) == expected.subtasks(name)
        assert ran.counters() == expected.counters()
    assert bool(ran.records("applied")) == (size < 13)


class Listed(WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Any) -> Any:
        yield key, window.id, list(inputs)


def test_records_without_timestamps_are_passed_to_the_window_operator() -> None:
    source = source_of(lambda keyed: keyed.window(TEN).reduce(max), has_time=False)
    assert "window_0_0(value, None)" in source


OLD = OutputTag("old", Types.INT())


class Line(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        for number in elements:
            yield f"{key} {context.window().start} {number}"


class Unpacked(ProcessWindowFunction[Any, Any, Any, Any]):
    """What it yields is set beside another variable."""

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        numbers = list(elements)
        first, _ = numbers[0], len(numbers)
        yield first


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
    fire = source.split("def fire_0(due, window, timestamp):\n")[1].split("\n\n\n")[0]
    assert fire.splitlines()[1:] == [
        "    for key_0, held_0 in due:",
        "        if key_0.__class__ not in plain_0:",
        "            key_0 = key_of(key_0)",
        "        if held_0 is None:",
        "            continue",
        "        if held_0 is None:",
        "            continue",
        "        elements_0 = (held_0,)",
        "        for number_0 in elements_0:",
        "            value_0 = f'{key_0} {window.start} {number_0}'",
        "            emit_0(value_0, timestamp)",
    ]


@pytest.mark.parametrize(
    "draw",
    [
        lambda keyed: keyed.window(TEN).aggregate(Count(), Line()),
        lambda keyed: keyed.window(TEN).process(Line()),
        lambda keyed: keyed.window(TEN).process(WithState()),
        lambda keyed: keyed.window(TEN).process(Unpacked()),
        lambda keyed: keyed.window(SlidingEventTimeWindows.of(20, 10)).process(WithState()),
        lambda keyed: keyed.window(TEN).allowed_lateness(5).process(Line()),
        lambda keyed: keyed.window(TEN).apply(Applied()),
        lambda keyed: keyed.window_all(TEN).process(OfAll()),
        lambda keyed: keyed.window(EventTimeSessionWindows.with_gap(2)).process(Line()),
        lambda keyed: keyed.window(EventTimeSessionWindows.with_gap(4)).aggregate(Count(), Line()),
        lambda keyed: (
            keyed.window(EventTimeSessionWindows.with_dynamic_gap(lambda value: 1 + value % 5))
            .allowed_lateness(5)
            .apply(Applied())
        ),
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


LIMIT = 50


class Greatest(AggregateFunction[Any, Any, Any]):
    """Counts, and finds the least and the greatest, in three spellings."""

    def create_accumulator(self) -> Any:
        return 0, 1000, -1000

    def add(self, value: Any, accumulator: Any) -> Any:
        count, least, greatest = accumulator
        return (
            1 + count,
            min(least, value[1]),
            max(greatest, value[1]),
        )

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], min(acc_a[1], acc_b[1]), max(acc_a[2], acc_b[2])


class Last(Greatest):
    """Keeps the last value: the order of records matters."""

    def create_accumulator(self) -> Any:
        return 0, 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + 1, value[1]


class UpTo(Greatest):
    """Reads a global name."""

    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator + 1 if LIMIT == 50 else value[1]


IN_ANY_ORDER = "not sorted by time: its results do not depend on the order of records"
SORTED = "sorted by time first: its results may depend on the order of records"
ROW = Types.TUPLE([Types.LONG()] * 3)


def rows_of(env: Any, *, declared: bool = True) -> Any:
    """(key, value, time), with times out of order."""
    strategy: Any = WatermarkStrategy.for_monotonous_timestamps()
    rows = env.from_sequence(0, 99).map(
        lambda x: (x % 5, x * 7 % 61, x * 13 % 40), output_type=ROW if declared else None
    )
    return rows.assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda row, _: row[2])
    ).key_by(lambda row: row[0], Types.LONG())


@pytest.mark.parametrize(
    ("draw", "remark"),
    [
        (lambda keyed: keyed.window(TEN).aggregate(Greatest()), IN_ANY_ORDER),
        (lambda keyed: keyed.window(TEN).aggregate(Greatest(), Line()), IN_ANY_ORDER),
        (lambda keyed: keyed.window(TEN).aggregate(Count()), IN_ANY_ORDER),
        (
            lambda keyed: keyed.window(SlidingEventTimeWindows.of(20, 10)).aggregate(Greatest()),
            IN_ANY_ORDER,
        ),
        (
            lambda keyed: keyed.window(TEN).reduce(
                lambda a, b: (a[0], a[1] + b[1], max(a[2], b[2]))
            ),
            IN_ANY_ORDER,
        ),
        (lambda keyed: keyed.window(TEN).reduce(lambda a, b: (a[0], a[1] - b[1], a[2])), SORTED),
        (lambda keyed: keyed.window(TEN).reduce(lambda a, b: (a[0], a[1] + b[1], a[2])), SORTED),
        (lambda keyed: keyed.window(TEN).reduce(lambda a, b: (a[0], a[1] + b[2], a[2])), SORTED),
        (lambda keyed: keyed.window(TEN).aggregate(Last()), SORTED),
        (lambda keyed: keyed.window(TEN).aggregate(UpTo()), SORTED),
    ],
)
@pytest.mark.parametrize("declared", [True, False])
def test_windows_in_batch_mode_are_the_same_whether_records_are_sorted(
    draw: Any, remark: str, declared: bool
) -> None:
    def drawn(env: Any) -> None:
        seen(draw(rows_of(env, declared=declared)), "results")

    ran = {form: run_form(drawn, form, mode="BATCH", parallelism=2, batch_size=7) for form in FORMS}
    assert remark in str(ran["inlined"].job.vertices[1].remarks)
    for form in FORMS[1:]:
        assert ran[form].subtasks("results") == ran["interpreted"].subtasks("results")
        assert ran[form].counters() == ran["interpreted"].counters()


STEP = 2


class Stepped(Count):
    """Reads a global name that has changed since the job was compiled."""

    def open(self, runtime_context: Any) -> None:
        globals()["STEP"] = 3

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator + STEP


def test_records_are_sorted_if_a_function_was_replaced_at_run_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def drawn(env: Any) -> None:
        seen(rows_of(env).window(TEN).aggregate(Stepped()), "counts")

    found = []
    for form in ("interpreted", "inlined"):
        monkeypatch.setattr(sys.modules[__name__], "STEP", 2)
        ran = run_form(drawn, form, mode="BATCH", parallelism=2, batch_size=7)
        found.append(ran.subtasks("counts"))
    assert IN_ANY_ORDER in str(ran.job.vertices[1].remarks)
    assert found[1] == found[0]
    assert {count % 3 for count in ran.records("counts")} == {0}


def row_of(text: str) -> Any:
    bid = json.loads(text)
    return bid["user"], bid["price"], bid["ts"]


def test_fallback_batches_are_sorted_after_unsorted_batches(tmp_path: Path) -> None:
    """A text that the fast reader of JSON does not take sends its batch through the fallback of the sender."""
    lines = [
        f'{{"user": {x % 5}, "price": {x * 7 % 61}, "ts": {x * 13 % 40}, '
        f'"more": {"NaN" if x % 40 == 5 else 0}}}\n'
        for x in range(200)
    ]
    (tmp_path / "bids").write_text("".join(lines))
    text = FileSource.for_record_stream_format(
        StreamFormat.text_line_format(), str(tmp_path / "bids")
    )

    def drawn(env: Any) -> None:
        texts = env.from_source(text.build(), WatermarkStrategy.no_watermarks(), "bids")
        strategy: Any = WatermarkStrategy.for_monotonous_timestamps()
        rows = texts.map(row_of, output_type=ROW).assign_timestamps_and_watermarks(
            strategy.with_timestamp_assigner(lambda row, _: row[2])
        )
        keyed = rows.key_by(lambda row: row[0], Types.LONG())
        seen(keyed.window(TEN).aggregate(Greatest()), "results")

    ran = {form: run_form(drawn, form, mode="BATCH", parallelism=2, batch_size=7) for form in FORMS}
    assert IN_ANY_ORDER in str(ran["inlined"].job.vertices[1].remarks)
    for form in FORMS[1:]:
        assert ran[form].subtasks("results") == ran["interpreted"].subtasks("results")
        assert ran[form].counters() == ran["interpreted"].counters()


def test_windows_with_state_on_disk_get_sorted_records() -> None:
    """The keys of a window on disk cannot be put in another order afterwards."""
    pytest.importorskip("rocksdict")

    def drawn(env: Any) -> None:
        seen(rows_of(env).window(TEN).aggregate(Greatest()), "results")

    found = [
        run_form(drawn, mode="BATCH", parallelism=2, batch_size=7, state_backend=backend)
        for backend in ("hashmap", "rocksdb")
    ]
    assert found[0].subtasks("results") == found[1].subtasks("results")
