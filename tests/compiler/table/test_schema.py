from __future__ import annotations

import pytest

from opchain.compiler.table.data_types import DataTypes
from opchain.compiler.table.table_descriptor import Schema


def test_schema_keeps_the_order_of_columns() -> None:
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


def test_schema_refuses_duplicate_and_invalid_columns() -> None:
    builder = Schema.new_builder().column("a", "INT")
    with pytest.raises(ValueError, match="there are two columns 'a'"):
        builder.column("a", "INT")
    with pytest.raises(TypeError, match="the column's type is 3 of type int"):
        builder.column("b", 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="got 1 names and 2 types"):
        builder.from_fields(["b"], ["INT", "INT"])
    with pytest.raises(TypeError, match="the expression is 3 of type int"):
        builder.column_by_expression("x", 3)  # type: ignore[arg-type]


def test_str_of_a_schema_shows_all_kinds_of_columns() -> None:
    schema = (
        Schema.new_builder()
        .column("ms", "BIGINT")
        .column_by_expression("ts", "TO_TIMESTAMP_LTZ(ms, 3)")
        .column_by_metadata("at", DataTypes.BIGINT(), "offset", is_virtual=True)
        .watermark("ts", "ts - INTERVAL '1' SECOND")
        .primary_key("ms")
        .build()
    )
    assert str(schema).splitlines()[1:-1] == [
        "  `ms` BIGINT,",
        "  `ts` AS [TO_TIMESTAMP_LTZ(ms, 3)],",
        "  `at` BIGINT METADATA FROM 'offset' VIRTUAL,",
        "  WATERMARK FOR `ts` AS [ts - INTERVAL '1' SECOND],",
        "  PRIMARY KEY (`ms`) NOT ENFORCED",
    ]
    assert Schema.new_builder().from_schema(schema).build() == schema
