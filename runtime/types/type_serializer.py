"""Serializers that users write for the state and records of a type."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic

from opchain.runtime.type_variables import T

if TYPE_CHECKING:
    from io import BytesIO

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
