from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from opchain.common import Row, RowKind, Types
from opchain.runtime.types.collection_values import converter_to
from opchain.runtime.types.time_types import ZONED_TIMESTAMP


class Sensor:
    """A user's class; Java reads its pickled attributes as a map."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


class Slotted:
    __slots__ = ("name",)

    def __init__(self) -> None:
        self.name = "a"


SENSOR = {"id": "s1", "vc": "2", "__class__": f"{__name__}.Sensor"}
TEXTS = Types.MAP(Types.STRING(), Types.STRING())
NAMED = Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.INT()])
DELETED = Row.of_kind(RowKind.DELETE, "a", 1)


@pytest.mark.parametrize(
    "record_type",
    [
        None,
        Types.CHAR(),
        Types.PICKLED_BYTE_ARRAY(),
        Types.LIST(Types.PICKLED_BYTE_ARRAY()),
        Types.MAP(Types.STRING(), Types.PICKLED_BYTE_ARRAY()),
    ],
)
def test_records_of_some_types_are_not_converted(record_type: Any) -> None:
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
        (Types.FLOAT(), 3, 3.0),
        (Types.DOUBLE(), 3, 3.0),
        (Types.STRING(), 5, "5"),
        (Types.STRING(), None, None),
        (Types.BASIC_ARRAY(Types.LONG()), (1, 2), [1, 2]),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"ab", b"ab"),
        (Types.SQL_DATE(), dt.date(2024, 5, 6), dt.date(2024, 5, 6)),
        (Types.BIG_INT(), 2**80, 2**80),
        (Types.FLOAT(), None, None),
        (Types.FLOAT(), -1e300, float("-inf")),
        (Types.INT(), 2**31 - 1, 2**31 - 1),
        (Types.INT(), None, None),
        (Types.LIST(Types.BYTE()), [44, None], [44, None]),
        (Types.TUPLE([Types.FLOAT(), Types.DOUBLE()]), (0.1, 0.1), (0.10000000149011612, 0.1)),
        (Types.LIST(Types.FLOAT()), [0.1], [0.10000000149011612]),
        (Types.ROW([NAMED]), [("a", 1)], Row(f0=Row(word="a", count=1))),
        (Types.LIST(NAMED), [("a", 1), None], [Row(word="a", count=1), None]),
        (Types.MAP(Types.STRING(), NAMED), {"k": ("a", 1)}, {"k": Row(word="a", count=1)}),
        (TEXTS, Sensor(id="s1", vc=2), SENSOR),
        (TEXTS, Sensor(), {"__class__": f"{__name__}.Sensor"}),
        (Types.MAP(Types.STRING(), TEXTS), {"k": Sensor(id="s1", vc=2)}, {"k": SENSOR}),
    ],
)
def test_a_record_is_converted_to_the_form_of_its_type(
    record_type: Any, record: Any, expected: Any
) -> None:
    convert = converter_to(record_type)
    assert convert is not None
    converted = convert(record)
    assert converted == expected
    assert type(converted) is type(expected)


@pytest.mark.parametrize(
    ("record_type", "record"),
    [
        (Types.INT(), 2**31),
        (Types.INT(), -(2**40)),
        (Types.SHORT(), 43878),
        (Types.BYTE(), -129),
        (Types.LONG(), 2**63),
        (Types.LIST(Types.BYTE()), [300]),
        (Types.MAP(Types.STRING(), Types.INT()), {"a": 2**40}),
        (Types.ROW([Types.INT()]), Row(2**40)),
        (Types.PRIMITIVE_ARRAY(Types.INT()), [2**40]),
    ],
)
def test_a_number_that_is_too_large_is_refused(record_type: Any, record: Any) -> None:
    convert = converter_to(record_type)
    assert convert is not None
    with pytest.raises(OverflowError, match=r"does not fit into [A-Z]+, which holds -\d+ to \d+"):
        convert(record)


def test_times_are_truncated_to_milliseconds() -> None:
    moment = dt.datetime(2024, 5, 6, 7, 8, 9, 123456)  # noqa: DTZ001 - as SQL_TIMESTAMP is
    row = converter_to(Types.ROW([Types.SQL_TIMESTAMP(), Types.SQL_TIME(), Types.SQL_TIME()]))
    assert row is not None
    assert list(row((moment, moment.time(), None))) == [
        moment.replace(microsecond=123000),
        dt.time(7, 8, 9, 123000),
        None,
    ]


@pytest.mark.parametrize(
    ("record_type", "record", "expected"),
    [
        (Types.INT(), 1.5, "a whole number"),
        (Types.INT(), True, "a whole number"),
        (Types.LONG(), "5", "a whole number"),
        (Types.DOUBLE(), "x", "a float"),
        (Types.DOUBLE(), False, "a float"),
        (Types.BOOLEAN(), 1, "True or False"),
        (Types.STRING(), b"x", "a str"),
        (Types.STRING(), 1.5, "a str"),
        (Types.BIG_INT(), "x", "a whole number"),
        (Types.BIG_DEC(), 1.5, "a Decimal"),
        (Types.SQL_DATE(), "2024-05-06", "a date"),
        (Types.SQL_TIMESTAMP(), 5, "a datetime"),
        (Types.LIST(Types.STRING()), "ab", "a list"),
        (Types.MAP(Types.STRING(), Types.INT()), [1], "a dict"),
        (TEXTS, Slotted(), "a dict"),
        (TEXTS, dt.date(2024, 5, 6), "a dict"),
        (Types.TUPLE([Types.INT()]), 5, "a tuple"),
        (Types.TUPLE([Types.INT(), Types.STRING()]), ("1", "a"), "a whole number"),
    ],
)
def test_a_value_of_another_class_is_refused(record_type: Any, record: Any, expected: str) -> None:
    convert = converter_to(record_type)
    assert convert is not None
    with pytest.raises(TypeError, match=f"is declared as [A-Z_]+, .*: expected {expected};"):
        convert(record)


def test_a_row_keeps_its_kind_and_the_given_record_is_not_changed() -> None:
    convert = converter_to(NAMED)
    assert convert is not None
    converted = convert(DELETED)
    assert converted.get_row_kind() is RowKind.DELETE
    assert converted.word == "a"
    assert not DELETED.has_field_names()


@pytest.mark.parametrize("record", [("a",), ("a", 1, 2)])
def test_a_record_with_another_number_of_fields_is_refused(record: Any) -> None:
    convert = converter_to(NAMED)
    assert convert is not None
    with pytest.raises(ValueError, match=f"has {len(record)} fields; its type has 2"):
        convert(record)


def test_times_have_no_zone_and_dates_no_time() -> None:
    zone = dt.timezone(dt.timedelta(hours=2))
    moment = dt.datetime(2020, 1, 1, 1, 30, 0, 1999, tzinfo=zone)
    utc = dt.datetime(2019, 12, 31, 23, 30, 0, 1000)  # noqa: DTZ001 - as PyFlink makes it
    for kind, value, expected in (
        (Types.SQL_TIMESTAMP(), moment, utc),
        (Types.SQL_TIME(), moment.timetz(), dt.time(1, 30, 0, 1000)),
        (Types.SQL_DATE(), moment, dt.date(2020, 1, 1)),
    ):
        convert = converter_to(Types.ROW_NAMED(["x", "y"], [kind, kind]))
        assert convert is not None
        (found, nothing) = convert((value, None))
        assert (type(found), found, nothing) == (type(expected), expected, None)


def test_a_zoned_timestamp_keeps_microseconds() -> None:
    convert = converter_to(ZONED_TIMESTAMP)
    assert convert is not None
    moment = dt.datetime(2020, 1, 1, 1, 30, 0, 1999, tzinfo=dt.timezone.utc)
    assert convert(moment) is moment
    with pytest.raises(TypeError, match="expected a datetime"):
        convert(5)
