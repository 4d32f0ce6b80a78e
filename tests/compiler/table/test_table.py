from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opchain.compiler.table.data_types import DataTypes
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


def test_a_table_lists_its_columns(table: Table) -> None:
    schema = table.get_schema()
    assert schema.get_field_names() == ["n"]
    assert schema.get_field_count() == 1
    assert (schema.get_field_name(0), schema.get_field_name(1)) == ("n", None)
    assert schema.get_field_data_type("n") == schema.get_field_data_type(0) == DataTypes.INT()
    assert schema.get_field_data_type("m") is None
    assert str(schema) == "root\n |-- n: INT\n"
    assert str(schema.copy().to_row_data_type()) == "ROW<`n` INT> NOT NULL"
    assert {schema: 1}[schema.copy()] == 1


def test_columns_are_attributes_of_a_table_and_other_names_are_not(table: Table) -> None:
    assert str(table.n) == "n"
    with pytest.raises(AttributeError, match=r"a Table has no attribute 'm'$"):
        _ = table.m


def test_a_column_is_an_expression_and_not_its_name(table: Table) -> None:
    with pytest.raises(TypeError, match=r"^Table.select\(\) .*: 'n' is a str; pass col\('n'\)$"):
        table.select("n")  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["join", "order_by", "group_by"])
def test_unsupported_methods_of_a_table_are_refused_by_name(method: str, table: Table) -> None:
    with pytest.raises(
        UnsupportedFeatureError, match=rf"Table\.{method}\(\) .* to_data_stream\(\)"
    ):
        getattr(table, method)()
