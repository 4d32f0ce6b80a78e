"""States that code reaches under several names, and arguments that set variables."""

from __future__ import annotations

from typing import Any

import pytest
from forms import FORMS, run_form, seen

from opchain.common import Types
from opchain.datastream import KeyedProcessFunction
from opchain.datastream.state import MapStateDescriptor, ValueStateDescriptor


class SameName(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.a = runtime_context.get_state(ValueStateDescriptor("s", Types.LONG()))
        self.b = runtime_context.get_state(ValueStateDescriptor("s", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Any:
        self.a.update(value)
        yield value, self.b.value()
        self.b.update(value * 10)
        yield value, self.a.value()


class SameObject(SameName):
    def open(self, runtime_context: Any) -> None:
        self.a = self.b = runtime_context.get_state(ValueStateDescriptor("s", Types.LONG()))


class SetsVariable(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.next = runtime_context.get_map_state(
            MapStateDescriptor("next", Types.LONG(), Types.LONG())
        )

    def process_element(self, value: int, ctx: Any) -> Any:
        number = value
        self.next.put(number, (number := number + 1))
        yield sorted(self.next.items()), number


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("function", [SameName, SameObject])
def test_two_attributes_may_hold_the_same_state(function: Any, form: str, mode: str) -> None:
    def draw(env: Any) -> Any:
        return seen(env.from_sequence(1, 4).key_by(lambda x: x % 2).process(function()), "out")

    found = run_form(draw, form, mode=mode).records("out")
    assert sorted(found) == [(x, y) for x in (1, 2, 3, 4) for y in (x, 10 * x)]


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("form", FORMS)
def test_an_argument_may_assign_the_variable_of_an_earlier_argument(form: str, mode: str) -> None:
    def draw(env: Any) -> Any:
        return seen(env.from_sequence(1, 2).key_by(lambda x: x).process(SetsVariable()), "out")

    found = run_form(draw, form, mode=mode).records("out")
    assert sorted(found) == [([(1, 2)], 2), ([(2, 3)], 3)]
