"""Functions over the elements of a window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic

from opchain.runtime.functions.function import Function
from opchain.runtime.functions.type_variables import W_co, W_contra
from opchain.runtime.types.type_variables import IN_contra, KEY_contra, OUT_co, T

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from opchain.runtime.functions.state import KeyedStateStore
    from opchain.runtime.types.output_tag import Emitted


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
    """The window at hand and its state."""

    @abstractmethod
    def window(self) -> W_co:
        """The window that fires."""

    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """State of this key and this window; `clear` must clear what was put there."""

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
    """Gives the elements themselves: what stands behind a lone `reduce` or `aggregate`."""

    def apply(self, key: Any, window: Any, inputs: Iterable[T]) -> Iterable[T]:  # noqa: ARG002
        """The inputs."""
        return inputs


class PassThroughAllWindowFunction(AllWindowFunction[T, T, "Any"]):
    """Gives the elements themselves, in `window_all`."""

    def apply(self, window: Any, inputs: Iterable[T]) -> Iterable[T]:  # noqa: ARG002
        """The inputs."""
        return inputs
