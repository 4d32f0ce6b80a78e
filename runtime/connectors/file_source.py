"""FileSource with PyFlink's builder, and sources of one format: TextLineSource and AvroInputFormat."""

from __future__ import annotations

import copy
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.connectors.watched_files import FileAdmission, WatchedFileSource
from opchain.runtime.errors import add_note, require_instance
from opchain.runtime.files.file_range import FileRange, assign_whole_files, divide_files, list_files
from opchain.runtime.files.file_systems import FileStatus, dataset_of, qualified_path
from opchain.runtime.files.line_blocks import line_blocks
from opchain.runtime.files.malformed import MalformedRecords, checked_policy
from opchain.runtime.formats.avro_files import AvroRecordFormat, AvroSchema
from opchain.runtime.formats.text_lines import BulkFormat, FileFormat, StreamFormat, TextLineFormat
from opchain.runtime.functions.source import Source, SourceReaderContext
from opchain.runtime.time import Duration
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from opchain.runtime.files.malformed import OnMalformed
    from opchain.runtime.types.type_information import TypeInformation

_LOG = logging.getLogger("opchain.job")


class FileSource(Source[T]):
    """The records in files, in folders, or behind patterns such as `logs/*.csv`. Flink: FileSource.

    The bytes of all files, in the order of their sorted paths, are divided into one contiguous part for each subtask. A
    record belongs to the part in which it begins. So the records of all subtasks, concatenated, are the records of the
    files in order. A file that can't be divided, such as most compressed files, is read by one subtask. Folders are
    read with their subfolders, without names that begin with "." or "_".

    If the source has a watermark strategy, each part of a file has its own watermark, and a subtask takes turns reading
    its parts: see Source. If an operator downstream assigns event time, no file is divided: see `uncut`.

    Args:
        file_format: The format of the files.
        paths: Paths, or URLs that fsspec supports.
        malformed: The policy for text that is not a record.
        cuts_files: Whether several subtasks may read one file, if the format allows it.

    Raises:
        ValueError: There is no path.
    """

    def __init__(
        self,
        file_format: FileFormat[T],
        *paths: str | os.PathLike[str],
        malformed: OnMalformed = "fail",
        cuts_files: bool = True,
    ) -> None:
        if not paths:
            raise ValueError(
                "a FileSource needs at least one path of a file or folder, but got none"
            )
        self.file_format = file_format
        self.paths = tuple(qualified_path(path) for path in paths)
        self.malformed = MalformedRecords(malformed)
        self.cuts_files = cuts_files
        self.deals_whole_files = False
        self._planned: list[list[FileRange]] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.paths))})"

    @property
    def datasets(self) -> tuple[tuple[str, str], ...]:
        """The paths, for lineage."""
        return tuple(map(dataset_of, self.paths))

    @staticmethod
    def for_record_stream_format(
        stream_format: StreamFormat[T], *paths: str | os.PathLike[str]
    ) -> FileSourceBuilder[T]:
        """Builds a source of a format that is read record by record."""
        wanted = "a StreamFormat such as StreamFormat.text_line_format()"
        require_instance(stream_format, StreamFormat, "for_record_stream_format", wanted)
        return FileSourceBuilder(stream_format, paths)

    @staticmethod
    def for_bulk_file_format(
        bulk_format: BulkFormat[T], *paths: str | os.PathLike[str]
    ) -> FileSourceBuilder[T]:
        """Builds a source of a format that is read in batches."""
        wanted = "a BulkFormat such as ParquetColumnarRowInputFormat(row_type)"
        require_instance(bulk_format, BulkFormat, "for_bulk_file_format", wanted)
        return FileSourceBuilder(bulk_format, paths)

    def files(self) -> list[FileStatus]:
        """The files that currently match the paths.

        Raises:
            FileNotFoundError: A path does not exist, or nothing matches a pattern.
        """
        return list_files(self.paths)

    def planned(self, parallelism: int) -> FileSource[T]:
        """The same source, with the files that exist now."""
        planned = copy.copy(self)
        planned._planned = self.splits(parallelism)  # noqa: SLF001 - its own class
        return planned

    def splits(self, parallelism: int) -> list[list[FileRange]]:
        """The parts of files that each subtask reads."""
        if self._planned is not None and len(self._planned) == parallelism:
            return self._planned
        if self.deals_whole_files:
            return assign_whole_files(self.files(), parallelism, self._can_be_cut)
        return divide_files(self.files(), parallelism, self._can_be_cut)

    def uncut(self) -> FileSource[T]:
        """The same source with whole files, which each subtask reads one after the other, as in Flink."""
        uncut = copy.copy(self)
        uncut.deals_whole_files = True
        return uncut

    def split_name(self, split: FileRange) -> str:
        """The path, and the first byte of the part."""
        return f"{split.path} from byte {split.start}"

    def split_after(self, split: FileRange, records: int) -> FileRange:
        """The rest of a part."""
        return split.after(records)

    def _can_be_cut(self, path: str) -> bool:
        return self.cuts_files and self.file_format.can_be_cut(path)

    def open(self, context: SourceReaderContext) -> None:
        """Keeps the context, which counts and sends malformed records."""
        self.malformed.context = context

    def read(self, split: FileRange, batch_size: int) -> Iterator[Sequence[T]]:
        """The records that begin in the range, without those that were read before."""
        left = split.skip
        # Skipped records were read before, and their malformed neighbours were counted then.
        malformed = replace(self.malformed, is_muted=left > 0)
        try:
            for records in self.file_format.read(split, batch_size, malformed):
                if left >= len(records):
                    left -= len(records)
                    malformed.is_muted = left > 0
                    continue
                malformed.is_muted = False
                yield records[left:] if left else records
                left = 0
        except Exception as error:
            end = "its end" if split.stop is None else f"byte {split.stop}"
            add_note(error, f"while reading '{split.path}' from byte {split.start} to {end}")
            raise

    def get_produced_type(self) -> TypeInformation[Any] | None:
        """The type that the format produces."""
        return self.file_format.get_produced_type()


class FileEnumeratorProvider:
    """Whether a source may divide files. Flink: FileEnumerator.Provider.

    Both enumerators find the same files. Neither divides a file of a format that can't be divided.
    """

    def __init__(self, *, cuts_files: bool) -> None:
        self.cuts_files = cuts_files

    @staticmethod
    def default_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Several subtasks may read one file: the default."""
        return FileEnumeratorProvider(cuts_files=True)

    @staticmethod
    def default_non_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Each file is read by one subtask."""
        return FileEnumeratorProvider(cuts_files=False)


class FileSplitAssignerProvider:
    """Assigns parts of files to subtasks. Flink: FileSplitAssigner.Provider."""

    @staticmethod
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        """Accepted as in PyFlink, without effect: Spark tasks are not placed near files."""
        return FileSplitAssignerProvider()


class FileSourceBuilder(Generic[T]):
    """Builds a file source. Flink: FileSourceBuilder."""

    def __init__(
        self, file_format: FileFormat[T], paths: tuple[str | os.PathLike[str], ...]
    ) -> None:
        self._format = file_format
        self._paths = paths
        self._malformed: OnMalformed = file_format.on_malformed
        self._cuts_files = True
        self._is_watched = False
        self._discovery_ms = 0
        self._admission = FileAdmission()

    def on_malformed(self, policy: OnMalformed) -> FileSourceBuilder[T]:
        """Sets the policy for text that is not a record; the default is "fail". Not in Flink.

        Args:
            policy: "fail" stops the job with an error that names the file, the place and the text. "skip" continues.
                An OutputTag sends a MalformedRecord to this side output of the source, and continues. The last two
                count malformed records in the source's metric `numRecordsInErrors`.
        """
        self._malformed = checked_policy(policy)
        return self

    def process_static_file_set(self) -> FileSourceBuilder[T]:
        """Reads the files that exist when the job starts, and ends: the default."""
        self._is_watched = False
        return self

    def monitor_continuously(self, discovery_interval: Duration) -> FileSourceBuilder[T]:
        """Also reads files that are added to the folders later: the source is unbounded.

        A backlog is spread over epochs: see `set_max_time_per_epoch`.

        Args:
            discovery_interval: The time between two scans of the folders.

        Raises:
            TypeError: It is not a Duration.
        """
        require_instance(discovery_interval, Duration, "monitor_continuously", "a Duration")
        self._is_watched = True
        self._discovery_ms = discovery_interval.to_millis()
        return self

    def set_max_files_per_epoch(self, files: int) -> FileSourceBuilder[T]:
        """The most files that an epoch of a watched folder reads; 10,000 by default. Not in Flink.

        Raises:
            ValueError: It is less than 1.
        """
        self._admission = self._admission._replace(files=_positive("files", files))
        return self

    def set_max_bytes_per_epoch(self, size_bytes: int) -> FileSourceBuilder[T]:
        """The most bytes that an epoch of a watched folder reads; 1 GiB by default. Not in Flink.

        An epoch reads whole files: a larger file has its own epoch.

        Raises:
            ValueError: It is less than 1.
        """
        self._admission = self._admission._replace(size_bytes=_positive("size_bytes", size_bytes))
        return self

    def set_max_time_per_epoch(self, time: Duration) -> FileSourceBuilder[T]:
        """The time that an epoch of a watched folder should take. Not in Flink.

        An epoch gets as many files as earlier epochs read in that time. The default is
        `opchain.streaming.target-epoch-duration`, or else 10 seconds.

        Raises:
            TypeError: The time is not a Duration.
            ValueError: It is less than a millisecond.
        """
        require_instance(time, Duration, "set_max_time_per_epoch", "a Duration")
        self._admission = self._admission._replace(time_ms=_positive("time", time.to_millis()))
        return self

    def set_file_enumerator(self, file_enumerator: FileEnumeratorProvider) -> FileSourceBuilder[T]:
        """Decides whether files are divided; by default the format decides."""
        kind = FileEnumeratorProvider
        require_instance(file_enumerator, kind, "set_file_enumerator", "a FileEnumeratorProvider")
        self._cuts_files = file_enumerator.cuts_files
        return self

    def set_split_assigner(self, split_assigner: FileSplitAssignerProvider) -> FileSourceBuilder[T]:
        """Has no effect, and logs a warning: each subtask reads a contiguous part."""
        kind = FileSplitAssignerProvider
        require_instance(split_assigner, kind, "set_split_assigner", "a FileSplitAssignerProvider")
        _LOG.warning(
            "FileSource.set_split_assigner has no effect: each subtask reads a contiguous part of the files"
        )
        return self

    def build(self) -> Source[T]:
        """The source: a FileSource, or a WatchedFileSource of one."""
        files = FileSource(
            self._format, *self._paths, malformed=self._malformed, cuts_files=self._cuts_files
        )
        if not self._is_watched:
            return files
        return WatchedFileSource(files, self._discovery_ms, self._admission)


def _positive(what: str, number: int) -> int:
    if number < 1:
        raise ValueError(f"{what} is {number}; it must be at least 1")
    return number


class TextLineSource(FileSource[str]):
    """The lines of text files; see FileSource for how files are found and divided.

    Args:
        *paths: Files, folders (with their subfolders), or patterns.
        charset_name: The encoding of the text.
    """

    def __init__(self, *paths: str | os.PathLike[str], charset_name: str = "UTF-8") -> None:
        super().__init__(TextLineFormat(charset_name), *paths)
        self.charset_name = charset_name

    def read_blocks(self, split: FileRange) -> Iterator[bytes]:
        """The lines that start in the range, as blocks of whole lines: for parsers of bytes.

        Line ends are as in the file. The encoding must be one in which files can be divided.
        """
        for block in line_blocks(split):
            yield block.data


class AvroInputFormat(FileSource[dict[str, Any]]):
    """The records of Avro files, for `env.create_input()`. Flink: AvroInputFormat of PyFlink.

    Args:
        path: A file, a folder, or a pattern.
        schema: The schema of the records. Files may have been written with an older one.
    """

    def __init__(self, path: str | os.PathLike[str], schema: AvroSchema) -> None:
        super().__init__(AvroRecordFormat(schema), path)
