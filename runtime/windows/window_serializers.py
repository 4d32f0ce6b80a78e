"""Windows as bytes, in Flink's formats: big-endian 64-bit numbers."""

from __future__ import annotations

import pickle
import struct
from typing import TYPE_CHECKING

from opchain.runtime.type_variables import T
from opchain.runtime.types.type_serializer import TypeSerializer
from opchain.runtime.windows.window import CountWindow, GlobalWindow, TimeWindow

if TYPE_CHECKING:
    from io import BytesIO

_START_AND_END = struct.Struct(">qq")
_ID = struct.Struct(">q")


class TimeWindowSerializer(TypeSerializer[TimeWindow]):
    """Start and end, 16 bytes."""

    def serialize(self, element: TimeWindow, stream: BytesIO) -> None:
        """Appends the window."""
        stream.write(_START_AND_END.pack(element.start, element.end))

    def deserialize(self, stream: BytesIO) -> TimeWindow:
        """Takes a window off the stream."""
        return TimeWindow(*_START_AND_END.unpack(stream.read(_START_AND_END.size)))


class CountWindowSerializer(TypeSerializer[CountWindow]):
    """The number, 8 bytes."""

    def serialize(self, element: CountWindow, stream: BytesIO) -> None:
        """Appends the window."""
        stream.write(_ID.pack(element.id))

    def deserialize(self, stream: BytesIO) -> CountWindow:
        """Takes a window off the stream."""
        return CountWindow(*_ID.unpack(stream.read(_ID.size)))


class GlobalWindowSerializer(TypeSerializer[GlobalWindow]):
    """One zero byte."""

    def serialize(self, element: GlobalWindow, stream: BytesIO) -> None:  # noqa: ARG002 - there is one
        """Appends the window."""
        stream.write(b"\0")

    def deserialize(self, stream: BytesIO) -> GlobalWindow:
        """Takes a window off the stream."""
        stream.read(1)
        return GlobalWindow.get()


class PickledWindowSerializer(TypeSerializer[T]):
    """Any window, as a pickle."""

    def serialize(self, element: T, stream: BytesIO) -> None:
        """Appends the window."""
        pickle.dump(element, stream)

    def deserialize(self, stream: BytesIO) -> T:
        """Takes a window off the stream."""
        window: T = pickle.load(stream)
        return window
