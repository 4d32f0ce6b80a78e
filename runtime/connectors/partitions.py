"""Partitioned tables in files: the folders `dt=2026-01-31/hr=5`, and the rows in them.

The values of partition columns are in the names of folders, and not in the files. Flink: PartitionPathUtils.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, BinaryIO

from opchain.runtime.connectors.file_buckets import BucketAssigner
from opchain.runtime.formats.text_lines import FileFormat
from opchain.runtime.functions.record_functions import MapFunction
from opchain.runtime.types.row import Row
from opchain.runtime.types.serialization import BulkWriter, BulkWriterFactory, Encoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opchain.runtime.files.file_range import FileRange
    from opchain.runtime.files.malformed import MalformedRecords

_ESCAPED = re.compile(r"""[\x01-\x1f\x7f"#%'*/:=?\\{}\[\]^]""")
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")


def escaped(text: str) -> str:
    """A text as a part of the name of a folder.

    >>> escaped("a/b=c")
    'a%2Fb%3Dc'
    """
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


def values_in(path: str, keys: Sequence[str], default_name: str) -> list[str | None]:
    """The values of partition columns in the path of a file.

    >>> values_in("/t/dt=a%2Fb/hr=none/part-0", ["dt", "hr"], "none")
    ['a/b', None]

    Raises:
        ValueError: The file is in no folder of a partition.
    """
    names = [part.partition("=") for part in path.split("/")[:-1] if "=" in part]
    found = {_unescaped(key): _unescaped(value) for key, _, value in names}
    missing = [key for key in keys if key not in found]
    if missing:
        example = "/".join(f"{key}=..." for key in keys)
        raise ValueError(
            f"'{path}' is in no folder '{missing[0]}=...', but the table is PARTITIONED BY ({', '.join(keys)}); move the "
            f"file into a folder {example}"
        )
    return [None if found[key] == default_name else found[key] for key in keys]


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)


class Partitioner(MapFunction[Any, Any]):
    """Turns a row into a pair: the folder of its partition, and the record that is written there.

    Args:
        keys: The partition columns: the name and the place of each.
        texts: The function for each that gives the text of a value.
        default_name: The name for NULL and for an empty text.
        record: Gives the record of a row.
    """

    def __init__(
        self,
        keys: Sequence[tuple[str, int]],
        texts: Sequence[Callable[[Any], str]],
        default_name: str,
        record: Callable[[Any], Any],
    ) -> None:
        self.keys = list(keys)
        self.texts = list(texts)
        self.default_name = default_name
        self.record = record

    def __repr__(self) -> str:
        return f"partition by {', '.join(name for name, _ in self.keys)}"

    def map(self, value: Any) -> tuple[str, Any]:
        """The folder and the record."""
        return "/".join(self._names(value)), self.record(value)

    def _names(self, value: Any) -> Iterator[str]:
        for (name, place), text in zip(self.keys, self.texts, strict=True):
            found = value[place]
            shown = "" if found is None else text(found)
            yield f"{escaped(name)}={escaped(shown or self.default_name)}"


class PartitionFolders(BucketAssigner):
    """The folder of a pair that a Partitioner made."""

    def get_bucket_id(self, element: Any, timestamp: int | None, processing_time: int) -> str:  # noqa: ARG002 - of the record
        """The folder."""
        found: str = element[0]
        return found


class PartitionEncoder(Encoder[Any]):
    """Writes the records of pairs that a Partitioner made."""

    def __init__(self, of_record: Encoder[Any]) -> None:
        self.of_record = of_record

    def encode(self, element: Any, stream: BinaryIO) -> None:
        """Writes the record."""
        self.of_record.encode(element[1], stream)

    def encode_batch(self, elements: Sequence[Any], stream: BinaryIO) -> None:
        """Writes the records."""
        self.of_record.encode_batch([each[1] for each in elements], stream)


class PartitionWriters(BulkWriterFactory[Any]):
    """Creates writers of the records of pairs that a Partitioner made."""

    def __init__(self, of_records: BulkWriterFactory[Any]) -> None:
        self.of_records = of_records

    def create(self, stream: BinaryIO) -> BulkWriter[Any]:
        """A writer to the open file."""
        return _PartitionWriter(self.of_records.create(stream))


class _PartitionWriter(BulkWriter[Any]):
    def __init__(self, of_records: BulkWriter[Any]) -> None:
        self._of_records = of_records

    def add_element(self, element: Any) -> None:
        self._of_records.add_element(element[1])

    def add_batch(self, elements: Sequence[Any]) -> None:
        self._of_records.add_batch([each[1] for each in elements])

    def flush(self) -> None:
        self._of_records.flush()

    def finish(self) -> None:
        self._of_records.finish()


class PartitionedFormat(FileFormat[Any]):
    """Reads the rows or dictionaries of a format, and appends the values of partition columns as texts.

    Args:
        of_records: The format.
        names: The names of the fields in the files.
        keys: The names of the partition columns.
        default_name: The name of a folder that means NULL.
    """

    def __init__(
        self,
        of_records: FileFormat[Any],
        names: Sequence[str],
        keys: Sequence[str],
        default_name: str,
    ) -> None:
        self.of_records = of_records
        self.names = list(names)
        self.keys = list(keys)
        self.default_name = default_name
        self.on_malformed = of_records.on_malformed

    def can_be_cut(self, path: str) -> bool:
        """As the format says."""
        return self.of_records.can_be_cut(path)

    def read(
        self, part: FileRange, batch_size: int, malformed: MalformedRecords
    ) -> Iterator[Sequence[Any]]:
        """The records of the file, each with the values of its partition."""
        values = values_in(part.path, self.keys, self.default_name)
        by_key = dict(zip(self.keys, values, strict=True))
        row = Row(*self.names, *self.keys)
        for records in self.of_records.read(part, batch_size, malformed):
            yield [
                {**each, **by_key} if isinstance(each, dict) else row(*each, *values)
                for each in records
            ]
