"""What happens when a window fires: its function is called, and what it gives is emitted.

Flink: the `InternalWindowFunction` family, and `WindowOperator.emitWindowContents`. Results carry the
last timestamp of the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.collector_form import accept_collectors
from opchain.runtime.functions.window_functions import (
    ProcessAllWindowFunction,
    ProcessWindowFunction,
)
from opchain.runtime.operators.process import emit_results

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opchain.runtime.operators.operator import Output
    from opchain.runtime.operators.specs import WindowSpec
    from opchain.runtime.operators.windows.window_context import WindowContext
    from opchain.runtime.windows.window import Window

    Call = Callable[[Any, Window, Iterable[Any]], Iterable[Any] | None]
    """A window function whatever its kind: gets the key, the window and its elements."""


class WindowEvaluation:
    """The window function of one operator, with its output.

    `has_function` says whether there is one: without, a window's elements are what comes out.
    `clears` says that something happens when a window is dropped for good.
    """

    def __init__(self, spec: WindowSpec, context: WindowContext, output: Output) -> None:
        function = spec.function
        accept_collectors(function)
        self._context = context
        self._output = output
        self._function = function
        self.has_function = function is not None
        self.clears = has_clear(function)
        self._call = _call_of(function, context, is_all=spec.is_all)

    def emit(self, key: Any, window: Window, elements: Iterable[Any]) -> None:
        """Emits what the function makes of a window's elements."""
        self._context.enter(window)
        emit_results(self._output, self._call(key, window, elements), window.max_timestamp())

    def for_window(self, window: Window) -> Callable[[Any, Iterable[Any]], None]:
        """`emit` for many keys of one window, one after the other."""
        call, output, last = self._call, self._output, window.max_timestamp()
        self._context.enter(window)

        def emit(key: Any, elements: Iterable[Any]) -> None:
            emit_results(output, call(key, window, elements), last)

        return emit

    def clear(self, window: Window) -> None:
        """Tells the function that the current key's window is dropped for good."""
        if self.clears:
            self._context.enter(window)
            self._function.clear(self._context)


def has_clear(function: Any) -> bool:
    """Whether a window function does something when a window is dropped for good."""
    return isinstance(function, (ProcessWindowFunction, ProcessAllWindowFunction)) and type(
        function
    ).clear not in (ProcessWindowFunction.clear, ProcessAllWindowFunction.clear)


def _call_of(function: Any, context: WindowContext, *, is_all: bool) -> Call:
    if function is None:
        return lambda _key, _window, elements: elements
    if isinstance(function, (ProcessWindowFunction, ProcessAllWindowFunction)):
        process: Callable[..., Any] = function.process
        if is_all:
            return lambda _key, _window, elements: process(context, elements)
        return lambda key, _window, elements: process(key, context, elements)
    apply: Callable[..., Any] = getattr(function, "apply", function)
    if is_all:
        return lambda _key, window, elements: apply(window, elements)
    return apply
