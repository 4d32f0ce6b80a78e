"""What assigners, evictors and process window functions work with.

Flink: `WindowOperator.WindowContext`, `PerWindowStateStore` and `MergingWindowStateStore`,
`WindowAssignerContext`, `EvictingWindowOperator.EvictorContext`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from opchain.runtime.errors import StateError
from opchain.runtime.functions.window_functions import (
    ProcessAllWindowFunction,
    ProcessWindowFunction,
)
from opchain.runtime.state.state_stores import KeyedStateStore
from opchain.runtime.windows.assigners import MergingWindowAssigner, WindowAssigner
from opchain.runtime.windows.evictors import Evictor

if TYPE_CHECKING:
    from opchain.runtime.functions.function import RuntimeContext
    from opchain.runtime.operators.windows.keyed_window_operator import KeyedWindowOperator


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
        """Makes a window the one at hand."""
        self._window = self._window_state.window = window

    def window(self) -> Any:
        """The window at hand."""
        return self._window

    def current_processing_time(self) -> int:
        """The task's clock in milliseconds."""
        return self._operator.context.processing_time.current_processing_time()

    def current_watermark(self) -> int:
        """The event time reached so far, in milliseconds."""
        return self._operator.event_time()

    def window_state(self) -> KeyedStateStore:
        """State of the current key and the window at hand."""
        return self._window_state

    def global_state(self) -> KeyedStateStore:
        """State of the current key."""
        return self._operator.context.runtime_context


class _WindowStates(KeyedStateStore):
    """States of the current key in the window at hand."""

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
    """The same where windows merge: a window has no state of its own then, as in Flink."""

    def __init__(self, operator: KeyedWindowOperator) -> None:
        self._operator = operator
        self.window: Any = None

    def _refuse(self, state_descriptor: Any) -> NoReturn:
        program = self._operator.program
        raise StateError(
            f"'{program.name}' ({program.call_site}) asks for the window state "
            f"'{state_descriptor.get_name()}', but its windows merge, and windows that merge have no "
            "state of their own; use context.global_state()"
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


class EvictorContext(Evictor.EvictorContext):
    """The context of the evictor."""

    def __init__(self, operator: KeyedWindowOperator) -> None:
        self._operator = operator

    def get_current_processing_time(self) -> int:
        """The task's clock in milliseconds."""
        return self._operator.context.processing_time.current_processing_time()

    def get_metric_group(self) -> Any:
        """The operator's."""
        return self._operator.context.metrics

    def get_current_watermark(self) -> int:
        """The event time reached so far, in milliseconds."""
        return self._operator.event_time()
