"""The contents of a key's windows in the state backend, one window (a namespace) at a time.

Flink: the `window-contents` state of `WindowOperator`, and that of `EvictingWindowOperator`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.operators.windows.contents import BufferedContents, contents_of
from opchain.runtime.operators.windows.window_context import EvictorContext
from opchain.runtime.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    ReducingStateDescriptor,
)
from opchain.runtime.windows.evictors import TimestampedValue

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping

    from opchain.runtime.operators.specs import WindowSpec
    from opchain.runtime.operators.windows.contents import Contents
    from opchain.runtime.operators.windows.keyed_window_operator import KeyedWindowOperator

CONTENTS = "window-contents"
"""The name of the state, as in Flink."""

TIMERS = "window-timers"
"""The name of the timer service, as in Flink."""


class WindowState:
    """The contents of the current key's windows; `select` says which window is meant."""

    def __init__(self, operator: KeyedWindowOperator) -> None:
        self._backend = operator.backend
        self._evaluation = operator.evaluation
        self._contents: Contents = contents_of(operator.spec)
        self._window: Any = None
        self._pane: MutableMapping[Any, Any] = {}

    def select(self, window: Any) -> None:
        """Makes a window's contents those at hand; for merged windows its state window."""
        self._window = window
        self._pane = self._backend.table(CONTENTS, window)

    def add(self, value: Any, timestamp: int | None) -> None:  # noqa: ARG002 - evictors need it
        """Takes a record in."""
        self._contents.add(self._pane, self._backend.state_key, value)

    def emit(self, window: Any) -> None:
        """Evaluates the contents, where there are any."""
        held = self._pane.get(self._backend.state_key)
        if held is not None:
            elements = self._contents.elements(held)
            if elements is not None:
                self._evaluation.emit(self._backend.current_key, window, elements)

    def clear(self) -> None:
        """Drops the contents; the window must be selected again before it takes something in."""
        self._pane.pop(self._backend.state_key, None)
        if not self._pane:
            self._backend.leave(CONTENTS, self._window)

    def merge(self, target: Any, sources: Iterable[Any]) -> None:
        """Moves the contents of windows into another: united first, in their order, and then behind.

        Flink: `AbstractHeapMergingState.mergeNamespaces`.
        """
        merged = None
        for source in sources:
            self.select(source)
            held = self._pane.get(self._backend.state_key)
            self.clear()
            if held is not None:
                merged = held if merged is None else self._contents.merge(merged, held)
        self.select(target)
        if merged is not None:
            key = self._backend.state_key
            held = self._pane.get(key)
            self._pane[key] = merged if held is None else self._contents.merge(held, merged)


class EvictedWindowState(WindowState):
    """All records with their timestamps, of which an evictor takes some out at each evaluation.

    Incremental functions see the records that are left, all at once.
    """

    def __init__(self, operator: KeyedWindowOperator) -> None:
        super().__init__(operator)
        assert operator.spec.evictor is not None
        self._evictor = operator.spec.evictor
        self._evictor_context = EvictorContext(operator)
        self._fold = self._contents.fold
        self._contents = BufferedContents()

    def add(self, value: Any, timestamp: int | None) -> None:
        """Takes a record in."""
        super().add(TimestampedValue(value, timestamp), timestamp)

    def emit(self, window: Any) -> None:
        """Evicts, evaluates, evicts again, and keeps what is left for the next evaluation."""
        key = self._backend.state_key
        held = self._pane.get(key)
        if held is None:
            return
        context, records = self._evictor_context, held[:]
        self._evictor.evict_before(records, len(records), window, context)
        elements = self._fold([record.value for record in records])
        if elements is not None:
            self._evaluation.emit(self._backend.current_key, window, elements)
        self._evictor.evict_after(records, len(records), window, context)
        if records:
            self._pane[key] = records
        else:
            self.clear()


def window_state_of(operator: KeyedWindowOperator) -> WindowState:
    """The contents that a window operator's spec asks for."""
    return (WindowState if operator.spec.evictor is None else EvictedWindowState)(operator)


def declare_contents(operator: KeyedWindowOperator) -> None:
    """Tells the backend what kind of state the contents are: a snapshot says so."""
    operator.backend.namespaced_state(_descriptor_of(operator.spec))


def _descriptor_of(spec: WindowSpec) -> Any:
    if spec.evictor is None and spec.reduce is not None:
        return ReducingStateDescriptor(CONTENTS, spec.reduce)
    if spec.evictor is None and spec.aggregate is not None:
        return AggregatingStateDescriptor(CONTENTS, spec.aggregate)
    return ListStateDescriptor(CONTENTS)
