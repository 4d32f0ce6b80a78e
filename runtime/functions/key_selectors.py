"""Functions that extract a key or choose a partition, and the Row of key and record.

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
    """Extracts the key of a record.

    Equal records should have equal keys, because a task that is retried selects keys again. A selector that may give
    another key, for example a random one, is called once for each record. The type of the key must have a stable hash:
    int, str, bytes, bool, float, and tuples and dataclasses of these types, among others.
    """

    @abstractmethod
    def get_key(self, value: IN_contra) -> KEY_co:
        """Returns the key; never None."""


class NullByteKeySelector(KeySelector["Any", int]):
    """Returns the key 0 for every record, for `window_all`."""

    def get_key(self, value: Any) -> int:  # noqa: ARG002 - that is the point
        """Always 0."""
        return 0


class CarriedKey:
    """The selector of a key that was sent with its record: it returns the key of the current record.

    Used at receivers for selectors that may give another key when they are called again. Records arrive as
    (key, record) pairs, and whoever takes a pair apart sets `key`.
    """

    key: Any = None

    def __call__(self, value: Any) -> Any:  # noqa: ARG002 - the selector of any record
        """The key of the current record."""
        return self.key


class Partitioner(Function, Generic[KEY_contra]):
    """Chooses the receiving subtask of a record, for `partition_custom`."""

    @abstractmethod
    def partition(self, key: KEY_contra, num_partitions: int) -> int:
        """Returns the number of the subtask, from 0 to num_partitions - 1."""


class WithKey(MapFunction[Any, Row]):
    """Returns a Row of key (`f0`) and record (`f1`). In PyFlink, these are the records of a keyed stream.

    >>> WithKey(len).map("four")
    Row(f0=4, f1='four')
    """

    def __init__(self, key_selector: Callable[[Any], Any]) -> None:
        self.key_selector = key_selector

    def map(self, value: Any) -> Row:
        """The Row of key and record."""
        return Row(f0=self.key_selector(value), f1=value)


def _smaller(old: Any, new: Any) -> Any:
    return min(old, new)


def _greater(old: Any, new: Any) -> Any:
    return max(old, new)


_INDEXED = (tuple, list, Row)

_OF_FIELD: dict[str, Callable[[Any, Any], Any]] = {"sum": add, "min": _smaller, "max": _greater}


class FieldAggregation(ReduceFunction[Any]):
    """Aggregates one field of the records of a key.

    `sum`, `min` and `max` return the first record with this field replaced. `min_by` and `max_by` return the record
    with the smallest or greatest value. Of equal values, the first record wins or, without `first`, the last. Neither
    input record is changed.

    A field is an index (tuples, lists, rows), a key (dicts) or a name (dataclasses, pydantic models and other objects).
    A plain value has only field 0: the value.

    >>> FieldAggregation("sum", 1).reduce(("a", 1), ("b", 2))
    ('a', 3)
    """

    def __init__(self, kind: str, field: int | str, *, first: bool = True) -> None:
        self.kind = kind
        self.field = field
        self.is_first = first

    @property
    def __name__(self) -> str:
        """The name of Flink's class, for the descriptions of windows."""
        return "SumAggregator" if self.kind == "sum" else "ComparableAggregator"

    def __repr__(self) -> str:
        return f"{self.kind}({self.field!r})"

    def first(self, value: Any) -> Any:
        """Returns the first record of a key, which is its first result. PyFlink does not check its field.

        Raises:
            TypeError: The record has no such field.
        """
        if self._has_fields(value):
            _field(value, self.field)
        return value

    def reduce(self, value1: Any, value2: Any) -> Any:
        """Aggregates the result so far with one more record."""
        has_fields = self._has_fields(value1)
        combine = _OF_FIELD.get(self.kind)
        if combine is None:
            return self._extreme(value1, value2, has_fields)
        if not has_fields:
            return combine(value1, value2)
        combined = combine(_field(value1, self.field), _field(value2, self.field))
        return _with_field(value1, self.field, combined)

    def _has_fields(self, record: Any) -> bool:
        """Whether the field is a part of the record. Otherwise it is the record itself."""
        if isinstance(record, _INDEXED) or _is_named(record, self.field):
            return True
        if self.field != 0:
            raise TypeError(
                f"{self.kind}({self.field!r}) got {short_repr(record)} of type {type(record).__name__}, "
                "which has no such field; a plain value has only field 0: itself"
            )
        return False

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
        return record.model_copy(update={field: value})  # pydantic then knows that the field is set
    changed = copy(record)
    if isinstance(record, (*_INDEXED, dict)):
        changed[field] = value
    else:
        object.__setattr__(
            changed, str(field), value
        )  # works on frozen dataclasses too; the object is a new copy
    return changed


def _tuple_with_field(record: tuple[Any, ...], field: int | str, value: Any) -> Any:
    index = record._fields.index(field) if isinstance(field, str) else field  # type: ignore[attr-defined]
    items = list(record)
    items[index] = value
    # The class of a named tuple takes the fields as separate arguments.
    return type(record)(*items) if hasattr(record, "_fields") else tuple(items)


class Projection(MapFunction[Any, tuple[Any, ...]]):
    """The function of `project`: returns the fields at the given indexes, in that order.

    >>> Projection((2, 0)).map(("a", "b", "c"))
    ('c', 'a')
    """

    def __init__(self, field_indexes: tuple[int, ...]) -> None:
        self.field_indexes = field_indexes
        # For a single index, itemgetter returns the bare value, not a tuple.
        self._get = itemgetter(*field_indexes) if len(field_indexes) > 1 else None

    def __repr__(self) -> str:
        return f"Projection{self.field_indexes}"

    def map(self, value: Any) -> tuple[Any, ...]:
        """The selected fields of the record."""
        return (value[self.field_indexes[0]],) if self._get is None else self._get(value)
