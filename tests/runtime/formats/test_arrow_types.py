from __future__ import annotations

import sys
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from format_values import NESTED, SCALARS, rows
from hypothesis import given, settings

from opchain.common import Row, Types
from opchain.runtime.errors import MissingLibraryError, UnsupportedFeatureError
from opchain.runtime.formats.arrow_types import (
    arrow_array,
    arrow_schema,
    arrow_type,
    pyarrow,
    python_values,
)
from opchain.runtime.formats.row_values import columns_of_rows
from opchain.runtime.types.time_types import ZONED_TIMESTAMP
from opchain.table import DataTypes

pa = pytest.importorskip("pyarrow")
ROW_TYPE, ROWS = rows({**SCALARS, **NESTED})


@settings(max_examples=30)
@given(ROWS)
def test_values_are_converted_to_arrow_and_back(records: list[Row]) -> None:
    kinds = zip(columns_of_rows(ROW_TYPE, records), ROW_TYPE.get_field_types(), strict=True)
    for column, kind in kinds:
        array = arrow_array(kind, column)
        assert array.type == arrow_type(kind)
        assert python_values(array, kind, in_utc=True) == list(column)
        chunked = pa.chunked_array([array, array])
        assert python_values(chunked, kind, in_utc=True) == list(column) * 2


def test_without_numpy_the_values_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    array = pa.array([1, None, 3])
    quick = python_values(array, None, in_utc=True)
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert python_values(array, None, in_utc=True) == quick == [1, None, 3]


def test_arrow_schema_has_the_fields_of_the_row_type() -> None:
    row_type = DataTypes.ROW(
        [
            DataTypes.FIELD("id", DataTypes.INT()),
            DataTypes.FIELD("price", DataTypes.DECIMAL(10, 2)),
            DataTypes.FIELD("tags", DataTypes.ARRAY(DataTypes.STRING())),
        ]
    )
    assert arrow_schema(row_type.type_information()) == pa.schema(
        [("id", pa.int32()), ("price", pa.decimal128(10, 2)), ("tags", pa.list_(pa.string()))]
    )


def test_timestamps_become_naive_datetimes_in_utc_or_local_time_as_requested() -> None:
    moment = datetime(2024, 5, 6, 7, 8, 9, tzinfo=timezone.utc)
    array = pa.array([moment, None], pa.timestamp("ms", "UTC"))
    kind = Types.SQL_TIMESTAMP()
    assert python_values(array, kind, in_utc=True) == [moment.replace(tzinfo=None), None]
    local = moment.astimezone().replace(tzinfo=None)
    assert python_values(array, kind, in_utc=False) == [local, None]
    plain = pa.array([moment.replace(tzinfo=None)], pa.timestamp("ns"))
    assert python_values(plain, kind, in_utc=False) == [moment.replace(tzinfo=None)]


def test_zoned_timestamps_are_converted_to_utc_in_arrow() -> None:
    moment = datetime(2024, 5, 6, 7, 8, 9, 1234, tzinfo=timezone.utc)
    east = moment.astimezone(timezone(timedelta(hours=2)))
    array = arrow_array(ZONED_TIMESTAMP, [moment, east, None])
    assert array.type == pa.timestamp("us", "UTC")
    plain = array.cast(pa.timestamp("us"))
    for each in (array, plain):
        values = python_values(each, ZONED_TIMESTAMP, in_utc=False)
        assert values == [moment, moment, None]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Types.INT(), 1 << 31),
        (Types.INT(), "a"),
        (Types.INT(), 1.5),
        (Types.LONG(), Decimal("1.5")),
        (Types.LIST(Types.INT()), [1, 1.5]),
        (Types.MAP(Types.STRING(), Types.INT()), [("a", 1)]),
        (Types.SQL_DATE(), datetime(2024, 5, 6, 7, tzinfo=timezone.utc)),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), 5),
        (DataTypes.DECIMAL(3, 1).type_information(), 1000),
    ],
)
def test_a_value_of_another_type_is_refused(kind: Any, value: Any) -> None:
    with pytest.raises(ValueError, match="a value is not of type "):
        arrow_array(kind, [value])


def test_decimals_are_rounded_to_the_scale_as_in_flink() -> None:
    column = [Decimal("1.005"), Decimal("-1.005"), Decimal(10) / 3, Decimal("1E+2"), 7, None]
    cents = DataTypes.DECIMAL(10, 2).type_information()
    found = arrow_array(cents, column).to_pylist()
    assert list(map(str, found)) == ["1.01", "-1.01", "3.33", "100.00", "7.00", "None"]
    (third,) = arrow_array(Types.LIST(Types.BIG_DEC()), [[Decimal(1) / 3]]).to_pylist()
    assert third == [Decimal("0.333333333333333333")]


def test_a_type_without_an_arrow_type_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="Parquet does not support PickledByteArray"):
        arrow_type(Types.PICKLED_BYTE_ARRAY())


def test_a_missing_pyarrow_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingLibraryError, match=r"writing needs .* 'opchain\[files\]'"):
        pyarrow("writing")
