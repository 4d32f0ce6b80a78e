from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from opchain.common import Row, Types
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.formats.csv_reader import csv_decoder, field_writer, row_reader
from opchain.runtime.formats.csv_schema import CsvSchema, CsvSchemaBuilder
from opchain.table import DataTypes


def builder() -> CsvSchemaBuilder:
    return (
        CsvSchema.builder()
        .add_number_column("id")
        .add_string_column("name")
        .add_array_column("sizes", element_type=Types.INT())
    )


def test_fields_are_converted_to_rows_and_back() -> None:
    fields = [("1", "a", "1;2"), ("2", "", "3")]
    rows = [Row(id=1, name="a", sizes=[1, 2]), Row(id=2, name="", sizes=[3])]
    assert row_reader(builder().build())(fields) == rows
    assert field_writer(builder().build())(rows) == fields


def test_an_empty_text_is_null_except_in_a_string_column() -> None:
    nothing = Row(id=None, name="", sizes=[])
    assert row_reader(builder().build())([("", "", "")]) == [nothing]
    assert field_writer(builder().build())([Row(None, None, None)]) == [("", "", "")]


def test_the_null_value_applies_to_every_column() -> None:
    schema = builder().set_null_value("-").build()
    fields = [("-", "-", "-"), ("1", "", "1")]
    rows = [Row(id=None, name=None, sizes=None), Row(id=1, name="", sizes=[1])]
    assert row_reader(schema)(fields) == rows
    assert field_writer(schema)(rows) == fields


@pytest.mark.parametrize(
    ("null_value", "element_type", "elements", "text"),
    [
        (None, Types.INT(), [1, None, 2], "1;;2"),
        ("-", Types.INT(), [1, None], "1;-"),
        ("-", Types.STRING(), ["a", None, ""], "a;-;"),
        ("-", Types.BOOLEAN(), [None, False], "-;false"),
    ],
)
def test_an_array_element_may_be_null(
    null_value: str | None, element_type: Any, elements: list[Any], text: str
) -> None:
    builder = CsvSchema.builder().add_array_column("a", element_type=element_type)
    schema = builder.build() if null_value is None else builder.set_null_value(null_value).build()
    assert field_writer(schema)([Row(a=elements)]) == [(text,)]
    assert row_reader(schema)([(text,)]) == [Row(a=elements)]


def test_an_array_without_a_separator_has_one_element() -> None:
    schema = CsvSchema.builder().add_array_column("a", "").disable_array_element_separator().build()
    assert row_reader(schema)([("1;2",)]) == [Row(a=["1;2"])]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (("1", "a"), "it has 2 fields, expected 3"),
        (("x", "a", "1"), "column 'id': invalid literal"),
        (("1", "a", "1;x"), "column 'sizes': invalid literal"),
    ],
)
def test_the_error_names_a_wrong_field(fields: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        row_reader(builder().build())([fields])


def test_a_type_without_a_csv_text_is_refused() -> None:
    schema = builder().add_column("m", Types.MAP(Types.STRING(), Types.INT())).build()
    for make in (row_reader, field_writer):
        with pytest.raises(UnsupportedFeatureError, match="CSV does not support the column 'm'"):
            make(schema)  # type: ignore[operator]


# Read by PyFlink 2.3.
def test_numbers_have_the_precision_of_their_column() -> None:
    kinds = [DataTypes.FLOAT(), DataTypes.DECIMAL(10, 2)]
    schema = CsvSchema.builder().add_number_column("f", kinds[0]).add_number_column("n", kinds[1])
    read = row_reader(schema.build())
    rows = read([("0.1", "1.005"), ("1", "2.5"), ("1", "-2.555"), ("1", "1E3"), ("1", "1e9")])
    assert [row.n for row in rows] == [
        *map(Decimal, ("1.01", "2.50", "-2.56", "1000.00")),
        None,
    ]
    assert [str(row.n) for row in rows[:2]] == ["1.01", "2.50"]
    assert rows[0].f == 0.10000000149011612


def test_an_escape_character_applies_to_control_characters_too() -> None:
    schema = CsvSchema.builder().add_string_column("a").add_string_column("b").set_escape_char("\\")
    decode = csv_decoder(schema.build())
    texts = ['"a\\"b",x\\,y', "a\\nb,c\\\\nd", '"a""b",""""']
    assert list(map(tuple, decode(texts))) == [('a"b', "x,y"), ("a\nb", "c\\nd"), ('a"b', '"')]


def test_a_decimal_with_a_huge_exponent_is_refused() -> None:
    schema = CsvSchema.builder().add_number_column("id", DataTypes.DECIMAL(10, 2)).build()
    texts = ["1e999999999999", "1e8", "99999999.994", "99999999.995", "1e7", "0e99999", "1e-99"]
    assert [row[0] for row in csv_decoder(schema)(texts)] == [
        None,
        None,
        Decimal("99999999.99"),
        None,
        Decimal("10000000.00"),
        Decimal("0.00"),
        Decimal("0.00"),
    ]
