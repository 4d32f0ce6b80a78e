"""The states of an operator are described, and compared with the states in a checkpoint."""

from __future__ import annotations

from typing import Any

import pytest

from opchain.runtime.checkpoint.metadata import StateDescription
from opchain.runtime.checkpoint.restore_plan import (
    changed_states,
    describe_states,
    require_same_states,
)
from opchain.runtime.errors import StateError
from opchain.runtime.functions.process_functions import KeyedProcessFunction
from opchain.runtime.functions.state_descriptors import ListStateDescriptor, ValueStateDescriptor
from opchain.runtime.testing.operator_harness import KeyedOneInputOperatorHarness
from opchain.runtime.types.types import Types


class Count(KeyedProcessFunction):
    def open(self, context: Any) -> None:
        self.count = context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> None:
        self.count.update(1)


def test_all_states_of_an_operator_are_described() -> None:
    with KeyedOneInputOperatorHarness(Count(), lambda value: value) as harness:
        harness.process_element(1)
        context = harness.operator.context
        context.operator_state.get_list_state(ListStateDescriptor("split", Types.STRING()))
        context.operator_state.get_union_list_state(ListStateDescriptor("union"))
        context.keyed_state.table("raw")
        described = {state.name: (state.kind, state.type) for state in describe_states(context)}
    assert described["count"] == ("ValueStateDescriptor", "Long")
    assert described["split"][0] == "list"
    assert "String" in described["split"][1]
    assert described["union"][0] == "union list"
    assert described["raw"] == ("table", "")
    assert described["user-timers"] == ("timers", "")


LONG = StateDescription("n", "ValueStateDescriptor", "Long")


@pytest.mark.parametrize(
    ("after", "problem"),
    [
        (LONG, None),
        (StateDescription("n", "ValueStateDescriptor"), None),
        (StateDescription("other", "ListStateDescriptor", "x"), None),
        (StateDescription("n", "timers"), None),
        (
            StateDescription("n", "ValueStateDescriptor", "String"),
            "state 'n' was saved with type Long and has String",
        ),
        (
            StateDescription("n", "ListStateDescriptor", "Long"),
            "state 'n' was saved as ValueStateDescriptor and is a ListStateDescriptor",
        ),
    ],
)
def test_changed_states_says_what_has_changed(after: StateDescription, problem: str | None) -> None:
    assert changed_states([LONG], [after]) == ([] if problem is None else [problem])


def test_a_changed_state_is_refused_and_the_error_names_the_operator() -> None:
    now = [StateDescription("n", "ValueStateDescriptor", "String")]
    require_same_states([LONG], [LONG], "'count' (job.py:3)")
    with pytest.raises(
        StateError,
        match=r"'count' \(job.py:3\): state 'n' was .*; use another name for the new state",
    ):
        require_same_states([LONG], now, "'count' (job.py:3)")
