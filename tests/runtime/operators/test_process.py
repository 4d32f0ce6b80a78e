from __future__ import annotations

from typing import Any

import pytest

from opchain.datastream import OutputTag
from opchain.datastream.functions import CoProcessFunction, ProcessFunction
from opchain.runtime.operators.operator import Output
from opchain.runtime.operators.process import emit_results, is_tagged
from opchain.runtime.testing.operator_harness import (
    OneInputOperatorHarness,
    TwoInputOperatorHarness,
)

SIDE = OutputTag("side")


class Asks(ProcessFunction[Any, Any]):
    """Yields the attributes of its context."""

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        clocks = ctx.timer_service()
        yield value, ctx.timestamp(), clocks.current_watermark(), clocks.current_processing_time()


class SetsTimer(ProcessFunction[Any, Any]):
    def __init__(self, method: str) -> None:
        self.method = method

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        getattr(ctx.timer_service(), self.method)(5)
        return []


class Both(CoProcessFunction[Any, Any, Any]):
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
        yield "one", value, ctx.timestamp()
        yield SIDE, value

    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Any:
        return [("two", value, ctx.timestamp())]


class Nothing(ProcessFunction[Any, Any]):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        return None


@pytest.mark.parametrize(
    ("result", "is_one"),
    [
        ((SIDE, 1), True),
        ((SIDE, (SIDE, 1)), True),
        ((1, SIDE), False),
        ((SIDE,), False),
        ((SIDE, 1, 2), False),
        ([SIDE, 1], False),
        (SIDE, False),
        (None, False),
    ],
)
def test_only_a_pair_that_begins_with_an_output_tag_is_tagged(result: Any, is_one: bool) -> None:
    assert is_tagged(result) is is_one


def test_results_keep_their_order_and_the_timestamp_of_the_record() -> None:
    found: list[Any] = []
    output = Output(
        collect=lambda value, time: found.append(("main", value, time)),
        sides={"side": lambda value, time: found.append(("side", value, time))},
    )
    emit_results(output, [1, (SIDE, 2), (OutputTag("other"), 3), None, 4], 9)
    assert found == [("main", 1, 9), ("side", 2, 9), ("main", None, 9), ("main", 4, 9)]
    emit_results(output, None, 9)
    assert len(found) == 4


def test_the_context_has_timestamp_processing_time_and_watermark() -> None:
    with OneInputOperatorHarness(Asks()) as harness:
        harness.process_element("a", 3)
        harness.process_watermark(7)
        harness.set_processing_time(100)
        harness.process_element("b")
        assert harness.values() == [("a", 3, -(2**63), 0), ("b", -(2**63), 7, 100)]


def test_a_result_of_none_emits_nothing() -> None:
    with OneInputOperatorHarness(Nothing()) as harness:
        harness.process_element(1)
        assert harness.values() == []


@pytest.mark.parametrize(
    "method",
    [
        *("register_event_time_timer", "delete_event_time_timer"),
        *("register_processing_time_timer", "delete_processing_time_timer"),
    ],
)
def test_timers_require_a_keyed_stream(method: str) -> None:
    with (
        OneInputOperatorHarness(SetsTimer(method)) as harness,
        pytest.raises(TypeError, match=r"'Process' .* for 5, but its stream has no key.*key_by"),
    ):
        harness.process_element(1)


def test_each_of_two_inputs_calls_its_own_method() -> None:
    with TwoInputOperatorHarness(Both()) as harness:
        harness.process_element1("a", 1)
        harness.process_element2("b", 2)
        assert harness.values() == [("one", "a", 1), ("two", "b", 2)]
        assert harness.values(SIDE) == ["a"]
