"""The contents of a key's windows in the state backend, one window (a namespace) at a time.

Flink: the `window-contents` state of `WindowOperator`, and that of `EvictingWindowOperator`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from opchain.runtime.operators.windows.contents import contents_of
from opchain.runtime.operators.windows.window_context import EvictorContext
from opchain.runtime.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    ReducingStateDescriptor,
)
from opchain.runtime.windows.evictors import TimestampedValue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.runtime.operators.operator import StreamOperator
    from opchain.runtime.operators.specs import WindowSpec
    from opchain.runtime.operators.windows.evaluation import WindowEvaluation

CONTENTS = "window-contents"
"""The name of the state, as in Flink."""


class WindowState(Protocol):
    """The contents of the current key's windows; `select` says which window is meant."""

    def select(self, window: Any) -> None:
        """Makes a window's contents those at hand; for merged windows its state window."""

    def add(self, value: Any, timestamp: int | None) -> None:
        """Takes a record in."""

    def emit(self, key: Any, window: Any) -> None:
        """Evaluates the contents, where there are any."""

    def clear(self) -> None:
        """Drops the contents."""

    def merge(self, target: Any, sources: Sequence[Any]) -> None:
        """Moves the contents of windows into another."""


class AppendedState:
    """Contents that only grow: a reduced value, an accumulator, or a list of records."""

    def __init__(self, operator: StreamOperator, evaluation: WindowEvaluation) -> None:
        spec: WindowSpec = operator.program.spec  # type: ignore[assignment]
        self._state = operator.context.keyed_state.namespaced_state(_descriptor_of(spec))
        self._is_list = spec.reduce is None and spec.aggregate is None
        self._evaluation = evaluation
        self.select = self._state.set_current_namespace
        self.clear = self._state.clear
        self.merge = self._state.merge_namespaces

    def add(self, value: Any, timestamp: int | None) -> None:  # noqa: ARG002 - evictors need it
        """Takes a record in."""
        self._state.add(value)

    def emit(self, key: Any, window: Any) -> None:
        """Evaluates the contents, where there are any."""
        contents = self._state.get()
        if self._is_list:
            # A list of its own: the function may keep or change it.
            contents = list(contents or ())
            if contents:
                self._evaluation.emit(key, window, contents)
        elif contents is not None:
            self._evaluation.emit(key, window, (contents,))


class EvictedState:
    """All records with their timestamps, of which an evictor takes some out at each evaluation.

    Incremental functions see the records that are left, all at once.
    """

    def __init__(self, operator: StreamOperator, evaluation: WindowEvaluation) -> None:
        spec: WindowSpec = operator.program.spec  # type: ignore[assignment]
        assert spec.evictor is not None
        self._state = operator.context.keyed_state.namespaced_state(ListStateDescriptor(CONTENTS))
        self._evictor = spec.evictor
        self._evictor_context = EvictorContext(operator)
        self._fold = contents_of(spec).fold
        self._evaluation = evaluation
        self.select = self._state.set_current_namespace
        self.clear = self._state.clear
        self.merge = self._state.merge_namespaces

    def add(self, value: Any, timestamp: int | None) -> None:
        """Takes a record in."""
        self._state.add(TimestampedValue(value, timestamp))

    def emit(self, key: Any, window: Any) -> None:
        """Evicts, evaluates, evicts again, and keeps what is left for the next evaluation."""
        records = list(self._state.get() or ())
        if not records:
            return
        context = self._evictor_context
        self._evictor.evict_before(records, len(records), window, context)
        elements = self._fold([record.value for record in records])
        if elements is not None:
            self._evaluation.emit(key, window, elements)
        self._evictor.evict_after(records, len(records), window, context)
        self._state.update(records)


def window_state_of(operator: StreamOperator, evaluation: WindowEvaluation) -> WindowState:
    """The contents that a window operator's spec asks for."""
    spec: WindowSpec = operator.program.spec  # type: ignore[assignment]
    return (AppendedState if spec.evictor is None else EvictedState)(operator, evaluation)


def _descriptor_of(spec: WindowSpec) -> Any:
    if spec.reduce is not None:
        return ReducingStateDescriptor(CONTENTS, spec.reduce)
    if spec.aggregate is not None:
        return AggregatingStateDescriptor(CONTENTS, spec.aggregate)
    return ListStateDescriptor(CONTENTS)
