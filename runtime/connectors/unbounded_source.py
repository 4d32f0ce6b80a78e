"""Sources without end, which an unbounded job reads epoch by epoch."""

from __future__ import annotations

import pickle
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.source import Source
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class UnboundedSource(Source[T]):
    """A source that has a position at any time, and splits for what lies between two positions.

    A position is what JSON knows. Spark writes it to its log before an epoch is read: after a failure the
    same epoch is read again, and must give the same records. The first three methods are called on the
    driver's machine, in a process of their own; nothing that they keep survives it.

    A source of several partitions gives each a name in `split_name`: see Source on watermarks per split.
    """

    is_bounded = False
    splits_end = False
    target_epoch_ms: int | None = None
    """How long an epoch should take at most, set by the job: `opchain.streaming.target-epoch-duration`."""

    waiting_splits: frozenset[str] = frozenset()
    """The splits that the next epoch leaves out, by name, set by the job: they are ahead of their alignment group."""

    follows_positions = False
    """Whether the driver calls `is_at_end`, `checkpoint_completed` and `progress_of` with the position of each epoch."""

    @abstractmethod
    def initial_position(self, now_ms: int) -> Any:
        """Where a job begins that continues with no other; `now_ms` is the clock in milliseconds."""

    @abstractmethod
    def latest_position(self, start: Any, now_ms: int) -> Any:
        """Up to where there is something to read now; `start` itself where there is nothing.

        It also says how much an epoch reads at most.
        """

    @abstractmethod
    def splits_between(self, start: Any, end: Any, parallelism: int) -> Sequence[Sequence[Any]]:
        """The picklable splits of each subtask for what lies between two positions."""

    def delivered_splits(self, delivery: bytes) -> Mapping[str, Any] | None:
        """The pickled split, if `split_name` gives it a name."""
        split = pickle.loads(delivery)
        name = self.split_name(split)
        return None if name is None else {name: split}

    def is_at_end(self, position: Any) -> bool:  # noqa: ARG002 - most sources have no end
        """Whether nothing will ever follow a position. A job ends when all its sources are at their ends.

        The deliveries of an epoch that ends there tell each subtask: see `has_ended`.
        """
        return False

    def checkpoint_completed(self, position: Any) -> None:
        """Called in the driver's process when the checkpoint of an epoch is complete and its sinks have committed.

        Args:
            position: Up to where the epoch has read.
        """

    def progress_of(self, position: Any) -> dict[str, dict[str, int]]:  # noqa: ARG002 - most sources have no partitions
        """For each split by name: "next", its position, and "lag", the records that an epoch up to there has left.

        Args:
            position: Up to where the epoch has read.
        """
        return {}

    def read_delivery(self, delivery: bytes, batch_size: int) -> Iterator[Sequence[T]]:
        """The records of what the driver has delivered to a subtask: a pickled split."""
        return self.read(pickle.loads(delivery), batch_size)
