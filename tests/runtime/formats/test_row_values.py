from __future__ import annotations

import pickle
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.common import Row, Types
from opchain.common.time import Instant
from opchain.runtime.formats.row_values import (
    columns_of_rows,
    instant_of,
    moment_of,
    type_of_field,
    type_of_rows,
)
from opchain.runtime.records.columns import Columns
from opchain.table import DataTypes

ROW = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])


def test_rows_are_converted_from_columns_and_back() -> None:
    rows = list(Columns.of_fields(["id", "name"], [(1, 2), ("a", None)]))
    assert rows == [Row(id=1, name="a"), Row(id=2, name=None)]
    assert pickle.loads(pickle.dumps(rows)) == rows
    assert columns_of_rows(ROW, rows) == [(1, 2), ("a", None)]
    rows[0].set_field_names(["x", "y"])
    rows[0][0] = 5
    assert rows[1] == Row(id=2, name=None)


@pytest.mark.parametrize(
    "record", [Row(1, "a"), Row(name="a", id=1), (1, "a"), [1, "a"], {"name": "a", "id": 1}]
)
def test_rows_tuples_lists_and_dicts_become_columns(record: Any) -> None:
    assert columns_of_rows(ROW, [record]) == [(1,), ("a",)]
    assert columns_of_rows(ROW, []) == [(), ()]


def test_a_row_with_other_names_is_read_by_position() -> None:
    assert columns_of_rows(ROW, [Row(a=1, b="x"), Row(name="y", number=2)]) == [(1, "y"), ("x", 2)]


def test_a_record_with_another_number_of_fields_is_refused() -> None:
    with pytest.raises(ValueError, match="has 1 fields, but rows of this file have 2: id, name"):
        columns_of_rows(ROW, [(1,)])


def test_fields_take_table_data_types_and_type_information() -> None:
    assert type_of_field(DataTypes.INT(), "here") == Types.INT()
    assert type_of_field(Types.INT(), "here") == Types.INT()
    named = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.INT())])
    assert type_of_rows(named, "here").get_field_names() == ["id"]
    wrong: Any = int
    with pytest.raises(TypeError, match="here got <class 'int'>; it takes a type such as"):
        type_of_field(wrong, "here")
    with pytest.raises(TypeError, match="here got Integer; it takes a type of rows"):
        type_of_rows(Types.INT(), "here")


@given(st.datetimes(timezones=st.just(timezone.utc)))
def test_instants_are_converted_from_datetimes_and_back(moment: datetime) -> None:
    assert moment_of(instant_of(moment)) == moment
    assert instant_of(moment.replace(tzinfo=None)) == instant_of(moment)


def test_an_instant_has_no_time_zone() -> None:
    moment = datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=2)))
    assert instant_of(moment) == Instant(-3600, 0)


@pytest.mark.parametrize("declared", [Types.ROW([]), DataTypes.ROW([])])
def test_a_row_type_of_a_format_needs_a_field(declared: Any) -> None:
    with pytest.raises(ValueError, match="read got a row type without fields"):
        type_of_rows(declared, "read")
