from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest

from opchain.runtime.types.record_types import ExternalTypeInfo, RowTypeInfo, TupleTypeInfo
from opchain.runtime.types.row import Row, RowKind
from opchain.runtime.types.types import Types

NAMED = Types.ROW_NAMED(["day", "n"], [Types.SQL_DATE(), Types.INT()])
DAY = date(1970, 1, 3)


@dataclass
class Record:
    n: int
    day: date


def test_fields_without_names_get_default_names() -> None:
    made = Types.ROW([Types.INT(), Types.LONG()])
    assert made.get_field_names() == ["f0", "f1"]
    assert repr(made) == "RowTypeInfo(Integer, Long)"
    assert made.get_field_index("f1") == 1
    assert made.get_field_index("x") == -1


def test_get_field_index_finds_a_field_by_name() -> None:
    assert NAMED.get_field_names() == ["day", "n"]
    assert NAMED.get_field_types() == [Types.SQL_DATE(), Types.INT()]
    assert NAMED.get_field_index("n") == 1
    with pytest.raises(ValueError, match=r"'x' is not one of the fields \['day', 'n'\]"):
        NAMED.get_field_index("x")


def test_field_names_do_not_affect_equality_as_in_flink() -> None:
    unnamed = Types.ROW([Types.SQL_DATE(), Types.INT()])
    assert unnamed == NAMED
    assert hash(unnamed) == hash(NAMED)
    assert Types.ROW([Types.INT()]) != Types.ROW([Types.LONG()])
    assert Types.ROW([Types.INT()]) != Types.TUPLE([Types.INT()])


def test_a_type_is_independent_of_the_lists_it_was_created_from() -> None:
    names, types = ["a"], [Types.INT()]
    made = RowTypeInfo(types, names)
    names.append("b")
    types.clear()
    assert repr(made) == "RowTypeInfo(a: Integer)"


@pytest.mark.parametrize(
    ("names", "types", "error"),
    [
        (["a"], [], "1 field names and 0 field types"),
        (["a", "a"], [Types.INT(), Types.INT()], "a field name twice"),
    ],
)
def test_the_numbers_of_names_and_types_must_match(
    names: list[str], types: list[Any], error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        Types.ROW_NAMED(names, types)


@pytest.mark.parametrize("make", [RowTypeInfo, TupleTypeInfo])
def test_field_types_must_be_type_information(make: Any) -> None:
    with pytest.raises(
        TypeError, match=r"takes types such as Types\.STRING\(\), not <class 'int'>"
    ):
        make([int])


RECORDS = {
    "named row": Row(n=5, day=DAY),
    "row": Row(DAY, 5),
    "tuple": (DAY, 5),
    "list": [DAY, 5],
    "dict": {"n": 5, "day": DAY, "more": 1},
    "object": Record(5, DAY),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_a_row_type_accepts_rows_tuples_lists_and_dicts(record: Any) -> None:
    assert NAMED.to_internal_type(record) == (RowKind.INSERT.value, 2, 5)


def test_a_missing_field_of_a_dict_is_none_and_the_row_kind_is_kept() -> None:
    assert NAMED.to_internal_type({"n": 5}) == (0, None, 5)
    deleted = Row.of_kind(RowKind.DELETE, DAY, 5)
    assert NAMED.to_internal_type(deleted) == (RowKind.DELETE.value, 2, 5)


def test_a_row_with_other_names_is_refused() -> None:
    with pytest.raises(ValueError, match="a row has no 'day'"):
        NAMED.to_internal_type(Row(n=5, other=1))


def test_an_object_that_is_not_a_record_is_refused() -> None:
    with pytest.raises(ValueError, match="5 is not a row of type RowTypeInfo"):
        NAMED.to_internal_type(5)
    with pytest.raises(ValueError, match="5 is not a tuple of type TupleTypeInfo"):
        Types.TUPLE([Types.INT()]).to_internal_type(5)


@pytest.mark.parametrize("made", [NAMED, Types.TUPLE([Types.SQL_DATE(), Types.INT()])])
def test_from_internal_type_restores_the_fields(made: Any) -> None:
    assert made.need_conversion()
    assert made.from_internal_type(iter((2, 5))) == (DAY, 5)
    assert made.from_internal_type((2, 5)) == (2, 5)
    assert made.from_internal_type(None) is None
    assert made.to_internal_type(None) is None


@pytest.mark.parametrize("record", [(DAY, 5), [DAY, 5], Row(DAY, 5)])
def test_a_tuple_type_accepts_sequences(record: Any) -> None:
    assert Types.TUPLE([Types.SQL_DATE(), Types.INT()]).to_internal_type(record) == (2, 5)


def test_external_type_info_has_the_java_class_of_its_type() -> None:
    made = ExternalTypeInfo(Types.INT())
    assert made.java_class == "Integer"
    assert repr(made) == "ExternalTypeInfo<Integer>"
    assert made == ExternalTypeInfo(Types.INT())
    assert made != ExternalTypeInfo(Types.LONG())
