"""The records of a cached stream: a job writes them to the driver, and later jobs of the program read them.

Flink: the cluster partitions behind `CachedDataStream`. Here tasks send the records as committables, so they arrive
once, from the attempt that counts, and only if the job succeeds. The driver keeps them pickled, in memory.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from opchain.runtime.errors import InternalError
from opchain.runtime.functions.sink import Committer, Sink, SinkWriter
from opchain.runtime.functions.source import Source
from opchain.runtime.records.elements import RecordBatch
from opchain.runtime.records.record_pickle import dump_records

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.runtime.functions.function import RuntimeContext

T = TypeVar("T")


class CachedPart(NamedTuple):
    """What one subtask has written: pickled batches of (values, timestamps), None for records without timestamps."""

    subtask: int
    has_timestamps: bool
    batches: tuple[bytes, ...]


class CachedRecords:
    """The records of one cached stream, in the process of the program."""

    def __init__(self) -> None:
        self.parts: tuple[CachedPart, ...] | None = None

    @property
    def are_there(self) -> bool:
        """Whether a job has written the records."""
        return self.parts is not None

    def source(self) -> CacheSource:
        """Reads the records as they are now; invalidating them later does not change what it reads.

        Raises:
            InternalError: There are none.
        """
        if self.parts is None:
            raise InternalError("a cache is read before a job has written it")
        return CacheSource(self.parts)


class CacheSink(Sink[T]):
    """Writes the records of a cached stream."""

    has_committer = True
    changes_records = False

    def __init__(self, records: CachedRecords) -> None:
        self._records = records

    def __repr__(self) -> str:
        return "CacheSink()"

    def __getstate__(self) -> dict[str, Any]:
        """Without the records: writers need nothing of them."""
        return {"_records": None}

    def create_writer(self, context: RuntimeContext) -> SinkWriter[T]:
        """The writer of one subtask."""
        return _CacheWriter(context.get_index_of_this_subtask())

    def create_committer(self) -> Committer:
        """Takes what the subtasks have written; used in the process of the program."""
        return _CacheCommitter(self._records)


class _CacheWriter(SinkWriter[T]):
    def __init__(self, subtask: int) -> None:
        self._subtask = subtask
        self._has_timestamps = False
        self._batches: list[bytes] = []

    def write(self, value: T, timestamp: int | None) -> None:
        self.write_batch([value], [timestamp])

    def write_batch(self, values: Sequence[T], timestamps: Sequence[int | None] | None) -> None:
        times = (
            None
            if timestamps is None or not any(t is not None for t in timestamps)
            else list(timestamps)
        )
        self._has_timestamps |= times is not None
        self._batches.append(dump_records((list(values), times)))

    def prepare_commit(self) -> Sequence[CachedPart]:
        return [CachedPart(self._subtask, self._has_timestamps, tuple(self._batches))]


class _CacheCommitter(Committer):
    def __init__(self, records: CachedRecords) -> None:
        self._records = records

    def commit(self, committables: Sequence[CachedPart]) -> None:
        self._records.parts = tuple(sorted(committables, key=lambda part: part.subtask))


class CacheSource(Source[Any]):
    """Reads the records of a cached stream. Each subtask reads what the same subtask has written."""

    def __init__(self, parts: Sequence[CachedPart]) -> None:
        self._parts = tuple(parts)
        self.has_timestamps = any(part.has_timestamps for part in parts)

    def __repr__(self) -> str:
        return f"CacheSource of {len(self._parts)} subtasks"

    def splits(self, parallelism: int) -> list[list[int]]:
        """The numbers of the parts; more parts than subtasks are dealt out in turn."""
        return [list(range(first, len(self._parts), parallelism)) for first in range(parallelism)]

    def read(self, split: int, batch_size: int) -> Iterator[Any]:  # noqa: ARG002 - as they were written
        """The batches of a part."""
        for batch in self._parts[split].batches:
            values, timestamps = pickle.loads(batch)
            yield RecordBatch(values, timestamps) if self.has_timestamps else values
