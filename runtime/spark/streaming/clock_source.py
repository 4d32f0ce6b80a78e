"""The streaming source of unbounded jobs: positions of opchain's own sources, and due timers.

Spark asks a source for its latest offset, writes the offset to its log, and starts a micro-batch if the offset has
changed. The offset of this source has a position for each unbounded source of opchain, and the time at which the last
timer was due. So Spark's log says what each epoch reads. Spark also starts an epoch if a processing-time timer is due,
and none if there is nothing to do. The rows are not records but splits, which the tasks read.

Spark runs the reader in its own process. So the driver writes to a file when the next timer is due, and which sources
have to wait.
"""

from __future__ import annotations

import json
import pickle
import time
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from opchain.runtime.epochs.source_positions import SourcePositions

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

    TELLS_WHERE = True
    """Whether Spark passes the current offset when it asks for the latest one."""
except ImportError:  # before Spark 4.2
    TELLS_WHERE = False

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """A placeholder. This Spark runs such a trigger as one micro-batch."""


if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from opchain.runtime.connectors.unbounded_source import UnboundedSource

NAME = "opchain-clock"
SCHEMA = "source INT, subtask INT, data BINARY"


class ClockSource(DataSource):
    """See the module.

    Its options are `sources`, the path of pickled [(number, source, parallelism)], `due`, the path of the file for the
    next timer, and `start`. The last one is the offset from which the query continues, if Spark does not pass it.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return NAME

    def schema(self) -> str:
        """One row per delivery."""
        return SCHEMA

    def streamReader(self, schema: Any) -> ClockReader:  # noqa: ARG002, N802 - Spark's signature
        """The reader."""
        sources = pickle.loads(Path(self.options["sources"]).read_bytes())
        start = self.options.get("start")
        return ClockReader(
            sources, Path(self.options["due"]), None if start is None else json.loads(start)
        )


class Deliveries(InputPartition):
    """The rows of a micro-batch: (source, subtask, pickled split)."""

    def __init__(self, rows: list[tuple[int, int, bytes]]) -> None:
        self.rows = rows


class ClockReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reports the position of each source, and whether a timer is due."""

    def __init__(
        self,
        sources: Sequence[tuple[int, UnboundedSource[Any], int]],
        due: Path,
        start: dict[str, Any] | None = None,
    ) -> None:
        self._positions = SourcePositions(sources)
        self._due = due
        self._start = start
        self._until_ms: int | None = None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Stops the clock, so that only input that exists now is read."""
        self._until_ms = _now_ms()

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """The offset at which a new job begins; the same in each call."""
        return self._positions.initial(_now_ms())

    def latestOffset(  # noqa: N802 - Spark's name
        self,
        start: dict[str, Any] | None = None,
        limit: Any = None,  # noqa: ARG002 - a source limits itself
    ) -> dict[str, Any]:
        """The current positions of the sources, and a new time if a timer has become due.

        Without `start` it continues from the last micro-batch that was planned.
        """
        if start is None:
            start = self.initialOffset() if self._start is None else self._start
        now_ms = _now_ms() if self._until_ms is None else self._until_ms
        due_ms, waiting = json.loads(self._due.read_text(encoding="ascii"))
        reads_all = self._until_ms is not None
        return self._positions.latest(start, now_ms, due_ms, dict(waiting), reads_all=reads_all)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """All splits between two offsets, in one partition, since they are few and small."""
        self._start = end
        return [Deliveries(list(self._positions.splits(start, end)))]

    def read(self, partition: InputPartition) -> Iterator[tuple[int, int, bytes]]:
        """The rows, on an executor."""
        assert isinstance(partition, Deliveries)
        return iter(partition.rows)


def write_due(
    path: Path, due_ms: int | None, waiting: Mapping[int, Collection[str]] = MappingProxyType({})
) -> None:
    """Writes when the next timer is due, and which sources and splits get no input in the next epoch.

    The file is replaced atomically.

    Args:
        path: The file.
        due_ms: The time of the timer; None without a timer.
        waiting: See SourcePositions.latest.
    """
    names = [[number, sorted(splits)] for number, splits in sorted(waiting.items())]
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps([due_ms, names]), encoding="ascii")
    temporary.replace(path)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
