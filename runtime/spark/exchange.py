"""The shuffle between two stages: buffers to partitions, by task number.

All edges between two stages travel in one shuffle. A buffer's partition is its target task's, where
that task is in the next stage; buffers for later stages and for the driver pass through some task of the
next stage as opaque bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.task.buffer import Buffer
from opchain.runtime.task.buffer_store import BufferStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opchain.runtime.task.vertex_program import StageProgram
    from pyspark import RDD


def address(buffers: Iterable[Buffer], stage: StageProgram) -> Iterator[tuple[int, Buffer]]:
    """Pairs each buffer with its partition of the next stage."""
    first, size = stage.first_task, stage.parallelism
    for buffer in buffers:
        place = buffer.target - first
        if not 0 <= place < size:
            place = buffer.channel % size
        yield place, tuple(buffer)  # type: ignore[misc] - a plain tuple pickles smaller


def shuffle(addressed: RDD[tuple[int, Buffer]], stage: StageProgram) -> RDD[Any]:
    """One Spark shuffle, by the partition that each pair names."""
    return addressed.partitionBy(stage.parallelism, _as_it_is)


def receive(pairs: Iterable[tuple[int, Any]], task: int, store: BufferStore) -> Iterator[Buffer]:
    """Stores the buffers for `task`, yields those that pass through."""
    for _, fields in pairs:
        buffer = Buffer(*fields)
        if buffer.target == task:
            store.add(buffer)
        else:
            yield buffer


def _as_it_is(partition: int) -> int:
    return partition
