"""Some fields of a record, as a tuple."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from opchain.runtime.functions.map_functions import MapFunction


class Projection(MapFunction[Any, tuple[Any, ...]]):
    """Behind `project`: the fields at the given indexes, in that order.

    >>> Projection((2, 0)).map(("a", "b", "c"))
    ('c', 'a')
    """

    def __init__(self, field_indexes: tuple[int, ...]) -> None:
        self.field_indexes = field_indexes
        # itemgetter gives a bare value, not a tuple, for a single index.
        self._get = itemgetter(*field_indexes) if len(field_indexes) > 1 else None

    def __repr__(self) -> str:
        return f"Projection{self.field_indexes}"

    def map(self, value: Any) -> tuple[Any, ...]:
        """The fields of one record."""
        return (value[self.field_indexes[0]],) if self._get is None else self._get(value)
