"""Sources, in the form of Flink's splits and readers, written in Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opchain.runtime.metrics.metric_group import MetricGroup
    from opchain.runtime.types.output_tag import OutputTag
    from opchain.runtime.types.type_information import TypeInformation

T = TypeVar("T")


class SourceReaderContext(ABC):
    """Services for a source in its subtask. Flink: SourceReaderContext."""

    @abstractmethod
    def metric_group(self) -> MetricGroup:
        """The metrics of the source and subtask."""

    @abstractmethod
    def emit_to(self, tag: OutputTag[Any], value: Any) -> None:
        """Emits to a side output of the stream of the source (`get_side_output`). Not in Flink."""


class Source(ABC, Generic[T]):
    """A source of records.

    Flink: `Source` with its enumerator (`splits`) and reader (`read`). `splits` must give the same to
    every subtask that asks; a source that has to look outside for that does so in `planned`. A reader
    with `has_timestamps` yields RecordBatch objects instead of plain lists.

    Watermarks per split (Flink: FLIP-27). Under a watermark strategy given to `from_source`, each split has
    a watermark generator of its own. The watermark of a subtask is the least over its splits at work, so a
    split that is behind loses no records. A subtask reads its splits by turns, the one that is furthest
    behind first.

    - All splits of a bounded source are at work from the start, and each until it is read.
    - An unbounded source gives each split a name in `delivered_splits`. The generator of that name is kept
      from epoch to epoch, in checkpoints, and where the split moves to another subtask. The splits at work
      are those of the subtask's latest epoch with a delivery. So an unbounded source must deliver each of
      its splits in every delivery, also those without new records: a partition without new records then
      holds the watermark back, or becomes idle by `with_idleness`.
    - Where `splits_end` is true, a delivered split is over when it is read, such as a file.
    """

    is_bounded: bool = True
    has_timestamps: bool = False
    splits_end: bool = True

    def planned(self, parallelism: int) -> Source[T]:  # noqa: ARG002 - for most no difference
        """The source that is sent to the subtasks. Called once on the driver, when the job starts.

        A source of files lists the files here, so that all subtasks share one view.
        """
        return self

    def uncut(self) -> Source[T]:
        """The same source with splits that follow what is outside: whole files, each read in one piece.

        Called where an operator downstream assigns event time. Its watermarks follow the order of the
        records, so a subtask must not begin in the middle of a file.
        """
        return self

    def split_stage(self, split: Any) -> int:  # noqa: ARG002 - for most no difference
        """The round in which a split is read. A subtask begins a round when the previous one is finished."""
        return 0

    def split_name(self, split: Any) -> str | None:  # noqa: ARG002 - for most no difference
        """The name of a split of `splits` in messages; None to use its number."""
        return None

    def split_after(self, split: Any, records: int) -> Any | None:  # noqa: ARG002 - for most no difference
        """The rest of a split after a number of records, for a reader that was closed in between.

        None if the source cannot provide this: then the reader stays open.
        """
        return None

    def open(self, context: SourceReaderContext) -> None:
        """Called once in each subtask, before `read`."""

    def get_produced_type(self) -> TypeInformation[Any] | None:
        """The records' type; None for records of any type."""
        return None

    @abstractmethod
    def splits(self, parallelism: int) -> Sequence[Sequence[Any]]:
        """The picklable splits of each subtask: `parallelism` sequences, in reading order."""

    @abstractmethod
    def read(self, split: Any, batch_size: int) -> Iterator[Sequence[T]]:
        """Yields the split's records in batches of about `batch_size`.

        An empty batch means that there is no input yet. The task then runs only mail, for 10 ms, or for the seconds that
        a NothingYet names. A source should not wait by itself: timers of its task would fire late.
        """

    def delivered_splits(self, delivery: bytes) -> Mapping[str, Any] | None:  # noqa: ARG002 - for most no difference
        """The splits in a delivery, by a name that stays the same from epoch to epoch.

        None if the source has one watermark generator per subtask. See `read_delivery`.
        """
        return None

    @property
    def has_ended(self) -> bool:
        """In a task of an unbounded job: whether the deliveries so far said that no more will follow."""
        return False

    def close(self) -> None:
        """Releases the source's resources. It is called once in each subtask, at its end."""

    def read_delivery(self, delivery: bytes, batch_size: int) -> Iterator[Sequence[T]]:
        """The records of what the driver has delivered to a subtask in an epoch of an unbounded job.

        Raises:
            InternalError: The source is not read from deliveries.
        """
        del batch_size
        raise InternalError(
            f"{len(delivery)} bytes were delivered to {self!r}, which reads its input itself"
        )
