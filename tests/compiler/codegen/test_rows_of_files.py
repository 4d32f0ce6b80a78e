"""Rows of Parquet and CSV files, which generated code reads field by field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forms import FORMS, failure_of, job_of, notes_of, run_form, seen

from opchain.common import Duration, Row, Types, WatermarkStrategy
from opchain.common.watermark_strategy import TimestampAssigner
from opchain.datastream.connectors.file_system import FileSource
from opchain.datastream.formats.csv import CsvReaderFormat, CsvSchema
from opchain.datastream.formats.parquet import ParquetColumnarRowInputFormat
from opchain.table import DataTypes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COUNT = 60


class ByTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value["time"])


def parquet_source(folder: Path) -> FileSource[Any]:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet  # noqa: PLC0415 - it may be missing

    path = folder / "rows.parquet"
    columns = {
        "time": [number * 10 for number in range(COUNT)],
        "name": [None if number % 7 == 0 else f"n{number % 5}" for number in range(COUNT)],
        "sizes": [[number, number + 1] for number in range(COUNT)],
    }
    pyarrow.parquet.write_table(pa.table(columns), path)
    fields = [
        DataTypes.FIELD("time", DataTypes.BIGINT()),
        DataTypes.FIELD("name", DataTypes.STRING()),
        DataTypes.FIELD("sizes", DataTypes.ARRAY(DataTypes.BIGINT())),
    ]
    return FileSource.for_bulk_file_format(
        ParquetColumnarRowInputFormat(DataTypes.ROW(fields)), str(path)
    ).build()


def csv_source(folder: Path) -> FileSource[Any]:
    path = folder / "rows.csv"
    lines = [f"{number * 10},n{number % 5},{number};{number + 1}" for number in range(COUNT)]
    lines[20] = "not a number,n,1"  # its batch is a list of rows
    path.write_text("\n".join(lines) + "\n")
    schema = CsvSchema.builder().add_number_column("time").add_string_column("name")
    schema = schema.add_array_column("sizes", ";", DataTypes.BIGINT())
    read = CsvReaderFormat.for_schema(schema.build()).with_ignore_parse_errors()
    return FileSource.for_record_stream_format(read, str(path)).build()


def named(row: Any) -> Any:
    return (row["name"] or "none", row["time"])


def changed(row: Any) -> Any:
    row["name"] = "changed"
    row["sizes"].append(0)
    return row


def counted(rows: Any) -> Any:
    pairs = rows.map(named).filter(lambda pair: pair[1] % 3 > 0)
    return pairs.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "fields": counted,
    "rows": lambda rows: rows.map(lambda row: (str(row), row)),
    "changed rows": lambda rows: rows.map(changed),
    "a fork": lambda rows: rows.map(lambda row: row["sizes"]).union(rows.map(changed)),
    "exchanged rows": lambda rows: rows.key_by(lambda row: row["name"] or "").map(lambda row: row),
    "rows of fields": lambda rows: rows.map(lambda row: Row(size=row.sizes[0], name=row.name)),
}


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("source", [parquet_source, csv_source])
@pytest.mark.parametrize("program", PROGRAMS)
def test_results_and_counters_are_the_same_in_all_forms(
    program: str, source: Callable[[Path], Any], mode: str, tmp_path: Path
) -> None:
    times = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(20))
    times = times.with_timestamp_assigner(ByTime())

    def draw(env: Any) -> None:
        rows = env.from_source(source(tmp_path), times, "rows")
        seen(PROGRAMS[program](rows), "results")

    ran = [run_form(draw, form, mode=mode, parallelism=2, batch_size=8) for form in FORMS]
    assert ran[0].records("results")
    for other in ran[1:]:
        assert repr(other.subtasks("results")) == repr(ran[0].subtasks("results"))
        assert other.counters() == ran[0].counters()


@pytest.mark.parametrize("source", [parquet_source, csv_source])
def test_no_row_is_built_if_functions_read_only_fields(
    source: Callable[[Path], Any], tmp_path: Path
) -> None:
    def draw(env: Any) -> None:
        rows = env.from_source(source(tmp_path), WatermarkStrategy.no_watermarks(), "rows")
        seen(counted(rows), "results")

    code = job_of(draw).vertices[0].source
    assert code is not None
    assert "for field_0, field_1, field_2 in values.rows():" in code
    assert "if values.__class__ is not Columns:" in code


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("source", [parquet_source, csv_source])
def test_the_error_of_a_function_shows_the_whole_row(
    form: str, source: Callable[[Path], Any], tmp_path: Path
) -> None:
    def draw(env: Any) -> None:
        rows = env.from_source(source(tmp_path), WatermarkStrategy.no_watermarks(), "rows")
        seen(rows.map(lambda row: 1 // (row["time"] - 50), output_type=Types.LONG()), "results")

    error = failure_of(draw, form)
    assert "Row(time=50, name='n0', sizes=[5, 6])" in notes_of(error)
