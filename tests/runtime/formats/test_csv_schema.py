from __future__ import annotations

from typing import Any

import pytest

from opchain.common import Types
from opchain.datastream.formats.csv import CsvSchema
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.formats.csv_schema import CsvColumn
from opchain.table import DataTypes


def test_columns_have_the_types_of_pyflink() -> None:
    schema = (
        CsvSchema.builder()
        .add_number_column("id")
        .add_number_column("rate", DataTypes.DOUBLE())
        .add_boolean_column("ok")
        .add_string_column("name")
        .add_array_column("tags")
        .add_array_column("sizes", ",", DataTypes.INT())
        .add_column("day", Types.SQL_DATE())
        .build()
    )
    assert len(schema) == schema.size() == 7
    assert repr(schema.row_type) == (
        "RowTypeInfo(id: Long, rate: Double, ok: Boolean, name: String, tags: ListTypeInfo<String>, "
        "sizes: ListTypeInfo<Integer>, day: DateTypeInfo)"
    )
    assert [column.separator for column in schema.columns[4:6]] == [";", ","]


def test_columns_of_another_schema_can_be_added() -> None:
    other = CsvSchema.builder().add_string_column("a").build()
    builder = CsvSchema.builder().add_string_column("b").add_columns_from(other)
    assert len(builder) == builder.size() == 2
    assert builder.build().names == ["b", "a"]
    assert builder.clear_columns().build().names == []


def test_the_schema_separator_applies_to_array_columns_without_their_own() -> None:
    builder = CsvSchema.builder().add_array_column("a").add_array_column("b", "+")
    builder.set_array_element_separator("|")
    assert [column.separator for column in builder.build().columns] == [";", "+"]
    builder.remove_array_element_separator(0)
    assert [column.separator for column in builder.build().columns] == ["|", "+"]
    builder.disable_array_element_separator()
    assert [column.separator for column in builder.build().columns] == ["", "+"]


def test_the_repr_of_a_schema_is_that_of_jackson() -> None:
    builder = (
        CsvSchema.builder().add_number_column("i").add_string_column("s").add_array_column("l")
    )
    schema = builder.add_boolean_column("b").set_use_header().build()
    assert str(schema) == (
        '[CsvSchema: columns=["i"/NUMBER,"s"/STRING,"l"/ARRAY,"b"/BOOLEAN], header? true, skipFirst? false, '
        "comments? false, any-properties? N/A]"
    )


@pytest.mark.parametrize(
    ("setter", "arguments", "attribute", "value"),
    [
        ("set_allow_comments", (), "allow_comments", True),
        ("set_column_separator", ("|",), "column_separator", "|"),
        ("set_escape_char", ("\\",), "escape_char", "\\"),
        ("disable_escape_char", (), "escape_char", None),
        ("set_line_separator", ("\r\n",), "line_separator", "\r\n"),
        ("set_null_value", ("null",), "null_value", "null"),
        ("set_quote_char", ("'",), "quote_char", "'"),
        ("disable_quote_char", (), "quote_char", None),
        ("set_skip_first_data_row", (), "skip_first_data_row", True),
        ("set_strict_headers", (), "strict_headers", True),
        ("set_use_header", (), "use_header", True),
        ("set_use_header", (False,), "use_header", False),
    ],
)
def test_setters_set_their_attribute(
    setter: str, arguments: Any, attribute: str, value: Any
) -> None:
    builder = CsvSchema.builder().add_string_column("a")
    assert getattr(builder, setter)(*arguments) is builder
    schema = builder.build()
    assert getattr(schema, attribute) == value
    assert schema.columns == (CsvColumn("a", Types.STRING()),)


@pytest.mark.parametrize("setter", ["set_column_separator", "set_escape_char", "set_quote_char"])
@pytest.mark.parametrize("char", ["", "||"])
def test_separator_escape_and_quote_must_be_single_characters(setter: str, char: str) -> None:
    with pytest.raises(ValueError, match="it must be a single character"):
        getattr(CsvSchema.builder(), setter)(char)


def test_mistakes_in_the_builder_are_named() -> None:
    builder = CsvSchema.builder().add_string_column("a").add_boolean_column("a")
    with pytest.raises(ValueError, match="CsvSchema has the column 'a' twice"):
        builder.build()
    with pytest.raises(UnsupportedFeatureError, match=r"set_any_property_name\('rest'\)"):
        builder.set_any_property_name("rest")
