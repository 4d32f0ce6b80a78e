"""Types of rows and tuples, and the type of what has none."""

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
    """Any Python object; what a stream has whose type was not named.

    Flink: PickledByteArrayTypeInfo of PyFlink.
    """

    def __repr__(self) -> str:
        return "PickledByteArrayTypeInfo"


@dataclass(frozen=True, repr=False)
class RowTypeInfo(TypeInformation[Row]):
    """A Row; fields without names are called f0, f1, ...

    Row types are equal when their field types are, whatever the names: Flink's RowTypeInfo. Rows that formats of
    tables read are Flink's RowData, which has another Java text: `+I(a,1)`.

    Raises:
        TypeError: A field type is not a type.
        ValueError: There are more or fewer names than types, or a name comes twice.
    """

    field_types: Sequence[TypeInformation[Any]]
    field_names: Sequence[str] | None = field(default=None, compare=False)
    is_row_data: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        _keep_types(self, "ROW")
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
        """The type as HTML, for notebooks: a row for each field."""
        fields = zip(self.get_field_names(), self.field_types, strict=True)
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{html.escape(repr(type_info))}</td></tr>"
            for name, type_info in fields
        )
        return f"<table><thead><tr><th>field</th><th>type</th></tr></thead><tbody>{rows}</tbody></table>"

    @property
    def java_class(self) -> str:
        """Flink's Row."""
        return "Row"

    def get_field_names(self) -> list[str]:
        """The names, in order."""
        if self.field_names is None:
            return [f"f{position}" for position in range(len(self.field_types))]
        return list(self.field_names)

    def get_field_index(self, field_name: str) -> int:
        """The position of a field; -1 for an unknown one of a row type without names.

        Raises:
            ValueError: The row type has names, and this is none of them.
        """
        names = self.get_field_names()
        if field_name in names:
            return names.index(field_name)
        if self.field_names is None:
            return -1
        raise ValueError(f"{field_name!r} is not one of the fields {names} of {self!r}")

    def get_field_types(self) -> list[TypeInformation[Any]]:
        """The types, in order."""
        return list(self.field_types)

    def need_conversion(self) -> bool:
        """True."""
        return True

    def to_internal_type(self, obj: Any) -> tuple[Any, ...] | None:
        """The number of the row's kind, then the fields, converted.

        Takes a Row, a tuple or list in field order, a dict, or an object with attributes of the
        fields' names; what a dict or an object lacks is None.

        Raises:
            ValueError: It is none of these.
        """
        if obj is None:
            return None
        kind = obj.get_row_kind() if isinstance(obj, Row) else RowKind.INSERT
        return (kind.value, *_convert(self.field_types, self.values_of(obj)))

    def from_internal_type(self, obj: Any) -> Any:
        """The fields, converted, as a tuple; a tuple or list is taken to be converted already."""
        return _restore(self.field_types, obj)

    def values_of(self, obj: Any) -> Sequence[Any]:
        """The fields, in order, of all that `to_internal_type` takes."""
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
class TupleTypeInfo(TypeInformation[tuple[Any, ...]]):
    """A tuple.

    Flink: TupleTypeInfo.

    Raises:
        TypeError: A field type is not a type.
    """

    field_types: Sequence[TypeInformation[Any]]

    def __post_init__(self) -> None:
        _keep_types(self, "TUPLE")

    @property
    def java_class(self) -> str:
        """Flink's Tuple, of any length."""
        return "Tuple"

    def get_field_types(self) -> list[TypeInformation[Any]]:
        """The types, in order."""
        return list(self.field_types)

    def need_conversion(self) -> bool:
        """True."""
        return True

    def to_internal_type(self, obj: Any) -> tuple[Any, ...] | None:
        """The fields, converted.

        Raises:
            ValueError: It is not a tuple, list or Row.
        """
        if obj is None:
            return None
        if not isinstance(obj, (tuple, list, Row)):
            raise ValueError(f"{short_repr(obj)} is not a tuple of type {self!r}")  # noqa: TRY004 - PyFlink's error
        return _convert(self.field_types, list(obj))

    def from_internal_type(self, obj: Any) -> Any:
        """The fields, converted, as a tuple; a tuple or list is taken to be converted already."""
        return _restore(self.field_types, obj)

    def __repr__(self) -> str:
        return f"TupleTypeInfo({', '.join(map(str, self.field_types))})"


@dataclass(frozen=True, repr=False)
class ExternalTypeInfo(TypeInformation[T]):
    """A type that comes from a table's schema, around the plain one.

    Flink: ExternalTypeInfo.
    """

    type_info: TypeInformation[T]

    @property
    def java_class(self) -> str:
        """That of the plain type."""
        return self.type_info.java_class

    def __repr__(self) -> str:
        return f"ExternalTypeInfo<{self.type_info}>"


def with_field_names(type_info: TypeInformation[Any]) -> TypeInformation[Any]:
    """The type, with names for the fields of all row types inside it.

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


def _keep_types(of: RowTypeInfo | TupleTypeInfo, where: str) -> None:
    field_types = tuple(of.field_types)
    for field_type in field_types:
        require_type(where, field_type)
    object.__setattr__(of, "field_types", field_types)


def _convert(types: Sequence[TypeInformation[Any]], values: Sequence[Any]) -> tuple[Any, ...]:
    # Flink's rows are not checked for their length here either: the shorter side decides.
    return tuple(t.to_internal_type(value) for t, value in zip(types, values, strict=False))


def _restore(types: Sequence[TypeInformation[Any]], obj: Any) -> Any:
    if obj is None or isinstance(obj, (tuple, list)):
        return obj
    return tuple(t.from_internal_type(value) for t, value in zip(types, obj, strict=False))
