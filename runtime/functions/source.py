"""Sources: where records come from, in Flink's split-and-reader shape, written in Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from opchain.runtime.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opchain.runtime.metrics.metric_group import MetricGroup
    from opchain.runtime.types.output_tag import OutputTag
    from opchain.runtime.types.type_information import TypeInformation

T = TypeVar("T")


class SourceReaderContext(ABC):
    """What a source can do in its subtask besides giving records. Flink: SourceReaderContext."""

    @abstractmethod
    def metric_group(self) -> MetricGroup:
        """The metrics of the source and subtask."""

    @abstractmethod
    def emit_to(self, tag: OutputTag[Any], value: Any) -> None:
        """Emits to a side output, which `get_side_output` of the source's stream reads; ours alone."""


class Source(ABC, Generic[T]):
    """A source of records.

    Flink: `Source` with its enumerator (`splits`) and reader (`read`). `splits` must give the same to
    every subtask that asks; a source that has to look outside for that does so in `planned`. A reader
    with `has_timestamps` yields RecordBatch objects instead of plain lists.
    """

    is_bounded: bool = True
    has_timestamps: bool = False

    def planned(self, parallelism: int) -> Source[T]:  # noqa: ARG002 - for most no difference
        """The source that is shipped to the subtasks; called once on the driver when the job starts.

        A source of files lists them here, so that all subtasks share one view of them.
        """
        return self

    def open(self, context: SourceReaderContext) -> None:
        """Called once in each subtask, before `read`."""

    def get_produced_type(self) -> TypeInformation[Any] | None:
        """The records' type; None where they are of any."""
        return None

    @abstractmethod
    def splits(self, parallelism: int) -> Sequence[Sequence[Any]]:
        """The picklable splits of each subtask: `parallelism` sequences, in reading order."""

    @abstractmethod
    def read(self, split: Any, batch_size: int) -> Iterator[Sequence[T]]:
        """Yields the split's records in batches of about `batch_size`.

        An empty batch says that nothing has come yet, so that the task can look after its mail.
        """

    def read_delivery(self, delivery: bytes, batch_size: int) -> Iterator[Sequence[T]]:
        """The records of what the driver has delivered to a subtask in an epoch of an unbounded job.

        Raises:
            InternalError: The source reads by itself.
        """
        del batch_size
        raise InternalError(
            f"{len(delivery)} bytes were delivered to {self!r}, which reads by itself"
        )
