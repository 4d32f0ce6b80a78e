"""Windows, window functions, and serializers of windows in Flink's formats (big-endian 64-bit numbers).

Windows are keys of state and timers. So they are immutable, equal by value, and have the same hash in every process.
They can be sorted, so code that iterates over several windows has a fixed order.
"""

from __future__ import annotations

import pickle
import struct
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, Protocol

from opchain.runtime.functions.function import Function
from opchain.runtime.functions.type_variables import W_co, W_contra
from opchain.runtime.time import MAX_LONG_VALUE
from opchain.runtime.types.type_information import TypeSerializer
from opchain.runtime.types.type_variables import IN_contra, KEY_contra, OUT_co, T

if TYPE_CHECKING:
    from collections.abc import Iterable
    from io import BytesIO

    from opchain.runtime.functions.state import KeyedStateStore
    from opchain.runtime.types.output_tag import Emitted


class Window(ABC):
    """The base class of windows. A window is complete when the watermark has passed its last timestamp.

    A custom window must be immutable, hashable, comparable with `<`, and picklable.
    """

    __slots__ = ()

    @abstractmethod
    def max_timestamp(self) -> int:
        """The last timestamp in milliseconds that belongs to the window."""


class MergeCallback(Protocol):
    """Receives the windows to merge. Flink: MergingWindowAssigner.MergeCallback."""

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        """Merges the windows into `merge_result`."""


class TimeWindow(Window):
    """A window of the timestamps from `start` (inclusive) to `end` (exclusive), in milliseconds.

    >>> TimeWindow(0, 10).max_timestamp()
    9
    """

    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end

    def max_timestamp(self) -> int:
        """The last timestamp of the window."""
        return self.end - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Whether the windows overlap or touch. In Flink, [0, 5) and [5, 9) also intersect."""
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The smallest window that contains both windows."""
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """The start of the window that contains a timestamp. Timestamps before 1970 are supported.

        >>> [TimeWindow.get_window_start_with_offset(t, 0, 10) for t in (-1, 0, 9, 10)]
        [-10, 0, 0, 10]
        """
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: MergeCallback) -> None:
        """Calls the callback with each group of windows that overlap or touch, and the window that covers the group.

        Two windows are also in one group if other windows connect them. A window without neighbours is not reported.
        Groups are sorted by start. The windows of a group have the order of the set in which PyFlink passes them,
        because the contents of merged sessions are concatenated in that order.
        """
        for group in _groups(sorted(set(windows))):
            if len(group) > 1:
                merged = TimeWindow(group[0].start, max(w.end for w in group))
                callback.merge([member.window for member in set(map(_SetMember, group))], merged)

    def __eq__(self, other: object) -> bool:
        if type(other) is not TimeWindow:
            return NotImplemented
        return self.start == other.start and self.end == other.end

    def __lt__(self, other: TimeWindow) -> bool:
        if not isinstance(other, TimeWindow):
            return NotImplemented
        return (self.start, self.end) < (other.start, other.end)

    def __le__(self, other: TimeWindow) -> bool:
        if not isinstance(other, TimeWindow):
            return NotImplemented
        return (self.start, self.end) <= (other.start, other.end)

    def __hash__(self) -> int:
        return hash((self.start, self.end))

    def __repr__(self) -> str:
        return f"TimeWindow(start={self.start}, end={self.end})"

    def __reduce__(self) -> tuple[Any, ...]:
        return TimeWindow, (self.start, self.end)


class _SetMember:
    """A window with the hash code that it has in PyFlink."""

    __slots__ = ("window",)

    def __init__(self, window: TimeWindow) -> None:
        self.window = window

    def __hash__(self) -> int:
        odd = 2 * self.window.end + 1
        inverse = odd**3
        for _ in range(3):
            inverse *= 2 - odd * inverse
        return self.window.start + inverse


class CountWindow(Window):
    """A window with a number. It has no end in time."""

    __slots__ = ("id",)

    def __init__(self, id: int) -> None:  # noqa: A002 - PyFlink's name
        self.id = id

    def max_timestamp(self) -> int:
        """The largest timestamp, 2**63 - 1."""
        return MAX_LONG_VALUE

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if type(other) is CountWindow else NotImplemented

    def __lt__(self, other: CountWindow) -> bool:
        return self.id < other.id if isinstance(other, CountWindow) else NotImplemented

    def __le__(self, other: CountWindow) -> bool:
        return self.id <= other.id if isinstance(other, CountWindow) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"CountWindow(id={self.id})"

    def __reduce__(self) -> tuple[Any, ...]:
        return CountWindow, (self.id,)


class GlobalWindow(Window):
    """The single window that contains all records."""

    __slots__ = ()

    @staticmethod
    def get() -> GlobalWindow:
        """The only instance."""
        return _GLOBAL_WINDOW

    def max_timestamp(self) -> int:
        """The largest timestamp, 2**63 - 1."""
        return MAX_LONG_VALUE

    def __eq__(self, other: object) -> bool:
        return True if type(other) is GlobalWindow else NotImplemented

    def __lt__(self, other: GlobalWindow) -> bool:
        return False if isinstance(other, GlobalWindow) else NotImplemented

    def __le__(self, other: GlobalWindow) -> bool:
        return True if isinstance(other, GlobalWindow) else NotImplemented

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "GlobalWindow"

    def __reduce__(self) -> tuple[Any, ...]:
        return GlobalWindow.get, ()


_GLOBAL_WINDOW = GlobalWindow()


def _groups(windows: list[TimeWindow]) -> list[list[TimeWindow]]:
    """Groups sorted windows, so that the windows of a group overlap or touch."""
    groups: list[list[TimeWindow]] = []
    end = None
    for window in windows:
        if end is None or window.start > end:
            groups.append([window])
            end = window.end
        else:
            groups[-1].append(window)
            end = max(end, window.end)
    return groups


_START_AND_END = struct.Struct(">qq")
_ID = struct.Struct(">q")


class TimeWindowSerializer(TypeSerializer[TimeWindow]):
    """Writes a window as start and end, in 16 bytes."""

    def serialize(self, element: TimeWindow, stream: BytesIO) -> None:
        """Writes the window to the stream."""
        stream.write(_START_AND_END.pack(element.start, element.end))

    def deserialize(self, stream: BytesIO) -> TimeWindow:
        """Reads a window from the stream."""
        return TimeWindow(*_START_AND_END.unpack(stream.read(_START_AND_END.size)))


class CountWindowSerializer(TypeSerializer[CountWindow]):
    """Writes a window as its number, in 8 bytes."""

    def serialize(self, element: CountWindow, stream: BytesIO) -> None:
        """Writes the window to the stream."""
        stream.write(_ID.pack(element.id))

    def deserialize(self, stream: BytesIO) -> CountWindow:
        """Reads a window from the stream."""
        return CountWindow(*_ID.unpack(stream.read(_ID.size)))


class GlobalWindowSerializer(TypeSerializer[GlobalWindow]):
    """Writes the window as one zero byte."""

    def serialize(self, element: GlobalWindow, stream: BytesIO) -> None:  # noqa: ARG002 - there is one
        """Writes the window to the stream."""
        stream.write(b"\0")

    def deserialize(self, stream: BytesIO) -> GlobalWindow:
        """Reads a window from the stream."""
        stream.read(1)
        return GlobalWindow.get()


class PickledWindowSerializer(TypeSerializer[T]):
    """Writes any window as a pickle."""

    def serialize(self, element: T, stream: BytesIO) -> None:
        """Writes the window to the stream."""
        pickle.dump(element, stream)

    def deserialize(self, stream: BytesIO) -> T:
        """Reads a window from the stream."""
        window: T = pickle.load(stream)
        return window


class WindowFunction(Function, Generic[IN_contra, OUT_co, KEY_contra, W_contra]):
    """Processes the records of a window of one key when the window fires."""

    @abstractmethod
    def apply(
        self, key: KEY_contra, window: W_contra, inputs: Iterable[IN_contra]
    ) -> Iterable[OUT_co] | None:
        """Yields the results of the window, or returns them as an iterable."""


class AllWindowFunction(Function, Generic[IN_contra, OUT_co, W_contra]):
    """Processes the records of a window of `window_all` when the window fires."""

    @abstractmethod
    def apply(self, window: W_contra, inputs: Iterable[IN_contra]) -> Iterable[OUT_co] | None:
        """Yields the results of the window, or returns them as an iterable."""


class _WindowContext(ABC, Generic[W_co]):
    """The current window and its state."""

    @abstractmethod
    def window(self) -> W_co:
        """The window that fires."""

    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """State of this key and window. Clear it in `clear`."""

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """State of this key, shared by all its windows."""


class ProcessWindowFunction(Function, Generic[IN_contra, OUT_co, KEY_contra, W_contra]):
    """Like WindowFunction, with a context."""

    class Context(_WindowContext[W_co]):
        """The window, the clocks, and state."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The current time of the machine in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The current watermark in milliseconds."""

    @abstractmethod
    def process(
        self,
        key: KEY_contra,
        context: ProcessWindowFunction.Context[W_contra],
        elements: Iterable[IN_contra],
    ) -> Emitted[OUT_co]:
        """Yields the results of the window. `yield tag, value` emits to a side output."""

    def clear(self, context: ProcessWindowFunction.Context[W_contra]) -> None:
        """Called when the window is removed. Clear `window_state` here."""


class ProcessAllWindowFunction(Function, Generic[IN_contra, OUT_co, W_contra]):
    """Like AllWindowFunction, with a context."""

    class Context(_WindowContext[W_co]):
        """The window and state."""

    @abstractmethod
    def process(
        self, context: ProcessAllWindowFunction.Context[W_contra], elements: Iterable[IN_contra]
    ) -> Emitted[OUT_co]:
        """Yields the results of the window. `yield tag, value` emits to a side output."""

    def clear(self, context: ProcessAllWindowFunction.Context[W_contra]) -> None:
        """Called when the window is removed. Clear `window_state` here."""


class PassThroughWindowFunction(WindowFunction[T, T, "Any", "Any"]):
    """Emits the elements unchanged, for `reduce` and `aggregate` without a window function."""

    def apply(self, key: Any, window: Any, inputs: Iterable[T]) -> Iterable[T]:  # noqa: ARG002
        """Returns the elements."""
        return inputs


class PassThroughAllWindowFunction(AllWindowFunction[T, T, "Any"]):
    """Emits the elements of `window_all` unchanged."""

    def apply(self, window: Any, inputs: Iterable[T]) -> Iterable[T]:  # noqa: ARG002
        """Returns the elements."""
        return inputs
