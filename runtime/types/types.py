# ruff: noqa: N802 - the factory methods have PyFlink's names
"""`Types`: the factory of record types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.types.container_types import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
)
from opchain.runtime.types.record_types import PickledBytesTypeInfo, RowTypeInfo, TupleTypeInfo
from opchain.runtime.types.time_types import SqlTimeTypeInfo
from opchain.runtime.types.type_information import BasicTypeInfo, TypeInformation

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date, datetime, time
    from decimal import Decimal

    from opchain.runtime.time import Instant
    from opchain.runtime.types.type_variables import K, T, V


class Types:
    """Creates types of records.

    >>> Types.ROW_NAMED(["id", "tags"], [Types.LONG(), Types.LIST(Types.STRING())])
    RowTypeInfo(id: Long, tags: ListTypeInfo<String>)
    """

    @staticmethod
    def STRING() -> TypeInformation[str]:
        """A str."""
        return BasicTypeInfo.STRING_TYPE_INFO()

    @staticmethod
    def BYTE() -> TypeInformation[int]:
        """An int of 8 bits."""
        return BasicTypeInfo.BYTE_TYPE_INFO()

    @staticmethod
    def BOOLEAN() -> TypeInformation[bool]:
        """A bool."""
        return BasicTypeInfo.BOOLEAN_TYPE_INFO()

    @staticmethod
    def SHORT() -> TypeInformation[int]:
        """An int of 16 bits."""
        return BasicTypeInfo.SHORT_TYPE_INFO()

    @staticmethod
    def INT() -> TypeInformation[int]:
        """An int of 32 bits. A key of this type is hashed like Java's Integer, not like Long."""
        return BasicTypeInfo.INT_TYPE_INFO()

    @staticmethod
    def LONG() -> TypeInformation[int]:
        """An int of 64 bits."""
        return BasicTypeInfo.LONG_TYPE_INFO()

    @staticmethod
    def FLOAT() -> TypeInformation[float]:
        """A float of single precision."""
        return BasicTypeInfo.FLOAT_TYPE_INFO()

    @staticmethod
    def DOUBLE() -> TypeInformation[float]:
        """A float."""
        return BasicTypeInfo.DOUBLE_TYPE_INFO()

    @staticmethod
    def CHAR() -> TypeInformation[str]:
        """A str that is one UTF-16 code unit."""
        return BasicTypeInfo.CHAR_TYPE_INFO()

    @staticmethod
    def BIG_INT() -> TypeInformation[int]:
        """An int of any size."""
        return BasicTypeInfo.BIG_INT_TYPE_INFO()

    @staticmethod
    def BIG_DEC() -> TypeInformation[Decimal]:
        """A Decimal."""
        return BasicTypeInfo.BIG_DEC_TYPE_INFO()

    @staticmethod
    def INSTANT() -> TypeInformation[Instant]:
        """An Instant."""
        return BasicTypeInfo.INSTANT_TYPE_INFO()

    @staticmethod
    def SQL_DATE() -> TypeInformation[date]:
        """A date."""
        return SqlTimeTypeInfo.DATE()

    @staticmethod
    def SQL_TIME() -> TypeInformation[time]:
        """A time of day."""
        return SqlTimeTypeInfo.TIME()

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation[datetime]:
        """A datetime."""
        return SqlTimeTypeInfo.TIMESTAMP()

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation[Any]:
        """Any Python object: the type of a stream without a declared type."""
        return PickledBytesTypeInfo()

    @staticmethod
    def ROW(field_types: Sequence[TypeInformation[Any]]) -> RowTypeInfo:
        """A Row whose fields are called f0, f1, ..."""
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(
        field_names: Sequence[str], field_types: Sequence[TypeInformation[Any]]
    ) -> RowTypeInfo:
        """A Row with these field names.

        Raises:
            ValueError: The numbers of names and types differ, or a name occurs twice.
        """
        return RowTypeInfo(field_types, field_names)

    @staticmethod
    def TUPLE(field_types: Sequence[TypeInformation[Any]]) -> TupleTypeInfo:
        """A tuple."""
        return TupleTypeInfo(field_types)

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation[T]) -> TypeInformation[Sequence[T]]:
        """An array of numbers, bools or characters without None; bytes for BYTE.

        Raises:
            TypeError: The element type is not supported.
        """
        return PrimitiveArrayTypeInfo(element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation[T]) -> TypeInformation[Sequence[T]]:
        """An array of numbers, bools, characters or strings. Elements may be None.

        Raises:
            TypeError: The element type is not supported.
        """
        return BasicArrayTypeInfo(element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation[T]) -> TypeInformation[Sequence[T]]:
        """An array of elements of any type. Elements may be None."""
        return ObjectArrayTypeInfo(element_type)

    @staticmethod
    def MAP(
        key_type_info: TypeInformation[K], value_type_info: TypeInformation[V]
    ) -> TypeInformation[dict[K, V]]:
        """A dict."""
        return MapTypeInfo(key_type_info, value_type_info)

    @staticmethod
    def LIST(element_type_info: TypeInformation[T]) -> TypeInformation[list[T]]:
        """A list."""
        return ListTypeInfo(element_type_info)
