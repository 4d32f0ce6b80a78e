"""The unbounded sources of a job, and the input of an epoch for their tasks.

A watched folder logs the files that it finds, beside Spark's log. Each scan that finds files writes one file with a
line of JSON per found file:

    spark/watched/<operator id>/000000000000   {"path": "/in/a.txt", "size": 120, "check": "..."}
                                                {"path": "/in/b.txt", "size": 90, "check": "..."}
    spark/watched/<operator id>/000000000002   {"path": "/in/c.txt", "size": 7, "check": "..."}

The name is the number of entries in earlier files. `check` is a checksum of the number of the entry, path and size. The log is copied with savepoints. Every hundredth scan merges all
entries into one file, whose name is the number of its entries: `000000000102.all`.
"""

from __future__ import annotations

import copy
import hashlib
import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.runtime.checkpoint.metadata import (
    CheckpointMetadata,
    StoredSource,
)
from opchain.runtime.checkpoint.restore_plan import ProgramOperator, program_operator
from opchain.runtime.checkpoint.savepoint import OFFSETS
from opchain.runtime.checkpoint.source_numbers import match_sources
from opchain.runtime.checkpoint.storage import CheckpointStorage, checkpoint_storage
from opchain.runtime.connectors.arrow_sink import ArrowSink
from opchain.runtime.connectors.dataframe_source import SparkRowSource
from opchain.runtime.connectors.socket_source import SocketTextStreamFunction
from opchain.runtime.connectors.unbounded_source import UnboundedSource
from opchain.runtime.connectors.watched_files import WatchedFileSource
from opchain.runtime.epochs.input_log import offset_of
from opchain.runtime.epochs.source_positions import POSITIONS, SourcePositions
from opchain.runtime.errors import (
    CheckpointError,
    CorruptCheckpointError,
    UnsupportedFeatureError,
    short_repr,
)
from opchain.runtime.files.file_systems import FileStatus
from opchain.runtime.program.operator_specs import LegacySourceSpec, SourceSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opchain.runtime.program.vertex_program import JobProgram, OperatorProgram


_LOG = logging.getLogger("opchain.epochs")


@dataclass(frozen=True, slots=True)
class DeliveredSource:
    """An unbounded source, its operator, and the tasks that read it."""

    source: UnboundedSource[Any] | SparkRowSource
    operator: OperatorProgram
    first_task: int
    parallelism: int


def unbounded_sources(job: JobProgram) -> tuple[DeliveredSource, ...]:
    """The unbounded sources of a job by operator id, which is the order of Spark's log in a new job.

    Raises:
        UnsupportedFeatureError: A source has no positions, or runs inside another operator's task, or is a
            bounded DataFrame.
    """
    for obstacle in _obstacles(job):
        instead = f": {obstacle.instead}" if obstacle.instead else ""
        raise UnsupportedFeatureError(
            f"{obstacle.operator} can't be part of an unbounded job on Spark: it {obstacle.why}{instead}"
        )
    found: dict[str, DeliveredSource] = {}
    for vertex in job.vertices:
        head = vertex.operators[0]
        source = getattr(head.spec, "source", None)
        if not isinstance(source, (UnboundedSource, SparkRowSource)) or source.is_bounded:
            continue
        strategy = getattr(head.spec, "watermark_strategy", None)
        if isinstance(source, SparkRowSource) and strategy is not None and strategy.alignment:
            _LOG.warning(
                "'%s' (%s): watermark alignment has no effect on a DataFrame, because Spark decides how much of it "
                "an epoch reads. Set a limit in the options of its format, such as maxFilesPerTrigger",
                head.name,
                head.call_site,
            )
        found[head.operator_id] = DeliveredSource(
            source, head, vertex.first_task, vertex.parallelism
        )
    return tuple(found[operator_id] for operator_id in sorted(found))


def stored_sources(sources: Sequence[DeliveredSource]) -> tuple[StoredSource, ...]:
    """The sources by their numbers in Spark's log, for a checkpoint."""
    return tuple(
        StoredSource(operator.operator_id, operator.source, operator.label)
        for operator in map(_operator, sources)
        if operator.source is not None  # all are sources
    )


def in_checkpoint_order(
    sources: Sequence[DeliveredSource], metadata: CheckpointMetadata | None
) -> tuple[DeliveredSource, ...]:
    """The sources in the order of the checkpoint that the job resumes from.

    Raises:
        CheckpointError: Sources are new, gone, or of another kind: Spark's log has no place for them.
    """
    if metadata is None:
        return tuple(sources)
    matched = match_sources(metadata, [_operator(item) for item in sources])
    if matched.refused:
        raise CheckpointError(
            f"checkpoint {metadata.checkpoint_id} of '{metadata.job_name}': {'; '.join(matched.refused)}"
        )
    for text in matched.replaced:
        _LOG.warning("%s", text)
    by_id = {item.operator.operator_id: item for item in sources}
    return tuple(by_id[operator.operator_id] for operator in matched.order)


def _operator(source: DeliveredSource) -> ProgramOperator:
    return program_operator(source.operator, source.parallelism, None)


def why_no_epochs(job: JobProgram) -> str | None:
    """The reason why an unbounded job can't run in epochs, with the operator; None if it can."""
    obstacle = next(_obstacles(job), None)
    return None if obstacle is None else f"{obstacle.operator} {obstacle.why}"


class _Obstacle(NamedTuple):
    """An operator that can't run in epochs: the reason, and what to do instead."""

    operator: str
    why: str
    instead: str = ""


def _obstacles(job: JobProgram) -> Iterator[_Obstacle]:
    for vertex in job.vertices:
        for chained in vertex.chained_sources:
            yield _Obstacle(
                chained.operator.label,
                "runs inside an operator with several inputs",
                "call disable_chaining() on it",
            )
        for operator in vertex.operators:
            sink = getattr(operator.spec, "sink", None)
            if isinstance(sink, ArrowSink) and not getattr(sink, "has_stream_writer", False):
                yield _Obstacle(
                    operator.label,
                    f"writes to {sink!r}, which needs a bounded job; in an unbounded job use to_dataframe() and "
                    "writeStream, or a Python Data Source with a streamWriter",
                )
        yield from _source_obstacles(vertex.operators[0])


def _source_obstacles(operator: OperatorProgram) -> Iterator[_Obstacle]:
    spec = operator.spec
    if isinstance(spec, LegacySourceSpec) and not spec.is_bounded:
        # Spark may run a task in another process in any epoch, and retry it. A function with a connection, or a
        # position in a loop, would start again each time, and send other records than before.
        yield _Obstacle(
            operator.label,
            "is a SourceFunction, which has no positions to resume from after a failure",
            f"{_instead_of(spec.function)}, or run the job in one process, with execution.target = local",
        )
    if not isinstance(spec, SourceSpec):
        return
    source = spec.source
    if not source.is_bounded and not isinstance(source, (UnboundedSource, SparkRowSource)):
        yield _Obstacle(
            operator.label, f"never ends, and {source!r} has no positions to resume from"
        )
    if source.is_bounded and isinstance(source, SparkRowSource):
        yield _Obstacle(
            operator.label, "reads a bounded DataFrame", "create it with spark.readStream"
        )


def _instead_of(function: Any) -> str:
    """The alternative to a SourceFunction."""
    if not isinstance(function, SocketTextStreamFunction):
        return "write it as an UnboundedSource of opchain.spark, which reports its position"
    place = f"host={function.hostname!r}, port={function.port}"
    return f"read it by SparkSource('socket', dict({place}), is_streaming=True) of opchain.spark"


def positions_of(
    sources: Sequence[DeliveredSource], log: str, target_epoch_ms: int | None = None
) -> SourcePositions:
    """The positions of opchain's own unbounded sources. Spark keeps those of DataFrames.

    Args:
        sources: All unbounded sources of the job, in the order of the log.
        log: Path or URL of the log of offsets.
        target_epoch_ms: How long an epoch should take; None for the default of each source.
    """
    return SourcePositions(positioned(sources, log, target_epoch_ms))


def positioned(
    sources: Sequence[DeliveredSource], log: str, target_epoch_ms: int | None = None
) -> list[tuple[int, UnboundedSource[Any], int]]:
    """The number, the source and the parallelism of the sources that have positions; see `positions_of`."""
    return [
        (number, _of_this_run(item, log, target_epoch_ms), item.parallelism)
        for number, item in enumerate(sources)
        if isinstance(item.source, UnboundedSource)
    ]


def deliveries_of(
    sources: Sequence[DeliveredSource], splits: Iterable[tuple[int, int, bytes]]
) -> dict[int, list[bytes]]:
    """The splits of `SourcePositions.splits` by the task that reads them."""
    found: dict[int, list[bytes]] = {}
    for number, subtask, split in splits:
        found.setdefault(sources[number].first_task + subtask, []).append(split)
    return found


def _of_this_run(
    item: DeliveredSource, log: str, target_epoch_ms: int | None
) -> UnboundedSource[Any]:
    """A source with its log of found files and its target duration of an epoch, if they apply."""
    source = item.source
    assert isinstance(source, UnboundedSource)
    if isinstance(source, WatchedFileSource):
        source = source.keeping(FoundFilesLog(f"{log}/watched/{item.operator.operator_id}"))
    if target_epoch_ms is not None:
        source = copy.copy(source)
        source.target_epoch_ms = target_epoch_ms
    return source


def can_be_replayed(sources: Sequence[DeliveredSource]) -> bool:
    """Whether all sources have positions."""
    return all(isinstance(item.source, UnboundedSource) for item in sources)


def input_of_started_epoch(
    job: JobProgram, storage: CheckpointStorage, latest: CheckpointMetadata
) -> dict[int, list[bytes]]:
    """The input of the epoch that failed after a checkpoint, by task, read again from the log of offsets.

    `opchain replay` runs the epoch on it without Spark's JVM. So only opchain's own sources can be read: Spark alone
    can read the rows of a DataFrame.

    Raises:
        CheckpointError: No epoch began after the checkpoint, or the sources are not those of the checkpoint.
        UnsupportedFeatureError: A source is a DataFrame.
    """
    sources = in_checkpoint_order(unbounded_sources(job), latest)
    for item in sources:
        if not isinstance(item.source, UnboundedSource):
            raise UnsupportedFeatureError(
                f"{item.operator.label} is a DataFrame of Spark, whose rows a replay of a "
                "failed epoch cannot read: run the job with opchain.streaming.record-epochs = true, and replay an "
                "epoch that is complete"
            )
    log, batch = f"{storage.url}/{OFFSETS}", latest.input.batch
    start = latest.input.read_to
    if start is None and batch is not None:
        start = offset_of(log, batch, POSITIONS)
    end = None if batch is None else offset_of(log, batch + 1, POSITIONS)
    if start is None or end is None:
        raise CheckpointError(
            f"{storage.url}: no epoch was begun after checkpoint {latest.checkpoint_id}, so there is none to replay"
        )
    positions = positions_of(sources, log)
    return deliveries_of(sources, positions.splits(start, end))


_ALL = ".all"
_LOOKS_PER_FILE = 100


class FoundFilesLog:
    """The files that one source has found in its watched folder, in their order.

    Args:
        url: The folder of the log.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    def __str__(self) -> str:
        return self.url

    def read(self) -> list[FileStatus]:
        """All files so far, in the order in which they were found.

        Raises:
            CheckpointError: A part of the log is missing or damaged.
        """
        storage = checkpoint_storage(self.url)
        names = sorted(storage.children(""))
        merged = max((name for name in names if name.endswith(_ALL)), default=None)
        found = [] if merged is None else _entries(storage, merged, 0)
        if merged is not None and len(found) != int(merged.removesuffix(_ALL)):
            raise _damaged(storage, merged, f"has {len(found)} entries")
        for name in names:
            if name.isdecimal() and int(name) >= len(found):
                if int(name) > len(found):
                    raise CheckpointError(
                        f"{self.url}: the log of found files has {len(found)} files and continues with number "
                        f"{int(name)}: parts are missing; restore the folder as a whole"
                    )
                found += _entries(storage, name, len(found))
        return found

    def append(self, known: int, files: Sequence[FileStatus]) -> None:
        """Adds files after the first `known` files.

        Raises:
            FileExistsError: Another driver has added files there.
        """
        storage = checkpoint_storage(self.url)
        storage.publish(f"{known:012}", _lines(known, files))
        names = storage.children("")
        if any(int(name.removesuffix(_ALL)) > known for name in names if name.endswith(_ALL)):
            # The other driver has merged its files, so the name was free again. `read` leaves this part out.
            raise FileExistsError(storage.full_name(f"{known:012}"))
        if sum(map(str.isdecimal, names)) >= _LOOKS_PER_FILE:
            found = self.read()
            storage.write(f"{len(found):012}{_ALL}", _lines(0, found))
            for name in names:
                storage.delete(name)


def _lines(first: int, files: Sequence[FileStatus]) -> bytes:
    entries = (
        {"path": file.path, "size": file.size, "check": _check(number, file)}
        for number, file in enumerate(files, first)
    )
    return "".join(f"{json.dumps(entry)}\n" for entry in entries).encode()


def _entries(storage: CheckpointStorage, name: str, first: int) -> list[FileStatus]:
    """The entries of a file of the log. Those of earlier versions have no checksum."""
    found = []
    for number, line in enumerate(storage.read(name).splitlines(), first):
        try:
            entry = json.loads(line)
            file = FileStatus(entry["path"], entry["size"])
            is_right = entry.get("check") in (None, _check(number, file))
        except (ValueError, TypeError, KeyError):
            is_right = False
        if not is_right:
            raise _damaged(storage, name, f"is damaged: entry {number} is {short_repr(line)}")
        found.append(file)
    return found


def _check(number: int, file: FileStatus) -> str:
    text = json.dumps([number, file.path, file.size])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _damaged(storage: CheckpointStorage, name: str, problem: str) -> CorruptCheckpointError:
    return CorruptCheckpointError(
        storage.full_name(name),
        f"{problem}. It lists the files that were found in a watched folder: restore the folder {storage.url} from a "
        "backup, or start with an earlier savepoint in another directory",
    )
