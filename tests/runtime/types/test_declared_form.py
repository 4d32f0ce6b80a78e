from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Row, RowKind, Types
from opchain.runtime.types.declared_form import converter_to

NAMED = Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.INT()])
DELETED = Row.of_kind(RowKind.DELETE, "a", 1)


@pytest.mark.parametrize(
    "record_type",
    [
        None,
        Types.STRING(),
        Types.PICKLED_BYTE_ARRAY(),
        Types.LIST(Types.LONG()),
        Types.MAP(Types.STRING(), Types.LONG()),
        Types.BASIC_ARRAY(Types.LONG()),
    ],
)
def test_most_types_keep_their_records_as_they_are(record_type: Any) -> None:
    assert converter_to(record_type) is None


@pytest.mark.parametrize(
    ("record_type", "record", "expected"),
    [
        (NAMED, ("a", 1), Row(word="a", count=1)),
        (NAMED, ["a", 1], Row(word="a", count=1)),
        (NAMED, Row("a", 1), Row(word="a", count=1)),
        (NAMED, Row(count=1, word="a"), Row(word="a", count=1)),
        (NAMED, {"word": "a"}, Row(word="a", count=None)),
        (NAMED, None, None),
        (Types.ROW([Types.STRING()]), ("a",), Row(f0="a")),
        (Types.TUPLE([Types.STRING(), NAMED]), ["x", ("a", 1)], ("x", Row(word="a", count=1))),
        (Types.TUPLE([Types.STRING()]), None, None),
        (Types.FLOAT(), 110.1, 110.0999984741211),
        (Types.FLOAT(), 20.0, 20.0),
        (Types.FLOAT(), 3, 3),
        (Types.FLOAT(), None, None),
        (Types.FLOAT(), -1e300, float("-inf")),
        (Types.INT(), 2**31 - 1, 2**31 - 1),
        (Types.INT(), 2**31, -(2**31)),
        (Types.INT(), 9147483648, 557549056),
        (Types.INT(), True, True),
        (Types.INT(), 1.5, 1.5),
        (Types.SHORT(), 43878, -21658),
        (Types.BYTE(), -129, 127),
        (Types.LIST(Types.BYTE()), [300, None], [44, None]),
        (Types.TUPLE([Types.FLOAT(), Types.DOUBLE()]), (0.1, 0.1), (0.10000000149011612, 0.1)),
        (Types.LIST(Types.FLOAT()), [0.1], [0.10000000149011612]),
        (Types.ROW([NAMED]), [("a", 1)], Row(f0=Row(word="a", count=1))),
        (Types.LIST(NAMED), [("a", 1), None], [Row(word="a", count=1), None]),
        (Types.MAP(Types.STRING(), NAMED), {"k": ("a", 1)}, {"k": Row(word="a", count=1)}),
    ],
)
def test_a_record_gets_the_form_of_its_type(record_type: Any, record: Any, expected: Any) -> None:
    convert = converter_to(record_type)
    assert convert is not None
    converted = convert(record)
    assert converted == expected
    assert type(converted) is type(expected)


def test_a_rows_kind_stays_and_the_record_too() -> None:
    convert = converter_to(NAMED)
    assert convert is not None
    converted = convert(DELETED)
    assert converted.get_row_kind() is RowKind.DELETE
    assert converted.word == "a"
    assert not DELETED.has_field_names()


@pytest.mark.parametrize("record", [("a",), ("a", 1, 2)])
def test_a_record_of_another_length_is_refused(record: Any) -> None:
    convert = converter_to(NAMED)
    assert convert is not None
    with pytest.raises(ValueError, match=f"has {len(record)} fields; its type has 2"):
        convert(record)
