"""Types of arrays, lists and maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from opchain.runtime.types.type_information import BasicType, BasicTypeInfo, TypeInformation
from opchain.runtime.types.type_variables import K, T, V

# Java's name of the primitive type for each boxed type.
_PRIMITIVES: Mapping[BasicType, str] = {
    BasicType.BOOLEAN: "boolean",
    BasicType.BYTE: "byte",
    BasicType.SHORT: "short",
    BasicType.INT: "int",
    BasicType.LONG: "long",
    BasicType.FLOAT: "float",
    BasicType.DOUBLE: "double",
    BasicType.CHAR: "char",
}


@dataclass(frozen=True, repr=False)
class _ElementsTypeInfo(TypeInformation[V]):
    element_type: TypeInformation[Any]
    _constructor: ClassVar[str] = ""

    def __post_init__(self) -> None:
        require_type(self._constructor, self.element_type)

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.element_type}>"


class PrimitiveArrayTypeInfo(_ElementsTypeInfo[Sequence[T]]):
    """An array of numbers, bools or characters without None; bytes for the element type BYTE.

    Raises:
        TypeError: The element type is not supported.

    Flink: PrimitiveArrayTypeInfo, such as int[].
    """

    def __post_init__(self) -> None:
        _require_element("PRIMITIVE_ARRAY", self.element_type, set(_PRIMITIVES))

    @property
    def java_class(self) -> str:
        """For example "int[]"."""
        element = self.element_type
        return f"{_PRIMITIVES[element.basic_type]}[]" if isinstance(element, BasicTypeInfo) else ""


class BasicArrayTypeInfo(_ElementsTypeInfo[Sequence[T]]):
    """An array of numbers, bools, characters or strings. Elements may be None.

    Raises:
        TypeError: The element type is not supported.

    Flink: BasicArrayTypeInfo, such as Integer[].
    """

    def __post_init__(self) -> None:
        _require_element("BASIC_ARRAY", self.element_type, {*_PRIMITIVES, BasicType.STRING})

    @property
    def java_class(self) -> str:
        """For example "Integer[]"."""
        return f"{self.element_type.java_class}[]"


class ObjectArrayTypeInfo(_ElementsTypeInfo[Sequence[T]]):
    """An array of elements of any type. Elements may be None.

    Flink: ObjectArrayTypeInfo.
    """

    _constructor = "OBJECT_ARRAY"

    @property
    def java_class(self) -> str:
        """For example "Row[]"."""
        return f"{self.element_type.java_class}[]"


class ListTypeInfo(_ElementsTypeInfo[list[T]]):
    """The type of lists.

    Flink: ListTypeInfo.
    """

    _constructor = "LIST"

    @property
    def elem_type(self) -> TypeInformation[T]:
        """The same as `element_type`: PyFlink's name."""
        return self.element_type

    @property
    def java_class(self) -> str:
        """java.util.List."""
        return "List"


@dataclass(frozen=True, repr=False)
class MapTypeInfo(TypeInformation[dict[K, V]]):
    """The type of dicts.

    Flink: MapTypeInfo.
    """

    key_type_info: TypeInformation[K]
    value_type_info: TypeInformation[V]

    def __post_init__(self) -> None:
        require_type("MAP", self.key_type_info)
        require_type("MAP", self.value_type_info)

    @property
    def java_class(self) -> str:
        """java.util.Map."""
        return "Map"

    def __repr__(self) -> str:
        return f"MapTypeInfo<{self.key_type_info}, {self.value_type_info}>"


def require_type(where: str, value: Any) -> None:
    """Checks that an argument is a TypeInformation, and not, for example, the Python class `int`.

    Raises:
        TypeError: The argument is not a TypeInformation.
    """
    if not isinstance(value, TypeInformation):
        raise TypeError(f"Types.{where} takes types such as Types.STRING(), not {value!r}")


def _require_element(where: str, element_type: Any, allowed: set[BasicType]) -> None:
    require_type(where, element_type)
    if not isinstance(element_type, BasicTypeInfo) or element_type.basic_type not in allowed:
        names = ", ".join(basic.name for basic in BasicType if basic in allowed)
        raise TypeError(f"Types.{where} has no elements of type {element_type!r}, only of {names}")
