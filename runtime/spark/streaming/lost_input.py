"""Finds files that Spark's log has for the next micro-batch, and that are gone.

A micro-batch that was begun and has no checkpoint is run again on the input that the log has for it. Of a file
stream these are paths, and Spark reads those that it finds: a file that was removed since would be left out
silently.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.savepoint import OFFSETS
from opchain.runtime.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from opchain.runtime.checkpoint.storage import CheckpointStorage

IGNORED = "spark.sql.files.ignoreMissingFiles"
"""The setting by which Spark's users say that files may be missing."""

_FILES = "logOffset"
_SHOWN = 5


def require_log(storage: CheckpointStorage, done: int) -> None:
    """Makes sure that Spark's log has the micro-batch of the last checkpoint.

    Without it Spark would count from 0, and give input to micro-batches that are over as far as checkpoints know:
    nobody would read it.

    Args:
        storage: The job's checkpoints, with Spark's log.
        done: The micro-batch of the last checkpoint; -1 if there is none.

    Raises:
        CheckpointError: It hasn't.
    """
    if done >= 0 and str(done) not in storage.children(f"{OFFSETS}/offsets"):
        raise CheckpointError(
            f"{storage.url}: the last complete checkpoint is that of micro-batch {done}, and Spark's log, the "
            f"folder '{OFFSETS}', does not contain it: files are missing; restore the folder as "
            f"a whole, or start "
            "with execution.state-recovery.path = this folder and another checkpoint directory, "
            "and allow non-restored state: sources are then read from their beginning"
        )


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


def files_to_read(storage: CheckpointStorage, done: int) -> Iterator[tuple[int, Sequence[str]]]:
    """The micro-batches behind one that the log has, each with the URLs of the files that it reads."""
    begun = [int(name) for name in storage.children(f"{OFFSETS}/offsets") if name.isdecimal()]
    for batch in sorted(number for number in begun if number > done):
        before = _file_offsets(storage, batch - 1) if batch - 1 in begun else {}
        paths = [
            path
            for source, last in _file_offsets(storage, batch).items()
            for path in _logged(storage, source, range(before.get(source, -1) + 1, last + 1))
        ]
        yield batch, paths


def _file_offsets(storage: CheckpointStorage, batch: int) -> dict[int, int]:
    """How far each file stream has come, by the number of the source."""
    # Behind the version and the settings comes a line for each source.
    lines = storage.read(f"{OFFSETS}/offsets/{batch}").decode().splitlines()[2:]
    offsets = ((number, _parsed(line)) for number, line in enumerate(lines))
    return {
        number: int(found[_FILES])
        for number, found in offsets
        if isinstance(found, dict) and _FILES in found
    }


def _logged(storage: CheckpointStorage, source: int, numbers: range) -> Iterator[str]:
    folder = f"{OFFSETS}/sources/{source}"
    names = set(storage.children(folder))
    for number in numbers:
        # From time to time Spark puts all entries so far into one file.
        name = next((name for name in (str(number), f"{number}.compact") if name in names), None)
        if name is None:
            continue
        for line in storage.read(f"{folder}/{name}").decode().splitlines()[1:]:
            entry = _parsed(line)
            if isinstance(entry, dict) and entry.get("batchId") == number:
                yield entry["path"]


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _exists(session: SparkSession, url: str) -> bool:
    jvm: Any = session._jvm  # noqa: SLF001 - Spark reaches whatever it reads
    path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(url))
    configuration = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    return bool(path.getFileSystem(configuration).exists(path))
