"""A source of records that the program itself holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.connectors.sequence import contiguous_parts
from opchain.runtime.functions.source import Source
from opchain.runtime.records.record_copy import private
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class CollectionSource(Source[T]):
    """The records in order; several subtasks emit a contiguous part each.

    The records are pickled with the program: write larger data to files. Each is a record of its own, as it is now,
    even where two are one object, or share one. PyFlink pickles each by itself.
    """

    def __init__(self, records: Sequence[T]) -> None:
        self.records = list(map(private, records))

    def __repr__(self) -> str:
        return f"CollectionSource of {len(self.records)} records"

    def splits(self, parallelism: int) -> list[list[range]]:
        """The indices of each subtask's records."""
        parts = contiguous_parts(len(self.records), parallelism)
        return [[part] if part else [] for part in parts]

    def read(self, split: range, batch_size: int) -> Iterator[Sequence[T]]:
        """The records with these indices."""
        for first in range(split.start, split.stop, batch_size):
            yield self.records[first : min(first + batch_size, split.stop)]
