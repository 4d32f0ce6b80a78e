from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import pytest
from forms import FORMS, job_of, run_form, seen
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.common import WatermarkStrategy
from opchain.common.time import Duration
from opchain.common.watermark_strategy import (
    TimestampAssigner,
    WatermarkGenerator,
    WatermarkOutput,
)
from opchain.datastream.functions import ProcessFunction
from opchain.runtime.connectors.collection import CollectionSource
from opchain.runtime.operators.timestamps_watermarks import WatermarkEmitter
from opchain.runtime.program.operator_specs import TimestampsWatermarksSpec
from opchain.runtime.testing.operator_harness import (
    CapturedOutput,
    EmittedRecord,
    EmittedWatermark,
    OneInputOperatorHarness,
)
from opchain.runtime.time import MAX_LONG_VALUE, MIN_LONG_VALUE

MONOTONOUS: Any = WatermarkStrategy.for_monotonous_timestamps()
BOUNDED: Any = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))


class Tenfold(TimestampAssigner[int]):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value * 10


class Punctuated(WatermarkGenerator[int]):
    """Emits a watermark after each record; is idle after each 0."""

    def on_event(self, event: int, event_timestamp: int, output: WatermarkOutput) -> None:
        if event:
            output.emit_watermark(event_timestamp)
        else:
            output.mark_idle()

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


@dataclass(frozen=True)
class MakesPunctuated:
    def __call__(self, context: Any) -> Punctuated:
        return Punctuated()


PUNCTUATED: Any = WatermarkStrategy.for_generator(MakesPunctuated())


class Sees(ProcessFunction[Any, Any]):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


# WatermarkEmitter


def test_only_increasing_watermarks_are_emitted() -> None:
    output = CapturedOutput()
    emitter = WatermarkEmitter(output)
    for timestamp in (3, 3, 2, MIN_LONG_VALUE, 4):
        emitter.emit_watermark(timestamp)
    assert output.elements == [EmittedWatermark(3), EmittedWatermark(4)]


def test_idleness_is_emitted_once_and_ended_by_a_watermark() -> None:
    output = CapturedOutput()
    emitter = WatermarkEmitter(output)
    emitter.mark_active()
    for _ in range(2):
        emitter.mark_idle()
    emitter.emit_watermark(MIN_LONG_VALUE)
    assert output.statuses == [True]
    emitter.emit_watermark(1)
    assert output.statuses == [True, False]
    emitter.mark_idle()
    emitter.mark_active()
    assert output.statuses == [True, False, True, False]


# The operator


def harness_of(strategy: Any) -> OneInputOperatorHarness:
    return OneInputOperatorHarness(TimestampsWatermarksSpec(strategy))


@pytest.mark.parametrize(
    "assigner", [Tenfold(), lambda value, _: value * 10, lambda value, so_far: value * 10]
)
def test_records_get_the_timestamps_of_the_assigner(assigner: Any) -> None:
    with harness_of(copy(MONOTONOUS).with_timestamp_assigner(assigner)) as harness:
        harness.process_element(1)
        harness.process_element(2, 99)
        assert harness.records() == [(1, 10), (2, 20)]


def _timestamp_of(value: int) -> int:
    return value + 1


class AssignerAndFunction:
    """Has the method of a TimestampAssigner without being one, and is callable with another result."""

    def extract_timestamp(self, value: int, _so_far: int) -> int:
        return _timestamp_of(value)

    def __call__(self, value: int, _so_far: int) -> int:
        return -value


@pytest.mark.parametrize("form", FORMS)
def test_any_object_with_extract_timestamp_can_assign_timestamps(form: str) -> None:
    strategy = copy(MONOTONOUS).with_timestamp_assigner(AssignerAndFunction())

    def draw(env: Any) -> None:
        seen(env.from_collection([1, 2]).assign_timestamps_and_watermarks(strategy), "x")

    assert run_form(draw, form).timestamps("x") == [2, 3]


class Seven:
    """An integer type of another library."""

    def __index__(self) -> int:
        return 7


def stamped(form: str, timestamp: Any) -> list[Any]:
    """The timestamp of a record whose assigner returns `timestamp`."""
    strategy = copy(MONOTONOUS).with_timestamp_assigner(lambda *_: timestamp)

    def draw(env: Any) -> None:
        seen(env.from_collection(["x"]).assign_timestamps_and_watermarks(strategy), "x")

    return run_form(draw, form).timestamps("x")


@pytest.mark.parametrize("form", FORMS)
def test_the_fraction_of_a_timestamp_is_dropped(form: str) -> None:
    assert stamped(form, Seven()) == [7]
    assert stamped(form, 5.9) == [5]
    assert stamped(form, -5.9) == [-5]
    assert stamped(form, True) == [1]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("timestamp", ["5", None])
def test_a_timestamp_that_is_not_a_number_is_an_error(form: str, timestamp: Any) -> None:
    message = (
        f"assigner 'lambda.*' returned {timestamp!r} for the record 'x'; a timestamp is an int"
    )
    with pytest.raises(TypeError, match=message):
        stamped(form, timestamp)


def test_an_assigner_gets_the_previous_timestamp() -> None:
    with harness_of(copy(MONOTONOUS).with_timestamp_assigner(lambda _, so_far: so_far)) as harness:
        harness.process_element("a", 7)
        harness.process_element("b")
        assert harness.records() == [("a", 7), ("b", MIN_LONG_VALUE)]


def test_without_an_assigner_records_keep_their_timestamps() -> None:
    with harness_of(MONOTONOUS) as harness:
        harness.process_element("a", 7)
        harness.process_element("b")
        harness.operator.on_batch_end()
        assert harness.elements() == [
            *(EmittedRecord("a", 7), EmittedRecord("b", None)),
            EmittedWatermark(6),
        ]


@pytest.mark.parametrize(("strategy", "watermarks"), [(MONOTONOUS, [29, 49]), (BOUNDED, [24, 44])])
def test_a_periodic_generator_is_called_after_each_batch(
    strategy: Any, watermarks: list[int]
) -> None:
    with harness_of(strategy.with_timestamp_assigner(Tenfold())) as harness:
        operator = harness.operator
        for batch in ([3, 1], [2], [5, 4]):
            for value in batch:
                harness.process_element(value)
            operator.on_batch_end()
        marks = [mark for mark in harness.elements() if isinstance(mark, EmittedWatermark)]
        assert [mark.timestamp for mark in marks] == watermarks


def test_a_punctuated_generator_is_called_after_each_record() -> None:
    with harness_of(copy(PUNCTUATED).with_timestamp_assigner(Tenfold())) as harness:
        for value in (1, 0, 2):
            harness.process_element(value)
        assert harness.elements() == [
            *(EmittedRecord(1, 10), EmittedWatermark(10)),
            EmittedRecord(0, 0),
            *(EmittedRecord(2, 20), EmittedWatermark(20)),
        ]
        assert harness.statuses() == [True, False]


def test_watermarks_and_statuses_from_upstream_are_dropped_except_the_last_one() -> None:
    with harness_of(copy(PUNCTUATED).with_timestamp_assigner(Tenfold())) as harness:
        harness.process_watermark(500)
        harness.process_status(is_idle=True)
        harness.process_element(0)
        assert harness.statuses() == [True]
        harness.process_watermark(MAX_LONG_VALUE)
        assert harness.statuses() == [True, False]
        assert harness.elements()[-1] == EmittedWatermark(MAX_LONG_VALUE)
        harness.operator.finish()
        assert harness.elements()[-1] == EmittedWatermark(MAX_LONG_VALUE)


def test_no_watermark_follows_the_last_one() -> None:
    """A watermark that the generator still holds would be too late."""
    with harness_of(copy(MONOTONOUS).with_timestamp_assigner(Tenfold())) as harness:
        harness.process_element(5)
        harness.end_input()
        assert harness.elements() == [EmittedRecord(5, 50), EmittedWatermark(MAX_LONG_VALUE)]


def test_an_idleness_timeout_has_no_effect_in_a_bounded_job() -> None:
    """With it, the speed of the machine would decide which records are late."""
    strategy = (
        copy(MONOTONOUS).with_timestamp_assigner(Tenfold()).with_idleness(Duration.of_millis(1))
    )
    with harness_of(strategy) as harness:
        for _ in range(3):
            harness.advance_processing_time(10_000)
            harness.operator.on_batch_end()
        assert harness.statuses() == []


def test_generated_code_passes_the_greatest_timestamp_of_a_batch() -> None:
    with harness_of(MONOTONOUS) as harness:
        operator: Any = harness.operator
        for greatest in (30, MIN_LONG_VALUE, 20):
            operator.saw(greatest)
            operator.on_batch_end()
        assert harness.elements() == [EmittedWatermark(29)]


# In jobs


ASSIGNERS: dict[str, Any] = {
    "none": None,
    "function": lambda value, _: value * 3 % 17,
    "reads the old one": lambda value, so_far: value + max(so_far, -1) % 2,
    "object": Tenfold(),
}
GENERATORS: dict[str, Any] = {
    "monotonous": MONOTONOUS,
    "bounded": BOUNDED,
    "none": WatermarkStrategy.no_watermarks(),
    "idle": BOUNDED.with_idleness(Duration.of_millis(1)),
    "punctuated": PUNCTUATED,
}

strategies = st.tuples(st.sampled_from(sorted(ASSIGNERS)), st.sampled_from(sorted(GENERATORS)))


def strategy_of(names: tuple[str, str]) -> Any:
    assigner, strategy = ASSIGNERS[names[0]], GENERATORS[names[1]]
    # Copied, since assigning timestamps may change a strategy without an assigner.
    return strategy if assigner is None else copy(strategy).with_timestamp_assigner(assigner)


@settings(max_examples=40)
@given(
    source=strategies,
    behind=st.lists(st.sampled_from(["map", "flat map", "filter", "rebalance"]), max_size=4),
    again=st.none() | strategies,
    batch_size=st.integers(1, 9),
    mode=st.sampled_from(["STREAMING", "BATCH"]),
)
def test_all_forms_have_the_same_timestamps_and_watermarks(
    source: Any, behind: list[str], again: Any, batch_size: int, mode: str
) -> None:
    def draw(env: Any) -> None:
        stream = env.from_source(CollectionSource(list(range(20))), strategy_of(source), "numbers")
        for what in behind:
            if what == "map":
                stream = stream.map(lambda x: x)
            elif what == "flat map":
                stream = stream.flat_map(lambda x: [x, x + 1])
            elif what == "filter":
                stream = stream.filter(lambda x: x % 5)
            else:
                stream = stream.rebalance().map(lambda x: x)
        if again is not None:
            stream = stream.assign_timestamps_and_watermarks(strategy_of(again))
        seen(stream.process(Sees()), "all")

    found = [
        run_form(draw, form, batch_size=batch_size, mode=mode).subtasks("all") for form in FORMS
    ]
    assert found[1] == found[0]
    assert found[2] == found[0]


@pytest.mark.parametrize("form", FORMS)
def test_batch_mode_has_timestamps_and_no_watermark_before_the_end(form: str) -> None:
    def draw(env: Any) -> None:
        source = CollectionSource([1, 2])
        stream = env.from_source(
            source, copy(PUNCTUATED).with_timestamp_assigner(Tenfold()), "numbers"
        )
        seen(stream.process(Sees()), "all")

    assert run_form(draw, form, mode="BATCH", batch_size=1).records("all") == [
        *((1, 10, MIN_LONG_VALUE), (2, 20, MIN_LONG_VALUE)),
    ]


@pytest.mark.parametrize(("interval", "watermark"), [(200, 9), (0, MIN_LONG_VALUE)])
@pytest.mark.parametrize("form", FORMS)
def test_without_an_auto_watermark_interval_there_is_no_periodic_watermark(
    form: str, interval: int, watermark: int
) -> None:
    def draw(env: Any) -> None:
        stream = env.from_sequence(1, 2).assign_timestamps_and_watermarks(
            copy(MONOTONOUS).with_timestamp_assigner(Tenfold())
        )
        seen(stream.process(Sees()), "all")

    records = run_form(draw, form, batch_size=1, watermark_interval=interval).records("all")
    assert records == [(1, 10, MIN_LONG_VALUE), (2, 20, watermark)]


def test_generated_code_inlines_strategies_that_do_not_need_every_record() -> None:
    def source(strategy: Any, **settings: Any) -> str:
        def draw(env: Any) -> None:
            env.from_source(CollectionSource([1]), strategy, "numbers").process(Sees()).print()

        return job_of(draw, **settings).vertices[0].source or ""

    stamped = copy(PUNCTUATED).with_timestamp_assigner(lambda x, _: x + 1)
    assert "source_0_0(value, None)" in source(stamped)
    assert "timestamp_0 = value + 1" in source(stamped, mode="BATCH")
    assert "greatest" not in source(stamped, mode="BATCH")
    written = source(copy(MONOTONOUS).with_timestamp_assigner(lambda x, _: x + 1))
    assert "greatest_0 = timestamp_0" in written
    assert "op_0.saw(greatest_0)" in written
