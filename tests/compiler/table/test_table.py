from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opchain.compiler.table.data_types import DataTypes
from opchain.compiler.table.expression_functions import col
from opchain.compiler.table.stream_table_environment import StreamTableEnvironment
from opchain.compiler.table.table_descriptor import Schema, TableDescriptor
from opchain.runtime.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Callable

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


@pytest.mark.parametrize("method", ["over_window", "aggregate", "flat_aggregate"])
def test_unsupported_methods_of_a_table_are_refused_by_name(method: str, table: Table) -> None:
    with pytest.raises(
        UnsupportedFeatureError, match=rf"Table\.{method}\(\) .* to_data_stream\(\)"
    ):
        getattr(table, method)()


@pytest.mark.parametrize(
    ("query", "part", "instead"),
    [
        (lambda t: t.group_by(col("n")).select(col("n").count), "GROUP BY", "key_by"),
        (lambda t: t.select(col("n").sum), "aggregation", "key_by"),
        (lambda t: t.join(t.alias("m"), col("n") == col("m")), "JOIN", "interval_join"),
        (lambda t: t.distinct(), "DISTINCT", "ValueState"),
        (lambda t: t.order_by(col("n")), "ORDER BY", "timers"),
        (lambda t: t.fetch(3), "LIMIT", "filter"),
        (lambda t: t.offset(3), "OFFSET", "filter"),
        (lambda t: t.minus(t), "EXCEPT", "filter"),
        (lambda t: t.union(t), "UNION", "filter"),
    ],
)
def test_relations_of_unbounded_tables_and_in_process_are_refused(
    table: Table, query: Callable[[Table], Table], part: str, instead: str
) -> None:
    with pytest.raises(
        UnsupportedFeatureError,
        match=rf"Table.*\(test_table.py:.*{part} over the unbounded table '.*datagen.*{instead}",
    ):
        query(table)
    environment = StreamTableEnvironment.create()
    environment.get_config().set("execution.target", "local")
    bounded = environment.from_elements([(1,)], ["n"])
    with pytest.raises(
        UnsupportedFeatureError, match=rf"Table.*{part} runs in Spark SQL, and this"
    ):
        query(bounded)
