"""Windows, the functions over their elements, and their bytes in Flink's formats (big-endian 64-bit numbers).

Windows are keys of state and timers. So they are immutable, equal by value, and have the same hash in every process.
They can be sorted, so that code which iterates over several windows has a fixed order.
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
    """A bucket of records with a last timestamp, after which all of them have come.

    A window of your own must be immutable, hashable, comparable with `<`, and must pickle.
    """

    __slots__ = ()

    @abstractmethod
    def max_timestamp(self) -> int:
        """The last timestamp, in milliseconds, that still belongs to the window."""


class MergeCallback(Protocol):
    """Receives the windows to merge. Flink: MergingWindowAssigner.MergeCallback, which fits it."""

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        """Merges the windows into `merge_result`."""


class TimeWindow(Window):
    """The timestamps from `start` to just before `end`, in milliseconds.

    >>> TimeWindow(0, 10).max_timestamp()
    9
    """

    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end

    def max_timestamp(self) -> int:
        """The last timestamp inside."""
        return self.end - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Whether the windows overlap or touch: in Flink [0, 5) and [5, 9) do intersect."""
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The smallest window that contains both."""
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """The start of the window that contains a timestamp, also before the Unix epoch.

        >>> [TimeWindow.get_window_start_with_offset(t, 0, 10) for t in (-1, 0, 9, 10)]
        [-10, 0, 0, 10]
        """
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: MergeCallback) -> None:
        """Reports each group of windows that overlap or touch, and the window that covers the group.

        Windows belong to a group also through others. A window that stands alone is not reported.
        Groups come by start. PyFlink gives the windows of a group as a set, and the contents of sessions that become
        one are put together in the order of that set; here they come in the same order.
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
    """A window with its hash code in PyFlink."""

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
    """A window with a number. Its end is not a time."""

    __slots__ = ("id",)

    def __init__(self, id: int) -> None:  # noqa: A002 - PyFlink's name
        self.id = id

    def max_timestamp(self) -> int:
        """The end of time."""
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
        """The window."""
        return _GLOBAL_WINDOW

    def max_timestamp(self) -> int:
        """The end of time."""
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
    """Sorted windows, in groups without a gap."""
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
    """Start and end, 16 bytes."""

    def serialize(self, element: TimeWindow, stream: BytesIO) -> None:
        """Appends the window."""
        stream.write(_START_AND_END.pack(element.start, element.end))

    def deserialize(self, stream: BytesIO) -> TimeWindow:
        """Reads a window from the stream."""
        return TimeWindow(*_START_AND_END.unpack(stream.read(_START_AND_END.size)))


class CountWindowSerializer(TypeSerializer[CountWindow]):
    """The number, 8 bytes."""

    def serialize(self, element: CountWindow, stream: BytesIO) -> None:
        """Appends the window."""
        stream.write(_ID.pack(element.id))

    def deserialize(self, stream: BytesIO) -> CountWindow:
        """Reads a window from the stream."""
        return CountWindow(*_ID.unpack(stream.read(_ID.size)))


class GlobalWindowSerializer(TypeSerializer[GlobalWindow]):
    """One zero byte."""

    def serialize(self, element: GlobalWindow, stream: BytesIO) -> None:  # noqa: ARG002 - there is one
        """Appends the window."""
        stream.write(b"\0")

    def deserialize(self, stream: BytesIO) -> GlobalWindow:
        """Reads a window from the stream."""
        stream.read(1)
        return GlobalWindow.get()


class PickledWindowSerializer(TypeSerializer[T]):
    """Any window, as a pickle."""

    def serialize(self, element: T, stream: BytesIO) -> None:
        """Appends the window."""
        pickle.dump(element, stream)

    def deserialize(self, stream: BytesIO) -> T:
        """Reads a window from the stream."""
        window: T = pickle.load(stream)
        return window


class WindowFunction(Function, Generic[IN_contra, OUT_co, KEY_contra, W_contra]):
    """Evaluates one window of one key when it fires."""

    @abstractmethod
    def apply(
        self, key: KEY_contra, window: W_contra, inputs: Iterable[IN_contra]
    ) -> Iterable[OUT_co] | None:
        """Yields, or returns as an iterable, the window's results."""


class AllWindowFunction(Function, Generic[IN_contra, OUT_co, W_contra]):
    """Evaluates one window of `window_all` when it fires."""

    @abstractmethod
    def apply(self, window: W_contra, inputs: Iterable[IN_contra]) -> Iterable[OUT_co] | None:
        """Yields, or returns as an iterable, the window's results."""


class _WindowContext(ABC, Generic[W_co]):
    """The current window and its state."""

    @abstractmethod
    def window(self) -> W_co:
        """The window that fires."""

    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """State of this key and this window. `clear` must clear it."""

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """State of this key over all its windows."""


class ProcessWindowFunction(Function, Generic[IN_contra, OUT_co, KEY_contra, W_contra]):
    """Evaluates one window of one key when it fires, with a context."""

    class Context(_WindowContext[W_co]):
        """The window, the clocks, and state."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The machine's time in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The event time reached so far, in milliseconds."""

    @abstractmethod
    def process(
        self,
        key: KEY_contra,
        context: ProcessWindowFunction.Context[W_contra],
        elements: Iterable[IN_contra],
    ) -> Emitted[OUT_co]:
        """Yields the window's results; `yield tag, value` goes to a side output."""

    def clear(self, context: ProcessWindowFunction.Context[W_contra]) -> None:
        """Runs when the window is dropped for good: the place to clear `window_state`."""


class ProcessAllWindowFunction(Function, Generic[IN_contra, OUT_co, W_contra]):
    """Evaluates one window of `window_all` when it fires, with a context."""

    class Context(_WindowContext[W_co]):
        """The window and state."""

    @abstractmethod
    def process(
        self, context: ProcessAllWindowFunction.Context[W_contra], elements: Iterable[IN_contra]
    ) -> Emitted[OUT_co]:
        """Yields the window's results; `yield tag, value` goes to a side output."""

    def clear(self, context: ProcessAllWindowFunction.Context[W_contra]) -> None:
        """Runs when the window is dropped for good: the place to clear `window_state`."""


class PassThroughWindowFunction(WindowFunction[T, T, "Any", "Any"]):
    """Emits the elements unchanged, for `reduce` and `aggregate` without a window function."""

    def apply(self, key: Any, window: Any, inputs: Iterable[T]) -> Iterable[T]:  # noqa: ARG002
        """The inputs."""
        return inputs


class PassThroughAllWindowFunction(AllWindowFunction[T, T, "Any"]):
    """Emits the elements of `window_all` unchanged."""

    def apply(self, window: Any, inputs: Iterable[T]) -> Iterable[T]:  # noqa: ARG002
        """The inputs."""
        return inputs
