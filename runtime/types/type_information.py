"""TypeInformation, the basic types, and the base class of users' serializers.

Declaring types is optional, as records are Python objects. A declared type decides how keys are hashed (see
`java_class`), how formats read and write fields, and what plans show.
"""
# ruff: noqa: N802 - the factory methods have PyFlink's names

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, NoReturn

from opchain.runtime.java_objects import no_java
from opchain.runtime.time import Instant
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from decimal import Decimal
    from io import BytesIO


class TypeInformation(Generic[T]):
    """Describes records of the Python type `T`. Types are immutable, and compared by value.

    Flink: TypeInformation.
    """

    @property
    def java_class(self) -> str:
        """The simple name of Flink's Java class for such records, such as "Integer".

        It decides how a key of this type is hashed. With "Object", the class of the key decides.
        """
        return "Object"

    def need_conversion(self) -> bool:
        """Whether `to_internal_type` changes the value."""
        return False

    def to_internal_type(self, obj: Any) -> Any:
        """Converts a record to Flink's internal numbers and tuples, such as days for a date."""
        return obj

    def from_internal_type(self, obj: Any) -> Any:
        """Converts the internal value back to a record."""
        return obj

    def get_java_type_info(self) -> NoReturn:
        """Not supported, because opchain has no Java objects.

        Raises:
            UnsupportedFeatureError: Always.
        """
        raise no_java(f"{type(self).__name__}.get_java_type_info()")


class BasicType(Enum):
    """The basic types. The value is the printed name."""

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
    """A basic type, such as an int or a str.

    Flink: BasicTypeInfo.
    """

    basic_type: BasicType

    @property
    def java_class(self) -> str:
        """The boxed Java class, such as "Integer"."""
        return "Character" if self.basic_type is BasicType.CHAR else self.basic_type.value

    def __repr__(self) -> str:
        return self.basic_type.value

    @staticmethod
    @cache
    def STRING_TYPE_INFO() -> BasicTypeInfo[str]:
        """A str."""
        return BasicTypeInfo(BasicType.STRING)

    @staticmethod
    @cache
    def BOOLEAN_TYPE_INFO() -> BasicTypeInfo[bool]:
        """A bool."""
        return BasicTypeInfo(BasicType.BOOLEAN)

    @staticmethod
    @cache
    def BYTE_TYPE_INFO() -> BasicTypeInfo[int]:
        """An int of 8 bits."""
        return BasicTypeInfo(BasicType.BYTE)

    @staticmethod
    @cache
    def SHORT_TYPE_INFO() -> BasicTypeInfo[int]:
        """An int of 16 bits."""
        return BasicTypeInfo(BasicType.SHORT)

    @staticmethod
    @cache
    def INT_TYPE_INFO() -> BasicTypeInfo[int]:
        """An int of 32 bits."""
        return BasicTypeInfo(BasicType.INT)

    @staticmethod
    @cache
    def LONG_TYPE_INFO() -> BasicTypeInfo[int]:
        """An int of 64 bits."""
        return BasicTypeInfo(BasicType.LONG)

    @staticmethod
    @cache
    def FLOAT_TYPE_INFO() -> BasicTypeInfo[float]:
        """A float of single precision."""
        return BasicTypeInfo(BasicType.FLOAT)

    @staticmethod
    @cache
    def DOUBLE_TYPE_INFO() -> BasicTypeInfo[float]:
        """A float."""
        return BasicTypeInfo(BasicType.DOUBLE)

    @staticmethod
    @cache
    def CHAR_TYPE_INFO() -> BasicTypeInfo[str]:
        """A str that is one UTF-16 code unit."""
        return BasicTypeInfo(BasicType.CHAR)

    @staticmethod
    @cache
    def BIG_INT_TYPE_INFO() -> BasicTypeInfo[int]:
        """An int of any size."""
        return BasicTypeInfo(BasicType.BIG_INT)

    @staticmethod
    @cache
    def BIG_DEC_TYPE_INFO() -> BasicTypeInfo[Decimal]:
        """A Decimal."""
        return BasicTypeInfo(BasicType.BIG_DEC)

    @staticmethod
    @cache
    def INSTANT_TYPE_INFO() -> InstantTypeInfo:
        """An Instant."""
        return InstantTypeInfo(BasicType.INSTANT)


class InstantTypeInfo(BasicTypeInfo[Instant]):
    """The type of Instants. The internal value is in microseconds since the epoch, truncated to milliseconds."""

    def need_conversion(self) -> bool:
        """Always True."""
        return True

    def to_internal_type(self, obj: Instant | None) -> int | None:
        """The number of microseconds since the epoch."""
        return None if obj is None else obj.to_epoch_milli() * 1_000

    def from_internal_type(self, obj: int | None) -> Instant | None:
        """The Instant of a number of microseconds."""
        return None if obj is None else Instant.of_epoch_milli(obj // 1_000)


void = b""
"""The namespace of state without a namespace."""


class TypeSerializer(ABC, Generic[T]):
    """Writes and reads values of one type. Two serializers are equal if their classes and attributes are equal.

    Flink: TypeSerializer of PyFlink.
    """

    @abstractmethod
    def serialize(self, element: T, stream: BytesIO) -> None:
        """Writes the value to the stream."""

    @abstractmethod
    def deserialize(self, stream: BytesIO) -> T:
        """Reads one value from the stream."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, self.__class__) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class VoidNamespaceSerializer(TypeSerializer[bytes]):
    """Serializes the namespace of state without a namespace, as zero bytes."""

    def serialize(self, element: bytes, stream: BytesIO) -> None:
        """Writes nothing."""

    def deserialize(self, stream: BytesIO) -> bytes:  # noqa: ARG002 - nothing was written
        """Returns `void`."""
        return void


class ResultTypeQueryable(ABC):
    """A mixin for sources and formats that know the type of their records."""

    @abstractmethod
    def get_produced_type(self) -> TypeInformation[Any]:
        """The type of the records."""
