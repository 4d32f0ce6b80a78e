from __future__ import annotations

import pytest

from opchain.compiler.table.table import Table
from opchain.compiler.table.table_descriptor import Schema, TableDescriptor
from opchain.runtime.errors import UnsupportedFeatureError


def test_a_table_knows_its_columns() -> None:
    schema = Schema.new_builder().column("n", "INT").build()
    table = Table("source", TableDescriptor.for_connector("datagen").schema(schema).build())
    assert table.get_schema() == schema


@pytest.mark.parametrize("method", ["select", "where", "to_pandas", "group_by"])
def test_computing_with_tables_is_refused_by_name(method: str) -> None:
    table = Table("source", TableDescriptor.for_connector("datagen").build())
    with pytest.raises(
        UnsupportedFeatureError, match=rf"Table\.{method}\(\) .* to_data_stream\(\)"
    ):
        getattr(table, method)()
