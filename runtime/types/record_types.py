"""Types of rows and tuples, and the type of records without a declared type."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from opchain.runtime.errors import short_repr
from opchain.runtime.types.container_types import require_type
from opchain.runtime.types.row import Row, RowKind
from opchain.runtime.types.type_information import TypeInformation
from opchain.runtime.types.type_variables import T


@dataclass(frozen=True, repr=False)
class PickledBytesTypeInfo(TypeInformation[Any]):
    """The type of any Python object, for streams without a declared type.

    Flink: PickledByteArrayTypeInfo of PyFlink.
    """

    def __repr__(self) -> str:
        return "PickledByteArrayTypeInfo"


@dataclass(frozen=True, repr=False)
class _FieldsTypeInfo(TypeInformation[T]):
    """A type with fields."""

    field_types: Sequence[TypeInformation[Any]]

    def get_field_types(self) -> list[TypeInformation[Any]]:
        """The types of the fields, in order."""
        return list(self.field_types)

    def need_conversion(self) -> bool:
        """Always True."""
        return True

    def from_internal_type(self, obj: Any) -> Any:
        """Returns the converted fields as a tuple. A tuple or list counts as already converted."""
        if obj is None or isinstance(obj, (tuple, list)):
            return obj
        values = zip(self.field_types, obj, strict=False)
        return tuple(t.from_internal_type(value) for t, value in values)

    def _keep_types(self, where: str) -> None:
        field_types = tuple(self.field_types)
        for field_type in field_types:
            require_type(where, field_type)
        object.__setattr__(self, "field_types", field_types)

    def _convert(self, values: Sequence[Any]) -> tuple[Any, ...]:
        # As in Flink, the lengths are not compared: extra values or types are ignored.
        pairs = zip(self.field_types, values, strict=False)
        return tuple(t.to_internal_type(value) for t, value in pairs)


@dataclass(frozen=True, repr=False)
class RowTypeInfo(_FieldsTypeInfo[Row]):
    """The type of Rows. Fields without names are called f0, f1, ...

    As in Flink, two row types are equal if their field types are equal; names are ignored. Rows that table formats read
    are Flink's RowData, whose Java text differs: `+I(a,1)`.

    Raises:
        TypeError: A field type is not a type.
        ValueError: The numbers of names and types differ, or a name occurs twice.
    """

    field_names: Sequence[str] | None = field(default=None, compare=False)
    is_row_data: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        self._keep_types("ROW")
        if self.field_names is None:
            return
        names = tuple(self.field_names)
        object.__setattr__(self, "field_names", names)
        if len(names) != len(self.field_types):
            raise ValueError(
                f"Types.ROW_NAMED got {len(names)} field names and {len(self.field_types)} field "
                "types; it needs as many names as types"
            )
        if len(set(names)) != len(names):
            raise ValueError(f"Types.ROW_NAMED got a field name twice in {list(names)}")

    def _repr_html_(self) -> str:
        """The type as an HTML table for notebooks, with one line per field."""
        fields = zip(self.get_field_names(), self.field_types, strict=True)
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{html.escape(repr(type_info))}</td></tr>"
            for name, type_info in fields
        )
        return f"<table><thead><tr><th>field</th><th>type</th></tr></thead><tbody>{rows}</tbody></table>"

    @property
    def java_class(self) -> str:
        """The class name of Flink's Row."""
        return "Row"

    def get_field_names(self) -> list[str]:
        """The names of the fields, in order."""
        if self.field_names is None:
            return [f"f{position}" for position in range(len(self.field_types))]
        return list(self.field_names)

    def get_field_index(self, field_name: str) -> int:
        """The position of a field. -1 for an unknown field of a row type without names.

        Raises:
            ValueError: The row type has names, and this field is not among them.
        """
        names = self.get_field_names()
        if field_name in names:
            return names.index(field_name)
        if self.field_names is None:
            return -1
        raise ValueError(f"{field_name!r} is not one of the fields {names} of {self!r}")

    def to_internal_type(self, obj: Any) -> tuple[Any, ...] | None:
        """Returns the number of the row's kind, followed by the converted fields.

        Accepts a Row, a tuple or list in field order, a dict, or an object whose attributes have the names of the
        fields. Missing keys and attributes become None.

        Raises:
            ValueError: The argument is none of these.
        """
        if obj is None:
            return None
        kind = obj.get_row_kind() if isinstance(obj, Row) else RowKind.INSERT
        return (kind.value, *self._convert(self.values_of(obj)))

    def values_of(self, obj: Any) -> Sequence[Any]:
        """The fields, in order, of any argument that `to_internal_type` accepts."""
        if isinstance(obj, Row):
            return obj.get_fields_by_names(self.get_field_names())
        if isinstance(obj, (tuple, list)):
            return obj
        by_name = obj if isinstance(obj, Mapping) else getattr(obj, "__dict__", None)
        if by_name is None:
            raise ValueError(f"{short_repr(obj)} is not a row of type {self!r}")
        return [by_name.get(name) for name in self.get_field_names()]

    def __repr__(self) -> str:
        if self.field_names is None:
            return f"RowTypeInfo({', '.join(map(str, self.field_types))})"
        fields = zip(self.field_names, self.field_types, strict=True)
        return f"RowTypeInfo({', '.join(f'{name}: {type_}' for name, type_ in fields)})"


@dataclass(frozen=True, repr=False)
class TupleTypeInfo(_FieldsTypeInfo[tuple[Any, ...]]):
    """The type of tuples.

    Flink: TupleTypeInfo.

    Raises:
        TypeError: A field type is not a type.
    """

    def __post_init__(self) -> None:
        self._keep_types("TUPLE")

    @property
    def java_class(self) -> str:
        """The class name of Flink's Tuple, for any length."""
        return "Tuple"

    def to_internal_type(self, obj: Any) -> tuple[Any, ...] | None:
        """Returns the converted fields.

        Raises:
            ValueError: The argument is not a tuple, list or Row.
        """
        if obj is None:
            return None
        if not isinstance(obj, (tuple, list, Row)):
            raise ValueError(f"{short_repr(obj)} is not a tuple of type {self!r}")  # noqa: TRY004 - PyFlink's error
        return self._convert(list(obj))

    def __repr__(self) -> str:
        return f"TupleTypeInfo({', '.join(map(str, self.field_types))})"


@dataclass(frozen=True, repr=False)
class ExternalTypeInfo(TypeInformation[T]):
    """Wraps a type that comes from the schema of a table.

    Flink: ExternalTypeInfo.
    """

    type_info: TypeInformation[T]

    @property
    def java_class(self) -> str:
        """The Java class of the wrapped type."""
        return self.type_info.java_class

    def __repr__(self) -> str:
        return f"ExternalTypeInfo<{self.type_info}>"


def with_field_names(type_info: TypeInformation[Any]) -> TypeInformation[Any]:
    """The type, with default names for the fields of all row types in it.

    >>> with_field_names(TupleTypeInfo([RowTypeInfo([PickledBytesTypeInfo()])]))
    TupleTypeInfo(RowTypeInfo(f0: PickledByteArrayTypeInfo))
    """
    changes: dict[str, Any] = {}
    for name in getattr(type_info, "__dataclass_fields__", ()):
        value = getattr(type_info, name)
        if isinstance(value, TypeInformation):
            changes[name] = with_field_names(value)
        elif name == "field_types":
            changes[name] = tuple(map(with_field_names, value))
    if isinstance(type_info, RowTypeInfo):
        changes["field_names"] = type_info.get_field_names()
    return replace(type_info, **changes) if changes else type_info  # type: ignore[type-var]
