"""Sources: where records come from, in Flink's split-and-reader shape, written in Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

T = TypeVar("T")


class Source(ABC, Generic[T]):
    """A source of records.

    Flink: `Source` with its enumerator (`splits`) and reader (`read`). Splits are made once on the
    driver and shipped; each is read by the subtask that it is assigned to. A reader with
    `has_timestamps` yields RecordBatch objects instead of plain lists.
    """

    is_bounded: bool = True
    has_timestamps: bool = False

    @abstractmethod
    def splits(self, parallelism: int) -> Sequence[Sequence[Any]]:
        """The picklable splits of each subtask: `parallelism` sequences, in reading order."""

    @abstractmethod
    def read(self, split: Any, batch_size: int) -> Iterator[Sequence[T]]:
        """Yields the split's records in batches of about `batch_size`.

        An empty batch says that nothing has come yet, so that the task can look after its mail.
        """
