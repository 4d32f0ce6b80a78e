from __future__ import annotations

import decimal
import pickle
from datetime import date, datetime, time, timedelta, timezone
from typing import Any

import pytest

from opchain.compiler.table.connectors.datagen import datagen_source
from opchain.compiler.table.table_descriptor import Schema, TableDescriptor


def source_of(columns: dict[str, str], **options: Any) -> Any:
    """The source; in option names `__` stands for a point, and `_` for a hyphen."""
    schema = Schema.new_builder().from_fields(list(columns), list(columns.values())).build()
    builder = TableDescriptor.for_connector("datagen").schema(schema)
    for name, value in options.items():
        builder.option(name.replace("__", ".").replace("_", "-"), value)
    return datagen_source(builder.build())


def rows_of(source: Any, count: int) -> list[Any]:
    return [source.generator_function(index) for index in range(count)]


def test_datagen_without_options_emits_unbounded_random_rows() -> None:
    source = source_of({"id": "INT", "text": "STRING", "is": "BOOLEAN", "x": "DOUBLE"})
    assert not source.is_bounded
    assert source.records_per_second == 10_000
    rows = rows_of(source, 50)
    assert all(-(2**31) <= row.id < 2**31 for row in rows)
    assert {len(row.text) for row in rows} == {100}
    assert {row["is"] for row in rows} == {True, False}
    assert all(isinstance(row.x, float) for row in rows)
    assert rows == rows_of(
        source_of({"id": "INT", "text": "STRING", "is": "BOOLEAN", "x": "DOUBLE"}), 50
    )


@pytest.mark.parametrize(
    ("sql_type", "least", "most"),
    [
        ("TINYINT", -128, 127),
        ("SMALLINT", -(2**15), 2**15 - 1),
        ("BIGINT", -(2**63), 2**63 - 1),
        ("DECIMAL(4, 1)", decimal.Decimal("-999.9"), decimal.Decimal("999.9")),
        (
            "DECIMAL(38, 18)",
            decimal.Decimal(f"-{'9' * 20}.{'9' * 18}"),
            decimal.Decimal(f"{'9' * 20}.{'9' * 18}"),
        ),
        ("FLOAT", -3.4028235e38, 3.4028235e38),
    ],
)
def test_datagen_numbers_cover_the_range_of_their_type(
    sql_type: str, least: Any, most: Any
) -> None:
    values = [row.n for row in rows_of(source_of({"n": sql_type}), 300)]
    assert least <= min(values) < 0 < max(values) <= most
    assert max(values) > most / 10 * 9


def test_datagen_options_set_bounds_lengths_and_null_rates() -> None:
    source = source_of(
        {"n": "INT", "c": "CHAR(7)", "s": "STRING"},
        fields__n__min=3,
        fields__n__max=5,
        fields__s__length=2,
        fields__s__null_rate=0.5,
    )
    rows = rows_of(source, 100)
    assert {row.n for row in rows} == {3, 4, 5}
    assert {len(row.c) for row in rows} == {7}
    assert {row.s if row.s is None else len(row.s) for row in rows} == {None, 2}


def test_a_datagen_table_ends_with_its_shortest_sequence() -> None:
    options: dict[str, Any] = {
        "fields__a__kind": "sequence",
        "fields__a__start": 5,
        "fields__a__end": 9,
        "fields__b__kind": "sequence",
        "fields__b__start": 1,
        "fields__b__end": 3,
    }
    source = source_of({"a": "BIGINT", "b": "STRING"}, **options)
    assert source.count == 3
    assert [tuple(row) for row in rows_of(source, 3)] == [(5, "1"), (6, "2"), (7, "3")]
    assert source_of({"a": "BIGINT", "b": "STRING"}, number_of_rows=2, **options).count == 2


def test_number_of_rows_makes_a_datagen_table_bounded() -> None:
    source = source_of({"n": "INT"}, number_of_rows=12, rows_per_second=3)
    assert (source.count, source.records_per_second) == (12, 3.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fields__m__min": 1}, "does not know the option 'fields.m.min'; its columns are 'n'"),
        ({"fields__n__length": 1}, "does not know the option 'fields.n.length'"),
        ({"fields__n__kind": "constant"}, "fields.n.kind is 'constant'; it must be 'random' or"),
        ({"fields__n__min": "low"}, "fields.n.min is 'low'; it must be a number"),
        ({"fields__n__min": 5, "fields__n__max": 4}, "fields.n.min is 5, but fields.n.max is 4"),
        ({"fields__n__null_rate": 2}, "fields.n.null-rate is 2.0; it must be 0 to 1"),
        ({"fields__n__kind": "sequence"}, "the sequence 'n' goes from None to None"),
        ({"number_of_rows": "all"}, "number-of-rows is 'all'; it must be a number"),
        ({"rows_per_second": 0}, "0.0 records per second; it must be more than 0"),
    ],
)
def test_datagen_refuses_invalid_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        source_of({"n": "INT"}, **options)


def test_datagen_refuses_options_that_do_not_fit_the_column_type() -> None:
    with pytest.raises(ValueError, match="'n' is BOOLEAN, which has no sequence"):
        source_of({"n": "BOOLEAN"}, fields__n__kind="sequence")
    with pytest.raises(
        ValueError, match=r"null-rate is 0\.1, but 'n' is INT NOT NULL; set it to 0"
    ):
        source_of({"n": "INT NOT NULL"}, fields__n__null_rate=0.1)


def test_datagen_timestamps_are_the_current_time() -> None:
    columns = {"a": "TIMESTAMP(3)", "b": "TIMESTAMP_LTZ(3)", "d": "DATE", "t": "TIME"}
    source = pickle.loads(pickle.dumps(source_of(columns, fields__a__max_past="1 h")))
    before = datetime.now(timezone.utc)
    rows = rows_of(source, 100)
    after = datetime.now(timezone.utc)
    assert all(before - timedelta(milliseconds=1) <= row.b <= after for row in rows)
    ages = [after.replace(tzinfo=None) - row.a for row in rows]
    assert timedelta(minutes=30) < max(ages) < timedelta(hours=1, minutes=1)
    assert isinstance(rows[0].t, time)
    assert type(rows[0].d) is date


def test_datagen_options_apply_to_nested_columns() -> None:
    columns = {
        "a": "ARRAY<ROW<x INT, y STRING>>",
        "m": "MAP<STRING, INT>",
        "r": "ROW<n INT>",
        "b": "BYTES",
        "v": "STRING",
    }
    source = source_of(
        columns,
        fields__a__length=2,
        fields__a__element__x__min=7,
        fields__a__element__x__max=7,
        fields__a__element__y__length=1,
        fields__m__key__length=4,
        fields__m__value__max=-5,
        fields__r__null_rate=1,
        fields__b__length=5,
        fields__v__length=3,
        fields__v__var_len="true",
    )
    rows = rows_of(source, 50)
    assert {(len(row.a), row.a[0].x, len(row.a[1].y)) for row in rows} == {(2, 7, 1)}
    assert {len(row.m) for row in rows} == {3}
    assert all(len(key) == 4 and value <= -5 for row in rows for key, value in row.m.items())
    assert {(row.r, len(row.b)) for row in rows} == {(None, 5)}
    assert {len(row.v) for row in rows} == {1, 2, 3}
    assert len({row.b for row in rows}) == 50
    with pytest.raises(ValueError, match="'d' is DATE, which has no sequence"):
        source_of({"d": "DATE"}, fields__d__kind="sequence")
