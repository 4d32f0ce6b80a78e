"""Records that are taken apart at once: only their items are kept private, and nobody can tell."""

from __future__ import annotations

from typing import Any

import pytest
from forms import FORMS, job_of, run_form, seen

from opchain.compiler.codegen.private_items import items_made, with_items
from opchain.datastream import FlatMapFunction


class Reusing(FlatMapFunction[int, Any]):
    """Hands out the same list, and the same list inside, again and again."""

    def __init__(self, items: int = 4) -> None:
        self.record: list[Any] = [0, [], "text", (1, []), "more"][:items]

    def flat_map(self, value: int) -> Any:
        for number in range(2):
            self.record[0] = value + number
            self.record[1].append(number)
            self.record[3][1].append(value)
            yield self.record


def picked(env: Any) -> None:
    records = env.from_sequence(1, 5).flat_map(Reusing())
    seen(records.map(lambda r: (r[1], 7, r[0])).rebalance(), "first")
    seen(records.map(lambda r: r[3]).rebalance(), "second")


def computed(env: Any) -> None:
    records = env.from_sequence(1, 5).flat_map(Reusing())
    seen(records.map(lambda r: (r[1], r[0] + 1)).rebalance(), "first")


def whole(env: Any) -> None:
    records = env.from_sequence(1, 5).flat_map(Reusing())
    seen(records.map(lambda r: (r[0], r)).rebalance(), "first")


def filtered(env: Any) -> None:
    records = env.from_sequence(1, 5).flat_map(Reusing()).filter(lambda r: r[0] > 2)
    seen(records.map(lambda r: (r[1], r[0])).rebalance(), "first")


def too_many(env: Any) -> None:
    records = env.from_sequence(1, 5).flat_map(Reusing(5))
    seen(records.map(lambda r: (r[0], r[1], r[2], r[3], r[4])).rebalance(), "first")


@pytest.mark.parametrize("draw", [picked, computed, whole, filtered, too_many])
def test_nobody_can_tell(draw: Any) -> None:
    runs = [run_form(draw, form, parallelism=2) for form in FORMS]
    for run in runs:
        for name in ("first", "second"):
            assert run.subtasks(name) == runs[0].subtasks(name)
        assert run.counters() == runs[0].counters()


@pytest.mark.parametrize(
    ("draw", "is_picked"),
    [(picked, True), (computed, False), (whole, False), (filtered, False), (too_many, False)],
)
def test_items_are_picked_where_nothing_else_is_read(draw: Any, is_picked: bool) -> None:
    source = job_of(draw).vertices[0].source
    assert source is not None
    assert ("item_1_0 = value_1[" in source) is is_picked
    assert ("value_1 = private(value_1)" in source) is not is_picked


def test_expressions_read_variables_in_place_of_items() -> None:
    items = (("value_1[0]", "item_1_0"), ("value_1['a']", "item_1_1"))
    assert with_items("(value_1[0], value_1['a'][0], value_1[1], value_2[0])", items) == (
        "(item_1_0, item_1_1[0], value_1[1], value_2[0])"
    )
    assert with_items("value_1 [0]", ()) == "value_1 [0]"


def test_items_of_a_tuple_that_was_just_made() -> None:
    assert items_made("value_2", "(value, 1, other + 1, last)") == (
        ("value_2[0]", "value"),
        ("value_2[3]", "last"),
    )
    assert items_made("value_2", "value") == ()
