"""Connects a stream with a broadcast stream: a record sees the broadcast state as it is when the record arrives.

Broadcast records go to every subtask. In streaming mode both inputs are read as they arrive. In batch mode the whole
broadcast input is read first (see runtime/task/input/batch_input.py).

On the broadcast side there is no current key. Keyed state can only be used through `apply_to_keyed_state`, and any
other use is an error. In Flink it silently uses the key of the last record.

Flink: `CoBroadcastWithNonKeyedOperator`, `CoBroadcastWithKeyedOperator` and their batch variants.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import StateError
from opchain.runtime.functions.process_functions import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from opchain.runtime.operators.keyed_process import KeyedContext, KeyedProcessOperator
from opchain.runtime.operators.operator import (
    OperatorContext,
    Output,
    StreamOperator,
    UserFunctionOperator,
)
from opchain.runtime.operators.process import OperatorClocks, RecordContext, process_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opchain.runtime.functions.state_descriptors import MapStateDescriptor, StateDescriptor
    from opchain.runtime.program.vertex_program import OperatorProgram
    from opchain.runtime.state.keyed.keyed_backend import KeyedStateBackend
    from opchain.runtime.state.operator_state import BroadcastMap, ReadOnlyBroadcastMap


class BroadcastStates:
    """The broadcast states of one operator, writable and read-only."""

    def __init__(self, operator: StreamOperator) -> None:
        self._operator = operator
        self._writable: dict[str, BroadcastMap[Any, Any]] = {}
        self._readable: dict[str, ReadOnlyBroadcastMap[Any, Any]] = {}
        self._descriptors: dict[str, MapStateDescriptor[Any, Any]] = {}

    def open(self) -> None:
        """Gets the states from the operator's store, which has restored them."""
        for descriptor in self._operator.program.spec.descriptors:  # type: ignore[attr-defined]
            self._add(descriptor)

    def _add(self, descriptor: MapStateDescriptor[Any, Any]) -> None:
        state = self._operator.context.operator_state.get_broadcast_state(descriptor)
        self._descriptors[descriptor.name] = descriptor
        self._writable[descriptor.name] = state
        self._readable[descriptor.name] = state.read_only()

    def writable(self, descriptor: MapStateDescriptor[Any, Any]) -> BroadcastMap[Any, Any]:
        """The writable state, for the broadcast input."""
        self._require(descriptor)
        return self._writable[descriptor.name]

    def readable(self, descriptor: MapStateDescriptor[Any, Any]) -> ReadOnlyBroadcastMap[Any, Any]:
        """The read-only state, for the other input."""
        if self._descriptors.get(descriptor.name) is not descriptor:
            self._require(descriptor)
        return self._readable[descriptor.name]

    def look_ups(
        self, descriptor: Callable[[], Any]
    ) -> tuple[Any, Any, dict[str, list[Any]], Callable[[str], list[Any]]]:
        """What generated code needs to read a state: the state, its entries, and its copies for iterators.

        If there is no state of this descriptor yet, or no descriptor, stand-ins get the state where a record reads it.
        """
        found = None
        with suppress(AttributeError):
            found = descriptor()
        known = self._descriptors.get(getattr(found, "name", ""))
        if known is None or known != found:
            entries = _EntriesNotYetRead(self.readable, descriptor)
            return _NotYetRead(self.readable, descriptor), entries, {}, entries.copied
        return self._readable[known.name].look_ups()

    def _require(self, descriptor: MapStateDescriptor[Any, Any]) -> None:
        """Opens the state of a name that `broadcast()` did not get, as PyFlink does. Flink's Java API refuses it.

        Raises:
            StateError: There is another descriptor of this name.
        """
        known = self._descriptors.get(descriptor.name)
        if known is descriptor:
            return
        if known is None:
            self._add(descriptor)
            return
        if known == descriptor:
            self._descriptors[descriptor.name] = (
                descriptor  # the function has another object with the same name
            )
            return
        program = self._operator.program
        raise StateError(
            f"{program.label} uses the broadcast state {descriptor!r}, but this state is "
            f"declared as {known!r}; pass the same descriptor to both"
        )


class _NotYetRead:
    """Stands for a broadcast state until it is known whether a function reads the state."""

    def __init__(self, find: Callable[[Any], Any], descriptor: Callable[[], Any]) -> None:
        self._find = find
        self._descriptor = descriptor

    def _state(self) -> ReadOnlyBroadcastMap[Any, Any]:
        state: ReadOnlyBroadcastMap[Any, Any] = self._find(self._descriptor())
        return state

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state(), name)

    def __getitem__(self, key: Any) -> Any:
        return self._state()[key]

    def __contains__(self, key: Any) -> bool:
        return key in self._state()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._state())


class _EntriesNotYetRead(_NotYetRead):
    """Stands for the dictionary of the state, which is false if it is empty. A state is always true."""

    def __bool__(self) -> bool:
        return not self._state().is_empty()

    def copied(self, what: str) -> list[Any]:
        """All items, keys or values."""
        return list(getattr(self._state(), what)())


class _Context(OperatorClocks, RecordContext):
    """The clocks and the record of one input."""

    def __init__(self, operator: StreamOperator, states: BroadcastStates) -> None:
        RecordContext.__init__(self, operator)
        self._states = states


class BroadcastSideContext(_Context, BroadcastProcessFunction.Context):
    """The context of broadcast records."""

    def get_broadcast_state(
        self, state_descriptor: MapStateDescriptor[Any, Any]
    ) -> BroadcastMap[Any, Any]:
        """The broadcast state of a descriptor."""
        return self._states.writable(state_descriptor)


class ElementSideContext(_Context, BroadcastProcessFunction.ReadOnlyContext):
    """The context of records of a stream without key."""

    def get_broadcast_state(
        self, state_descriptor: MapStateDescriptor[Any, Any]
    ) -> ReadOnlyBroadcastMap[Any, Any]:
        """The broadcast state of a descriptor."""
        return self._states.readable(state_descriptor)


class KeyedBroadcastSideContext(BroadcastSideContext, KeyedBroadcastProcessFunction.Context):
    """The context of broadcast records, connected with a keyed stream."""

    def apply_to_keyed_state(
        self, state_descriptor: StateDescriptor[Any], function: Callable[[Any, Any], object]
    ) -> None:
        """Calls `function(key, state)` for every key that has the state, in the order they got it."""
        backend: KeyedStateBackend = self._operator.context.keyed_state
        backend.apply_to_all_keys(state_descriptor, function)


class KeyedElementSideContext(
    KeyedContext, ElementSideContext, KeyedBroadcastProcessFunction.OnTimerContext[Any]
):
    """The context of records and timers of a keyed stream."""


class _BroadcastInput(UserFunctionOperator):
    """An operator whose second input is a broadcast stream."""

    method = "process_element"
    function_context: Any
    broadcast_context: BroadcastSideContext

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.states = BroadcastStates(self)

    def open(self) -> None:
        """Restores the broadcast states, then opens the function."""
        self.states.open()
        super().open()

    def process_element2(self, value: Any, timestamp: int | None) -> None:
        """Emits what the function yields for a broadcast record."""
        process = self.function.process_broadcast_element
        process_record(self.output, process, value, self.broadcast_context, timestamp)


class BroadcastProcessOperator(_BroadcastInput):
    """Flink: `CoBroadcastWithNonKeyedOperator`."""

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.function_context = ElementSideContext(self, self.states)
        self.broadcast_context = BroadcastSideContext(self, self.states)

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Emits what the function yields for a record of the stream."""
        process_record(self.output, self.call, value, self.function_context, timestamp)


class KeyedBroadcastProcessOperator(_BroadcastInput, KeyedProcessOperator):
    """Flink: `CoBroadcastWithKeyedOperator`."""

    function_context: KeyedElementSideContext

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.function_context = KeyedElementSideContext(self, self.states)
        self.broadcast_context = KeyedBroadcastSideContext(self, self.states)

    def process_element2(self, value: Any, timestamp: int | None) -> None:
        """Emits what the function yields for a broadcast record. It has no current key."""
        self.backend.clear_current_key()
        process = self.function.process_broadcast_element
        process_record(self.output, process, value, self.broadcast_context, timestamp)
