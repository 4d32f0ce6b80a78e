from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opchain.compiler.table.stream_table_environment import StreamTableEnvironment
from opchain.compiler.table.table_descriptor import Schema, TableDescriptor
from opchain.runtime.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from opchain.compiler.table.table import Table

SCHEMA = Schema.new_builder().column("n", "INT").build()


@pytest.fixture
def table() -> Table:
    descriptor = TableDescriptor.for_connector("datagen").schema(SCHEMA).build()
    return StreamTableEnvironment.create().from_descriptor(descriptor)


def test_a_table_knows_its_columns(table: Table) -> None:
    assert table.get_schema() == SCHEMA


@pytest.mark.parametrize("method", ["select", "where", "to_pandas", "group_by"])
def test_computing_with_tables_is_refused_by_name(method: str, table: Table) -> None:
    with pytest.raises(
        UnsupportedFeatureError, match=rf"Table\.{method}\(\) .* to_data_stream\(\)"
    ):
        getattr(table, method)()
