"""Columns: records that are stored by field equal the same records as tuples."""

from __future__ import annotations

import json
import pickle
from itertools import repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opchain.runtime.records.columns import JSON, JSON_AND_KEY, Columns, Shape, keyed_layout
from opchain.runtime.records.elements import RecordBatch
from opchain.runtime.records.wire import decode, encode
from opchain.runtime.types.row import Row

LAYOUTS = [((),), ((), ()), ((), (1,)), ((None,), ()), ((), ("x",), ()), (("a",), (), (2,), ())]


def columns_of(layout: Any, count: int) -> tuple[Columns, list[tuple[Any, ...]]]:
    columns = Columns.empty(layout)
    rows = []
    for number in range(count):
        row = tuple(
            constant[0] if constant else (number, f"f{place}")
            for place, constant in enumerate(layout)
        )
        for place, constant in enumerate(layout):
            if not constant:
                columns.field(place).append(row[place])
        rows.append(row)
    return columns, rows


@given(
    layout=st.sampled_from(LAYOUTS),
    count=st.integers(0, 9),
    first=st.integers(-10, 10),
    last=st.integers(-10, 10),
)
def test_columns_are_a_sequence_of_tuples(layout: Any, count: int, first: int, last: int) -> None:
    columns, rows = columns_of(layout, count)
    assert list(columns) == rows
    assert columns == rows
    assert len(columns) == count
    assert bool(columns) == bool(rows)
    assert list(columns[first:last]) == rows[first:last]
    assert [columns[place] for place in range(-count, count)] == rows + rows
    assert list(pickle.loads(pickle.dumps(columns))) == rows
    with pytest.raises(IndexError):
        columns[count]


@pytest.mark.parametrize("layout", [JSON, JSON_AND_KEY])
def test_dictionaries_are_stored_as_json_texts(layout: Any) -> None:
    records = [{"a": 1, "b": [None, "é"]}, {}, {"c": float("inf")}]
    columns = Columns.empty(layout)
    assert list(columns) == []
    if layout == JSON_AND_KEY:
        columns.field(1).extend(range(3))
    columns.field(0).extend(map(json.dumps, records))
    (batch,) = decode(encode([RecordBatch(columns, [5, 6, 7])]))
    assert isinstance(batch, RecordBatch)
    assert isinstance(batch.values, Columns)
    assert batch.values.lists == columns.lists
    assert batch.values == records
    assert list(batch.values[1:]) == records[1:]
    assert batch.values[-1] == records[-1]
    assert len(batch.values) == len(records)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_yields_the_fields_that_differ_between_records(layout: Any) -> None:
    columns, rows = columns_of(layout, 3)
    varying = [tuple(x for x, c in zip(row, layout, strict=True) if not c) for row in rows]
    alone = len(columns.lists) == 1
    assert list(columns.rows()) == ([row[0] for row in varying] if alone else varying)
    assert list(columns.rows([7, 8, 9])) == [
        (*row, n) for row, n in zip(varying, (7, 8, 9), strict=True)
    ]
    assert list(columns.rows(repeat(None))) == [(*row, None) for row in varying]
    assert [columns.record(row) for row in varying] == rows


def test_clear_removes_all_records() -> None:
    columns, _ = columns_of(((), (1,), ()), 3)
    columns.clear()
    assert not columns
    assert columns.lists == ([], [])


@given(layout=st.sampled_from(LAYOUTS), count=st.integers(1, 9), timed=st.booleans())
def test_columns_are_encoded_and_decoded_as_columns(layout: Any, count: int, timed: bool) -> None:
    columns, rows = columns_of(layout, count)
    timestamps: Any = list(range(count)) if timed else None
    (batch,) = decode(encode([RecordBatch(columns, timestamps)]))
    assert isinstance(batch, RecordBatch)
    assert isinstance(batch.values, Columns)
    assert batch.values == rows
    assert batch.values.layout == layout
    assert batch.timestamps == timestamps


@pytest.mark.parametrize(
    ("layout", "records"),
    [
        (keyed_layout([0, 1]), [("a", ("a", 3)), ("b", ("b", 4))]),
        (keyed_layout([1, 0]), [("a", (3, "a")), ("b", (4, "b"))]),
        (keyed_layout([1, (True,)]), [("a", (3, True)), ("b", (4, True))]),
        (keyed_layout([0, 1], Shape(Row)), [("a", Row("a", 3)), ("b", Row("b", 4))]),
        (
            keyed_layout([(None,), 1], Shape(dict, ("x", "y"))),
            [("a", {"x": None, "y": 3}), ("b", {"x": None, "y": 4})],
        ),
    ],
)
def test_a_key_and_the_other_fields_of_its_record_are_stored_as_lists(
    layout: Any, records: Any
) -> None:
    columns = Columns([["a", "b"], [3, 4]], layout)
    assert list(columns) == records
    assert [columns[0], columns[-1]] == records
    assert list(columns[1:]) == records[1:]
    (batch,) = decode(encode([RecordBatch(columns)]))
    assert isinstance(batch, RecordBatch)
    assert batch.values == records
