"""Tuples of one length as columns: a list per field. They are collected, sent and read this way if generated code can.

    values.lists         (["a", "b", "a"], [4, 5, 9])
    list(values)         [("a", 1, 4), ("b", 1, 5), ("a", 1, 9)]

Two lists of ints are pickled and read in half the time of a list of pairs (32 ns and 59 ns a record). The pairs need
not be built. A field with the same value in all tuples, such as the 1 of a count, is stored once. Other code can
use the columns as a sequence of tuples. Rows, named tuples, dataclasses and dictionaries with fixed keys are stored in
the same way (`Shape`): to make, pickle and read a Row takes 3 microseconds.

Dictionaries that were just parsed from JSON are stored as their texts, in one list (`JSON`). To pickle and read a text
of 90 bytes takes 0.1 microseconds, and its dictionary of five fields 0.9.
"""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from dataclasses import dataclass, is_dataclass
from functools import lru_cache
from itertools import chain, repeat, starmap
from typing import Any, overload

from opchain.runtime.records.json_texts import fast_loads
from opchain.runtime.records.record_pickle import dump_records
from opchain.runtime.types.row import Row, columns_of_rows, row_of, rows_of

Layout = tuple[tuple[Any, ...], ...]
"""One entry for each field. An empty entry: the next list has the values of the field. One value: the field has this value
in all records; `...` if the sender left out the field. If the records are not tuples, a last entry has `SHAPE` and a packed
`Shape`. An entry of a field that is itself a record is made by `keyed_layout`.
"""

Column = MutableSequence[Any]
"""The values of a field: a list, or an `array` of ints of 64 bits, which a sender may fill with numpy."""

TUPLE, SHAPE = "tuple", "shape"

JSON: Layout = (("json",),)
"""Dicts, as the JSON texts from which they were parsed."""
JSON_AND_KEY: Layout = (("json",), ("key",))
"""The same, with a list of the records' keys after the list of texts."""
_TEXTS = (JSON, JSON_AND_KEY)

FOLDED = "folded"
"""The only entry of a layout begins with it: the lists have keys, numbers of records, and partial results of a window, unless
they equal the numbers (runtime/operators/window_folds.py). How the results are merged follows in the entry.
"""


@dataclass(frozen=True, slots=True)
class Shape:
    """The class of records with known fields that are not tuples.

    Attributes:
        kind: Row, dict, or a class of named tuples or a dataclass.
        names: The names of the fields; empty for a Row without names.
        names_vary: Whether the records are Rows whose names are in one more field: a list, or None.
    """

    kind: type
    names: tuple[str, ...] = ()
    names_vary: bool = False

    def records(self, fields: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Creates records from their fields.

        >>> list(Shape(dict, ("x", "y")).records([(1, 2)]))
        [{'x': 1, 'y': 2}]
        """
        if self.names_vary:
            return (row_of([*values], names) for *values, names in fields)
        if self.kind is Row:
            return iter(rows_of(self.names or None, fields))
        if self.kind is dict:
            return (dict(zip(self.names, entries, strict=True)) for entries in fields)
        if is_dataclass(self.kind):
            return starmap(self.kind, fields)
        make: Callable[[Iterable[Any]], Any] = self.kind._make  # type: ignore[attr-defined]
        return map(make, fields)

    @property
    def entry(self) -> tuple[str, bytes]:
        """The last entry of the layout of records with this shape."""
        return SHAPE, dump_records(self)


def record_count(values: Sequence[Any]) -> int:
    """How many records the values of a batch stand for."""
    if isinstance(values, Columns) and values.are_folded:
        return sum(values.lists[1])
    return len(values)


def keys_by_record(values: Sequence[Any], keys: Sequence[Any]) -> Sequence[Any]:
    """The key of each record that the values of a batch stand for."""
    if isinstance(values, Columns) and values.are_folded:
        return list(chain.from_iterable(map(repeat, keys, values.lists[1])))
    return keys


def arrived_keys(
    values: Sequence[Any], select: Callable[[Any], Any], key_list: int | None
) -> Iterable[Any]:
    """The key of each value of a batch as it arrives. Partial results have their keys in the first list.

    `key_list` is the number of the list of columns that has the keys, if there is one.
    """
    if isinstance(values, Columns):
        number = 0 if values.are_folded else key_list
        if number is not None:
            return values.lists[number]
    return map(select, values)


def keyed_layout(fields: Iterable[int | tuple[Any]], shape: Shape | None = None) -> Layout:
    """The layout of (key, record) pairs, whose first list has the keys.

    Args:
        fields: For each field of the record, the number of its list, or a tuple with its constant value.
        shape: The class of the record; None for a tuple.

    >>> list(Columns([["a", "b"], [3, 4]], keyed_layout([1, 0, (None,)])))
    [('a', (3, 'a', None)), ('b', (4, 'b', None))]
    """
    return (), ((TUPLE,) if shape is None else shape.entry) + tuple(fields)


def inner_fields(entry: tuple[Any, ...]) -> tuple[Any, ...]:
    """For an entry of `keyed_layout`, its `fields`. Empty for other entries."""
    if len(entry) <= 1:
        return ()
    return entry[1:] if entry[0] == TUPLE else entry[2:]


def are_alike(layout: Layout | None, other: Layout | None) -> bool:
    """Whether two layouts are the same. Constants are compared by their repr, because 1 equals True and 1.0.

    >>> are_alike(((), (1,)), ((), (1,))), are_alike(((), (1,)), ((), (True,)))
    (True, False)
    """
    return layout == other and repr(layout) == repr(other)


@lru_cache(maxsize=256)
def _row_layout(count: int, names: tuple[str, ...]) -> Layout:
    return (*((),) * count, Shape(Row, names).entry)


@lru_cache(maxsize=256)
def _unpacked(packed: bytes) -> Shape:
    shape: Shape = pickle.loads(packed)
    return shape


def shape_of(layout: Layout) -> Shape | None:
    """The shape of the records of a layout; None for tuples."""
    last = layout[-1]
    return (
        _unpacked(last[1]) if last and last[0] == SHAPE and len(last) == len((SHAPE, b"")) else None
    )


class Columns(Sequence[Any]):
    """A sequence of tuples, or of records of another shape, that are stored as columns.

    Args:
        lists: The values of each field that has a list.
        layout: Which fields have a list; at least one field has.
    """

    __slots__ = ("layout", "lists")

    def __init__(self, lists: Sequence[Column], layout: Layout) -> None:
        self.lists = tuple(lists)
        self.layout = layout

    @classmethod
    def empty(cls, layout: Layout) -> Columns:
        """Columns without records."""
        count = len(layout) if layout in _TEXTS else sum(not entry for entry in layout)
        return cls([[] for _ in range(count)], layout)

    @classmethod
    def of_fields(cls, names: Sequence[str], fields: Sequence[Sequence[Any]]) -> Columns:
        """Rows from the values of each field, at least one. They have no names if `names` is empty."""
        columns = [each if isinstance(each, list) else list(each) for each in fields]
        return cls(columns, _row_layout(len(columns), tuple(names)))

    @classmethod
    def of_rows(cls, records: Sequence[Any]) -> Columns | None:
        """The columns of records that are all Rows of kind INSERT with the same names. None for other records."""
        found = columns_of_rows(records)
        if found is None:
            return None
        names, columns = found
        return cls.of_fields(names or (), columns)

    @property
    def are_folded(self) -> bool:
        """Whether these are partial results in place of records."""
        return len(self.layout[0]) > 1 and self.layout[0][0] == FOLDED

    def field(self, position: int) -> Column:
        """The list of a field."""
        return self.lists[self._number_of(position)]

    def use_array(self, position: int) -> None:
        """Replaces the list of a field, which is still empty, by an array: its values are ints of 64 bits."""
        lists = list(self.lists)
        lists[self._number_of(position)] = array("q")
        self.lists = tuple(lists)

    def _number_of(self, position: int) -> int:
        if self.layout in _TEXTS:
            return position
        return sum(not entry for entry in self.layout[:position])

    def rows(self, *beside: Iterable[Any]) -> Iterable[Any]:
        """For each record, its values in the lists, and its entry in each `beside`, as a tuple. One list alone is returned itself."""
        if beside or len(self.lists) > 1:
            return zip(*self.lists, *beside, strict=False)  # an iterable of `beside` may be endless
        return self.lists[0]

    def record(self, fields: Iterable[Any]) -> Any:
        """The record with these values in the fields that have lists."""
        given = list(fields)
        if self.layout in _TEXTS:
            return fast_loads()(given[0])
        if self.are_folded:
            return tuple(given)
        (record,) = Columns([[entry] for entry in given], self.layout)
        return record

    @property
    def lack_fields(self) -> bool:
        """Whether the sender left out fields that no code of its reader reads."""
        return (...,) in self.layout

    def clear(self) -> None:
        """Removes all records."""
        for column in self.lists:
            del column[:]

    def __len__(self) -> int:
        return len(self.lists[0])

    def __iter__(self) -> Iterator[Any]:
        if self.layout in _TEXTS:
            return map(fast_loads(), self.lists[0])
        if self.are_folded:
            return zip(*self.lists, strict=True)
        columns = iter(self.lists)
        shape = shape_of(self.layout)
        fields: list[Iterable[Any]] = []
        for entry in self.layout if shape is None else self.layout[:-1]:
            if not entry:
                fields.append(next(columns))
            elif len(entry) == 1:
                fields.append(repeat(entry[0]))
            else:
                inner = (
                    repeat(field[0]) if isinstance(field, tuple) else self.lists[field]
                    for field in inner_fields(entry)
                )
                tuples = zip(*inner, strict=False)
                kind = _unpacked(entry[1]) if entry and entry[0] == SHAPE else None
                fields.append(tuples if kind is None else kind.records(tuples))
        tuples = zip(*fields, strict=False)  # a repeated constant has no end
        return tuples if shape is None else shape.records(tuples)

    @overload
    def __getitem__(self, place: int) -> Any: ...

    @overload
    def __getitem__(self, place: slice) -> Columns: ...

    def __getitem__(self, place: int | slice) -> Any:
        entries = [column[place] for column in self.lists]
        return Columns(entries, self.layout) if isinstance(place, slice) else self.record(entries)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (Columns, list)):
            return list(self) == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"Columns({list(self)!r})"
