"""Unbounded sources, which a job reads epoch by epoch, and the size of their epochs."""

from __future__ import annotations

import pickle
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.source import Source
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class EpochPace:
    """How many records or bytes an epoch may read, if it must take no longer than a given time.

    An epoch takes the time from one call of `limit` to the next. If it read less than its limit, it may have waited for
    input. So its speed counts only if it is higher than the known speed.

    Args:
        first: The limit of the first epoch.
    """

    def __init__(self, first: int) -> None:
        self.admitted = 0
        self._first = self._limit = first
        self._decided_ms = 0
        self._per_ms = 0.0

    def limit(self, time_ms: int, now_ms: int) -> int:
        """The limit of the next epoch. The caller sets `admitted` to the amount that the epoch gets."""
        took_ms = now_ms - self._decided_ms
        if self.admitted and took_ms > 0:
            measured = self.admitted / took_ms
            if self.admitted >= self._limit or measured > self._per_ms:
                self._per_ms = (self._per_ms + measured) / 2 if self._per_ms else measured
        self._decided_ms = now_ms
        self._limit = max(int(self._per_ms * time_ms), 1) if self._per_ms else self._first
        return self._limit


class UnboundedSource(Source[T]):
    """A source that has a position at any time, and splits for the records between two positions.

    A position consists of JSON values. Spark writes it to its log before an epoch is read. After a failure the same
    epoch is read again, and must give the same records. Spark calls the first three methods in a process of their own
    on the driver's machine. Attributes that they set are lost with this process.

    A source with several partitions names each one in `split_name`: see Source on watermarks per split.
    """

    is_bounded = False
    splits_end = False
    target_epoch_ms: int | None = None
    """The longest time that an epoch should take. The job sets it from `opchain.streaming.target-epoch-duration`."""

    waiting_splits: frozenset[str] = frozenset()
    """The names of splits that the next epoch leaves out, because they are ahead of their alignment group. Set by the job."""

    waited_until_ms = 0
    """When the source last waited for its alignment group, in milliseconds since 1970. Set by the job."""

    follows_positions = False
    """Whether the driver calls `is_at_end`, `checkpoint_completed` and `split_offsets` with the position of each epoch."""

    @abstractmethod
    def initial_position(self, now_ms: int) -> Any:
        """The position of a job that starts without a checkpoint; `now_ms` is the clock in milliseconds."""

    @abstractmethod
    def latest_position(self, start: Any, now_ms: int) -> Any:
        """The end of the next epoch; `start` itself if there is nothing to read.

        A source limits the size of its epochs here.
        """

    @abstractmethod
    def splits_between(self, start: Any, end: Any, parallelism: int) -> Sequence[Sequence[Any]]:
        """The picklable splits of each subtask for the records between two positions."""

    def delivered_splits(self, delivery: bytes) -> Mapping[str, Any] | None:
        """The pickled split, if `split_name` gives it a name."""
        split = pickle.loads(delivery)
        name = self.split_name(split)
        return None if name is None else {name: split}

    def is_at_end(self, position: Any) -> bool:  # noqa: ARG002 - most sources have no end
        """Whether no record will ever follow a position. A job ends when all its sources are at their ends.

        The deliveries of such an epoch tell each subtask: see `has_ended`.
        """
        return False

    def checkpoint_completed(self, position: Any) -> None:
        """Called in the driver's process when the checkpoint of an epoch is complete and its sinks have committed.

        Args:
            position: The end of the epoch.
        """

    def split_offsets(self, position: Any) -> dict[str, dict[str, int]]:  # noqa: ARG002 - most sources have no partitions
        """For each split by name: "next", its position, and "lag", the number of records after it.

        Args:
            position: The end of the epoch.
        """
        return {}

    def read_delivery(self, delivery: bytes, batch_size: int) -> Iterator[Sequence[T]]:
        """The records of a pickled split, which the driver has delivered to a subtask."""
        return self.read(pickle.loads(delivery), batch_size)
