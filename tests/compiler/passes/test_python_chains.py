"""Records have their declared form where PyFlink's chains of Python functions end, and are raw within them."""

from __future__ import annotations

from typing import Any

import pytest
from forms import FORMS, run_form, seen

from opchain.common import Row, Types
from opchain.datastream import CoMapFunction, OutputTag, ProcessFunction

PET = Types.ROW_NAMED(["kind", "age"], [Types.STRING(), Types.INT()])


def results(draw: Any, form: str, parallelism: int = 1) -> list[Any]:
    def whole(env: Any) -> None:
        seen(draw(env.from_collection([1, 2])), "out")

    return sorted(run_form(whole, form, parallelism=parallelism).records("out"), key=repr)


@pytest.mark.parametrize("form", FORMS)
def test_a_chained_function_gets_the_object_without_conversion(form: str) -> None:
    halves = results(lambda s: s.map(lambda v: v / 2, Types.INT()).map(lambda v: v * 10), form)
    assert halves == [10.0, 5.0]


CROSSING = {
    "rebalance": lambda s: s.map(lambda v: v / 2, Types.INT()).rebalance(),
    "forked": lambda s: (m := s.map(lambda v: v / 2, Types.INT()), m.map(repr))[0],
    "keyed": lambda s: s.map(lambda v: v / 2, Types.INT()).key_by(lambda v: 0),
    "unchained": lambda s: s.map(lambda v: v / 2, Types.INT()).disable_chaining(),
    "filtered": lambda s: s.map(lambda v: v / 2, Types.INT()).filter(lambda v: v != 0).rebalance(),
    "union": lambda s: s.map(lambda v: v / 2, Types.INT()).union(s.filter(lambda v: False)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CROSSING)
def test_records_that_leave_a_chain_are_converted_to_the_declared_type(
    form: str, case: str
) -> None:
    found = results(lambda s: CROSSING[case](s).map(lambda v: v * 10), form)
    assert found == [0, 10]
    assert [type(item) for item in found] == [int, int]


@pytest.mark.parametrize("form", FORMS)
def test_field_names_are_added_only_after_the_end_of_the_chain(form: str) -> None:
    raw = results(lambda s: s.map(lambda v: Row("cat", v), PET).map(repr), form)
    assert raw == ["<Row('cat', 1)>", "<Row('cat', 2)>"]
    named = results(lambda s: s.map(lambda v: Row("cat", v), PET).rebalance().map(repr), form)
    assert named == ["Row(kind='cat', age=1)", "Row(kind='cat', age=2)"]


class Halves(CoMapFunction):
    def map1(self, value: int) -> float:
        return value / 2

    def map2(self, value: int) -> float:
        return value / 4


@pytest.mark.parametrize("form", FORMS)
def test_connected_streams_start_a_chain(form: str) -> None:
    def connected(s: Any) -> Any:
        return s.connect(s).map(Halves(), Types.INT())

    assert results(lambda s: connected(s).map(repr), form) == ["0.25", "0.5", "0.5", "1.0"]
    assert results(lambda s: connected(s).rebalance().map(repr), form) == ["0", "0", "0", "1"]


@pytest.mark.parametrize("form", FORMS)
def test_a_record_that_does_not_fit_its_type_fails_with_the_operator(form: str) -> None:
    def draw(env: Any) -> None:
        wide = env.from_collection([1]).map(lambda v: 2**40, Types.INT()).name("wide")
        seen(wide.rebalance(), "out")

    with pytest.raises(OverflowError, match="1099511627776 does not fit into INT"):
        run_form(draw, form)


TAG = OutputTag("tag", Types.INT())


class Aside(ProcessFunction):
    def process_element(self, value: int, ctx: Any) -> Any:
        yield TAG, value / 2


@pytest.mark.parametrize("form", FORMS)
def test_side_outputs_have_the_type_of_their_tag(form: str) -> None:
    def draw(env: Any) -> None:
        aside = env.from_collection([1, 2]).process(Aside()).get_side_output(TAG)
        seen(aside, "out")

    assert sorted(run_form(draw, form).records("out")) == [0, 1]
