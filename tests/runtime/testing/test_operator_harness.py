from __future__ import annotations

from operator import itemgetter
from typing import Any

import pytest

from opchain.datastream import KeyedProcessFunction, MapFunction, ProcessFunction
from opchain.datastream.functions import SinkFunction
from opchain.runtime.functions.state_descriptors import ValueStateDescriptor
from opchain.runtime.program.operator_specs import FilterSpec
from opchain.testing import (
    EmittedWatermark,
    KeyedOneInputOperatorHarness,
    ManualClock,
    OneInputOperatorHarness,
)

COUNT: ValueStateDescriptor[int] = ValueStateDescriptor("count")


class Double(MapFunction[int, int]):
    def __init__(self) -> None:
        self.events: list[Any] = []

    def open(self, runtime_context: Any) -> None:
        self.events.append(("open", runtime_context.get_job_parameter("factor", "none")))

    def map(self, value: int) -> int:
        return value * 2

    def close(self) -> None:
        self.events.append("close")


class Count(KeyedProcessFunction[Any, Any, Any]):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(COUNT)

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_processing_time_timer(
            ctx.timer_service().current_processing_time() + 10
        )
        yield self.count.value()

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield "timer", timestamp
        if timestamp < 25:
            ctx.timer_service().register_processing_time_timer(timestamp + 10)


def test_the_operator_is_opened_and_closed_by_the_with_block() -> None:
    function = Double()
    with OneInputOperatorHarness(function, job_parameters={"factor": "2"}) as harness:
        harness.process_element(21)
    assert harness.values() == [42]
    assert function.events == [("open", "2"), "close"]


def test_the_operator_is_closed_after_an_error() -> None:
    function = Double()
    with pytest.raises(TypeError), OneInputOperatorHarness(function) as harness:
        harness.process_element(None)
    assert function.events[-1] == "close"


def test_watermarks_and_records_are_captured_in_order() -> None:
    with OneInputOperatorHarness(FilterSpec(lambda value: value > 0)) as harness:
        harness.process_elements([(1, 5), (-1, 6)])
        harness.process_watermark(6)
        harness.process_element(2)
        harness.process_status(is_idle=True)
        assert harness.elements() == [(1, 5), EmittedWatermark(6), (2, None)]
        assert harness.statuses() == [True]
        harness.clear_output()
        assert harness.elements() == []


def test_processing_time_advances_only_when_the_test_sets_it() -> None:
    with KeyedOneInputOperatorHarness(Count(), itemgetter(0)) as harness:
        harness.process_element(("a", 1))
        assert harness.processing_time_timer_count() == 1
        harness.set_processing_time(9)
        assert harness.values() == [1]
        harness.advance_processing_time(1)
        assert harness.values() == [1, ("timer", 10)]
        harness.advance_processing_time(100)
        assert harness.values()[2:] == [("timer", 20), ("timer", 30)]
        with pytest.raises(ValueError, match="cannot go back"):
            harness.set_processing_time(5)


def test_two_harnesses_may_share_a_clock() -> None:
    clock = ManualClock(50)
    with (
        KeyedOneInputOperatorHarness(Count(), itemgetter(0), clock=clock) as one,
        KeyedOneInputOperatorHarness(Count(), itemgetter(0), clock=clock) as other,
    ):
        for harness in (one, other):
            harness.process_element(("a", 1))
        clock.advance(10)
        for harness in (one, other):
            assert harness.values() == [1]
            harness.run_mail()
            assert harness.values() == [1, ("timer", 60)]


def test_state_can_be_read_and_changed() -> None:
    with KeyedOneInputOperatorHarness(Count(), itemgetter(0)) as harness:
        for key in "aba":
            harness.process_element((key, 1))
        assert harness.keyed_state(COUNT, "a").value() == 2
        assert list(harness.keys("count")) == ["a", "b"]
        assert harness.state_entry_count() == 2
        harness.keyed_state(COUNT, "b").update(10)
        harness.process_element(("b", 1))
        assert harness.values()[-1] == 11


def test_a_subtask_refuses_keys_of_other_subtasks() -> None:
    harnesses = [
        KeyedOneInputOperatorHarness(Count(), itemgetter(0), parallelism=2, subtask=subtask)
        for subtask in range(2)
    ]
    keys = [f"key {number}" for number in range(20)]
    for key in keys:
        assert [harness.owns(key) for harness in harnesses].count(True) == 1
    mine = next(key for key in keys if harnesses[0].owns(key))
    other = next(key for key in keys if harnesses[1].owns(key))
    with harnesses[0] as harness:
        harness.process_element((mine, 1))
        with pytest.raises(ValueError, match=r"belongs to key group .* subtask 0 of 2 has"):
            harness.process_element((other, 1))


def test_counters_continue_after_a_restart() -> None:
    with KeyedOneInputOperatorHarness(Count(), itemgetter(0)) as before:
        for key in "aab":
            before.process_element((key, 1))
        snapshot = before.snapshot()
    with KeyedOneInputOperatorHarness(Count(), itemgetter(0), snapshots=[snapshot]) as harness:
        harness.process_element(("a", 1))
        assert harness.values() == [3]
        assert harness.processing_time_timer_count() == 2


def test_end_input_finishes_the_operator() -> None:
    class Last(ProcessFunction[Any, Any]):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield value

    with OneInputOperatorHarness(Last()) as harness:
        harness.process_element(1)
        harness.end_input()
        assert harness.elements() == [(1, None), EmittedWatermark(2**63 - 1)]


def test_a_sink_function_is_refused() -> None:
    class Prints(SinkFunction[Any]):
        def invoke(self, value: Any, context: Any) -> None:
            pass

    with pytest.raises(TypeError, match="Prints cannot be run by a harness"):
        OneInputOperatorHarness(Prints())


def test_run_mailbox_step_runs_one_mail() -> None:
    with KeyedOneInputOperatorHarness(Count(), itemgetter(0)) as harness:
        harness.process_element(("a", 1))
        assert not harness.run_mailbox_step()
        harness.clock.advance(10)  # the timer is mail that has not run yet
        assert harness.values() == [1]
        assert harness.run_mailbox_step()
        assert harness.values() == [1, ("timer", 10)]
        assert not harness.run_mailbox_step()
