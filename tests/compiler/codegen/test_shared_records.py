"""Records that share a list with another record, or with a function that changes it, are copied in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, run_form, seen

from opchain.common import Types
from opchain.datastream import MapFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODES = ("STREAMING", "BATCH")


def growing(_value: int) -> Iterator[Any]:
    items: list[int] = []
    for number in range(3):
        items.append(number)
        yield items, number


def cell(value: int) -> Iterator[Any]:
    held = [0]
    for number in range(2):
        held[0] = number
        yield held, value


def counts(value: int) -> Iterator[Any]:
    lengths: dict[str, int] = {}
    for word in ("a", "bb"):
        lengths[word] = len(word)
        yield {"lengths": lengths, "of": value}


def first_row(value: int) -> Iterator[Any]:
    rows = [[value]]
    first = rows[0]
    yield first
    rows[0][0] = 99


def chosen(value: int) -> Iterator[Any]:
    one = [value]
    other = one if value else [0]
    yield other
    one[0] = 99


def two_names(value: int) -> Iterator[Any]:
    one = other = [value]
    yield one
    other[0] = 99


GENERATORS: list[tuple[Callable[[int], Iterator[Any]], list[Any]]] = [
    (growing, [([0], 0), ([0, 1], 1), ([0, 1, 2], 2)]),
    (cell, [([0], 1), ([1], 1)]),
    (counts, [{"lengths": {"a": 1}, "of": 1}, {"lengths": {"a": 1, "bb": 2}, "of": 1}]),
    (first_row, [[1]]),
    (chosen, [[1]]),
    (two_names, [[1]]),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("generator", "expected"), GENERATORS)
@pytest.mark.parametrize("form", FORMS)
def test_a_generator_may_change_a_record_after_emitting_it(
    form: str, generator: Any, expected: list[Any], mode: str
) -> None:
    def draw(env: Any) -> None:
        seen(env.from_collection([1]).flat_map(generator), "out")

    assert run_form(draw, form, mode=mode).records("out") == expected


def twice(value: int) -> Iterator[Any]:
    box = [value]
    yield box, 1
    yield box, 2


class Grows(MapFunction[Any, Any]):
    def map(self, value: Any) -> Any:
        value[0].append(0)
        return value


class ChangesTheLast(MapFunction[Any, Any]):
    def __init__(self) -> None:
        self.last: Any = None

    def map(self, value: Any) -> Any:
        if self.last is not None:
            self.last[0] = 99
        self.last = value
        return value, 1


@pytest.mark.parametrize("form", FORMS)
def test_two_records_that_share_a_list_arrive_with_separate_lists(form: str) -> None:
    def draw(env: Any) -> None:
        seen(env.from_sequence(1, 1).flat_map(twice).rebalance().map(Grows()), "out")

    assert run_form(draw, form).records("out") == [([1, 0], 1), ([1, 0], 2)]


@pytest.mark.parametrize("form", FORMS)
def test_a_function_may_change_a_record_that_it_has_kept(form: str) -> None:
    def draw(env: Any) -> None:
        seen(env.from_collection([[1], [2]]).map(ChangesTheLast()), "out")

    assert run_form(draw, form).records("out") == [([1], 1), ([2], 1)]


def added(value: list[int]) -> list[int]:
    value += [9]
    return value


def swapped(value: list[int]) -> list[int]:
    value[0], value[1] = value[1], value[0]
    return value


def looped(value: list[int]) -> list[int]:
    for value[0] in range(8):
        pass
    return value


@pytest.mark.parametrize(
    ("function", "expected"), [(added, [1, 2, 9]), (swapped, [2, 1]), (looped, [7, 2])]
)
@pytest.mark.parametrize("form", FORMS)
def test_a_reader_at_a_fork_may_change_its_record(form: str, function: Any, expected: Any) -> None:
    def draw(env: Any) -> None:
        rows = env.from_collection([[1, 2]])
        seen(rows.map(function).rebalance(), "changed")
        seen(rows.map(lambda row: row).rebalance(), "same")

    ran = run_form(draw, form)
    assert ran.records("changed") == [expected]
    assert ran.records("same") == [[1, 2]]


def changed_rows(value: int) -> list[Any]:
    rows: list[Any] = [[value], [value]]
    for row in rows:
        row[0] = 1.5
    return [item for row in rows for item in row]


def set_in_comprehension(_value: int) -> Any:
    x = 0.5  # noqa: F841 - not the variable of the comprehension
    [(last := x) for x in range(3)]
    return last


@pytest.mark.parametrize("form", FORMS)
def test_the_items_of_a_list_in_a_list_may_change(form: str) -> None:
    def draw(env: Any) -> None:
        seen(env.from_sequence(1, 1).flat_map(changed_rows, output_type=Types.INT()), "out")

    assert [*map(type, run_form(draw, form).records("out"))] == [int, int]


@pytest.mark.parametrize("form", FORMS)
def test_the_variable_of_a_comprehension_hides_an_outer_one(form: str) -> None:
    def draw(env: Any) -> None:
        seen(env.from_sequence(1, 1).map(set_in_comprehension, output_type=Types.DOUBLE()), "out")

    assert [*map(type, run_form(draw, form).records("out"))] == [float]


def last_taken(row: list[int]) -> int:
    return row.pop()


@pytest.mark.parametrize("form", FORMS)
def test_the_key_function_of_a_builtin_may_change_records(form: str) -> None:
    def draw(env: Any) -> None:
        rows = env.from_collection([[[1, 5], [2, 3]]])
        seen(rows.map(lambda each: max(each, key=last_taken)), "greatest")
        seen(rows.map(lambda each: each), "same")

    ran = run_form(draw, form)
    assert ran.records("greatest") == [[1]]
    assert ran.records("same") == [[[1, 5], [2, 3]]]


def test_at_a_fork_only_the_fields_that_a_reader_reads_are_copied() -> None:
    def draw(env: Any) -> None:
        rows = env.from_sequence(1, 3).map(lambda n: (n, [n], [n + 1]))
        seen(rows.map(lambda row: row[1]), "one")
        seen(rows.map(lambda row: row[2]), "other")

    ran = run_form(draw, "inlined")
    assert ran.records("one") == [[1], [2], [3]]
    assert ran.records("other") == [[2], [3], [4]]
    source = str(ran.job.vertices[0].source)
    assert "item_1_for_2_1 = own_copy(item_1_for_2_1)" in source
    assert "item_1_for_2_2" not in source
