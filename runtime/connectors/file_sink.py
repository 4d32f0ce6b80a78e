"""FileSink: records into files, visible once the job (or the checkpoint) is complete."""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from itertools import count, repeat
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, NoReturn, TypeVar

from opchain.runtime.connectors.file_buckets import (
    BasePathBucketAssigner,
    BucketAssigner,
    bucket_folder,
)
from opchain.runtime.connectors.file_naming import OutputFileConfig, RollingPolicy
from opchain.runtime.errors import UnsupportedFeatureError
from opchain.runtime.files.file_systems import (
    file_system_of,
    joined,
    name_of,
    qualified_path,
)
from opchain.runtime.functions.sink import Committer, Sink, SinkWriter, origin_of
from opchain.runtime.types.serialization import BulkWriterFactory, Encoder

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from opchain.runtime.functions.function import RuntimeContext
    from opchain.runtime.functions.sink import SinkOrigin
    from opchain.runtime.types.type_information import TypeInformation

T = TypeVar("T")

_IN_PROGRESS = ".inprogress."
"""Stands in the hidden name of a file before the job's lineage and the attempt."""


class PendingFile(NamedTuple):
    """A file that is written and waits to become visible: the committable of a FileSink."""

    path: str
    folder: str
    subtask: int
    number: int


class FileSink(Sink[T]):
    """Writes records to files below a path. Flink: FileSink.

    Files are written under hidden names, and named when they are committed; a file of an earlier job
    is never touched, the new one takes the next free number. The path may be a URL that fsspec knows.
    """

    def __init__(
        self,
        base_path: str | os.PathLike[str],
        row_format: Encoder[T] | BulkWriterFactory[T],
        buckets: BucketAssigner,
        rolling: RollingPolicy,
        naming: OutputFileConfig,
    ) -> None:
        self.base_path = qualified_path(base_path)
        self.row_format = row_format
        self.buckets = buckets
        self.rolling = rolling
        self.naming = naming
        self.reads_timestamps = not isinstance(buckets, BasePathBucketAssigner)

    def __repr__(self) -> str:
        return f"FileSink({self.base_path!r})"

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder[T]) -> FileSink.RowFormatBuilder:
        """Starts a sink that writes record after record."""
        if not isinstance(encoder, Encoder):
            raise TypeError(f"for_row_format got {encoder!r}; it takes an Encoder")
        return FileSink.RowFormatBuilder(base_path, encoder)

    @staticmethod
    def for_bulk_format(
        base_path: str, writer_factory: BulkWriterFactory[T]
    ) -> FileSink.BulkFormatBuilder:
        """Starts a sink whose files are complete only at their end, such as Parquet."""
        if not isinstance(writer_factory, BulkWriterFactory):
            raise TypeError(f"for_bulk_format got {writer_factory!r}; it takes a BulkWriterFactory")
        return FileSink.BulkFormatBuilder(base_path, writer_factory)

    def for_type(self, record_type: TypeInformation[Any]) -> FileSink[T]:
        """The same sink, whose encoder writes records of the type as Java would."""
        if not isinstance(self.row_format, Encoder):
            return self
        encoder = self.row_format.for_type(record_type)
        return FileSink(self.base_path, encoder, self.buckets, self.rolling, self.naming)

    @property
    def has_committer(self) -> bool:
        """True: files become visible when they are committed."""
        return True

    def create_writer(self, context: RuntimeContext) -> SinkWriter[T]:
        """The writer of one subtask."""
        return _FileWriter(self, context.get_index_of_this_subtask(), origin_of(context).lineage)

    def create_committer(self) -> Committer:
        """Names the files."""
        return _FileCommitter(self.base_path, self.naming)

    class BaseBuilder:
        """A file sink in the making."""

        def __init__(self, base_path: str, row_format: Any) -> None:
            self._base_path = base_path
            self._format = row_format
            self._buckets = BucketAssigner.date_time_bucket_assigner()
            self._rolling: RollingPolicy = RollingPolicy.default_rolling_policy()
            self._naming = OutputFileConfig.builder().build()

        def with_bucket_check_interval(self, interval: int) -> Any:
            """Taken as in PyFlink; nothing is checked by the clock (see RollingPolicy)."""
            if not isinstance(interval, int) or interval < 1:
                raise ValueError(
                    f"the bucket check interval is {interval!r}; it must be at least 1"
                )
            return self

        def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> Any:
            """Chooses the folders; by the hour if not given."""
            self._buckets = _checked(bucket_assigner, BucketAssigner, "with_bucket_assigner")
            return self

        def with_output_file_config(self, output_file_config: OutputFileConfig) -> Any:
            """Names the files; `part-<subtask>-<number>` if not given."""
            self._naming = _checked(output_file_config, OutputFileConfig, "with_output_file_config")
            return self

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Any:
            """Decides when a file is complete."""
            self._rolling = _checked(rolling_policy, RollingPolicy, "with_rolling_policy")
            return self

        def enable_compact(self, strategy: Any, compactor: Any) -> NoReturn:
            """Not supported.

            Raises:
                UnsupportedFeatureError: Always.
            """
            raise UnsupportedFeatureError(
                f"FileSink.enable_compact({strategy!r}, {compactor!r}) is not supported: small files "
                "are not merged; write with a lower parallelism instead"
            )

        def disable_compact(self) -> Any:
            """Does nothing: files are never merged."""
            return self

        def build(self) -> FileSink[Any]:
            """The sink."""
            return FileSink(
                self._base_path, self._format, self._buckets, self._rolling, self._naming
            )

    class RowFormatBuilder(BaseBuilder):
        """A sink of record after record, in the making."""

    class BulkFormatBuilder(BaseBuilder):
        """A sink of files that are complete only at their end, in the making."""

        def __init__(self, base_path: str, row_format: Any) -> None:
            super().__init__(base_path, row_format)
            self._rolling = RollingPolicy.on_checkpoint_rolling_policy()


class _Part:
    """A file that is being written."""

    def __init__(
        self, row_format: Encoder[Any] | BulkWriterFactory[Any], file: PendingFile
    ) -> None:
        self.file = file
        self._files = file_system_of(file.path)
        self._stream: BinaryIO = self._files.create(file.path)
        if isinstance(row_format, Encoder):
            self._encoder: Encoder[Any] | None = row_format
        else:
            self._encoder = None
            try:
                self._bulk = row_format.create(self._stream)
            except BaseException:
                self.discard()
                raise

    def write(self, value: Any) -> None:
        if self._encoder is not None:
            self._encoder.encode(value, self._stream)
        else:
            self._bulk.add_element(value)

    def write_batch(self, values: Sequence[Any]) -> None:
        if self._encoder is not None:
            self._encoder.encode_batch(values, self._stream)
        else:
            self._bulk.add_batch(values)

    def size(self) -> int:
        return self._stream.tell()

    def complete(self) -> PendingFile:
        if self._encoder is None:
            self._bulk.finish()
        self._files.complete(self._stream)
        return self.file

    def discard(self) -> None:
        try:
            self._stream.close()
        finally:
            self._files.delete(self.file.path)


class _FileWriter(SinkWriter[Any]):
    """Writes one file per bucket at a time."""

    def __init__(self, sink: FileSink[Any], subtask: int, lineage: str) -> None:
        self._sink = sink
        self._subtask = subtask
        writes = sink.row_format
        self._takes_batches = (
            not isinstance(writes, Encoder) or type(writes).encode_batch is not Encoder.encode_batch
        )
        # Two attempts of one task may write at the same time: their hidden names must differ. The
        # names that files get in the end hold nothing random.
        self._attempt = f"{lineage}.{uuid.uuid4().hex}"
        self._parts: dict[str, _Part] = {}
        self._numbers: dict[str, int] = {}
        self._complete: list[PendingFile] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        """Appends a record to its bucket's file."""
        now = int(time.time() * 1000)
        bucket = self._sink.buckets.get_bucket_id(value, timestamp, now)
        self._part_of(bucket).write(value)
        self._roll(bucket)

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Appends a batch, at once where the encoder can: a file may then exceed its size by a batch."""
        if not self._takes_batches:
            super().write_batch(values, timestamps)
            return
        for bucket, records in self._by_bucket(values, timestamps).items():
            self._part_of(bucket).write_batch(records)
            self._roll(bucket)

    def _by_bucket(
        self, values: Sequence[Any], timestamps: Sequence[int | None] | None
    ) -> dict[str, Sequence[Any]]:
        if isinstance(self._sink.buckets, BasePathBucketAssigner):
            return {"": values} if values else {}
        now = int(time.time() * 1000)
        bucket_of = self._sink.buckets.get_bucket_id
        buckets: dict[str, Any] = {}
        for value, timestamp in zip(values, timestamps or repeat(None), strict=False):
            buckets.setdefault(bucket_of(value, timestamp, now), []).append(value)
        return buckets

    def _part_of(self, bucket: str) -> _Part:
        part = self._parts.get(bucket)
        if part is None:
            part = self._parts[bucket] = self._next_part(bucket)
        return part

    def _roll(self, bucket: str) -> None:
        rolling = self._sink.rolling
        if rolling.part_size is not None and rolling.is_full(self._parts[bucket].size()):
            self._end_part(bucket)

    def _end_part(self, bucket: str) -> None:
        # A file that cannot be completed stays among the others, which close() removes.
        self._complete.append(self._parts[bucket].complete())
        del self._parts[bucket]

    def flush(self, *, end_of_input: bool) -> None:  # noqa: ARG002 - files end at every checkpoint
        """Completes all files."""
        for bucket in list(self._parts):
            self._end_part(bucket)

    def prepare_commit(self) -> Sequence[PendingFile]:
        """The files completed since the last call."""
        complete, self._complete = self._complete, []
        return sorted(complete, key=lambda file: (file.folder, file.number))

    def close(self) -> None:
        """Removes what was not completed, and what was but has not been handed on."""
        while self._parts:
            _, part = self._parts.popitem()
            part.discard()
        for file in self._complete:
            file_system_of(file.path).delete(file.path)
        self._complete = []

    def _next_part(self, bucket: str) -> _Part:
        number = self._numbers.get(bucket, 0)
        self._numbers[bucket] = number + 1
        folder = bucket_folder(self._sink.base_path, bucket)
        name = self._sink.naming.name(self._subtask, number)
        hidden = f".{name}{_IN_PROGRESS}{self._attempt}"
        file = PendingFile(joined(folder, hidden), folder, self._subtask, number)
        return _Part(self._sink.row_format, file)


class _FileCommitter(Committer):
    """Gives files their names."""

    def __init__(self, base_path: str, naming: OutputFileConfig) -> None:
        self._base_path = base_path
        self._naming = naming

    def commit(self, committables: Sequence[PendingFile]) -> None:
        """Names each file that still has its hidden name; the others were committed before."""
        for file in committables:
            names = (
                joined(file.folder, self._naming.name(file.subtask, number))
                for number in count(file.number)
            )
            file_system_of(file.path).publish(file.path, names)

    def discard_orphans(self, origin: SinkOrigin, confirm: Callable[[], None]) -> None:
        """Removes the hidden files of a lineage, in all folders below the sink's path."""
        files = file_system_of(self._base_path)
        found = []
        mark = f"{_IN_PROGRESS}{origin.lineage}."
        folders = [self._base_path]
        while folders:
            content = files.content(folders.pop())
            if content is None:
                continue
            folders += content.folders
            for status in content.files:
                name = name_of(status.path)
                if name.startswith(".") and mark in name:
                    found.append(status.path)
        confirm()
        for path in found:
            with suppress(FileNotFoundError):  # its writer may be about to
                files.delete(path)


def _checked(value: Any, kind: type, call: str) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{call} got {value!r}; it takes a {kind.__name__}")
    return value
