"""Counts up and down."""

from __future__ import annotations

from opchain.runtime.metrics.metric import Metric


class Counter(Metric):
    """A count, from 0. Flink: `Counter`; its subtasks' counts are added up.

    >>> counter = Counter()
    >>> counter.inc()
    >>> counter.inc(5)
    >>> counter.dec(2)
    >>> counter.get_count()
    4
    """

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def inc(self, n: int = 1) -> None:
        """Counts up."""
        self._count += n

    def dec(self, n: int = 1) -> None:
        """Counts down, by 1 unless told."""
        self._count -= n

    def get_count(self) -> int:
        """The count."""
        return self._count

    def snapshot(self) -> int:
        """The count."""
        return self._count
