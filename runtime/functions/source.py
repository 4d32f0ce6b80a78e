"""Sources, written in Python, with Flink's concepts of splits and readers."""

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
    """The services of a source in its subtask. Flink: SourceReaderContext."""

    @abstractmethod
    def metric_group(self) -> MetricGroup:
        """The metric group of the source and subtask."""

    @abstractmethod
    def emit_to(self, tag: OutputTag[Any], value: Any) -> None:
        """Emits a value to a side output of the source's stream (`get_side_output`). Not in Flink."""

    def warn(self, text: str) -> None:
        """Has the driver log the first such text of the job, after the source's name. Not in Flink."""


class Source(ABC, Generic[T]):
    """The base class of sources.

    Flink: `Source` with its enumerator (`splits`) and reader (`read`). `splits` must return the same result in every
    subtask. If this requires access to an external system, do it in `planned`. With `has_timestamps`, a reader yields
    RecordBatch objects instead of lists.

    Watermarks per split (Flink: FLIP-27). With a watermark strategy passed to `from_source`, each split has its own
    watermark generator. The watermark of a subtask is the minimum over its active splits, so records of a slow split
    are not late. A subtask reads its splits in turns, and starts with the split that is furthest behind.

    - A bounded source: all splits are active from the start until they are read completely.
    - An unbounded source: `delivered_splits` gives each split a name. The generator of a name is kept across
      epochs, in checkpoints, and when the split moves to another subtask. The active splits are those of the
      subtask's latest epoch with a delivery. So each delivery must contain all splits, even splits without new
      records. A split without new records holds back the watermark, or becomes idle with `with_idleness`.
    - With `splits_end`, a delivered split ends when it is read completely, such as a file.
    """

    is_bounded: bool = True
    has_timestamps: bool = False
    splits_end: bool = True
    needs_positions: bool = False
    """Whether it has no `splits`, and is read between positions: see UnboundedSource."""

    def planned(self, parallelism: int) -> Source[T]:  # noqa: ARG002 - for most no difference
        """Returns the source that is sent to the subtasks. It is called once on the driver, when the job starts.

        For example, a file source lists its files here, so that all subtasks use the same list.
        """
        return self

    def uncut(self) -> Source[T]:
        """Returns the same source with whole files as splits.

        It is called if an operator downstream assigns event time. The watermarks of that operator depend on the order
        of records, so a subtask must not start in the middle of a file.
        """
        return self

    def split_stage(self, split: Any) -> int:  # noqa: ARG002 - for most no difference
        """The round in which the split is read. A subtask finishes a round before it starts the next one."""
        return 0

    def split_name(self, split: Any) -> str | None:  # noqa: ARG002 - for most no difference
        """The name of a split of `splits` in messages. None uses its number."""
        return None

    def split_after(self, split: Any, records: int) -> Any | None:  # noqa: ARG002 - for most no difference
        """The rest of a split after a number of records, to continue after its reader was closed.

        None if the source does not support this. The reader then stays open.
        """
        return None

    def open(self, context: SourceReaderContext) -> None:
        """Called once in each subtask, before `read`."""

    def get_produced_type(self) -> TypeInformation[Any] | None:
        """The type of the records. None for records of any type."""
        return None

    @abstractmethod
    def splits(self, parallelism: int) -> Sequence[Sequence[Any]]:
        """Returns the picklable splits of each subtask, in reading order, as `parallelism` sequences."""

    @abstractmethod
    def read(self, split: Any, batch_size: int) -> Iterator[Sequence[T]]:
        """Yields the records of a split in batches of about `batch_size`.

        An empty batch means that there is no input yet. The task then only runs its mail, for 10 ms, or for the seconds
        given by a NothingYet. A source must not block while it waits: timers of its task would fire late.
        """

    def delivered_splits(self, delivery: bytes) -> Mapping[str, Any] | None:  # noqa: ARG002 - for most no difference
        """The splits in a delivery, by name. The name of a split must be the same in all epochs.

        None if the source has one watermark generator per subtask. See `read_delivery`.
        """
        return None

    @property
    def has_ended(self) -> bool:
        """In a task of an unbounded job: whether the deliveries have announced the end of the input."""
        return False

    def close(self) -> None:
        """Releases the source's resources. It is called once in each subtask, at the end."""

    def read_delivery(self, delivery: bytes, batch_size: int) -> Iterator[Sequence[T]]:
        """Yields the records of a delivery.

        A delivery is the input that the driver assigns to a subtask for one epoch of an unbounded job.

        Raises:
            InternalError: The source does not read deliveries.
        """
        del batch_size
        raise InternalError(
            f"{len(delivery)} bytes were delivered to {self!r}, which reads its input itself"
        )
