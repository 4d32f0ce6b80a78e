"""Writes results to files: rows as JSON lines, and tables of rows by key."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, BinaryIO

from examples.nexmark.json_lines import line_encoder
from opchain.common import Encoder
from opchain.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    OutputFileConfig,
)
from opchain.runtime.functions.sink import Sink, SinkWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from examples.nexmark.model import Row
    from examples.nexmark.streams import Result
    from opchain.runtime.functions.sink import Committer


def sink_of(result: Result, folder: str) -> Sink[Row]:
    """The sink that writes the rows of a result."""
    lines = json_lines_sink(folder, result.folders)
    return TableSink(lines, result.key) if result.key else lines


def json_lines_sink(folder: str, columns: tuple[str, ...] = ()) -> FileSink[Row]:
    """A sink that writes JSON lines, with a folder for each value of the columns, such as `dt=2023-11-15`."""
    buckets = ByColumns(columns) if columns else BucketAssigner.base_path_bucket_assigner()
    naming = OutputFileConfig.builder().with_part_suffix(".jsonl").build()
    sink: FileSink[Row] = (
        FileSink.for_row_format(folder, JsonLines())
        .with_bucket_assigner(buckets)
        .with_output_file_config(naming)
        .build()
    )
    return sink


class JsonLines(Encoder["Row"]):
    """One JSON object per line."""

    def __init__(self) -> None:
        self._encode: Callable[[Sequence[Row]], bytes] | None = None

    def encode(self, element: Row, stream: BinaryIO) -> None:
        """Appends a line."""
        self.encode_batch((element,), stream)

    def encode_batch(self, elements: Sequence[Row], stream: BinaryIO) -> None:
        """Appends lines."""
        if self._encode is None:
            self._encode = line_encoder()
        stream.write(self._encode(elements))


class ByColumns(BucketAssigner):
    """Chooses a folder by the values of some columns."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self._columns = columns

    def get_bucket_id(self, element: Row, timestamp: int | None, processing_time: int) -> str:
        """The folder of a row, such as `dt=2023-11-15/hm=18:10`."""
        return "/".join([f"{column}={element[column]}" for column in self._columns])


class TableSink(Sink["Row"]):
    """Keeps the last row of each key, as a database table would, and writes the rows at the end.

    All rows of a key must arrive at the same subtask, in order.
    """

    reads_timestamps = False
    changes_records = False

    def __init__(self, sink: Sink[Row], key: tuple[str, ...]) -> None:
        self._sink = sink
        self._key = key

    @property
    def has_committer(self) -> bool:
        """Whether the sink that writes the rows has a committer."""
        return self._sink.has_committer

    def create_writer(self, context: Any) -> SinkWriter[Row]:
        """A writer that keeps the table of one subtask."""
        return _TableWriter(self._sink.create_writer(context), self._key)

    def create_committer(self) -> Committer | None:
        """The committer of the sink that writes the rows."""
        return self._sink.create_committer()


class _TableWriter(SinkWriter["Row"]):
    def __init__(self, writer: SinkWriter[Row], key: tuple[str, ...]) -> None:
        self._writer = writer
        self._key_of = itemgetter(*key)
        self._rows: dict[Any, Row] = {}

    def write(self, value: Row, timestamp: int | None) -> None:
        self._rows[self._key_of(value)] = value

    def write_batch(self, values: Sequence[Row], timestamps: Sequence[int | None] | None) -> None:
        self._rows.update(zip(map(self._key_of, values), values, strict=True))

    def flush(self, *, end_of_input: bool) -> None:
        if end_of_input and self._rows:
            self._writer.write_batch(list(self._rows.values()), None)
            self._rows.clear()
        self._writer.flush(end_of_input=end_of_input)

    def prepare_commit(self) -> Sequence[Any]:
        return self._writer.prepare_commit()

    def close(self) -> None:
        self._writer.close()
