"""FileSink: writes records to files, which appear when the job or the checkpoint is complete.

StreamingFileSink is PyFlink's old name of FileSink.
"""

from __future__ import annotations

import copy
import inspect
import io
import logging
import time
import uuid
import warnings
from itertools import repeat
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar

from opchain.runtime.connectors.file_buckets import (
    BasePathBucketAssigner,
    BucketAssigner,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
    bucket_folder,
)
from opchain.runtime.connectors.staged_files import (
    IN_PROGRESS,
    Compaction,
    FileCommitter,
    StagedFile,
    staging_folder,
)
from opchain.runtime.errors import UnsupportedFeatureError, require_at_least, require_instance
from opchain.runtime.files.file_systems import dataset_of, file_system_of, joined, qualified_path
from opchain.runtime.functions.sink import Committer, Sink, SinkWriter, origin_of
from opchain.runtime.functions.source_sink_functions import SinkFunction
from opchain.runtime.types.serialization import BulkWriterFactory, Encoder

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from opchain.runtime.functions.function import RuntimeContext
    from opchain.runtime.functions.sink import SinkOrigin
    from opchain.runtime.types.type_information import TypeInformation


_LOG = logging.getLogger("opchain.job")

T = TypeVar("T")


class _OpenFile(NamedTuple):
    """A file that is being written, or is complete and was not yet reported to the driver."""

    staged: str
    folder: str
    name: str
    number: int
    size: int = 0


class FileSink(Sink[T]):
    """Writes records to files below a path. Flink: FileSink.

    Files are staged in a hidden folder, and get their names when they are committed (staged_files.py). A name contains a
    random id of the writer, so no name is used twice. The path may be a URL that fsspec supports.
    """

    def __init__(
        self,
        base_path: str | os.PathLike[str],
        row_format: Encoder[T] | BulkWriterFactory[T],
        buckets: BucketAssigner,
        rolling: RollingPolicy,
        naming: OutputFileConfig,
        compaction: Compaction | None = None,
        success_file: str | None = None,
    ) -> None:
        self.compaction = compaction
        self.success_file = success_file
        self.base_path = qualified_path(base_path)
        self.row_format = row_format
        self.buckets = buckets
        self.rolling = rolling
        self.naming = naming
        self.reads_timestamps = not isinstance(buckets, BasePathBucketAssigner)

    def __repr__(self) -> str:
        return f"FileSink({self.base_path!r})"

    @property
    def datasets(self) -> tuple[tuple[str, str], ...]:
        """The folder, for lineage."""
        return (dataset_of(self.base_path),)

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder[T]) -> FileSink.RowFormatBuilder:
        """Builds a sink that writes record by record."""
        require_instance(encoder, Encoder, "for_row_format", "an Encoder")
        return FileSink.RowFormatBuilder(base_path, encoder)

    @staticmethod
    def for_bulk_format(
        base_path: str, writer_factory: BulkWriterFactory[T]
    ) -> FileSink.BulkFormatBuilder:
        """Builds a sink of a format that needs a footer, such as Parquet."""
        wanted = "a BulkWriterFactory"
        require_instance(writer_factory, BulkWriterFactory, "for_bulk_format", wanted)
        return FileSink.BulkFormatBuilder(base_path, writer_factory)

    def for_type(self, record_type: TypeInformation[Any]) -> FileSink[T]:
        """The same sink, with an encoder that writes records of the type as Java does."""
        if not isinstance(self.row_format, Encoder):
            return self
        of_type = copy.copy(self)
        of_type.row_format = self.row_format.for_type(record_type)
        return of_type

    @property
    def has_committer(self) -> bool:
        """True: files become visible when they are committed."""
        return True

    def create_writer(self, context: RuntimeContext) -> SinkWriter[T]:
        """The writer of one subtask."""
        return _FileWriter(self, origin_of(context), context.get_index_of_this_subtask())

    def create_committer(self) -> Committer:
        """The committer, which moves files to their final names."""
        return FileCommitter(self.base_path, self.compaction, self.success_file)

    class BaseBuilder:
        """Builds a file sink."""

        def __init__(self, base_path: str, row_format: Any) -> None:
            self._base_path = base_path
            self._format = row_format
            self._buckets = BucketAssigner.date_time_bucket_assigner()
            self._rolling: RollingPolicy = RollingPolicy.default_rolling_policy()
            self._naming = OutputFileConfig.builder().build()
            self._compaction: Compaction | None = None
            self._success_file: str | None = None

        def with_bucket_check_interval(self, interval: int) -> Any:
            """Has no effect, and logs a warning: no clock rolls files (see RollingPolicy)."""
            require_at_least(1, interval, "with_bucket_check_interval")
            _LOG.warning(
                "FileSink.with_bucket_check_interval(%d) has no effect: files are rolled when records arrive and when "
                "an epoch ends, not by a clock",
                interval,
            )
            return self

        def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> Any:
            """Chooses the folders; one per hour by default."""
            wanted = "a BucketAssigner"
            require_instance(bucket_assigner, BucketAssigner, "with_bucket_assigner", wanted)
            try:
                inspect.signature(bucket_assigner.get_bucket_id).bind("element", 0, 0)
            except TypeError as error:
                raise TypeError(
                    f"with_bucket_assigner got {type(bucket_assigner).__name__}, whose get_bucket_id is called with "
                    f"(element, timestamp, processing_time): {error}"
                ) from None
            self._buckets = bucket_assigner
            return self

        def with_output_file_config(self, output_file_config: OutputFileConfig) -> Any:
            """Names the files; `part-<random id>-<number>` by default."""
            wanted = "an OutputFileConfig"
            require_instance(
                output_file_config, OutputFileConfig, "with_output_file_config", wanted
            )
            self._naming = output_file_config
            return self

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Any:
            """Decides when a file is complete."""
            require_instance(
                rolling_policy, RollingPolicy, "with_rolling_policy", "a RollingPolicy"
            )
            self._rolling = rolling_policy
            return self

        def enable_compact(self, strategy: FileCompactStrategy, compactor: FileCompactor) -> Any:
            """Merges the files that a bucket gets in one commit: of a checkpoint, or of a bounded job.

            The driver merges them into `compacted-part-...` before they become visible. Flink merges in a separate
            operator, which may wait for several checkpoints.
            """
            wanted = "a FileCompactStrategy and a FileCompactor"
            require_instance(strategy, FileCompactStrategy, "enable_compact", wanted)
            require_instance(compactor, FileCompactor, "enable_compact", wanted)
            self._compaction = Compaction(
                compactor.delimiter, strategy.size_threshold, strategy.num_compact_threads
            )
            return self

        def disable_compact(self) -> Any:
            """Does not merge files, which is the default."""
            self._compaction = None
            return self

        def with_success_file(self, name: str) -> Any:
            """Each commit also writes an empty file of this name into the folders that it added files to. Not in Flink.

            In Flink, tables with `sink.partition-commit.policy.kind` = `success-file` write it.
            """
            require_instance(name, str, "with_success_file", "a str")
            self._success_file = name
            return self

        def build(self) -> FileSink[Any]:
            """The sink."""
            return FileSink(
                self._base_path,
                self._format,
                self._buckets,
                self._rolling,
                self._naming,
                self._compaction,
                self._success_file,
            )

    class RowFormatBuilder(BaseBuilder):
        """Builds a sink that writes record by record."""

    class BulkFormatBuilder(BaseBuilder):
        """Builds a sink of a format that needs a footer."""

        def __init__(self, base_path: str, row_format: Any) -> None:
            super().__init__(base_path, row_format)
            self._rolling = RollingPolicy.on_checkpoint_rolling_policy()

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Any:
            """Takes only `RollingPolicy.on_checkpoint_rolling_policy()`, which is the default.

            Raises:
                ValueError: The policy is another one, as in PyFlink.
            """
            if not isinstance(rolling_policy, OnCheckpointRollingPolicy):
                raise ValueError(  # noqa: TRY004 - as in PyFlink
                    f"with_rolling_policy of a bulk format ({type(self._format).__name__}) got {rolling_policy!r}; it "
                    "takes RollingPolicy.on_checkpoint_rolling_policy(), because such a file ends at each checkpoint"
                )
            return super().with_rolling_policy(rolling_policy)

        def enable_compact(self, strategy: FileCompactStrategy, compactor: FileCompactor) -> Any:
            """Not supported: files of a bulk format can't be concatenated.

            Raises:
                UnsupportedFeatureError: Always.
            """
            raise UnsupportedFeatureError(
                f"enable_compact({strategy!r}, {compactor!r}) of a bulk format ({type(self._format).__name__}) is not "
                "supported: two such files in a row are not a valid file of the format; lower the parallelism to write "
                "fewer files, or merge them in a separate job"
            )


class _Part:
    """A file that is being written."""

    def __init__(self, row_format: Encoder[Any] | BulkWriterFactory[Any], file: _OpenFile) -> None:
        self.file = file
        self._files = file_system_of(file.staged)
        self._stream: BinaryIO = self._files.create(file.staged)
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

    def write_batch(self, values: Sequence[Any], most_bytes: int | None) -> bool:
        """Writes records. Returns False, and writes nothing, if they are longer than allowed."""
        if self._encoder is None:
            self._bulk.add_batch(values)
            return True
        encoded = io.BytesIO()
        self._encoder.encode_batch(values, encoded)
        if most_bytes is not None and encoded.tell() > most_bytes:
            return False
        self._stream.write(encoded.getbuffer())
        return True

    def size(self) -> int:
        return self._stream.tell()

    def complete(self) -> _OpenFile:
        if self._encoder is None:
            self._bulk.finish()
            size = 0
        else:
            size = self.size()
        self._files.complete(self._stream)
        return self.file._replace(size=size)

    def discard(self) -> None:
        try:
            self._stream.close()
        finally:
            self._files.delete(self.file.staged)


class _FileWriter(SinkWriter[Any]):
    """Writes one file per bucket at a time."""

    def __init__(self, sink: FileSink[Any], origin: SinkOrigin, subtask: int) -> None:
        self._sink = sink
        self._where = origin.where
        self._staging = staging_folder(sink.base_path, origin)
        writes = sink.row_format
        self._takes_batches = (
            not isinstance(writes, Encoder) or type(writes).encode_batch is not Encoder.encode_batch
        )
        # Two attempts of one task may write at the same time, and a reader may have moved files of earlier runs away. So
        # no name may be used twice. The random id begins with the subtask, so sorted files are in the order of subtasks.
        self._id = str(uuid.UUID(f"{subtask:04x}{uuid.uuid4().hex[4:]}"))
        self._number = 0
        self._parts: dict[str, _Part] = {}
        self._complete: list[_OpenFile] = []

    def write(self, value: Any, timestamp: int | None) -> None:
        """Appends a record to its bucket's file."""
        now = int(time.time() * 1000)
        bucket = self._sink.buckets.get_bucket_id(value, timestamp, now)
        self._part_of(bucket).write(value)
        self._roll(bucket)

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Appends a batch: at once, if the encoder supports it and the file has room for all records.

        A file of a bulk format may exceed its size by a batch.
        """
        if not self._takes_batches:
            super().write_batch(values, timestamps)
            return
        part_size = self._sink.rolling.part_size
        for bucket, records in self._by_bucket(values, timestamps).items():
            part = self._part_of(bucket)
            room = None if part_size is None else part_size - part.size()
            if part.write_batch(records, room):
                self._roll(bucket)
                continue
            for value in records:
                self._part_of(bucket).write(value)
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
        # If a file cannot be completed, it stays in _parts, and close() removes it. A file must not be in both.
        file = self._parts[bucket].complete()
        del self._parts[bucket]
        self._complete.append(file)

    def flush(self, *, end_of_input: bool) -> None:  # noqa: ARG002 - files end at every checkpoint
        """Completes all files."""
        for bucket in list(self._parts):
            self._end_part(bucket)

    def prepare_commit(self) -> Sequence[StagedFile]:
        """The files completed since the last call, at the end of a job."""
        return self.prepare_commit_of(None)

    def prepare_commit_of(self, checkpoint_id: int | None) -> Sequence[StagedFile]:
        """The files completed since the last call."""
        complete, self._complete = self._complete, []
        return [
            StagedFile(
                file.staged, joined(file.folder, file.name), checkpoint_id, self._where, file.size
            )
            for file in sorted(complete, key=lambda file: (file.folder, file.number))
        ]

    def close(self) -> None:
        """Removes files that were not completed or not reported."""
        while self._parts:
            _, part = self._parts.popitem()
            part.discard()
        for file in self._complete:
            file_system_of(file.staged).delete(file.staged)
        self._complete = []

    def _next_part(self, bucket: str) -> _Part:
        number, self._number = self._number, self._number + 1
        folder = bucket_folder(self._sink.base_path, bucket)
        name = self._sink.naming.name(self._id, number)
        staged = joined(self._staging, f".{name}{IN_PROGRESS}")
        return _Part(self._sink.row_format, _OpenFile(staged, folder, name, number))


class FileCompactStrategy:
    """Which files are merged. Flink: FileCompactStrategy.

    Args:
        num_checkpoints: The number of checkpoints whose files are merged; None if only the size counts. Here only files of
            one checkpoint are merged, since complete files would have to wait for later checkpoints.
        size_threshold: The size in bytes at which a merged file is complete; None for no limit.
        num_compact_threads: The number of files that the driver merges at the same time.
    """

    def __init__(
        self, num_checkpoints: int | None, size_threshold: int | None, num_compact_threads: int
    ) -> None:
        self.num_checkpoints = num_checkpoints
        self.size_threshold = size_threshold
        self.num_compact_threads = num_compact_threads

    @staticmethod
    def builder() -> FileCompactStrategy.Builder:
        """Starts a strategy."""
        return FileCompactStrategy.Builder()

    class Builder:
        """Builds a strategy, which needs a number of checkpoints or a size."""

        def __init__(self) -> None:
            self._num_checkpoints: int | None = None
            self._size_threshold: int | None = None
            self._threads = 1

        def enable_compaction_on_checkpoint(
            self, num_checkpoints_before_compaction: int
        ) -> FileCompactStrategy.Builder:
            """Merges the files of each checkpoint. A number above 1 has no effect, and logs a warning."""
            count = num_checkpoints_before_compaction
            require_at_least(1, count, "enable_compaction_on_checkpoint")
            if count > 1:
                _LOG.warning(
                    "FileCompactStrategy.enable_compaction_on_checkpoint(%d) merges the files of each checkpoint, not "
                    "of %d checkpoints: no file waits for a later checkpoint",
                    count,
                    count,
                )
            self._num_checkpoints = count
            return self

        def set_size_threshold(self, size_threshold: int) -> FileCompactStrategy.Builder:
            """Sets the size in bytes at which a merged file is complete."""
            require_at_least(1, size_threshold, "set_size_threshold")
            self._size_threshold = size_threshold
            return self

        def set_num_compact_threads(self, num_compact_threads: int) -> FileCompactStrategy.Builder:
            """Sets the number of files that the driver merges at the same time; 1 by default."""
            require_at_least(1, num_compact_threads, "set_num_compact_threads")
            self._threads = num_compact_threads
            return self

        def build(self) -> FileCompactStrategy:
            """The strategy.

            Raises:
                ValueError: Neither a number of checkpoints nor a size is set.
            """
            if self._num_checkpoints is None and self._size_threshold is None:
                raise ValueError(
                    "a FileCompactStrategy needs a number of checkpoints or a size: call "
                    "enable_compaction_on_checkpoint(1) or set_size_threshold()"
                )
            return FileCompactStrategy(self._num_checkpoints, self._size_threshold, self._threads)


class FileCompactor:
    """Merges files. Flink: FileCompactor."""

    def __init__(self, delimiter: bytes) -> None:
        self.delimiter = delimiter

    @staticmethod
    def concat_file_compactor(file_delimiter: bytes | None = None) -> FileCompactor:
        """Concatenates files, with a delimiter between them if given."""
        delimiter = file_delimiter or b""
        require_instance(delimiter, bytes, "concat_file_compactor", "bytes")
        return FileCompactor(delimiter)

    @staticmethod
    def identical_file_compactor() -> FileCompactor:
        """Not supported: it copies a single file.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise UnsupportedFeatureError(
            "FileCompactor.identical_file_compactor() is not supported: it copies one file and merges nothing; use "
            "concat_file_compactor(), or leave out enable_compact()"
        )


class StreamingFileSink(SinkFunction):
    """A FileSink for `add_sink`. Deprecated in PyFlink: use FileSink.

    Flink: StreamingFileSink.
    """

    def __init__(self, file_sink: FileSink[Any]) -> None:
        warnings.warn(
            "StreamingFileSink is deprecated: pass a FileSink to sink_to()",
            DeprecationWarning,
            stacklevel=3,
        )
        self.file_sink = file_sink

    def invoke(self, value: Any, context: Any) -> None:
        """Is never called: `add_sink` uses the FileSink."""
        raise AssertionError(
            f"{value!r} was given to the function of a StreamingFileSink, {context}"
        )

    @staticmethod
    def for_row_format(
        base_path: str | os.PathLike[str], encoder: Encoder[Any]
    ) -> StreamingFileSink.DefaultRowFormatBuilder:
        """Builds a sink that writes record by record."""
        return StreamingFileSink.DefaultRowFormatBuilder(str(base_path), encoder)

    @staticmethod
    def for_bulk_format(
        base_path: str | os.PathLike[str], writer_factory: BulkWriterFactory[Any]
    ) -> StreamingFileSink.DefaultBulkFormatBuilder:
        """Builds a sink of a format that needs a footer."""
        return StreamingFileSink.DefaultBulkFormatBuilder(str(base_path), writer_factory)

    BaseBuilder = FileSink.BaseBuilder

    class _Builder(FileSink.BaseBuilder):
        def with_rolling_policy(self, policy: RollingPolicy) -> Any:
            """Decides when a file is complete."""
            return super().with_rolling_policy(policy)

        def build(self) -> StreamingFileSink:  # type: ignore[override]
            """The sink."""
            return StreamingFileSink(super().build())

    class DefaultRowFormatBuilder(_Builder, FileSink.RowFormatBuilder):
        """FileSink's builder, for a StreamingFileSink."""

    class DefaultBulkFormatBuilder(_Builder, FileSink.BulkFormatBuilder):
        """FileSink's builder, for a StreamingFileSink."""
