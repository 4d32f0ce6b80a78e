"""What inlined functions are given, and what their variables are, must be as Python has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, run_form, seen

from opchain.common import Types
from opchain.datastream import MapFunction

if TYPE_CHECKING:
    from collections.abc import Callable


def second(_first: Any, value: Any) -> Any:
    return value


def difference(a: int, b: int) -> int:
    return a - b


class Incomparable:
    def __gt__(self, other: Any) -> bool:
        raise ValueError("cannot be compared")

    def __lt__(self, other: Any) -> bool:
        raise ValueError("cannot be compared")


LEAST = Incomparable()


class CountsCalls(MapFunction[int, int]):
    def __init__(self) -> None:
        self.calls = 0

    def bump(self, value: int) -> int:
        self.calls += 1
        return value

    def map(self, value: int) -> int:
        return second(self.bump(value), value) + self.calls


def results(draw: Callable[[Any], Any], form: str) -> list[Any]:
    return run_form(lambda env: seen(draw(env), "out"), form).records("out")


@pytest.mark.parametrize("form", FORMS)
def test_an_argument_that_is_not_read_is_computed(form: str) -> None:
    assert results(lambda env: env.from_sequence(1, 3).map(CountsCalls()), form) == [2, 4, 6]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda v: second(1 // (v - 2), v), "by zero"),
        (lambda v: second(v > LEAST, v), "cannot be compared"),
        (lambda v: second(LEAST if v > LEAST else 1, v), "cannot be compared"),
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_an_argument_that_is_not_read_may_fail(form: str, function: Any, message: str) -> None:
    with pytest.raises((ArithmeticError, ValueError), match=message):
        results(lambda env: env.from_sequence(1, 3).map(function), form)


@pytest.mark.parametrize("form", FORMS)
def test_an_argument_may_set_a_variable(form: str) -> None:
    def draw(env: Any) -> Any:
        return env.from_sequence(1, 3).map(lambda v: difference(v, (v := 10)))

    assert results(draw, form) == [-9, -8, -7]


def previous_list(value: int) -> Any:
    last: Any = 0
    result: Any = 0
    for _ in range(3):
        result = last
        last = [value]
    return result


def previous_number(_value: int) -> float:
    last = 0.5
    result = 0.5
    for _ in range(3):
        result = last
        last = 1
    return result


def changed(values: list[int]) -> list[int]:
    values.append(1)
    return values


@pytest.mark.parametrize("form", FORMS)
def test_a_variable_may_have_another_type_in_the_next_round_of_a_loop(form: str) -> None:
    def forked(env: Any) -> Any:
        lists = env.from_sequence(1, 2).map(previous_list)
        return lists.map(changed).union(lists.map(list))

    assert sorted(results(forked, form)) == [[1], [1, 1], [2], [2, 1]]

    def declared(env: Any) -> Any:
        return env.from_sequence(1, 2).map(previous_number, output_type=Types.DOUBLE())

    assert [type(each) for each in results(declared, form)] == [float, float]
