"""The input of the epochs of a job: what Spark reads, and how its rows reach the tasks of sources.

Spark reads one streaming DataFrame of deliveries: (source, subtask, data). The function `Deliver` of the first stage
turns its rows into buffers for the tasks of sources.

If a micro-batch runs again, Spark's file streams skip files that no longer exist. So `require_input` looks for the
files of unfinished micro-batches before the query starts.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from opchain.runtime.columnar.spark_types import SparkType, arrow_schema, pyarrow
from opchain.runtime.connectors.dataframe_source import SparkRowSource
from opchain.runtime.epochs.delivered_sources import POSITIONS, positioned
from opchain.runtime.epochs.input_log import files_to_read, last_offset
from opchain.runtime.errors import CheckpointError
from opchain.runtime.records.elements import MIN_WATERMARK, Buffer
from opchain.runtime.shipping.functions import ship
from opchain.runtime.spark.dataframes import noting_dataframe_errors
from opchain.runtime.spark.exchange import addressed
from opchain.runtime.spark.worker_path import provide_modules_for_readers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from opchain.runtime.checkpoint.storage import CheckpointStorage
    from opchain.runtime.epochs.delivered_sources import DeliveredSource
    from opchain.runtime.program.vertex_program import StageProgram
    from opchain.runtime.spark.remote_error import ErrorSeal


def delivered_rows(
    session: SparkSession,
    sources: Sequence[DeliveredSource],
    folder: Path,
    due: Path,
    log: str,
    target_epoch_ms: int | None = None,
) -> DataFrame:
    """The streaming DataFrame.

    `folder` is where the reader finds the sources, `due` the next timer, and `log` Spark's log of offsets.
    `target_epoch_ms` is how long an epoch should take, if the job says so. A delivery of a DataFrame is a row of it,
    in a column of its own (`rows_column`).
    """
    from pyspark.sql import functions as sql  # noqa: PLC0415 - it may be missing

    from opchain.runtime.spark.streaming.clock_source import (  # noqa: PLC0415
        NAME,
        TELLS_WHERE,
        ClockSource,
    )

    described = folder / "sources"
    described.write_bytes(ship(positioned(sources, log, target_epoch_ms)))
    provide_modules_for_readers()
    session.dataSource.register(ClockSource)
    reader = session.readStream.format(NAME)
    start = None if TELLS_WHERE else last_offset(log, POSITIONS)
    if start is not None:
        reader = reader.option("start", json.dumps(start))
    rows = reader.option("sources", str(described)).option("due", str(due)).load()
    for number, item in enumerate(sources):
        if isinstance(item.source, SparkRowSource):
            with noting_dataframe_errors(item.operator):
                fed = item.source.dataframe(session)
            columns = [sql.col("`" + name.replace("`", "``") + "`") for name in fed.columns]
            packed = fed.select(
                sql.lit(number).alias("source"), sql.struct(*columns).alias(rows_column(number))
            )
            rows = rows.unionByName(packed, allowMissingColumns=True)
    return rows


IGNORED = "spark.sql.files.ignoreMissingFiles"
"""The setting by which Spark's users say that files may be missing."""

_SHOWN = 5


def require_input(session: SparkSession, storage: CheckpointStorage, done: int) -> None:
    """Makes sure that the files of all micro-batches that were begun are there.

    Args:
        session: Whose settings say how files are reached.
        storage: The job's checkpoints, with Spark's log.
        done: The micro-batch of the last checkpoint; -1 if there is none.

    Raises:
        CheckpointError: Files are gone; the message names them.
    """
    if str(session.conf.get(IGNORED, "false")).lower() == "true":
        return
    for batch, paths in files_to_read(storage, done):
        gone = [path for path in paths if not _exists(session, path)]
        if gone:
            more = f" and {len(gone) - _SHOWN} more" if len(gone) > _SHOWN else ""
            raise CheckpointError(
                f"{storage.url}: micro-batch {batch} was started and must be retried, but "
                f"{len(gone)} of its {len(paths)} files are gone: "
                f"{', '.join(gone[:_SHOWN])}{more}; put them back, or set "
                f"{IGNORED} to continue without their records"
            )


def _exists(session: SparkSession, url: str) -> bool:
    jvm: Any = session._jvm  # noqa: SLF001 - Spark reaches whatever it reads
    path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(url))
    configuration = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    return bool(path.getFileSystem(configuration).exists(path))


class Deliver:
    """The function of the first stage of an epoch: batches of Arrow in, buffers for the sources' tasks out.

    Rows of DataFrames go to the subtasks by turns of partitions, as Arrow's streams of their own columns; a
    split goes to its subtask. So what a task gets depends on nothing but the micro-batch.

    Args:
        columns: Spark's schema of the rows, as JSON text.
        sources: First task and parallelism of each source, by its number.
        following: The stage that the sources are in, or that buffers for them pass through.
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
    """The name of the column with the rows of a DataFrame, which it has for itself."""
    return f"rows {source}"


def _stream(rows: Any) -> bytes:
    """An array of structs as a stream of Arrow's, which says what its columns are."""
    arrow = pyarrow()
    batch = arrow.RecordBatch.from_struct_array(rows)
    out = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(out, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = out.getvalue().to_pybytes()
    return data
