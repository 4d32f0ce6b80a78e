"""The contents of a window in keyed state: a reduced value, an accumulator, or all records. Each window is a namespace.

Flink: the `window-contents` state of `WindowOperator` and `EvictingWindowOperator`, whose descriptor
`WindowOperatorBuilder` chooses, and the functions that evaluate it (`InternalSingleValueWindowFunction`,
`InternalIterableWindowFunction`, `InternalAggregateProcessWindowFunction`).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Protocol

from opchain.runtime.functions.callables import as_function
from opchain.runtime.functions.record_functions import AggregateFunction, ReduceFunction
from opchain.runtime.functions.state_descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    ReducingStateDescriptor,
)
from opchain.runtime.operators.windows.evaluation import EvictorContext
from opchain.runtime.windows.assigners import MergingWindowAssigner
from opchain.runtime.windows.evictors import TimestampedValue
from opchain.runtime.windows.global_windows import CountWindowAssigner, GlobalWindows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, MutableMapping, Sequence

    from opchain.runtime.operators.windows.window_operator import KeyedWindowOperator
    from opchain.runtime.program.operator_specs import WindowSpec


class Contents(Protocol):
    """How records are added to the contents of a window, and which elements the window function gets.

    Contents of None mean an empty window, as in Flink.
    """

    def added(self, contents: Any, value: Any) -> Any:
        """The contents with one more record. May change and return `contents`."""

    def elements(self, contents: Any) -> Iterable[Any] | None:
        """The input of the window function; None if there is nothing to evaluate."""

    def merge(self, contents: Any, others: Any) -> Any:
        """The combined contents of two windows. May change and return `contents`."""

    def fold(self, records: list[Any]) -> Iterable[Any] | None:
        """The input of the window function, from the records that an evictor has left.

        If an evictor leaves no record for a reduce, Flink calls the window function with null. opchain does not
        call it.
        """


class ReducedContents:
    """One value, which each record is combined with."""

    def __init__(self, function: Any) -> None:
        reduce = as_function(ReduceFunction, function)
        self.reduce = reduce.reduce
        self.first: Callable[[Any], Any] | None = getattr(reduce, "first", None)

    def added(self, contents: Any, value: Any) -> Any:
        """The value combined with the record. The first record is the first value."""
        if contents is not None:
            return self.reduce(contents, value)
        return value if self.first is None else self.first(value)

    def result(self, contents: Any) -> Any:
        """The value."""
        return contents

    def elements(self, contents: Any) -> Iterable[Any] | None:
        """The one value."""
        return None if contents is None else (contents,)

    def merge(self, contents: Any, others: Any) -> Any:
        """Combines two values."""
        return self.reduce(contents, others)

    def fold(self, records: list[Any]) -> Iterable[Any] | None:
        """All records as one value."""
        return self.elements(functools.reduce(self.added, records, None))


class AggregatedContents:
    """One accumulator, which each record is added to."""

    def __init__(self, function: AggregateFunction[Any, Any, Any]) -> None:
        self.create = function.create_accumulator
        self.fold_in = function.add
        self.result_of = function.get_result
        self.unite = function.merge

    def added(self, contents: Any, value: Any) -> Any:
        """The accumulator with the record added."""
        return self.fold_in(value, self.create() if contents is None else contents)

    def result(self, contents: Any) -> Any:
        """The accumulator's result; None is not a result, as in Flink."""
        return None if contents is None else self.result_of(contents)

    def elements(self, contents: Any) -> Iterable[Any] | None:
        """The one result."""
        result = None if contents is None else self.result_of(contents)
        return None if result is None else (result,)

    def merge(self, contents: Any, others: Any) -> Any:
        """Merges two accumulators."""
        return self.unite(contents, others)

    def fold(self, records: list[Any]) -> Iterable[Any] | None:
        """The result of all records; without records, of a new accumulator."""
        accumulator = self.create()
        for record in records:
            accumulator = self.fold_in(record, accumulator)
        return self.elements(accumulator)


class BufferedContents:
    """All records, in the order in which they came."""

    def added(self, contents: list[Any] | None, value: Any) -> list[Any]:
        """The records with one more."""
        if contents is None:
            return [value]
        contents.append(value)
        return contents

    def elements(self, contents: list[Any]) -> Iterable[Any] | None:
        """A copy of the records, which the function may change."""
        return contents[:]

    def merge(self, contents: list[Any], others: list[Any]) -> list[Any]:
        """The records of the first window, then the others."""
        contents += others
        return contents

    def fold(self, records: list[Any]) -> Iterable[Any] | None:
        """The records themselves."""
        return records


def contents_of(spec: WindowSpec) -> ReducedContents | AggregatedContents | BufferedContents:
    """The kind of contents that the windows of a spec have."""
    if spec.reduce is not None:
        return ReducedContents(spec.reduce)
    if spec.aggregate is not None:
        return AggregatedContents(spec.aggregate)
    return BufferedContents()


def united(kind: Contents, held: Any, others: Sequence[Any]) -> Any:
    """The contents of merged windows. The others are merged first, in their order, and then appended to `held`."""
    if not others:
        return held
    merged = functools.reduce(kind.merge, others)
    return merged if held is None else kind.merge(held, merged)


CONTENTS = "window-contents"
"""The name of the state, as in Flink."""

TIMERS = "window-timers"
"""The name of the timer service, as in Flink."""


def described_windows(spec: WindowSpec) -> str:
    """The kind of the windows. Contents and timers of another kind would never fire, or not be understood.

    Flink restores them, and drops them when their timers are due.
    """
    assigner = spec.assigner
    if isinstance(assigner, GlobalWindows):
        kind = "global windows"
    elif isinstance(assigner, CountWindowAssigner):
        kind = "count windows"
    else:
        clock = "event-time" if assigner.is_event_time() else "processing-time"
        merge = isinstance(assigner, MergingWindowAssigner)
        kind = f"{clock} windows that merge" if merge else f"{clock} windows"
    return kind if spec.evictor is None else f"{kind} with an evictor"


class WindowState:
    """The contents of the current key's windows. `select` chooses the window of the other methods."""

    def __init__(self, operator: KeyedWindowOperator) -> None:
        self._backend = operator.backend
        self._evaluation = operator.evaluation
        self.kind: Contents = contents_of(operator.spec)
        self._state: Any = None
        self._pane: MutableMapping[Any, Any] = {}

    def open(self, operator: KeyedWindowOperator) -> None:
        """Declares the state."""
        self._state = declare_contents(operator)

    def select(self, window: Any) -> None:
        """Chooses a window; for windows that merge, a state window."""
        self._pane = self._state.set_current_namespace(window)

    def add(self, value: Any, timestamp: int | None) -> None:  # noqa: ARG002 - evictors need it
        """Adds a record."""
        pane, key = self._pane, self._backend.state_key
        pane[key] = self.kind.added(pane.get(key), value)

    def put(self, held: Any) -> None:
        """Replaces the contents."""
        self._pane[self._backend.state_key] = held

    def is_empty(self) -> bool:
        """Whether the key has no contents in the window."""
        return self._backend.state_key not in self._pane

    def emit(self, window: Any, time: int | None) -> None:
        """Evaluates the contents, if there are any."""
        held = self._pane.get(self._backend.state_key)
        if held is not None:
            elements = self.kind.elements(held)
            if elements is not None:
                self._evaluation.emit(self._backend.current_key, window, elements, time)

    def clear(self) -> None:
        """Drops the contents."""
        self._pane.pop(self._backend.state_key, None)

    def merge(self, target: Any, sources: Iterable[Any]) -> None:
        """Moves the contents of windows into another window. They are merged first, in their order, and then appended.

        Flink: `AbstractHeapMergingState.mergeNamespaces`.
        """
        others = []
        for source in sources:
            self.select(source)
            held = self._pane.get(self._backend.state_key)
            self.clear()
            if held is not None:
                others.append(held)
        self.select(target)
        if others:
            self.put(united(self.kind, self._pane.get(self._backend.state_key), others))


class EvictedWindowState(WindowState):
    """All records with their timestamps. An evictor removes records at each evaluation.

    A reduce or aggregate function then combines the records that are left.
    """

    def __init__(self, operator: KeyedWindowOperator) -> None:
        super().__init__(operator)
        assert operator.spec.evictor is not None
        self._evictor = operator.spec.evictor
        self._evictor_context = EvictorContext(operator)
        self._fold = self.kind.fold
        self.kind = BufferedContents()

    def add(self, value: Any, timestamp: int | None) -> None:
        """Adds a record."""
        super().add(TimestampedValue(value, timestamp), timestamp)

    def emit(self, window: Any, time: int | None) -> None:
        """Evicts, evaluates, evicts again, and keeps the remaining records for the next evaluation."""
        key = self._backend.state_key
        held = self._pane.get(key)
        if held is None:
            return
        context, records = self._evictor_context, held[:]
        self._evictor.evict_before(records, len(records), window, context)
        elements = self._fold([record.value for record in records])
        if elements is not None:
            self._evaluation.emit(self._backend.current_key, window, elements, time)
        self._evictor.evict_after(records, len(records), window, context)
        if records:
            self._pane[key] = records
        else:
            self.clear()


def window_state_of(operator: KeyedWindowOperator) -> WindowState:
    """The state of a window operator's windows."""
    return (WindowState if operator.spec.evictor is None else EvictedWindowState)(operator)


def declare_contents(operator: KeyedWindowOperator) -> Any:
    """Declares the kind of state of the contents, which snapshots contain. Returns the state."""
    return operator.backend.namespaced_state(_descriptor_of(operator.spec))


def _descriptor_of(spec: WindowSpec) -> Any:
    if spec.evictor is None and spec.reduce is not None:
        return ReducingStateDescriptor(CONTENTS, spec.reduce)
    if spec.evictor is None and spec.aggregate is not None:
        return AggregatingStateDescriptor(CONTENTS, spec.aggregate)
    return ListStateDescriptor(CONTENTS)
