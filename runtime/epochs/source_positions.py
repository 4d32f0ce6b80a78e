"""The positions of a job's unbounded sources: the offset of an epoch.

Spark's Python data source imports this module in separate processes, so it imports no other module of opchain.

The *offset* of an epoch is the end of its input. It is a JSON object with the position of each of opchain's unbounded
sources, and the time of the last timer that was due:

    {"positions": [[1200, 1700000000000], 34], "due": 1700000000000}

An epoch reads from the offset of the previous epoch up to its own. The offset is logged before the epoch reads
anything, so a retried epoch reads the same input.
"""

from __future__ import annotations

import pickle
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from opchain.runtime.connectors.unbounded_source import UnboundedSource

POSITIONS, DUE = "positions", "due"

Offset = dict[str, Any]


class SourcePositions:
    """The positions of the sources of one job.

    Args:
        sources: The number, the source and the parallelism of each.
    """

    def __init__(self, sources: Sequence[tuple[int, UnboundedSource[Any], int]]) -> None:
        self._sources = sources
        self._initial: Offset | None = None

    def initial(self, now_ms: int) -> Offset:
        """The positions at which a new job begins. Each call returns the same positions."""
        if self._initial is None:
            positions = [source.initial_position(now_ms) for _, source, _ in self._sources]
            self._initial = {POSITIONS: positions, DUE: 0}
        return self._initial

    def latest(
        self,
        start: Offset,
        now_ms: int,
        due_ms: int | None = None,
        waiting: Mapping[int, Collection[str]] = MappingProxyType({}),
        *,
        reads_all: bool = False,
    ) -> Offset:
        """The current positions of the sources, with a new `due` if a timer has become due.

        Args:
            start: The previous positions.
            now_ms: The time, in milliseconds since 1970.
            due_ms: When the next timer is due; None if there is none.
            waiting: The sources that must wait for their alignment group, by number, with the names of the splits that
                must wait; empty if all splits of the source must.
            reads_all: Whether the job ends when there is nothing to read. It must not end while a source waits for
                others.
        """
        is_due = due_ms is not None and due_ms <= now_ms
        positions = self._latest(start[POSITIONS], now_ms, waiting)
        if waiting and positions == start[POSITIONS] and not is_due and reads_all:
            positions = self._latest(start[POSITIONS], now_ms, {})
        return {POSITIONS: positions, DUE: max(now_ms, start[DUE] + 1) if is_due else start[DUE]}

    def _latest(
        self, positions: Sequence[Any], now_ms: int, waiting: Mapping[int, Collection[str]]
    ) -> list[Any]:
        found = []
        for (number, source, _), start in zip(self._sources, positions, strict=True):
            source.waiting_splits = frozenset(waiting.get(number, ()))
            waits = number in waiting and not source.waiting_splits
            if waits:
                source.waited_until_ms = now_ms
            found.append(start if waits else source.latest_position(start, now_ms))
        return found

    def splits(self, start: Offset, end: Offset) -> Iterator[tuple[int, int, bytes]]:
        """The input between two offsets: the number of the source, the subtask, and a pickled split for it."""
        for place, (number, source, parallelism) in enumerate(self._sources):
            first, last = start[POSITIONS][place], end[POSITIONS][place]
            if first != last:
                of_subtasks = source.splits_between(first, last, parallelism)
                for subtask, splits in enumerate(of_subtasks):
                    for split in splits:
                        yield number, subtask, pickle.dumps(split, 5)
