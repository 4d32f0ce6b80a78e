"""Functions that extract a key or choose a partition, and records with their key.

Also aggregations of one field (sum, min, max, min_by, max_by), and projections to some fields.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from operator import add, itemgetter
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.errors import short_repr
from opchain.runtime.functions.function import Function
from opchain.runtime.functions.record_functions import MapFunction, ReduceFunction
from opchain.runtime.types.row import Row
from opchain.runtime.types.type_variables import IN_contra, KEY_co, KEY_contra

if TYPE_CHECKING:
    from collections.abc import Callable


class KeySelector(Function, Generic[IN_contra, KEY_co]):
    """Extracts a record's key.

    The key must be the same whenever and wherever it is extracted from an equal record, and of a type
    with a stable hash: int, str, bytes, bool, float, tuples and dataclasses of these, ...
    """

    @abstractmethod
    def get_key(self, value: IN_contra) -> KEY_co:
        """The key; never None."""


class NullByteKeySelector(KeySelector["Any", int]):
    """Returns the key 0 for every record. `window_all` uses it."""

    def get_key(self, value: Any) -> int:  # noqa: ARG002 - that is the point
        """Returns 0 for every record."""
        return 0


class Partitioner(Function, Generic[KEY_contra]):
    """Chooses the receiving subtask of a record, for `partition_custom`."""

    @abstractmethod
    def partition(self, key: KEY_contra, num_partitions: int) -> int:
        """The subtask's number, from 0 to num_partitions - 1."""


class WithKey(MapFunction[Any, Row]):
    """Returns a Row of key (`f0`) and record (`f1`), which are the records of a keyed stream in PyFlink.

    >>> WithKey(len).map("four")
    Row(f0=4, f1='four')
    """

    def __init__(self, key_selector: Callable[[Any], Any]) -> None:
        self.key_selector = key_selector

    def map(self, value: Any) -> Row:
        """The row of one record."""
        return Row(f0=self.key_selector(value), f1=value)


def _smaller(old: Any, new: Any) -> Any:
    return min(old, new)


def _greater(old: Any, new: Any) -> Any:
    return max(old, new)


_INDEXED = (tuple, list, Row)

_OF_FIELD: dict[str, Callable[[Any, Any], Any]] = {"sum": add, "min": _smaller, "max": _greater}


class FieldAggregation(ReduceFunction[Any]):
    """Folds one field of records that share a key.

    `sum`, `min` and `max` give the first record with its field replaced; `min_by` and `max_by` give
    the record that has the extreme: of equal ones the earlier, or the later unless `first`. Fields of tuples, lists and rows have
    an index, those of dicts are keys, those of dataclasses, pydantic models and other objects are named;
    a plain value has field 0 alone: itself. Neither record is changed.

    >>> FieldAggregation("sum", 1).reduce(("a", 1), ("b", 2))
    ('a', 3)
    """

    def __init__(self, kind: str, field: int | str, *, first: bool = True) -> None:
        self.kind = kind
        self.field = field
        self.is_first = first

    @property
    def __name__(self) -> str:
        """The class of Flink's, which is in the descriptions of windows."""
        return "SumAggregator" if self.kind == "sum" else "ComparableAggregator"

    def __repr__(self) -> str:
        return f"{self.kind}({self.field!r})"

    def reduce(self, value1: Any, value2: Any) -> Any:
        """The aggregate of the records so far and one more."""
        has_fields = isinstance(value1, _INDEXED) or _is_named(value1, self.field)
        if not has_fields and self.field != 0:
            raise TypeError(
                f"{self.kind}({self.field!r}) got {short_repr(value1)} of type {type(value1).__name__}, "
                "which has no such field; a plain value has only field 0: itself"
            )
        combine = _OF_FIELD.get(self.kind)
        if combine is None:
            return self._extreme(value1, value2, has_fields)
        if not has_fields:
            return combine(value1, value2)
        combined = combine(_field(value1, self.field), _field(value2, self.field))
        return _with_field(value1, self.field, combined)

    def _extreme(self, value1: Any, value2: Any, has_fields: bool) -> Any:
        old, new = value1, value2
        if has_fields:
            old, new = _field(value1, self.field), _field(value2, self.field)
        is_better = new < old if self.kind == "min_by" else new > old
        if not self.is_first and not is_better:
            is_better = new <= old if self.kind == "min_by" else new >= old
        return value2 if is_better else value1


def _is_named(record: Any, field: int | str) -> bool:
    if isinstance(record, dict):
        return field in record
    return isinstance(field, str) and hasattr(record, field)


def _field(record: Any, field: int | str) -> Any:
    if isinstance(field, str) and isinstance(record, tuple):
        if field not in getattr(record, "_fields", ()):
            raise TypeError(f"{short_repr(record)} has no field named {field!r}; use its index")
        return getattr(record, field)
    if isinstance(record, (*_INDEXED, dict)):
        container: Any = record
        try:
            return container[field]
        except (IndexError, KeyError) as error:
            raise TypeError(
                f"{short_repr(record)} has no field {field!r}; it has {len(container)}, counted from 0"
            ) from error
    return getattr(record, str(field))


def _with_field(record: Any, field: int | str, value: Any) -> Any:
    if isinstance(record, tuple):
        return _tuple_with_field(record, field, value)
    if hasattr(record, "model_copy"):
        return record.model_copy(update={field: value})  # pydantic notes that the field was set
    changed = copy(record)
    if isinstance(record, (*_INDEXED, dict)):
        changed[field] = value
    else:
        object.__setattr__(changed, str(field), value)  # it may be frozen, but it is new
    return changed


def _tuple_with_field(record: tuple[Any, ...], field: int | str, value: Any) -> Any:
    index = record._fields.index(field) if isinstance(field, str) else field  # type: ignore[attr-defined]
    items = list(record)
    items[index] = value
    # A named tuple's class takes the fields one by one, and keeps their names.
    return type(record)(*items) if hasattr(record, "_fields") else tuple(items)


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
