"""Records encoded as columns and decoded again, and the error of each record that does not fit."""

from __future__ import annotations

import math
from collections import namedtuple
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opchain.common import Row
from opchain.common.time import Instant
from opchain.runtime.columnar.decode import records_of, values_of
from opchain.runtime.columnar.encode import RecordEncoder
from opchain.runtime.columnar.spark_types import (
    SparkField,
    SparkType,
    decimal_type,
    struct_type,
)
from opchain.runtime.errors import RecordSchemaError

WHERE = "'Sink' (job.py:7)"
NAIVE = datetime(2024, 2, 29, 1, 2, 3, 4)  # noqa: DTZ001 - some columns have no zone


def array(of: SparkType, *, nulls: bool = True) -> SparkType:
    return SparkType("array", element=of, contains_null=nulls)


def mapping(key: SparkType, value: SparkType, *, nulls: bool = True) -> SparkType:
    return SparkType("map", key=key, element=value, contains_null=nulls)


def struct(**fields: SparkType) -> SparkType:
    return struct_type([SparkField(name, of) for name, of in fields.items()])


LONG, TEXT = SparkType("long"), SparkType("string")
PAIR = struct(a=LONG, b=TEXT)

VALUES: dict[str, tuple[SparkType, Any]] = {
    "bool": (SparkType("boolean"), st.booleans()),
    "byte": (SparkType("byte"), st.integers(-128, 127)),
    "short": (SparkType("short"), st.integers(-(2**15), 2**15 - 1)),
    "int": (SparkType("integer"), st.integers(-(2**31), 2**31 - 1)),
    "long": (LONG, st.integers(-(2**63), 2**63 - 1)),
    "float": (SparkType("float"), st.floats(width=32, allow_nan=False)),
    "double": (SparkType("double"), st.floats(allow_nan=False)),
    "decimal": (
        decimal_type(20, 5),
        st.decimals(-(10**14), 10**14, places=5),
    ),
    "text": (TEXT, st.text(st.characters(exclude_categories=["Cs"]))),
    "bytes": (SparkType("binary"), st.binary()),
    "date": (SparkType("date"), st.dates()),
    "timestamp": (SparkType("timestamp"), st.datetimes(timezones=st.just(timezone.utc))),
    "local": (SparkType("timestamp_ntz"), st.datetimes()),
    "time": (SparkType("time", "time(6)", 6), st.times()),
    "interval": (
        SparkType("day_time_interval", "interval day to second"),
        st.timedeltas(timedelta(days=-(10**6)), timedelta(days=10**6)),
    ),
    "void": (SparkType("void"), st.none()),
}


@st.composite
def typed_values(draw: Any) -> tuple[SparkType, Any]:
    """A type of up to two levels, and a strategy for its values."""
    of, values = VALUES[draw(st.sampled_from(sorted(VALUES)))]
    values = st.none() | values
    for _ in range(draw(st.integers(0, 2))):
        wrapping = draw(st.sampled_from(["array", "map", "struct"]))
        inner = values
        if wrapping == "array":
            of, values = array(of), st.lists(inner, max_size=4)
        elif wrapping == "map":
            of, values = mapping(TEXT, of), st.dictionaries(st.text("ab"), inner, max_size=4)
        else:
            of, values = (
                struct(x=of, n=LONG),
                st.builds(lambda x, n: Row(x=x, n=n), inner, st.integers(0, 9)),
            )
        values = st.none() | values
    return of, values


@settings(max_examples=60, deadline=None)
@given(data=st.data(), first=st.integers(0, 3))
def test_encoded_values_are_decoded_unchanged(data: Any, first: int) -> None:
    of, values = data.draw(typed_values())
    rows = [Row(x=value) for value in data.draw(st.lists(values, max_size=8))]
    batch = RecordEncoder(struct(x=of), WHERE).batch(rows)
    batch.validate(full=True)
    assert records_of(batch) == rows
    assert records_of(batch.slice(first)) == rows[first:]


def test_nan_is_not_encoded_as_null() -> None:
    (value,) = values_of(RecordEncoder(SparkType("double"), WHERE).batch([math.nan]).column(0))
    assert math.isnan(value)


@dataclass
class Record:
    a: int
    b: str


Named = namedtuple("Named", "a b")  # noqa: PYI024 - untyped ones are records too


@pytest.mark.parametrize(
    "record",
    [
        (1, "x"),
        [1, "x"],
        Row(1, "x"),
        Row(b="x", a=1),
        {"b": "x", "a": 1},
        Record(1, "x"),
        Named(1, "x"),
    ],
)
def test_tuples_rows_dicts_and_dataclasses_are_encoded_as_rows(record: Any) -> None:
    assert records_of(RecordEncoder(PAIR, WHERE).batch([record])) == [Row(a=1, b="x")]


def test_a_missing_field_of_a_dict_becomes_null() -> None:
    assert records_of(RecordEncoder(PAIR, WHERE).batch([{"a": 1}])) == [Row(a=1, b=None)]


def test_records_that_are_not_rows_become_one_column() -> None:
    batch = RecordEncoder(LONG, WHERE).batch([1, None])
    assert records_of(batch) == [Row(value=1), Row(value=None)]


def test_rows_without_columns_keep_their_number() -> None:
    rows = records_of(RecordEncoder(struct(), WHERE).batch([(), ()]))
    assert [row.as_dict() for row in rows] == [{}, {}]


def test_datetimes_of_one_instant_in_any_zone_are_encoded_alike() -> None:
    summer = timezone(timedelta(hours=2))
    at = datetime(2024, 7, 1, 12, tzinfo=timezone.utc)
    instant = Instant.of_epoch_milli(int(at.timestamp() * 1000))
    given_times = [at, at.astimezone(summer), instant]
    assert (
        values_of(RecordEncoder(SparkType("timestamp"), WHERE).batch(given_times).column(0))
        == [at] * 3
    )


@pytest.mark.parametrize(
    ("of", "record", "said"),
    [
        (PAIR, ("1", "x"), "column 'a' got '1', of type str, but expects bigint"),
        (PAIR, (2**63, "x"), "column 'a' got 9223372036854775808"),
        (PAIR, (1.5, "x"), "column 'a' got 1.5, of type float"),
        (PAIR, (True, "x"), "column 'a' got True, of type bool"),
        (PAIR, (1, b"x"), "column 'b' got b'x', of type bytes, but expects string"),
        (PAIR, (1, "\ud800"), "column 'b' got"),
        (PAIR, (1,), r"the row got \(1,\), of type tuple, .*: it has 1 fields"),
        (PAIR, {"a": 1, "c": 2}, "the row got .*: it has c in addition"),
        (PAIR, Row(a=1, b="x", d=3), "it has d in addition"),
        (PAIR, 7, "it is not a row .*a schema of one type"),
        (PAIR, None, "it is not a row"),
        (struct(x=SparkType("byte")), (128,), "expects tinyint"),
        (struct(x=SparkType("double")), (True,), "column 'x' got True"),
        (struct(x=SparkType("binary")), ("x",), "expects binary: str is not accepted"),
        (struct(x=SparkType("date")), (NAIVE,), "expects date: datetime is not accepted"),
        (
            struct(x=SparkType("timestamp")),
            (NAIVE,),
            "no time zone; .*declare the column as timestamp_ntz",
        ),
        (
            struct(x=SparkType("timestamp_ntz")),
            (NAIVE.replace(tzinfo=timezone.utc),),
            "it has a time zone, .*declare the column as timestamp",
        ),
        (
            struct(x=SparkType("timestamp")),
            (date(2020, 1, 1),),
            "neither a datetime nor an Instant",
        ),
        (struct(x=SparkType("timestamp_ntz")), (time(1),), "it is not a datetime"),
        (struct(x=SparkType("day_time_interval")), (5,), "it is not a timedelta"),
        (struct(x=decimal_type(4, 2)), (Decimal("1.234"),), r"expects decimal\(4,2\)"),
        (struct(x=decimal_type(4, 2)), (Decimal(100),), r"expects decimal\(4,2\)"),
        (struct(x=decimal_type(4, 2)), (1.5,), r"expects decimal\(4,2\)"),
        (struct(x=SparkType("void")), (1,), "expects void"),
        (struct(x=array(LONG)), (5,), "column 'x' got 5, .*: it is not a list"),
        (struct(x=array(LONG)), ("ab",), "it is not a list"),
        (
            struct(x=array(LONG)),
            ([1, "b"],),
            r"column 'x\[\]' got 'b', of type str, but expects bigint",
        ),
        (struct(x=array(LONG, nulls=False)), ([None],), r"column 'x\[\]' got None"),
        (struct(x=mapping(TEXT, LONG)), ([1],), "it is not a dict"),
        (struct(x=mapping(TEXT, LONG)), ({None: 1},), "a key of a map is None"),
        (struct(x=mapping(TEXT, LONG)), ({"k": "v"},), r"column 'x \(value\)' got 'v'"),
        (struct(x=mapping(TEXT, LONG, nulls=False)), ({"k": None},), "it is not null"),
        (struct(x=PAIR), ((1, 2),), r"column 'x\.b' got 2, of type int, but expects string"),
        (struct(x=PAIR), ((1,),), r"column 'x' got \(1,\).*: it has 1 fields"),
    ],
)
def test_the_error_names_the_field_that_does_not_fit(of: SparkType, record: Any, said: str) -> None:
    with pytest.raises(RecordSchemaError, match=said) as failure:
        RecordEncoder(of, WHERE).batch([record])
    assert str(failure.value).startswith(WHERE)


def test_the_error_names_the_first_record_of_a_batch_that_does_not_fit() -> None:
    with pytest.raises(RecordSchemaError, match="column 'a' got 'third'"):
        RecordEncoder(PAIR, WHERE).batch([(1, "x"), (2, "y"), ("third", "z"), ("fourth", "")])


def test_null_in_a_not_nullable_column_is_refused() -> None:
    of = struct_type([SparkField("n", LONG, nullable=False)])
    assert RecordEncoder(of, WHERE).batch([(1,)]).num_rows == 1
    with pytest.raises(
        RecordSchemaError, match="column 'n' got None, but its type bigint is not nullable"
    ):
        RecordEncoder(of, WHERE).batch([(1,), (None,)])


def test_a_not_nullable_field_may_be_missing_with_its_struct() -> None:
    inner = struct_type([SparkField("n", LONG, nullable=False)])
    of = struct(x=inner)
    batch = RecordEncoder(of, WHERE).batch([(Row(n=1),), (None,)])
    assert records_of(batch) == [Row(x=Row(n=1)), Row(x=None)]
    with pytest.raises(RecordSchemaError, match=r"column 'x\.n' got None"):
        RecordEncoder(of, WHERE).batch([(Row(n=None),)])
