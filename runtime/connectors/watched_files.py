"""Watched folders: an unbounded job reads their files as they appear.

A log beside the checkpoints has all files, in the order in which they were found. A position is a number of entries of
this log. So Spark's offset log decides which epoch reads a file, and after a failure the same epoch reads it again.
Files must appear complete: move them in, or write them under a name that begins with "." or "_" and rename them.

Flink: `ContinuousFileSplitEnumerator`, which keeps the paths of all files that it has seen in its checkpoints.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from opchain.runtime.connectors.unbounded_source import EpochPace, UnboundedSource
from opchain.runtime.errors import CheckpointError, InternalError
from opchain.runtime.files.file_range import FileRange, assign_whole_files, is_pattern, list_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.runtime.connectors.file_source import FileSource
    from opchain.runtime.files.file_systems import FileStatus
    from opchain.runtime.functions.source import SourceReaderContext
    from opchain.runtime.types.type_information import TypeInformation

TARGET_EPOCH_MS = 10_000
_FIRST_EPOCH_BYTES = 64 << 20
_FILE_COST_BYTES = 64 << 10
"""The cost of opening a file, in bytes that could be read in the same time. It limits epochs of many small files."""


class FileAdmission(NamedTuple):
    """The most that an epoch reads. Without a time, the target of the job counts, or 10 seconds."""

    files: int = 10_000
    size_bytes: int = 1 << 30
    time_ms: int | None = None


class FoundFiles(Protocol):
    """The log of all files that were found."""

    def read(self) -> list[FileStatus]:
        """All files so far, in the order in which they were found."""

    def append(self, known: int, files: Sequence[FileStatus]) -> None:
        """Adds files after the first `known` ones, durably."""


class WatchedFileSource(UnboundedSource[Any]):
    """The records of all present and future files in the folders of a file source.

    A file is read by one subtask, and is a split with its own watermark. Folders are watched with their subfolders.
    Files that are found together are read in the order of their paths.

    Args:
        files: The format, the folders, and the policy for malformed records.
        interval_ms: The time between two scans of the folders.
        admission: The most that an epoch reads.
    """

    splits_end = True
    needs_positions = True

    def __init__(
        self,
        files: FileSource[Any],
        interval_ms: int = 1_000,
        admission: FileAdmission | None = None,
    ) -> None:
        self.files = files
        self.interval_ms = interval_ms
        self.admission = admission or FileAdmission()
        self._log: FoundFiles | None = None
        self._found: list[FileStatus] | None = None
        self._known: set[str] = set()
        self._looked_ms: int | None = None
        self._pace = EpochPace(_FIRST_EPOCH_BYTES)

    def __repr__(self) -> str:
        return f"{self.files!r}, watched"

    @property
    def datasets(self) -> tuple[tuple[str, str], ...]:
        """The folders, for lineage."""
        return self.files.datasets

    def keeping(self, log: FoundFiles) -> WatchedFileSource:
        """This source with the log of a run."""
        keeping = copy.copy(self)
        keeping._log = log  # noqa: SLF001 - its own class
        return keeping

    def open(self, context: SourceReaderContext) -> None:
        """Opens the source of the files."""
        self.files.open(context)

    def get_produced_type(self) -> TypeInformation[Any] | None:
        """The type that the format produces."""
        return self.files.get_produced_type()

    # Positions

    def planned(self, parallelism: int) -> WatchedFileSource:  # noqa: ARG002 - no difference
        """The source itself, after a check of its folders.

        Raises:
            FileNotFoundError: A path does not exist. A pattern may match nothing yet.
        """
        list_files(path for path in self.files.paths if not is_pattern(path))
        return self

    def initial_position(self, now_ms: int) -> int:  # noqa: ARG002 - files of any age are read
        """The position before the first file."""
        return 0

    def latest_position(self, start: int, now_ms: int) -> int:
        """The number of files up to the end of the next epoch.

        Raises:
            CheckpointError: The log has lost files that were read.
        """
        self._require(start)
        found = self._look(now_ms)
        admission = self.admission
        time_ms = admission.time_ms or self.target_epoch_ms or TARGET_EPOCH_MS
        if start >= len(found):
            self._pace.admitted = 0
            return start
        most_bytes = self._pace.limit(time_ms, now_ms)
        size = cost = 0
        end = start
        for file in found[start : start + admission.files]:
            size += file.size
            cost += file.size + _FILE_COST_BYTES
            if end > start and (size > admission.size_bytes or cost > most_bytes):
                cost -= file.size + _FILE_COST_BYTES
                break
            end += 1
        # With one more file, the epoch would be too large. So it counts as full.
        self._pace.admitted = max(cost, most_bytes) if end < len(found) else cost
        return end

    def splits_between(self, start: int, end: int, parallelism: int) -> list[list[FileRange]]:
        """The files of each subtask, with about the same number of bytes.

        Raises:
            CheckpointError: The log has lost files that are to be read.
        """
        self._require(end)
        return assign_whole_files(self._look(None)[start:end], parallelism, lambda _: False)

    def splits(self, parallelism: int) -> Sequence[Sequence[Any]]:
        """Refuses: a watched folder is read between positions.

        Raises:
            InternalError: Always.
        """
        raise InternalError(
            f"{self!r} has no splits for {parallelism} subtasks: it is read between positions"
        )

    def _require(self, position: int) -> None:
        """Checks that the log reaches to a position. Otherwise later files would take the place of lost ones."""
        known = len(self._look(None))
        if position > known:
            raise CheckpointError(
                f"{self!r}: the log of found files, {self._log}, has {known} files, but the job has begun to read "
                f"{position}: restore that folder from a backup, or start with an earlier savepoint in another "
                "directory"
            )

    def _look(self, now_ms: int | None) -> list[FileStatus]:
        """The known files. With a time, the folders are scanned first, unless the last scan is too recent."""
        log = self._log
        if log is None:
            raise InternalError(f"{self!r} has no log of the files that were found")
        if self._found is None:
            self._found = log.read()
            self._known = {file.path for file in self._found}
        if now_ms is None or (
            self._looked_ms is not None and 0 <= now_ms - self._looked_ms < self.interval_ms
        ):
            return self._found
        self._looked_ms = now_ms
        new: dict[str, FileStatus] = {}
        for path in self.files.paths:
            try:
                listed = list_files([path])
            except FileNotFoundError:
                continue  # it may come back
            new |= {file.path: file for file in listed if file.path not in self._known}
        if new:
            files = list(new.values())
            try:
                log.append(len(self._found), files)
                self._found += files
                self._known |= new.keys()
            except FileExistsError:  # another driver has added files
                self._found = log.read()
                self._known = {file.path for file in self._found}
        return self._found

    # Splits

    def split_name(self, split: FileRange) -> str:
        """The path."""
        return split.path

    def read(self, split: FileRange, batch_size: int) -> Iterator[Sequence[Any]]:
        """The records of a file."""
        return self.files.read(split, batch_size)

    def split_after(self, split: FileRange, records: int) -> FileRange:
        """The rest of a file."""
        return split.after(records)
