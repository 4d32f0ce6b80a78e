"""TypeInformation, the basic types, and serializers that users write.

A program may name a type wherever PyFlink takes one. Records are Python objects whatever is named;
a type decides how keys are hashed (see `java_class`), how formats read and write fields, and what the
plan shows.
"""
# ruff: noqa: N802 - the names of the factories are PyFlink's

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, NoReturn

from opchain.runtime.java_objects import no_java
from opchain.runtime.time import Instant
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from decimal import Decimal
    from io import BytesIO


class TypeInformation(Generic[T]):
    """Describes records of Python type `T`. Types are immutable, and equal when they describe the same.

    Flink: TypeInformation.
    """

    @property
    def java_class(self) -> str:
        """The simple name of the Java class that Flink uses for such records, such as "Integer".

        It says how a key of this type is hashed. "Object" leaves that to the key itself.
        """
        return "Object"

    def need_conversion(self) -> bool:
        """Whether `to_internal_type` changes anything."""
        return False

    def to_internal_type(self, obj: Any) -> Any:
        """The plain numbers and tuples that Flink keeps for a record, such as days for a date."""
        return obj

    def from_internal_type(self, obj: Any) -> Any:
        """The record again."""
        return obj

    def get_java_type_info(self) -> NoReturn:
        """Not available: there is no Java behind this project.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise no_java(f"{type(self).__name__}.get_java_type_info()")


class BasicType(Enum):
    """The basic types; the value is the name that is printed."""

    STRING = "String"
    BYTE = "Byte"
    BOOLEAN = "Boolean"
    SHORT = "Short"
    INT = "Integer"
    LONG = "Long"
    FLOAT = "Float"
    DOUBLE = "Double"
    CHAR = "Char"
    BIG_INT = "BigInteger"
    BIG_DEC = "BigDecimal"
    INSTANT = "Instant"


@dataclass(frozen=True, repr=False)
class BasicTypeInfo(TypeInformation[T]):
    """One of the basic types.

    Flink: BasicTypeInfo.
    """

    basic_type: BasicType

    @property
    def java_class(self) -> str:
        """The boxed class, such as "Integer"."""
        return "Character" if self.basic_type is BasicType.CHAR else self.basic_type.value

    def __repr__(self) -> str:
        return self.basic_type.value

    @staticmethod
    def STRING_TYPE_INFO() -> BasicTypeInfo[str]:
        """A str."""
        return BasicTypeInfo(BasicType.STRING)

    @staticmethod
    def BOOLEAN_TYPE_INFO() -> BasicTypeInfo[bool]:
        """A bool."""
        return BasicTypeInfo(BasicType.BOOLEAN)

    @staticmethod
    def BYTE_TYPE_INFO() -> BasicTypeInfo[int]:
        """An int of 8 bits."""
        return BasicTypeInfo(BasicType.BYTE)

    @staticmethod
    def SHORT_TYPE_INFO() -> BasicTypeInfo[int]:
        """An int of 16 bits."""
        return BasicTypeInfo(BasicType.SHORT)

    @staticmethod
    def INT_TYPE_INFO() -> BasicTypeInfo[int]:
        """An int of 32 bits."""
        return BasicTypeInfo(BasicType.INT)

    @staticmethod
    def LONG_TYPE_INFO() -> BasicTypeInfo[int]:
        """An int of 64 bits."""
        return BasicTypeInfo(BasicType.LONG)

    @staticmethod
    def FLOAT_TYPE_INFO() -> BasicTypeInfo[float]:
        """A float of single precision."""
        return BasicTypeInfo(BasicType.FLOAT)

    @staticmethod
    def DOUBLE_TYPE_INFO() -> BasicTypeInfo[float]:
        """A float."""
        return BasicTypeInfo(BasicType.DOUBLE)

    @staticmethod
    def CHAR_TYPE_INFO() -> BasicTypeInfo[str]:
        """A str of one UTF-16 unit."""
        return BasicTypeInfo(BasicType.CHAR)

    @staticmethod
    def BIG_INT_TYPE_INFO() -> BasicTypeInfo[int]:
        """An int of any size."""
        return BasicTypeInfo(BasicType.BIG_INT)

    @staticmethod
    def BIG_DEC_TYPE_INFO() -> BasicTypeInfo[Decimal]:
        """A Decimal."""
        return BasicTypeInfo(BasicType.BIG_DEC)

    @staticmethod
    def INSTANT_TYPE_INFO() -> InstantTypeInfo:
        """An Instant."""
        return InstantTypeInfo(BasicType.INSTANT)


class InstantTypeInfo(BasicTypeInfo[Instant]):
    """An Instant; internally microseconds since the epoch, of which only whole milliseconds count."""

    def need_conversion(self) -> bool:
        """True."""
        return True

    def to_internal_type(self, obj: Instant | None) -> int | None:
        """Microseconds since the epoch."""
        return None if obj is None else obj.to_epoch_milli() * 1_000

    def from_internal_type(self, obj: int | None) -> Instant | None:
        """The instant of that microsecond."""
        return None if obj is None else Instant.of_epoch_milli(obj // 1_000)


void = b""
"""The only namespace of state that has none."""


class TypeSerializer(ABC, Generic[T]):
    """Writes and reads values of one type. Equal when class and attributes are.

    Flink: TypeSerializer of PyFlink.
    """

    @abstractmethod
    def serialize(self, element: T, stream: BytesIO) -> None:
        """Appends the value to the stream."""

    @abstractmethod
    def deserialize(self, stream: BytesIO) -> T:
        """Takes one value off the stream, and leaves the stream behind it."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, self.__class__) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class VoidNamespaceSerializer(TypeSerializer[bytes]):
    """Serializes the namespace of state that has none, into nothing."""

    def serialize(self, element: bytes, stream: BytesIO) -> None:
        """Writes nothing."""

    def deserialize(self, stream: BytesIO) -> bytes:  # noqa: ARG002 - nothing was written
        """`void`."""
        return void


class ResultTypeQueryable(ABC):
    """Mixed into sources and formats that name their records' type."""

    @abstractmethod
    def get_produced_type(self) -> TypeInformation[Any]:
        """The type of the records."""
