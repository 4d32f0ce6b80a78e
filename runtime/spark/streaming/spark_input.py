"""The input of the epochs of a job: one streaming DataFrame of deliveries, (source, subtask, data).

The driver creates it. Executors turn its rows into buffers for the tasks of sources (deliver.py).

If a micro-batch runs again, Spark's file streams skip files that no longer exist. So `require_input` looks for the
files of unfinished micro-batches before the query starts.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from opchain.runtime.connectors.dataframe_source import SparkRowSource
from opchain.runtime.epochs.delivered_sources import DeliveredSource, positioned
from opchain.runtime.epochs.input_log import files_to_read, last_offset
from opchain.runtime.epochs.source_positions import POSITIONS
from opchain.runtime.errors import CheckpointError
from opchain.runtime.shipping.functions import ship
from opchain.runtime.spark.dataframes import noting_dataframe_errors
from opchain.runtime.spark.streaming.deliver import rows_column
from opchain.runtime.spark.worker_path import provide_modules_for_readers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from opchain.runtime.checkpoint.storage import CheckpointStorage


def delivered_rows(
    session: SparkSession,
    sources: Sequence[DeliveredSource],
    folder: Path,
    due: Path,
    log: str,
    target_epoch_ms: int | None = None,
) -> DataFrame:
    """The streaming DataFrame. A row of a DataFrame source is one delivery, in the column of its source (`rows_column`).

    Args:
        session: The session.
        sources: The sources of the job.
        folder: The folder in which the reader finds the sources.
        due: The file with the next timer.
        log: Spark's offset log.
        target_epoch_ms: The time that an epoch should take, if it is set.
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
"""Spark's setting that allows missing files."""

_SHOWN = 5


def require_input(session: SparkSession, storage: CheckpointStorage, done: int) -> None:
    """Checks that the files of all unfinished micro-batches exist.

    Args:
        session: The session, with the settings for file systems.
        storage: The job's checkpoints, with Spark's log.
        done: The micro-batch of the last checkpoint; -1 without a checkpoint.

    Raises:
        CheckpointError: Files are missing. The message names them.
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
    jvm: Any = session._jvm  # noqa: SLF001 - Spark can access all files that it reads
    path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(url))
    configuration = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    return bool(path.getFileSystem(configuration).exists(path))
