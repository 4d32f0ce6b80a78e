"""The first stage of an epoch: turns the rows of a micro-batch into buffers for the tasks of sources.

Executors import this module, but not the driver's part (streaming_job.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.columnar.spark_types import SparkType, arrow_schema, pyarrow
from opchain.runtime.records.elements import MIN_WATERMARK, Buffer
from opchain.runtime.spark.exchange import addressed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opchain.runtime.program.vertex_program import StageProgram
    from opchain.runtime.spark.remote_error import ErrorSeal


class Deliver:
    """The function of the first stage of an epoch: turns Arrow batches into buffers for the tasks of sources.

    Each partition of a DataFrame goes to one subtask, in turn, as an Arrow stream of its columns. A split goes to its
    subtask. So the input of a task depends only on the micro-batch.

    Args:
        columns: Spark's schema of the rows, as JSON text.
        sources: First task and parallelism of each source, by its number.
        following: The next stage, which has the sources or forwards buffers to them.
        has_large_types: Whether strings and bytes have 64-bit offsets.
        seal: Signs exceptions for the driver.
    """

    def __init__(
        self,
        columns: str,
        sources: tuple[tuple[int, int], ...],
        following: StageProgram,
        *,
        has_large_types: bool,
        seal: ErrorSeal,
    ) -> None:
        self.columns = columns
        self.sources = sources
        self.following = following
        self.has_large_types = has_large_types
        self.seal = seal

    def __call__(self, partition: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The frames of one partition of the micro-batch."""
        return addressed(self._buffers(partition, chunks), self.following)

    def _buffers(self, partition: int, chunks: Iterable[bytes]) -> Iterator[Buffer]:
        sent: dict[int, int] = {}
        try:
            for task, payload in self._deliveries(partition, chunks):
                sequence = sent.get(task, 0)
                sent[task] = sequence + 1
                yield Buffer(task, MIN_WATERMARK, partition, sequence, payload)
        except Exception as error:
            raise self.seal.sealed(error) from error

    def _deliveries(self, partition: int, chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
        arrow = pyarrow()
        schema = arrow_schema(SparkType.parse(self.columns), large=self.has_large_types)
        for chunk in chunks:
            batch = arrow.ipc.read_record_batch(arrow.py_buffer(chunk), schema)
            if not batch.num_rows:
                continue
            sources = batch.column("source").to_pylist()
            rows = rows_column(sources[0])
            if rows in schema.names:
                first_task, parallelism = self.sources[sources[0]]
                yield first_task + partition % parallelism, _stream(batch.column(rows))
                continue
            # The splits of all sources that have positions come in one batch.
            subtasks, splits = batch.column("subtask").to_pylist(), batch.column("data")
            for source, subtask, split in zip(sources, subtasks, splits.to_pylist(), strict=True):
                yield self.sources[source][0] + subtask, split


def rows_column(source: int) -> str:
    """The name of the column for the rows of a DataFrame; each DataFrame has its own column."""
    return f"rows {source}"


def _stream(rows: Any) -> bytes:
    """An array of structs as an Arrow stream, which contains its schema."""
    arrow = pyarrow()
    batch = arrow.RecordBatch.from_struct_array(rows)
    out = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(out, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = out.getvalue().to_pybytes()
    return data
