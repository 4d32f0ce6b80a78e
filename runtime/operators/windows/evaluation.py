"""Evaluates a window that fires: calls the window function with its context, and emits the results.

The contexts of assigners and evictors are here, too.

Flink: `WindowOperator.emitWindowContents` and `WindowContext`, `InternalWindowFunction`, `PerWindowStateStore`,
`MergingWindowStateStore`, `WindowAssignerContext`, `EvictingWindowOperator.EvictorContext`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from opchain.runtime.errors import StateError
from opchain.runtime.functions.callables import accept_collectors
from opchain.runtime.functions.state import KeyedStateStore, OperatorStateStore
from opchain.runtime.functions.window import ProcessAllWindowFunction, ProcessWindowFunction, Window
from opchain.runtime.operators.process import emit_results
from opchain.runtime.windows.assigners import MergingWindowAssigner, WindowAssigner
from opchain.runtime.windows.evictors import Evictor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opchain.runtime.functions.function import RuntimeContext
    from opchain.runtime.operators.operator import Output
    from opchain.runtime.operators.windows.window_operator import KeyedWindowOperator
    from opchain.runtime.program.operator_specs import WindowSpec


class WindowContext(ProcessWindowFunction.Context[Any], ProcessAllWindowFunction.Context[Any]):
    """The context of process window functions; one object per operator, valid during a call."""

    def __init__(self, operator: KeyedWindowOperator) -> None:
        self._operator = operator
        self._window_state: _WindowStates | _NoWindowStates = (
            _NoWindowStates(operator)
            if isinstance(operator.spec.assigner, MergingWindowAssigner)
            else _WindowStates(operator)
        )
        self._window: Any = None

    def enter(self, window: Any) -> None:
        """Makes a window the current window."""
        self._window = self._window_state.window = window

    def window(self) -> Any:
        """The current window."""
        return self._window

    def current_processing_time(self) -> int:
        """The task's clock in milliseconds."""
        return self._operator.context.processing_time.current_processing_time()

    def current_watermark(self) -> int:
        """The event time reached so far, in milliseconds."""
        return self._operator.event_time()

    def window_state(self) -> KeyedStateStore:
        """State of the current key and window."""
        return self._window_state

    def global_state(self) -> KeyedStateStore:
        """State of the current key."""
        return self._operator.context.runtime_context


class _WindowStates(KeyedStateStore):
    """States of the current key and window."""

    def __init__(self, operator: KeyedWindowOperator) -> None:
        self._backend = operator.context.keyed_state
        self.window: Any = None

    def _get(self, state_descriptor: Any) -> Any:
        return self._backend.get_partitioned_state(self.window, state_descriptor)

    get_state = _get
    get_list_state = _get
    get_map_state = _get
    get_reducing_state = _get
    get_aggregating_state = _get


class _NoWindowStates(KeyedStateStore):
    """In place of _WindowStates if windows merge. As in Flink, such windows have no state of their own."""

    def __init__(self, operator: KeyedWindowOperator) -> None:
        self._operator = operator
        self.window: Any = None

    def _refuse(self, state_descriptor: Any) -> NoReturn:
        program = self._operator.program
        raise StateError(
            f"{program.label} uses the window state "
            f"'{state_descriptor.get_name()}', but merging windows have no per-window state; use "
            f"context.global_state()"
        )

    get_state = _refuse
    get_list_state = _refuse
    get_map_state = _refuse
    get_reducing_state = _refuse
    get_aggregating_state = _refuse


class AssignerContext(WindowAssigner.WindowAssignerContext):
    """The context of the window assigner."""

    def __init__(self, operator: KeyedWindowOperator) -> None:
        self._context = operator.context

    def get_current_processing_time(self) -> int:
        """The task's clock in milliseconds."""
        return self._context.processing_time.current_processing_time()

    def get_runtime_context(self) -> RuntimeContext:
        """The operator's runtime context."""
        return self._context.runtime_context

    def get_operator_state_store(self) -> OperatorStateStore:
        """The state of the subtask."""
        store: OperatorStateStore = self._context.operator_state
        return store


class EvictorContext(Evictor.EvictorContext):
    """The context of the evictor."""

    def __init__(self, operator: KeyedWindowOperator) -> None:
        self._operator = operator

    def get_current_processing_time(self) -> int:
        """The task's clock in milliseconds."""
        return self._operator.context.processing_time.current_processing_time()

    def get_metric_group(self) -> Any:
        """The operator's metric group."""
        return self._operator.context.metrics

    def get_current_watermark(self) -> int:
        """The event time reached so far, in milliseconds."""
        return self._operator.event_time()


if TYPE_CHECKING:
    Call = Callable[[Any, Window, Iterable[Any]], Iterable[Any] | None]
    """A window function of any kind. It gets the key, the window and its elements."""


class WindowEvaluation:
    """The window function of one operator, with its output.

    Without a function (`has_function`), a window emits its elements. `clears` says whether the function has a
    `clear`, which is called when a window is dropped. `fire` is generated code, in place of `emit_each`. For aligned windows
    it replaces `emit_all`, and gets the contents of the window instead of its elements.
    """

    fire: Callable[..., None] | None = None

    def __init__(self, spec: WindowSpec, context: WindowContext, output: Output) -> None:
        function = spec.function
        accept_collectors(function)
        self.context = context
        self._output = output
        self.function = function
        self.has_function = function is not None
        self.clears = has_clear(function)
        self._call = _call_of(function, context, is_all=spec.is_all)

    def emit(self, key: Any, window: Window, elements: Iterable[Any], time: int | None) -> None:
        """Emits the results of a window.

        As in PyFlink, the results have the time of the record or the timer that fires the window. In Flink's Java API
        it is the window's last millisecond.
        """
        self.context.enter(window)
        emit_results(self._output, self._call(key, window, elements), time)

    def emit_all(self, window: Window, due: Iterable[tuple[Any, Any]], time: int | None) -> None:
        """`emit` for many keys of one window, as pairs of key and elements."""
        self.context.enter(window)
        call, output = self._call, self._output
        for key, elements in due:
            emit_results(output, call(key, window, elements), time)

    def emit_each(self, due: Iterable[tuple[Any, Any, Any]]) -> None:
        """Emits the results of many keys with a window each, at the ends of the windows.

        `due` yields (key, window, elements), and enters each window before it yields it.
        """
        if self.fire is not None:
            self.fire(due)
            return
        call, output = self._call, self._output
        for key, window, elements in due:
            emit_results(output, call(key, window, elements), window.max_timestamp())

    def clear(self, window: Window) -> None:
        """Calls the function's `clear`, because the current key's window is dropped."""
        if self.clears:
            self.context.enter(window)
            self.function.clear(self.context)


def has_clear(function: Any) -> bool:
    """Whether a window function overrides `clear`."""
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
