from __future__ import annotations

from typing import Any

import pytest

from opchain.compiler.table.data_types import DataTypes
from opchain.compiler.table.table_descriptor import Schema
from opchain.runtime.errors import UnsupportedFeatureError


def test_columns_keep_their_order() -> None:
    schema = (
        Schema.new_builder()
        .column("b", DataTypes.INT())
        .column("a", "STRING NOT NULL")
        .from_fields(["c", "d"], ["DOUBLE", DataTypes.BOOLEAN()])
        .build()
    )
    assert schema.columns == (
        ("b", DataTypes.INT()),
        ("a", DataTypes.STRING(nullable=False)),
        ("c", DataTypes.DOUBLE()),
        ("d", DataTypes.BOOLEAN()),
    )
    assert str(schema) == "(\n  `b` INT,\n  `a` STRING NOT NULL,\n  `c` DOUBLE,\n  `d` BOOLEAN\n)"
    assert Schema.new_builder().from_schema(schema).build() == schema


def test_wrong_columns_are_refused() -> None:
    builder = Schema.new_builder().column("a", "INT")
    with pytest.raises(ValueError, match="there are two columns 'a'"):
        builder.column("a", "INT")
    with pytest.raises(TypeError, match="the column's type is 3 of type int"):
        builder.column("b", 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="got 1 names and 2 types"):
        builder.from_fields(["b"], ["INT", "INT"])


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("column_by_expression", ("a", "b + 1")),
        ("column_by_metadata", ("a", "STRING")),
        ("watermark", ("a", "a - INTERVAL '1' SECOND")),
        ("primary_key", ("a",)),
    ],
)
def test_what_streams_do_themselves_is_refused(method: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(UnsupportedFeatureError, match=rf"Schema\.Builder\.{method}\(\) \(test_"):
        getattr(Schema.new_builder(), method)(*arguments)


def test_a_column_of_a_field_type_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"column\('day', DATE\)"):
        Schema.new_builder().column("day", DataTypes.DATE())
