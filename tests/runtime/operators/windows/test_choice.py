from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.functions.window import ProcessWindowFunction
from opchain.runtime.operators.registry import window_operator_class
from opchain.runtime.operators.windows.aligned_window_operator import (
    AlignedWindowOperator,
    KeyByKeyWindowOperator,
)
from opchain.runtime.operators.windows.merging_window_operator import MergingWindowOperator
from opchain.runtime.operators.windows.session_window_operator import SessionWindowOperator
from opchain.runtime.operators.windows.window_operator import (
    CountWindowOperator,
    KeyByKeyCountWindowOperator,
    ProcessingTimeWindowOperator,
    WindowOperator,
)
from opchain.runtime.program.operator_specs import WindowSpec
from opchain.runtime.windows.data_triggers import CountTrigger, PurgingTrigger
from opchain.runtime.windows.evictors import CountEvictor
from opchain.runtime.windows.global_windows import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    GlobalWindows,
)
from opchain.runtime.windows.time_windows import (
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from opchain.runtime.windows.triggers import EventTimeTrigger, ProcessingTimeTrigger

TEN = TumblingEventTimeWindows.of(10)


class Daily(TumblingEventTimeWindows):
    """A user's window assigner, which may override any method."""


class Clears(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> None:
        return None

    def clear(self, context: Any) -> None:
        context.window_state()


@pytest.mark.parametrize(
    ("kind", "spec", "is_batch"),
    [
        (AlignedWindowOperator, {"reduce": max}, False),
        (AlignedWindowOperator, {"reduce": max}, True),
        (AlignedWindowOperator, {"reduce": max, "allowed_lateness_ms": 5}, False),
        (AlignedWindowOperator, {"assigner": SlidingEventTimeWindows.of(10, 3)}, False),
        (AlignedWindowOperator, {"function": Clears()}, False),
        (KeyByKeyWindowOperator, {}, True),
        (KeyByKeyWindowOperator, {"assigner": SlidingEventTimeWindows.of(6, 2)}, True),
        (WindowOperator, {"function": Clears(), "allowed_lateness_ms": 5}, False),
        (WindowOperator, {"trigger": PurgingTrigger(EventTimeTrigger())}, False),
        (WindowOperator, {"evictor": CountEvictor.of(3)}, False),
        (WindowOperator, {"assigner": Daily(10, 0)}, False),
        (
            ProcessingTimeWindowOperator,
            {"assigner": TumblingProcessingTimeWindows.of(10)},
            False,
        ),
        (
            WindowOperator,
            {
                "assigner": TumblingProcessingTimeWindows.of(10),
                "trigger": PurgingTrigger(ProcessingTimeTrigger()),
            },
            False,
        ),
        (WindowOperator, {"assigner": GlobalWindows.create()}, False),
        (CountWindowOperator, {"assigner": CountTumblingWindowAssigner.of(3)}, False),
        (KeyByKeyCountWindowOperator, {"assigner": CountTumblingWindowAssigner.of(3)}, True),
        (CountWindowOperator, {"assigner": CountSlidingWindowAssigner.of(3, 2)}, False),
        (WindowOperator, {"assigner": CountSlidingWindowAssigner.of(2, 3)}, False),
        (KeyByKeyCountWindowOperator, {"assigner": CountSlidingWindowAssigner.of(3, 2)}, True),
        (
            WindowOperator,
            {
                "assigner": CountTumblingWindowAssigner.of(3),
                "trigger": PurgingTrigger(CountTrigger.of(2)),
            },
            False,
        ),
        (SessionWindowOperator, {"assigner": EventTimeSessionWindows.with_gap(3)}, False),
        (SessionWindowOperator, {"assigner": EventTimeSessionWindows.with_gap(3)}, True),
        (
            SessionWindowOperator,
            {"assigner": EventTimeSessionWindows.with_dynamic_gap(len), "allowed_lateness_ms": 5},
            False,
        ),
        (
            MergingWindowOperator,
            {
                "assigner": EventTimeSessionWindows.with_gap(3),
                "trigger": PurgingTrigger(EventTimeTrigger()),
            },
            False,
        ),
        (MergingWindowOperator, {"assigner": ProcessingTimeSessionWindows.with_gap(3)}, False),
    ],
)
def test_the_window_operator_is_chosen_by_assigner_trigger_and_functions(
    kind: type, spec: dict[str, Any], is_batch: bool
) -> None:
    assigner = spec.get("assigner", TEN)
    arguments = {
        "assigner": assigner,
        "trigger": assigner.get_default_trigger(None),
        "function": None if "reduce" in spec else print,
        **spec,
    }
    assert window_operator_class(WindowSpec(**arguments), is_batch=is_batch) is kind
