from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from file_records import write

from opchain.common import Row
from opchain.runtime.formats.csv_schema import CsvSchema, CsvSchemaBuilder
from opchain.runtime.formats.csv_writer import CsvBulkWriters, CsvText
from opchain.table import DataTypes

if TYPE_CHECKING:
    from pathlib import Path


def two() -> CsvSchemaBuilder:
    return CsvSchema.builder().add_number_column("id").add_string_column("name")


@pytest.mark.parametrize(
    ("builder", "text"),
    [
        (two(), '1,ä\n2,"b,""c"\n,\n'),
        (two().set_use_header(), 'id,name\n1,ä\n2,"b,""c"\n,\n'),
        (two().set_column_separator("|").set_quote_char("'"), "1|ä\n2|'b,\"c'\n|\n"),
        (two().set_escape_char("\\"), '1,ä\n2,"b,""c"\n,\n'),
        (two().set_line_separator("\r\n").set_null_value("-"), '1,ä\r\n2,"b,""c"\r\n-,-\r\n'),
    ],
)
def test_rows_are_written_as_lines(tmp_path: Path, builder: CsvSchemaBuilder, text: str) -> None:
    rows = [Row(1, "ä"), {"name": 'b,"c', "id": 2}, (None, None)]
    path = write(tmp_path, CsvBulkWriters.for_schema(builder.build()), rows)
    assert path.read_bytes().decode() == text


def test_elements_are_written_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with path.open("wb") as stream:
        writer = CsvBulkWriters.for_schema(two().build()).create(stream)
        writer.add_element(Row(1, "a"))
        writer.add_element(Row(2, "b"))
        writer.flush()
        writer.finish()
    assert path.read_text() == "1,a\n2,b\n"


@pytest.mark.parametrize("name", ["a,b", "a\nb", "a\rb"])
def test_a_row_that_needs_quotes_is_refused_without_a_quote_character(name: str) -> None:
    text = CsvText(two().disable_quote_char().build())
    with pytest.raises(ValueError, match="a row cannot be written as CSV"):
        text.of_rows([Row(1, name)])


def test_a_row_that_looks_like_a_comment_is_quoted() -> None:
    builder = CsvSchema.builder().add_string_column("name").set_allow_comments()
    assert CsvText(builder.build()).of_rows([Row("#1")]) == b'"#1"\n'
    with pytest.raises(ValueError, match="it begins as a comment, and the schema has no quotes"):
        CsvText(builder.disable_quote_char().build()).of_rows([Row(" #1")])


def test_an_object_that_is_not_a_csv_schema_is_refused() -> None:
    wrong: Any = "id,name"
    with pytest.raises(TypeError, match="got 'id,name'; it takes a CsvSchema"):
        CsvBulkWriters.for_schema(wrong)


# Written by PyFlink 2.3.
@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a b", '"a b"'),
        (" lead", '" lead"'),
        ('q"q', '"q""q"'),
        ("it's", '"it\'s"'),
        ("1+2", '"1+2"'),
        ("#c", '"#c"'),
        ("tab\t", '"tab\t"'),
        ("a-b_c.d", "a-b_c.d"),
        ("a:b/c;d", "a:b/c;d"),
        ("", ""),
        ("a" * 24, "a" * 24),
        ("a" * 25, f'"{"a" * 25}"'),
        ("\U0001f600" * 13, '"' + "\U0001f600" * 13 + '"'),
    ],
)
def test_texts_are_quoted_as_in_jackson(text: str, written: str) -> None:
    schema = CsvSchema.builder().add_string_column("a").build()
    assert CsvText(schema).of_rows([Row(text)]).decode() == f"{written}\n"


def test_an_escape_character_is_doubled_within_quotes() -> None:
    schema = CsvSchema.builder().add_string_column("a").set_escape_char("\\").build()
    written = CsvText(schema).of_rows([Row("back\\slash"), Row('q"q'), Row("plain")])
    assert written.decode() == '"back\\\\slash"\n"q""q"\nplain\n'


def test_numbers_are_written_as_in_java() -> None:
    columns = {"f": DataTypes.FLOAT(), "d": DataTypes.DOUBLE(), "n": DataTypes.DECIMAL(10, 2)}
    builder = CsvSchema.builder()
    for name, kind in columns.items():
        builder.add_number_column(name, kind)
    rows = [
        Row(3.0e38, 1.23456789e7, Decimal("1.2345")),
        Row(0.1, 1e10, Decimal("1.005")),
        Row(float("inf"), float("nan"), Decimal("-2.555")),
        Row(1, 2, Decimal("1E+3")),
        Row(1, 2, Decimal("123456789.5")),
    ]
    assert CsvText(builder.build()).of_rows(rows).decode().splitlines() == [
        "3.0E38,1.23456789E7,1.23",
        "0.1,1.0E10,1.01",
        "Infinity,NaN,-2.56",
        "1.0,2.0,1E+3",
        "1.0,2.0,",
    ]
