"""Each harness processes the elements of the given input."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from opchain.datastream import CoMapFunction, CoProcessFunction, MapFunction
from opchain.testing import (
    EmittedWatermark,
    KeyedOneInputOperatorHarness,
    KeyedTwoInputOperatorHarness,
    OneInputOperatorHarness,
    TwoInputOperatorHarness,
)


class Sides(CoMapFunction[Any, Any, Any]):
    def map1(self, value: Any) -> Any:
        return "first", value

    def map2(self, value: Any) -> Any:
        return "second", value


class RichSides(Sides):
    """Only functions with `open` can use state, so the key is set only for such functions."""

    def open(self, runtime_context: Any) -> None:
        self.context = runtime_context


class SidesAndTime(CoProcessFunction[Any, Any, Any]):
    def process_element1(self, value: Any, ctx: Any) -> Any:
        yield "first", value, ctx.timestamp(), ctx.timer_service().current_watermark()

    def process_element2(self, value: Any, ctx: Any) -> Any:
        yield "second", value, ctx.timestamp(), ctx.timer_service().current_watermark()


class Same(MapFunction[Any, Any]):
    def map(self, value: Any) -> Any:
        return value


class RichSame(Same):
    def open(self, runtime_context: Any) -> None:
        self.context = runtime_context


def test_a_two_input_harness_processes_both_inputs() -> None:
    with TwoInputOperatorHarness(Sides()) as harness:
        harness.process_element1(1, 5)
        harness.process_element2(2)
        assert harness.records() == [(("first", 1), 5), (("second", 2), None)]


def test_the_smaller_watermark_counts_and_idle_inputs_are_ignored() -> None:
    with TwoInputOperatorHarness(SidesAndTime()) as harness:
        harness.process_watermark1(10)
        harness.process_watermark2(5)
        harness.process_status2(is_idle=True)
        harness.process_status1(is_idle=True)
        assert harness.elements() == [EmittedWatermark(5), EmittedWatermark(10)]
        assert harness.statuses() == [True]
        harness.process_status1(is_idle=False)
        harness.process_both_watermarks(20)
        harness.process_element2("x", 7)
        assert harness.values() == [("second", "x", 7, 20)]


def test_a_one_input_harness_works_with_and_without_a_key() -> None:
    with OneInputOperatorHarness(Same()) as harness:
        harness.process_elements([("a", 1), ("b", None)])
        assert harness.records() == [("a", 1), ("b", None)]
        assert harness.operator.context.keyed is None
    with KeyedOneInputOperatorHarness(RichSame(), itemgetter(0)) as harness:
        harness.process_element("ab")
        assert harness.operator.context.keyed_state.current_key == "a"


def test_a_two_input_harness_works_with_one_or_two_keys() -> None:
    with KeyedTwoInputOperatorHarness(RichSides(), itemgetter(0), itemgetter(1)) as harness:
        backend = harness.operator.context.keyed_state
        harness.process_element1("ab")
        first = backend.current_key
        harness.process_element2("ab")
        assert (first, backend.current_key) == ("a", "b")
    with KeyedTwoInputOperatorHarness(Sides(), itemgetter(0)) as harness:
        assert [key is None for key in harness.operator.program.keys] == [False, True]
