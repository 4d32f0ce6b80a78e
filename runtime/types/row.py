"""Row: a record whose values have positions and, optionally, names."""

from __future__ import annotations

import copy
from enum import Enum
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class RowKind(Enum):
    """The kind of change that a row describes: an insert, the old or new row of an update, or a delete."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def __str__(self) -> str:
        return _SHORT_NAMES[self]

    def to_j_row_kind(self) -> Any:
        """Not supported, because opchain has no Java objects.

        Raises:
            UnsupportedFeatureError: Always.
        """
        from opchain.runtime.java_objects import no_java  # noqa: PLC0415 - keeps rows light

        raise no_java("RowKind.to_j_row_kind()")


_SHORT_NAMES = {
    RowKind.INSERT: "+I",
    RowKind.UPDATE_BEFORE: "-U",
    RowKind.UPDATE_AFTER: "+U",
    RowKind.DELETE: "-D",
}


_INSERT = RowKind.INSERT


class Row:
    """A record with a fixed number of values, accessed by position or by name.

    Create it from values alone, or from names with values; not from both. A row of values is also a template: calling
    it creates a row whose field names are those values.

    >>> alice = Row(name="Alice", age=11)
    >>> alice.name, alice["age"], alice[0], "age" in alice
    ('Alice', 11, 'Alice', True)
    >>> Row("name", "age")("Bob", 5)
    Row(name='Bob', age=5)

    Rows are equal if they have the same kind and the same values under the same names, in any order. Change a value
    with `row["age"] = 12`; attributes are read-only.

    Flink: Row of PyFlink. As in PyFlink, the hash does not depend on the order of the names.
    """

    __slots__ = ("_fields", "_row_kind", "_values")

    _fields: list[str] | None
    _row_kind: RowKind
    _values: list[Any]

    def __init__(self, /, *args: Any, **kwargs: Any) -> None:
        if kwargs:
            if args:
                raise ValueError(
                    f"Row takes values or names with values, not both: got {len(args)} values and "
                    f"the names {', '.join(kwargs)}"
                )
            self._fields = list(kwargs)
            self._values = list(kwargs.values())
        else:
            self._fields = None
            self._values = list(args)
        self._row_kind = _INSERT

    @staticmethod
    def of_kind(row_kind: RowKind, *args: Any, **kwargs: Any) -> Row:
        """Creates a row of any kind."""
        row = Row(*args, **kwargs)
        row._row_kind = row_kind
        return row

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """The values by name.

        Args:
            recursive: Whether rows inside values, lists and dicts also become dicts.

        Raises:
            TypeError: The row has no names.
        """
        if self._fields is None:
            raise TypeError(f"{self!r} has no field names, so it cannot become a dict")
        values = map(_rows_as_dicts, self._values) if recursive else self._values
        return dict(zip(self._fields, values, strict=False))

    def get_row_kind(self) -> RowKind:
        """The kind of change; INSERT by default."""
        return self._row_kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        """Changes the kind of change."""
        self._row_kind = row_kind

    def has_field_names(self) -> bool:
        """Whether the row has field names."""
        return self._fields is not None

    def set_field_names(self, field_names: Sequence[str]) -> None:
        """Sets the field names, in order. They replace earlier names."""
        self._fields = list(field_names)

    def get_fields_by_names(self, names: Sequence[str]) -> list[Any]:
        """The values of these names, in the order of the names. All values, if the row has no names.

        Raises:
            ValueError: A name is not a field of the row.
        """
        fields = self._fields
        if fields is None or names == fields:
            return list(self._values)
        unknown = [name for name in names if name not in fields]
        if unknown:
            raise ValueError(f"a row has no {_listed(unknown)}; its fields are {_listed(fields)}")
        return [self._values[fields.index(name)] for name in names]

    def __call__(self, *args: Any) -> Row:
        """Creates a row of these values, whose field names are the values of this row.

        Raises:
            ValueError: There are more values than names.
        """
        if len(args) > len(self._values):
            raise ValueError(
                f"a row with the fields {_listed(self._values)} has {len(self._values)} values, "
                f"got {len(args)}"
            )
        return _restored_row(self._values, args, self._row_kind)

    def __contains__(self, item: object) -> bool:
        return item in (self._values if self._fields is None else self._fields)

    def __getitem__(self, item: Any) -> Any:
        if item.__class__ is int or isinstance(item, (int, slice)):
            return self._values[item]
        return self._values[self._position(item)]

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, (int, slice)):
            self._values[key] = value
        else:
            self._values[self._position(key)] = value

    def _position(self, name: Any) -> int:
        if self._fields is None:
            raise KeyError(f"{name!r}: {self!r} has no field names")
        try:
            return self._fields.index(name)
        except ValueError:
            raise ValueError(f"{name!r} is not among the fields {_listed(self._fields)}") from None

    def __getattr__(self, name: str) -> Any:
        # Only called for missing attributes. Names with an underscore are never fields: copy and pickle look up such
        # names before a row has any state.
        if name[:1] != "_" and (fields := self._fields) is not None:
            try:
                place = fields.index(name)
            except ValueError:
                pass
            else:
                return self._values[place]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute or field {name!r}")

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row) or self.__class__ != other.__class__:
            return False
        if self._row_kind is not other._row_kind:
            return False
        if self._fields == other._fields:
            return self._values == other._values
        if self._fields is None or other._fields is None:
            return False
        return self._by_name() == other._by_name()

    def __hash__(self) -> int:
        if self._fields is None:
            return hash(tuple(self._values))
        return hash(tuple(value for _, value in self._by_name()))

    def _by_name(self) -> list[tuple[str, Any]]:
        """Names and values, sorted by name. Equal names keep the order of the fields."""
        fields = self._fields or ()
        return sorted(zip(fields, self._values, strict=False), key=lambda field: field[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored_row, (self._fields, tuple(self._values), self._row_kind)

    def __copy__(self) -> Row:
        row = _new_row(Row)
        row._fields = None if self._fields is None else list(self._fields)
        row._values = list(self._values)  # noqa: SLF001 - of its own class
        row._row_kind = self._row_kind  # noqa: SLF001
        return row

    def __deepcopy__(self, memo: dict[int, Any]) -> Row:
        # Registered before its values are copied, because a value may refer to this row.
        row = memo[id(self)] = self.__copy__()
        row._values[:] = [copy.deepcopy(value, memo) for value in self._values]  # noqa: SLF001 - its own class
        return row

    def __repr__(self) -> str:
        if self._fields is None:
            return f"<Row({', '.join(map(repr, self._values))})>"
        fields = zip(self._fields, self._values, strict=False)
        return f"Row({', '.join(f'{name}={value!r}' for name, value in fields)})"


def _restored_row(fields: Sequence[str] | None, values: Sequence[Any], row_kind: RowKind) -> Row:
    """Creates a row when it is unpickled."""
    row = _new_row(Row)
    row._fields = None if fields is None else list(fields)
    row._values = list(values)  # noqa: SLF001 - its own module
    row._row_kind = row_kind  # noqa: SLF001
    return row


def row_of(values: list[Any], names: list[str] | None = None) -> Row:
    """Creates a row that uses these lists without copying them. For generated code: it is faster than `Row(...)`."""
    row = _new_row(Row)
    row._fields = names
    row._values = values  # noqa: SLF001 - its own module
    row._row_kind = _INSERT  # noqa: SLF001
    return row


def rows_of(names: Sequence[str] | None, records: Iterable[Sequence[Any]]) -> list[Row]:
    """Creates rows with these names, one per sequence of values. Takes a third of the time of single calls."""
    # All rows share this list. A row that gets other names gets a new list.
    fields = None if names is None else list(names)
    insert = _INSERT
    rows = []
    for values in records:
        row = _new_row(Row)
        row._fields = fields
        row._values = list(values)  # noqa: SLF001 - its own module
        row._row_kind = insert  # noqa: SLF001
        rows.append(row)
    return rows


def columns_of_rows(rows: Sequence[Any]) -> tuple[list[str] | None, list[tuple[Any, ...]]] | None:
    """The names of rows, and the values of each field, for `rows_of(names, zip(*columns))`.

    None if the records are not all rows of kind INSERT with the same names. Takes a tenth of the time of pickling rows.
    """
    if not rows or rows[0].__class__ is not Row or set(map(type, rows)) != {Row}:
        return None
    count, names = len(rows), rows[0]._fields
    values = list(map(_values_of, rows))
    are_alike = (
        set(map(len, values)) == {len(values[0])}
        and list(map(_names_of, rows)).count(names) == count
        and list(map(_kind_of, rows)).count(_INSERT) == count
    )
    return (names, list(zip(*values, strict=True))) if are_alike and values[0] else None


_names_of, _values_of, _kind_of = map(attrgetter, ("_fields", "_values", "_row_kind"))

_new_row = Row.__new__


def _rows_as_dicts(value: Any) -> Any:
    if isinstance(value, Row):
        return value.as_dict(recursive=True)
    if isinstance(value, list):
        return [_rows_as_dicts(item) for item in value]
    if isinstance(value, dict):
        return {key: _rows_as_dicts(item) for key, item in value.items()}
    return value


def _listed(names: Sequence[Any]) -> str:
    return ", ".join(map(repr, names))
