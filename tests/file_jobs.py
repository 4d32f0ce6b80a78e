"""Jobs that write and read files of each format, with several subtasks, through the public API."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from opchain.common import Encoder, Row, WatermarkStrategy
from opchain.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    FileSource,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    StreamFormat,
)
from opchain.datastream.formats.avro import AvroBulkWriters, AvroReaders, AvroSchema
from opchain.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema
from opchain.datastream.formats.json import JsonLinesEncoder, JsonReaderFormat
from opchain.datastream.formats.parquet import (
    AvroParquetReaders,
    AvroParquetWriters,
    ParquetBulkWriters,
    ParquetColumnarRowInputFormat,
)
from opchain.runtime.formats.text_lines import BulkFormat
from opchain.table import DataTypes

if TYPE_CHECKING:
    from opchain.datastream import DataStream, StreamExecutionEnvironment

ROW_TYPE = DataTypes.ROW(
    [
        DataTypes.FIELD("id", DataTypes.INT()),
        DataTypes.FIELD("name", DataTypes.STRING()),
        DataTypes.FIELD("price", DataTypes.DECIMAL(10, 2)),
        DataTypes.FIELD("day", DataTypes.DATE()),
        DataTypes.FIELD("at", DataTypes.TIMESTAMP(6)),
    ]
)
CSV = CsvSchema.builder().set_null_value("\\N").set_use_header()
for _field in ROW_TYPE.fields:
    CSV.add_column(_field.name, _field.data_type)
AVRO = AvroSchema.parse_string(
    '{"type": "record", "name": "R", "fields": ['
    '{"name": "id", "type": "int"}, {"name": "name", "type": ["null", "string"]}]}'
)


def row(number: int) -> Row:
    """A record; every third has nothing but a number."""
    if number % 3 == 2:
        return Row(id=number, name=None, price=None, day=None, at=None)
    return Row(
        id=number,
        name=f'ä "{number}",',
        price=Decimal(number) / 4,
        day=date.fromordinal(730_000 + number),
        at=datetime(2024, 5, 6, 7, 8, 9, number),  # noqa: DTZ001 - as in the files
    )


@dataclass(frozen=True)
class FormatCase:
    """The source, the sink, and a function from a number to a record."""

    reads: Any
    writes: Any
    record: Any = row


CASES = {
    "text": FormatCase(StreamFormat.text_line_format(), Encoder.simple_string_encoder(), str),
    "csv": FormatCase(
        CsvReaderFormat.for_schema(CSV.build()).one_record_per_line(),
        CsvBulkWriters.for_schema(CSV.build()),
    ),
    "json": FormatCase(JsonReaderFormat.for_type(ROW_TYPE), JsonLinesEncoder(ROW_TYPE)),
    "parquet": FormatCase(
        ParquetColumnarRowInputFormat(ROW_TYPE), ParquetBulkWriters.for_row_type(ROW_TYPE)
    ),
    "avro": FormatCase(
        AvroReaders.for_generic_record(AVRO),
        AvroBulkWriters.for_generic_record(AVRO),
        lambda number: {"id": number, "name": None if number % 3 == 2 else f"ä {number}"},
    ),
    "avro-parquet": FormatCase(
        AvroParquetReaders.for_generic_record(AVRO),
        AvroParquetWriters.for_generic_record(AVRO),
        lambda number: {"id": number, "name": None if number % 3 == 2 else f"ä {number}"},
    ),
}


def sink_of(writes: Any, path: str, part_size: int | None = None) -> FileSink[Any]:
    """A sink without buckets whose files begin with `out`."""
    begin = FileSink.for_row_format if isinstance(writes, Encoder) else FileSink.for_bulk_format
    builder: Any = begin(path, writes)
    naming = OutputFileConfig.builder().with_part_prefix("out").build()
    builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    if part_size is not None:
        builder.with_rolling_policy(OnCheckpointRollingPolicy(part_size))
    sink: FileSink[Any] = builder.with_output_file_config(naming).build()
    return sink


def source_builder(reads: Any, *paths: str) -> Any:
    """The builder of a source."""
    if isinstance(reads, BulkFormat):
        return FileSource.for_bulk_file_format(reads, *paths)
    return FileSource.for_record_stream_format(reads, *paths)


def stream_of(env: StreamExecutionEnvironment, source: Any) -> DataStream[Any]:
    """The source's stream."""
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "files")


def write_numbers(env: StreamExecutionEnvironment, case: FormatCase, path: str, count: int) -> None:
    """Runs a job that writes the records 0 to count - 1, in as many files as there are subtasks."""
    env.from_sequence(0, count - 1).map(case.record).sink_to(sink_of(case.writes, path))
    env.execute("write")


def records_in(env: StreamExecutionEnvironment, case: FormatCase, *paths: str) -> list[Any]:
    """Runs a job that collects what is in files."""
    stream = stream_of(env, source_builder(case.reads, *paths).build())
    with stream.execute_and_collect("read") as found:
        return list(found)
