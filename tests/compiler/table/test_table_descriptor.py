from __future__ import annotations

import pytest

from opchain.common import ConfigOptions
from opchain.compiler.table.table_descriptor import Schema, TableDescriptor


def test_a_table_descriptor_has_connector_schema_options_and_comment() -> None:
    schema = Schema.new_builder().column("a", "INT").build()
    descriptor = (
        TableDescriptor.for_connector("datagen")
        .schema(schema)
        .option("rows-per-second", 5)
        .option(ConfigOptions.key("number-of-rows").int_type().no_default_value(), 7)
        .comment("for tests")
        .build()
    )
    assert descriptor.get_schema() == schema
    assert descriptor.get_options() == {
        "connector": "datagen",
        "rows-per-second": "5",
        "number-of-rows": "7",
    }
    assert descriptor.get_comment() == "for tests"
    assert descriptor.get_partition_keys() == []


def test_a_builder_does_not_change_descriptors_that_it_has_built() -> None:
    builder = TableDescriptor.for_connector("datagen").option("a", "1")
    built = builder.build()
    builder.option("b", "2")
    assert built.options == {"a": "1"}


def test_format_sets_an_option_and_partitioned_by_takes_columns() -> None:
    builder = TableDescriptor.for_connector("filesystem")
    assert builder.format("json").build().options == {"format": "json"}
    with pytest.raises(TypeError, match=r"Builder\.partitioned_by\(\).*the column is 7"):
        builder.partitioned_by(7)  # type: ignore[arg-type]
