"""Shared by tests of files: reads sources with any number of subtasks, and writes and commits sinks."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from opchain.runtime.connectors.file_buckets import BucketAssigner
from opchain.runtime.connectors.file_sink import FileSink
from opchain.runtime.connectors.file_source import FileSource
from opchain.runtime.files.file_range import FileRange
from opchain.runtime.files.malformed import MalformedRecord, MalformedRecords
from opchain.runtime.functions.source import SourceReaderContext
from opchain.runtime.metrics.metric_group import MetricGroup
from opchain.runtime.types.serialization import BulkWriterFactory, Encoder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opchain.runtime.formats.text_lines import FileFormat
    from opchain.runtime.types.output_tag import OutputTag


class Reader(SourceReaderContext):
    """The context of one subtask, which keeps what is counted and emitted."""

    def __init__(self) -> None:
        self.metrics = MetricGroup(())
        self.emitted: list[tuple[str, MalformedRecord]] = []

    def metric_group(self) -> MetricGroup:
        return self.metrics

    def emit_to(self, tag: OutputTag[Any], value: Any) -> None:
        self.emitted.append((tag.tag_id, value))

    @property
    def errors(self) -> int:
        count: int = self.metrics.snapshot().get("numRecordsInErrors", 0)
        return count


class Subtask:
    """The part of a runtime context that a file sink needs."""

    def __init__(self, index: int = 0) -> None:
        self.index = index

    def get_index_of_this_subtask(self) -> int:
        return self.index


def source_of(file_format: FileFormat[Any], *paths: Any, **settings: Any) -> FileSource[Any]:
    """A source after pickling, as executors get it."""
    source: FileSource[Any] = pickle.loads(
        pickle.dumps(FileSource(file_format, *paths, **settings))
    )
    return source


def read(source: FileSource[Any], parallelism: int = 1, batch_size: int = 100) -> list[Any]:
    """All records, subtask after subtask."""
    return [
        record
        for part in source.splits(parallelism)
        for split in part
        for batch in source.read(split, batch_size)
        for record in batch
    ]


def read_ranges(
    file_format: FileFormat[Any], path: Path, cuts: Iterable[int], batch_size: int = 100
) -> list[Any]:
    """All records of a file that is cut at these positions."""
    size = path.stat().st_size
    borders = sorted({0, size, *(cut for cut in cuts if cut < size)})
    return [
        record
        for start, stop in pairwise(borders)
        for batch in file_format.read(
            FileRange(str(path), start, stop), batch_size, MalformedRecords()
        )
        for record in batch
    ]


def write(
    path: Path, writes: BulkWriterFactory[Any] | Encoder[Any], records: Sequence[Any]
) -> Path:
    """The file in which a sink has put the records."""
    sink = sink_to(path, writes)
    writer = sink.create_writer(cast("Any", Subtask()))
    try:
        writer.write_batch(records, None)
        writer.flush(end_of_input=True)
        committer = sink.create_committer()
        assert committer is not None
        (file,) = writer.prepare_commit()
        committer.commit([file])
    finally:
        writer.close()
    return Path(file.path)


def write_file(
    folder: Path, writes: BulkWriterFactory[Any] | Encoder[Any], records: Sequence[Any]
) -> Path:
    """A file that is written without a sink; one of an earlier example is replaced."""
    path = folder / "file"
    with path.open("wb") as stream:
        if isinstance(writes, Encoder):
            writes.encode_batch(records, stream)
        else:
            writer = writes.create(stream)
            writer.add_batch(records)
            writer.finish()
    return path


def sink_to(path: Path | str, writes: BulkWriterFactory[Any] | Encoder[Any]) -> FileSink[Any]:
    """A sink without buckets after pickling, as executors get it."""
    begin: Any = (
        FileSink.for_row_format if isinstance(writes, Encoder) else FileSink.for_bulk_format
    )
    builder = begin(str(path), writes)
    builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    sink: FileSink[Any] = pickle.loads(pickle.dumps(builder.build()))
    return sink
