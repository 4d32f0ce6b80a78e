"""A folder whose files are read as they come, in an unbounded job.

Spark's file stream finds the files and remembers which were read, in a log that does not grow with each epoch;
only their paths come from it, and the format reads them. So a file is read once, in the epoch that Spark
chose, and again in the same one after a failure. Files must appear whole: moved in, or written under a name
that begins with "." or "_".

Flink: `ContinuousFileSplitEnumerator`, which keeps the paths of all files that it has seen in its checkpoints.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from opchain.runtime.columnar.arrow_types import pyarrow
from opchain.runtime.connectors.fed_source import FedSource
from opchain.runtime.files.file_range import FileRange
from opchain.runtime.files.file_systems import file_system_of, qualified_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opchain.runtime.connectors.file_source import FileSource
    from opchain.runtime.functions.source import SourceReaderContext
    from opchain.runtime.types.type_information import TypeInformation

LOCAL = "file:"
BINARY_FILES = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
_ANY_AGE = "36500d"
"""Spark passes by a file that is a week older than the newest one; a file that is moved in keeps its time."""
_SPECIAL = re.compile(r"[\\*?\[\]{}]")
"""What means something in Hadoop's patterns."""


class WatchedFileSource(FedSource):
    """The records of all files that are, or come to be, in the folders of a file source.

    A file is read by one subtask. Folders are watched with all below them.

    Args:
        files: The format, the folders, and what becomes of malformed records.
    """

    is_bounded = False

    def __init__(self, files: FileSource[Any]) -> None:
        self.files = files

    def __repr__(self) -> str:
        return f"{self.files!r}, watched"

    def dataframe(self, session: Any) -> Any:
        """The paths and sizes of files, as they come."""
        found = None
        for path in self.files.paths:
            reader = session.readStream.format("binaryFile").schema(BINARY_FILES)
            reader = reader.option("recursiveFileLookup", "true").option("maxFileAge", _ANY_AGE)
            # Their contents are not asked for, and so not read.
            paths = reader.load(spark_pattern(path)).select("path", "length")
            found = paths if found is None else found.union(paths)
        return found

    def open(self, context: SourceReaderContext) -> None:
        """As the source that reads them."""
        self.files.open(context)

    def get_produced_type(self) -> TypeInformation[Any] | None:
        """As the format says."""
        return self.files.get_produced_type()

    def read_delivery(self, delivery: bytes, batch_size: int) -> Iterator[Sequence[Any]]:
        """The records of the files that a part of a micro-batch names."""
        for split in self.delivered_splits(delivery).values():
            yield from self.files.read(split, batch_size)

    def delivered_splits(self, delivery: bytes) -> Mapping[str, FileRange]:
        """The files that a part of a micro-batch names, each a split."""
        return {
            path: FileRange(_plain(path), 0, None)
            for batch in pyarrow().ipc.open_stream(delivery)
            for path, length in zip(
                batch.column("path").to_pylist(), batch.column("length").to_pylist(), strict=True
            )
            if length
        }

    def read(self, split: FileRange, batch_size: int) -> Iterator[Sequence[Any]]:  # type: ignore[override]
        """The records of a file."""
        return self.files.read(split, batch_size)

    def split_after(self, split: FileRange, records: int) -> FileRange:
        """The rest of a file."""
        return split.after(records)


def spark_pattern(path: str) -> str:
    """The pattern of a path, for which Spark takes every one: what is there stands for itself, as in bounded jobs."""
    if _SPECIAL.search(path) is None:
        return path
    files = file_system_of(path)
    is_there = files.status(path) is not None or files.content(path) is not None
    return _SPECIAL.sub(r"\\\g<0>", path) if is_there else path


def _plain(path: str) -> str:
    """A path as Spark writes it, no character escaped, as file systems here know it."""
    if path.startswith(LOCAL):
        return qualified_path("/" + path.removeprefix(LOCAL).lstrip("/"))
    return path
