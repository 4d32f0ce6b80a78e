from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, failure_of, notes_of, run_form, seen
from hypothesis import given
from hypothesis import strategies as st

from opchain.common import Duration, WatermarkStrategy
from opchain.common.watermark_strategy import TimestampAssigner
from opchain.compiler.dsl.connected_streams import multiple_input
from opchain.datastream import ProcessFunction
from opchain.datastream.connectors import NumberSequenceSource
from opchain.runtime.connectors.collection import CollectionSource
from opchain.runtime.records.elements import NothingYet, Watermark
from opchain.runtime.task.input.chained_sources import InterleavedInputs
from opchain.runtime.task.input.input_gate import InputElement
from opchain.runtime.time import MAX_LONG_VALUE, MIN_LONG_VALUE
from opchain.runtime.watermarks.generators import WatermarkGenerator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opchain.datastream import StreamExecutionEnvironment


class TenTimes(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return value * 10


class Punctuated(WatermarkGenerator[Any]):
    """Emits a watermark after each even record, and is idle after a 7."""

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        if event == 7:
            output.mark_idle()
        elif event % 2 == 0:
            output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: Any) -> None:
        pass


class WithTimes(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


ASCENDING = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TenTimes())
NONE = WatermarkStrategy.no_watermarks()


def tagged(tag: str) -> Callable[[Any], list[Any]]:
    return lambda value: [(tag, value)]


# The order of reading


class FakeSource:
    """The two methods of a chained source that InterleavedInputs calls."""

    def __init__(self, number: int, elements: Sequence[Any]) -> None:
        self.program = type("Program", (), {"input_number": number, "channel": -1 - number})()
        self.is_closed = False
        self._elements = elements

    def elements(self) -> Iterator[Any]:
        try:
            yield from self._elements
        finally:
            self.is_closed = True


def read(gate: Sequence[Any], sources: Sequence[FakeSource], inputs: int) -> list[InputElement]:
    """Reads everything, with watermarks up to date; the gate has input 0."""
    watermarks = [MIN_LONG_VALUE] * inputs
    found = []
    gate_elements = [InputElement(0, 0, element) for element in gate]
    numbers = [0] if gate else []
    for item in InterleavedInputs(gate_elements, numbers, sources, watermarks):  # type: ignore[arg-type]
        found.append(item)
        if isinstance(item.element, Watermark):
            watermarks[item.input_number] = item.element.timestamp
    return found


def test_without_event_time_inputs_are_read_in_turns() -> None:
    a, b = FakeSource(1, ["a1", "a2", "a3"]), FakeSource(2, ["b1"])
    read_elements = [item.element for item in read(["g1", "g2"], [a, b], 3)]
    assert read_elements == ["g1", "a1", "b1", "g2", "a2", "a3"]
    assert a.is_closed
    assert b.is_closed


def test_the_input_that_is_behind_in_event_time_is_read_first() -> None:
    a = FakeSource(0, ["a1", Watermark(100), "a2", Watermark(101)])
    b = FakeSource(1, ["b1", Watermark(50), "b2", Watermark(120), "b3"])
    assert [str(item.element) for item in read([], [a, b], 2) if isinstance(item.element, str)] == [
        *("a1", "b1", "b2", "a2", "b3")
    ]


def test_an_input_without_records_does_not_hold_up_the_others() -> None:
    silent = FakeSource(0, [NothingYet(wait_s) for wait_s in (3, 2, 1, 5)])
    busy = FakeSource(1, ["b1", Watermark(50), "b2", NothingYet(4)])
    assert [item.element for item in read([], [silent, busy], 2)] == [
        *("b1", Watermark(50), "b2", NothingYet(4))
    ]


def test_elements_have_their_input_and_channel() -> None:
    assert read([], [FakeSource(1, ["x"])], 2) == [InputElement(1, -2, "x")]  # type: ignore[arg-type]


@given(st.lists(st.lists(st.integers(0, 9), max_size=6), min_size=1, max_size=4))
def test_each_input_keeps_its_order_and_no_element_is_lost(marks: list[list[int]]) -> None:
    sources = [
        FakeSource(number, [Watermark(mark) for mark in of_source])
        for number, of_source in enumerate(marks)
    ]
    found = read([], sources, len(sources))
    for number, of_source in enumerate(marks):
        assert [
            item.element.timestamp  # type: ignore[union-attr]
            for item in found
            if item.input_number == number
        ] == of_source


def test_closing_early_closes_the_sources() -> None:
    source = FakeSource(0, ["x", "y"])
    interleaved = InterleavedInputs([], [], [source], [MIN_LONG_VALUE])  # type: ignore[list-item]
    assert next(iter(interleaved)).element == "x"
    assert not source.is_closed
    interleaved.close()
    assert source.is_closed


# In a job


@pytest.mark.parametrize("form", FORMS)
def test_chained_sources_have_timestamps_and_watermarks(form: str) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        first = env.from_source(NumberSequenceSource(1, 3), ASCENDING, "first")
        second = env.from_source(NumberSequenceSource(5, 6), ASCENDING, "second")
        merged = multiple_input([first, second], [tagged("a"), tagged("b")])
        seen(merged.process(WithTimes()), "out")

    ran = run_form(draw, form, batch_size=2)
    assert [len(vertex.chained_sources) for vertex in ran.job.vertices] == [2]
    assert ran.records("out") == [
        (("a", 1), 10, MIN_LONG_VALUE),
        (("a", 2), 20, MIN_LONG_VALUE),
        (("b", 5), 50, MIN_LONG_VALUE),
        (("b", 6), 60, MIN_LONG_VALUE),
        # The 19 of the first source was read before the 59 of the second one: the minimum counts.
        (("a", 3), 30, 19),
    ]


def test_a_generator_may_emit_a_watermark_between_two_records() -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        strategy = WatermarkStrategy.for_generator(
            lambda context: Punctuated()
        ).with_timestamp_assigner(TenTimes())
        only = env.from_source(NumberSequenceSource(1, 5), strategy, "only")
        seen(multiple_input([only], [tagged("a")]).process(WithTimes()), "out")

    marks = [mark for _, _, mark in run_form(draw).records("out")]
    assert marks == [MIN_LONG_VALUE, MIN_LONG_VALUE, 20, 20, 40]


def test_an_idle_source_does_not_hold_the_others_back() -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        strategy = WatermarkStrategy.for_generator(
            lambda context: Punctuated()
        ).with_timestamp_assigner(TenTimes())
        idle = env.from_source(CollectionSource([7]), strategy, "idle")
        busy = env.from_source(NumberSequenceSource(2, 5), ASCENDING, "busy")
        merged = multiple_input([idle, busy], [tagged("idle"), tagged("busy")])
        seen(merged.process(WithTimes()), "out")

    ran = run_form(draw, batch_size=1)
    busy = [(value, mark) for (tag, value), _, mark in ran.records("out") if tag == "busy"]
    assert busy[0] == (2, MIN_LONG_VALUE)
    assert busy[-1] == (5, 39)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_chained_and_unchained_sources_give_the_same_records(
    form: str, parallelism: int, mode: str
) -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        first = env.from_source(NumberSequenceSource(1, 50), ASCENDING, "first")
        exchanged = env.from_source(NumberSequenceSource(100, 120), ASCENDING, "ex").rebalance()
        second = env.from_source(NumberSequenceSource(200, 230), NONE, "second")
        functions = [tagged("a"), tagged("b"), tagged("c")]
        seen(multiple_input([first, exchanged, second], functions), "out")  # type: ignore[arg-type]

    both = [
        run_form(draw, form, parallelism=parallelism, mode=mode, chaining=chaining, batch_size=8)
        for chaining in (True, False)
    ]
    assert [sum(len(vertex.chained_sources) for vertex in ran.job.vertices) for ran in both] == [
        *(2, 0)
    ]
    chained, unchained = (
        sorted(zip(ran.records("out"), ran.timestamps("out"), strict=True), key=str) for ran in both
    )
    assert chained == unchained
    assert len(chained) == 50 + 21 + 31


def test_chained_keyed_inputs_share_their_state_in_batch_mode_too() -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        first = env.from_sequence(1, 4).key_by(lambda value: value % 2)
        second = env.from_sequence(5, 8).key_by(lambda value: value % 2)
        seen(multiple_input([first, second], [tagged("a"), tagged("b")]), "out")

    ran = run_form(draw, mode="BATCH")
    # Key by key; for each key first the records of input 1, then those of input 2.
    assert sorted(ran.records("out")) == [
        *(("a", number) for number in range(1, 5)),
        *(("b", number) for number in range(5, 9)),
    ]
    keys = [value % 2 for _, value in ran.records("out")]
    assert keys in ([0] * 4 + [1] * 4, [1] * 4 + [0] * 4)


def test_records_of_chained_sources_are_counted() -> None:
    def draw(env: StreamExecutionEnvironment) -> None:
        first = env.from_source(NumberSequenceSource(1, 5), ASCENDING, "first")
        second = env.from_source(NumberSequenceSource(1, 3), NONE, "second").rebalance()
        seen(multiple_input([first, second], [tagged("a"), tagged("b")]), "out")

    ran = run_form(draw)
    counters = {name.partition(" of ")[0]: counts for (name, _), counts in ran.counters().items()}
    assert counters["Source: first.3"] == (5, 5)
    assert counters["Multiple Input Operator.0"] == (8, 8)
    report = next(
        report.metrics
        for report in ran.outcome.reports.values()
        if len(report.metrics.operators) > 2
    )
    assert report.records_in == 8


def test_an_error_of_a_timestamp_assigner_names_the_source() -> None:
    class Failing(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            raise ValueError("no time")

    def draw(env: StreamExecutionEnvironment) -> None:
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(
            Duration.of_seconds(1)
        ).with_timestamp_assigner(Failing())
        only = env.from_source(NumberSequenceSource(41, 42), strategy, "only")
        seen(multiple_input([only], [tagged("a")]).process(WithTimes()), "out")

    error = failure_of(draw)
    assert isinstance(error, ValueError)
    assert "in 'Source: only'" in notes_of(error)
    assert "at record 41" in notes_of(error)


def test_event_time_ends_when_all_inputs_have_ended() -> None:
    class AtTheEnd(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield ctx.timer_service().current_watermark()

    def draw(env: StreamExecutionEnvironment) -> None:
        short = env.from_source(NumberSequenceSource(1, 1), NONE, "short")
        long = env.from_source(NumberSequenceSource(1, 3), NONE, "long")
        merged = multiple_input([short, long], [lambda value: [], tagged("b")])
        seen(merged, "out")
        seen(merged.process(AtTheEnd()), "marks")

    ran = run_form(draw, batch_size=1)
    assert MAX_LONG_VALUE not in ran.records("marks")
    assert len(ran.records("out")) == 3
