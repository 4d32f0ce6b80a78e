"""Sources of the program's own records, of whole numbers, and of the records of cached streams.

A job writes the records of a cached stream to the driver, and later jobs of the program read them. Flink: the cluster
partitions behind `CachedDataStream`. Tasks send the records as committables. So they arrive once, from one attempt of
each task, and only if the job succeeds. The driver keeps them pickled, in memory.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.runtime.errors import InternalError
from opchain.runtime.functions.sink import BatchSinkWriter, Committer, Sink, SinkWriter
from opchain.runtime.functions.source import Source
from opchain.runtime.functions.source_sink_functions import ParallelSourceFunction
from opchain.runtime.records.columns import Columns
from opchain.runtime.records.elements import RecordBatch
from opchain.runtime.records.record_copy import own_copy
from opchain.runtime.records.record_pickle import dump_records
from opchain.runtime.types.type_information import BasicTypeInfo
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.runtime.functions.function import RuntimeContext
    from opchain.runtime.types.type_information import TypeInformation


class CollectionSource(Source[T]):
    """The records in order; each of several subtasks emits a contiguous part.

    The records are pickled with the program, so larger data should be in files. Each record is copied when the source is
    created, even if two records are or share one object. PyFlink pickles each record by itself. Rows with the same names
    are kept, pickled and emitted as columns.
    """

    def __init__(self, records: Sequence[T]) -> None:
        copies = list(map(own_copy, records))
        self.records: Sequence[T] = Columns.of_rows(copies) or copies

    def __repr__(self) -> str:
        return f"CollectionSource of {len(self.records)} records"

    def splits(self, parallelism: int) -> list[list[range]]:
        """The indices of each subtask's records."""
        parts = contiguous_parts(len(self.records), parallelism)
        return [[part] if part else [] for part in parts]

    def read(self, split: range, batch_size: int) -> Iterator[Sequence[T]]:
        """The records with these indices."""
        for first in range(split.start, split.stop, batch_size):
            yield self.records[first : min(first + batch_size, split.stop)]


_LONG_MIN, _LONG_MAX = -(1 << 63), (1 << 63) - 1


class NumberSequenceSource(Source[int]):
    """The numbers from `start` to `end`, both included, each subtask a contiguous part in order.

    If the division leaves a remainder, the first subtasks emit one number more, as in Flink's
    `NumberSequenceIterator.split`. Part i belongs to subtask i. In Flink it belongs to the subtask that asks first.

    >>> NumberSequenceSource(1, 7).splits(3)
    [[range(1, 4)], [range(4, 6)], [range(6, 8)]]
    """

    def __init__(self, start: int, end: int) -> None:
        for what, value in (("start", start), ("end", end)):
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"the {what} of a number sequence is {value!r}; it must be an int")
            if not _LONG_MIN <= value <= _LONG_MAX:
                raise ValueError(f"the {what} of a number sequence, {value}, has more than 64 bits")
        if start > end:
            raise ValueError(
                f"a number sequence from {start} to {end} is empty: swap start and end"
            )
        self.start = start
        self.end = end

    def __repr__(self) -> str:
        return f"NumberSequenceSource({self.start}, {self.end})"

    def get_produced_type(self) -> TypeInformation[int]:
        """LONG."""
        return BasicTypeInfo.LONG_TYPE_INFO()

    def splits(self, parallelism: int) -> list[list[range]]:
        """One part for each subtask; none if there are fewer numbers than subtasks."""
        return [
            [range(self.start + part.start, self.start + part.stop)] if part else []
            for part in contiguous_parts(self.end - self.start + 1, parallelism)
        ]

    def read(self, split: range, batch_size: int) -> Iterator[Sequence[int]]:
        """The numbers of the part."""
        for first in range(split.start, split.stop, batch_size):
            yield range(first, min(first + batch_size, split.stop))


class StatefulSequenceSource(ParallelSourceFunction[int]):
    """The numbers from `start` to `end`: subtask i of n emits the i-th and every n-th after it.

    Flink: the legacy source of this name, behind `generateSequence`.
    """

    def __init__(self, start: int, end: int) -> None:
        self.sequence = NumberSequenceSource(start, end)
        self._subtask = 0
        self._parallelism = 1
        self._is_running = True

    def open(self, runtime_context: Any) -> None:
        """Selects the numbers of this subtask."""
        self._subtask = runtime_context.get_index_of_this_subtask()
        self._parallelism = runtime_context.get_number_of_parallel_subtasks()

    def run(self, ctx: Any) -> None:
        """Emits this subtask's numbers in order."""
        first, last = self.sequence.start + self._subtask, self.sequence.end
        for number in range(first, last + 1, self._parallelism):
            if not self._is_running:
                return
            with ctx.get_checkpoint_lock():
                ctx.collect(number)

    def cancel(self) -> None:
        """Stops before the next number."""
        self._is_running = False


def contiguous_parts(count: int, parts: int) -> list[range]:
    """The indices 0 to count - 1 in contiguous parts. The first parts are longer by one if needed.

    >>> contiguous_parts(5, 3)
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    each, longer = divmod(count, parts)
    starts = [number * each + min(number, longer) for number in range(parts + 1)]
    return [range(starts[number], starts[number + 1]) for number in range(parts)]


class CachedPart(NamedTuple):
    """The output of one subtask: pickled batches of (values, timestamps), with None for no timestamps."""

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
        """A source of the current records. It still reads them if the cache is invalidated later.

        Raises:
            InternalError: No job has written the records.
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
        """Without the records, which writers do not need."""
        return {"_records": None}

    def create_writer(self, context: RuntimeContext) -> SinkWriter[T]:
        """The writer of one subtask."""
        return _CacheWriter(context.get_index_of_this_subtask())

    def create_committer(self) -> Committer:
        """Takes the output of the subtasks, in the process of the program."""
        return _CacheCommitter(self._records)


class _CacheWriter(BatchSinkWriter[T]):
    def __init__(self, subtask: int) -> None:
        self._subtask = subtask
        self._has_timestamps = False
        self._batches: list[bytes] = []

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
    """Reads the records of a cached stream. Each subtask reads the records that the same subtask has written."""

    def __init__(self, parts: Sequence[CachedPart]) -> None:
        self._parts = tuple(parts)
        self.has_timestamps = any(part.has_timestamps for part in parts)

    def __repr__(self) -> str:
        return f"CacheSource of {len(self._parts)} subtasks"

    def splits(self, parallelism: int) -> list[list[int]]:
        """The numbers of the parts; if there are more parts than subtasks, they are assigned in turn."""
        return [list(range(first, len(self._parts), parallelism)) for first in range(parallelism)]

    def read(self, split: int, batch_size: int) -> Iterator[Any]:  # noqa: ARG002 - as they were written
        """The batches of a part."""
        for batch in self._parts[split].batches:
            values, timestamps = pickle.loads(batch)
            yield RecordBatch(values, timestamps) if self.has_timestamps else values
