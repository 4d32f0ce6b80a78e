from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from file_records import Reader, read, read_ranges, source_of, write_file
from format_values import SCALARS, TEXT, rows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opchain.common import Row, Types
from opchain.datastream import OutputTag
from opchain.runtime.files.malformed import MalformedRecord, MalformedRecordError
from opchain.runtime.formats.csv_reader import CsvReaderFormat
from opchain.runtime.formats.csv_schema import CsvSchema, CsvSchemaBuilder
from opchain.runtime.formats.csv_writer import CsvBulkWriters

if TYPE_CHECKING:
    from pathlib import Path

LINE = TEXT.filter(lambda text: not {"\r", "\n"} & set(text))
ROW_TYPE, ROWS = rows({**SCALARS, "line": (Types.STRING(), LINE)})
LINES = rows({name: SCALARS[name] for name in ("long", "date")} | {"line": (Types.STRING(), LINE)})


def has_no_nul(records: list[Row]) -> bool:
    return not any("\0" in str(value) for record in records for value in record)


if sys.version_info < (3, 11):  # its csv module refuses NUL
    ROWS = ROWS.filter(has_no_nul)
    LINES = LINES[0], LINES[1].filter(has_no_nul)


def schema_of(row_type: Any, **settings: Any) -> CsvSchemaBuilder:
    builder = CsvSchema.builder().set_null_value("\\N")
    for name, kind in zip(row_type.get_field_names(), row_type.get_field_types(), strict=True):
        builder.add_column(name, kind)
    for name, value in settings.items():
        getattr(builder, f"set_{name}")(value)
    return builder


def two() -> CsvSchemaBuilder:
    return CsvSchema.builder().add_number_column("id").add_string_column("name")


def rows_in(path: Path, text: str, reads: CsvReaderFormat, parallelism: int = 1) -> list[Row]:
    (path / "a.csv").write_bytes(text.encode())
    return read(source_of(reads, path), parallelism, batch_size=2)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=20,
)
@given(records=ROWS, separator=st.sampled_from(",;|\t"), escape=st.sampled_from([None, "\\"]))
def test_rows_with_quotes_and_line_ends_are_read_back(
    tmp_path: Path, records: list[Row], separator: str, escape: str | None
) -> None:
    builder = schema_of(ROW_TYPE, column_separator=separator, use_header=True, null_value="<null>")
    if escape:
        builder.set_escape_char(escape)
    schema = builder.build()
    path = write_file(tmp_path, CsvBulkWriters.for_schema(schema), records)
    reads = CsvReaderFormat.for_schema(schema)
    assert not reads.can_be_cut(str(path))
    assert read(source_of(reads, path), 3, batch_size=2) == records


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=40,
)
@given(records=LINES[1], cuts=st.sets(st.integers(0, 200)), header=st.booleans())
def test_rows_of_one_line_are_read_once_for_any_split_of_the_file(
    tmp_path: Path, records: list[Row], cuts: set[int], header: bool
) -> None:
    builder = schema_of(LINES[0], use_header=header, strict_headers=header, null_value="<null>")
    schema = builder.build()
    path = write_file(tmp_path, CsvBulkWriters.for_schema(schema), records)
    reads = CsvReaderFormat.for_schema(schema).one_record_per_line()
    assert reads.can_be_cut(str(path))
    assert read_ranges(reads, path, cuts, batch_size=2) == records


@pytest.mark.parametrize("is_line_by_line", [True, False])
def test_a_nul_character_is_accepted_since_python_3_11(
    tmp_path: Path, *, is_line_by_line: bool
) -> None:
    reads = CsvReaderFormat.for_schema(two().build())
    reads = reads.one_record_per_line() if is_line_by_line else reads
    if sys.version_info >= (3, 11):
        assert rows_in(tmp_path, "1,a\0b\n", reads) == [Row(id=1, name="a\0b")]
        return
    with pytest.raises(MalformedRecordError, match="line contains NUL"):
        rows_in(tmp_path, "1,a\0b\n", reads)


@pytest.mark.parametrize("is_line_by_line", [True, False])
@pytest.mark.parametrize(
    ("builder", "text", "found"),
    [
        (two(), '1,a\r\n\r\n2,"b,""c"""\r\n', [(1, "a"), (2, 'b,"c"')]),
        (two(), "\ufeff1,a\n2,b", [(1, "a"), (2, "b")]),
        (two().set_use_header(), "x,y\n1,a\n", [(1, "a")]),
        (two().set_use_header().set_strict_headers(), "\ufeffid,name\n1,a\n", [(1, "a")]),
        (two().set_use_header().set_skip_first_data_row(), "x,y\nskipped\n1,a\n", [(1, "a")]),
        (two().set_skip_first_data_row(), "skipped\n1,a\n", [(1, "a")]),
        (two(), '1,a,\n2,b\n3,c," \t"\n', [(1, "a"), (2, "b"), (3, "c")]),
        (two().set_use_header(), "x,y,\n1,a,\n", [(1, "a")]),
        (two().set_allow_comments(), "# no\n1,a\n  #\n2,#b\n", [(1, "a"), (2, "#b")]),
        (two().set_allow_comments().set_use_header(), "# no\nx,y\n# no\n1,a\n", [(1, "a")]),
        (two().disable_quote_char(), '1,"a\n2,b"\n', [(1, '"a'), (2, 'b"')]),
        (two().set_escape_char("\\"), "1,a\\,b\n", [(1, "a,b")]),
        (two().set_quote_char("'"), "1,'a,b'\n", [(1, "a,b")]),
        (two().set_use_header(), "", []),
    ],
)
def test_settings_of_the_schema_apply_to_reading(
    tmp_path: Path, builder: CsvSchemaBuilder, text: str, found: list[Any], is_line_by_line: bool
) -> None:
    reads = CsvReaderFormat.for_schema(builder.build())
    if is_line_by_line:
        reads = reads.one_record_per_line()
    for parallelism in (1, 3):
        records = rows_in(tmp_path, text, reads, parallelism)
        assert [tuple(row) for row in records] == found


def test_a_field_may_contain_line_ends_if_the_file_is_not_split(tmp_path: Path) -> None:
    reads = CsvReaderFormat.for_schema(two().build())
    text = '1,"a\r\n\nb"\n2,c\n'
    assert rows_in(tmp_path, text, reads, 2) == [Row(id=1, name="a\r\n\nb"), Row(id=2, name="c")]
    with pytest.raises(MalformedRecordError, match="byte 0: '1,\"a' is malformed"):
        rows_in(tmp_path, text, reads.one_record_per_line())


BAD = '1,a\nx,b\n2\n3,"c"d\n4,e\n'


def test_malformed_lines_are_reported_with_their_byte_offset(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(BAD)
    reads = CsvReaderFormat.for_schema(two().build()).one_record_per_line()
    source = source_of(reads, tmp_path, malformed=OutputTag("bad"))
    reader = Reader()
    source.open(reader)
    assert read(source, 2) == [Row(id=1, name="a"), Row(id=4, name="e")]
    path = str(tmp_path / "a.csv")
    reasons = [
        ("byte 4", "x,b", "column 'id': invalid literal for int() with base 10: 'x'"),
        ("byte 8", "2", "it has 1 fields, expected 2"),
        ("byte 10", '3,"c"d', "',' expected after '\"'"),
    ]
    assert [record for _, record in reader.emitted] == [
        MalformedRecord(path, *reason) for reason in reasons
    ]


def test_malformed_records_are_reported_with_their_line_number(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(BAD)
    reads = CsvReaderFormat.for_schema(two().build())
    source = source_of(reads, tmp_path, malformed=OutputTag("bad"))
    reader = Reader()
    source.open(reader)
    assert read(source) == [Row(id=1, name="a"), Row(id=4, name="e")]
    assert [record.place for _, record in reader.emitted] == ["line 4", "line 2", "line 3"]
    skipping = source_of(reads, tmp_path, malformed=reads.with_ignore_parse_errors().on_malformed)
    skipping.open(reader)
    assert len(read(skipping)) == 2
    assert reader.errors == 6


@pytest.mark.parametrize("is_line_by_line", [True, False])
def test_strict_headers_are_compared_with_the_schema(tmp_path: Path, is_line_by_line: bool) -> None:
    reads = CsvReaderFormat.for_schema(two().set_use_header().set_strict_headers().build())
    if is_line_by_line:
        reads = reads.one_record_per_line()
    with pytest.raises(
        ValueError, match="has the header id, nom, but the schema has the columns id, name"
    ):
        rows_in(tmp_path, '"id","nom"\n1,a\n', reads)


def test_a_large_field_is_read(tmp_path: Path) -> None:
    reads = CsvReaderFormat.for_schema(two().build())
    assert rows_in(tmp_path, f"1,{'x' * 200_000}\n", reads)[0]["name"] == "x" * 200_000


def test_an_object_that_is_not_a_csv_schema_is_refused() -> None:
    wrong: Any = ["id"]
    with pytest.raises(TypeError, match="for_schema got \\['id'\\]; it takes a CsvSchema"):
        CsvReaderFormat.for_schema(wrong)
    with pytest.raises(ValueError, match="a schema without columns"):
        CsvReaderFormat.for_schema(CsvSchema())


def test_rows_have_the_type_of_the_schema() -> None:
    schema = two().build()
    assert CsvReaderFormat.for_schema(schema).get_produced_type() == schema.row_type


@pytest.mark.parametrize("by_line", [False, True])
def test_lines_after_a_strict_header_need_not_be_utf_8(tmp_path: Path, by_line: bool) -> None:
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfid,name\r\n1,a\r\n2,\xff\r\n3,c")
    reads = CsvReaderFormat.for_schema(two().set_use_header().set_strict_headers().build())
    if by_line:
        reads = reads.one_record_per_line()
    source = source_of(reads, tmp_path, malformed="skip")
    source.open(Reader())
    assert read(source) == [Row(id=1, name="a"), Row(id=3, name="c")]


@pytest.mark.parametrize("header", [b"id,n\xe4me\n", b'"id"x,name\n'])
def test_a_malformed_header_does_not_consume_the_first_row(tmp_path: Path, header: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(header + b"1,a\n2,b\n")
    (tmp_path / "b.csv").write_bytes(b"id,name\n" + header + b"3,c\n4,d\n")
    plain = CsvReaderFormat.for_schema(two().set_use_header().build())
    skips = CsvReaderFormat.for_schema(two().set_use_header().set_skip_first_data_row().build())
    for reads, name, ids in ((plain, "a.csv", [1, 2]), (skips, "b.csv", [3, 4])):
        source = source_of(reads, tmp_path / name, malformed="skip")
        source.open(Reader())
        assert [row.id for row in read(source)] == ids
