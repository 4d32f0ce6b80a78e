"""Process functions: access to timestamps, timers, side outputs and broadcast state.

A method emits with `yield value` to the main output, and with `yield tag, value` (an OutputTag) to a side output. A
method that emits nothing may return None. A context is only valid during the call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.functions.function import Function
from opchain.runtime.types.type_variables import (
    IN1_contra,
    IN2_contra,
    IN_contra,
    K,
    KEY_co,
    KEY_contra,
    OUT_co,
    V,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.functions.state import BroadcastState, ReadOnlyBroadcastState
    from opchain.runtime.functions.state_descriptors import MapStateDescriptor, StateDescriptor
    from opchain.runtime.time import TimeDomain
    from opchain.runtime.types.output_tag import Emitted


class TimerService(ABC):
    """Reads the clocks and registers timers. All times are milliseconds since the epoch.

    A timer belongs to the current key. It fires once, even if the same time is registered several times. On a stream
    without key, registering a timer is an error.
    """

    @abstractmethod
    def current_processing_time(self) -> int:
        """The current time of the machine."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The current watermark; -2**63 before the first one."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Calls `on_timer` when the machine's time reaches the timestamp."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Calls `on_timer` when the watermark reaches the timestamp."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Deletes a timer of the current key, if it exists."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Deletes a timer of the current key, if it exists."""


def has_on_timer(function: Any) -> bool:
    """Whether the class of the function overrides `on_timer`.

    Results of `on_timer` have the timestamp of the timer, even if the records have no timestamps.
    """
    owners = (kind for kind in type(function).__mro__ if "on_timer" in vars(kind))
    owner = next(owners, None)
    return owner is not None and not owner.__module__.startswith("opchain.runtime.functions.")


class _Context(ABC):
    """The context of the current record or timer, for all process functions."""

    @abstractmethod
    def timer_service(self) -> TimerService:
        """The clocks and, on keyed streams, the timers of the current key."""

    @abstractmethod
    def timestamp(self) -> int:
        """Milliseconds: the event time of the record, or the time of the firing timer.

        MIN_LONG_VALUE for a record without one.
        """


class _KeyedContext(_Context, Generic[KEY_co]):
    @abstractmethod
    def get_current_key(self) -> KEY_co:
        """The key of the record, or of the firing timer."""


class _OnTimerContext(_KeyedContext[KEY_co]):
    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """Whether the firing timer is in event time or processing time."""


class ProcessFunction(Function, Generic[IN_contra, OUT_co]):
    """Processes the records of a stream without key."""

    class Context(_Context):
        """The context of `process_element`."""

    @abstractmethod
    def process_element(self, value: IN_contra, ctx: ProcessFunction.Context) -> Emitted[OUT_co]:
        """Yields the results for a record."""


class KeyedProcessFunction(Function, Generic[KEY_contra, IN_contra, OUT_co]):
    """Processes the records of a keyed stream, with keyed state and timers."""

    class Context(_KeyedContext[KEY_co]):
        """The context of `process_element`."""

    class OnTimerContext(Context[KEY_co], _OnTimerContext[KEY_co]):
        """The context of `on_timer`."""

    @abstractmethod
    def process_element(
        self, value: IN_contra, ctx: KeyedProcessFunction.Context[KEY_contra]
    ) -> Emitted[OUT_co]:
        """Yields the results for a record. State and timers belong to its key."""

    def on_timer(
        self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext[KEY_contra]
    ) -> Emitted[OUT_co]:
        """Yields the results of a timer. It may register more timers.

        Args:
            timestamp: The time for which the timer was registered.
            ctx: State and timers of the timer's key.
        """


class CoProcessFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Processes the records of two connected streams.

    If both streams are keyed, it has the state, the key and the timers of a KeyedCoProcessFunction, as in Flink.
    """

    class Context(_Context):
        """The context of both methods."""

    @abstractmethod
    def process_element1(
        self, value: IN1_contra, ctx: CoProcessFunction.Context
    ) -> Emitted[OUT_co]:
        """Yields the results for a record of the first stream."""

    @abstractmethod
    def process_element2(
        self, value: IN2_contra, ctx: CoProcessFunction.Context
    ) -> Emitted[OUT_co]:
        """Yields the results for a record of the second stream."""


class KeyedCoProcessFunction(Function, Generic[KEY_contra, IN1_contra, IN2_contra, OUT_co]):
    """Processes two connected keyed streams. Records with equal keys share state and timers."""

    class Context(_KeyedContext[KEY_co]):
        """The context of `process_element1` and `process_element2`."""

    class OnTimerContext(Context[KEY_co], _OnTimerContext[KEY_co]):
        """The context of `on_timer`."""

    @abstractmethod
    def process_element1(
        self, value: IN1_contra, ctx: KeyedCoProcessFunction.Context[KEY_contra]
    ) -> Emitted[OUT_co]:
        """Yields the results for a record of the first stream."""

    @abstractmethod
    def process_element2(
        self, value: IN2_contra, ctx: KeyedCoProcessFunction.Context[KEY_contra]
    ) -> Emitted[OUT_co]:
        """Yields the results for a record of the second stream."""

    def on_timer(
        self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext[KEY_contra]
    ) -> Emitted[OUT_co]:
        """Yields the results of a timer; see `KeyedProcessFunction.on_timer`."""


class BaseBroadcastProcessFunction(Function):
    """The base class of broadcast process functions, with their contexts."""

    class BaseContext(ABC):
        """The timestamp and the clocks, for both sides."""

        @abstractmethod
        def timestamp(self) -> int:
            """Milliseconds: the event time of the record, or the time of the firing timer.

            MIN_LONG_VALUE for a record without one.
            """

        @abstractmethod
        def current_processing_time(self) -> int:
            """The current time of the machine in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The current watermark in milliseconds."""

    class Context(BaseContext):
        """The context of broadcast records, which may change the broadcast state.

        Every subtask gets the same broadcast records, and must make the same changes. Otherwise the copies of the state
        differ, and after a restore a subtask may get any of them.
        """

        @abstractmethod
        def get_broadcast_state(
            self, state_descriptor: MapStateDescriptor[K, V]
        ) -> BroadcastState[K, V]:
            """The broadcast state of a descriptor that was passed to `broadcast`."""

    class ReadOnlyContext(BaseContext):
        """The context of the other records, which can only read the broadcast state."""

        @abstractmethod
        def get_broadcast_state(
            self, state_descriptor: MapStateDescriptor[K, V]
        ) -> ReadOnlyBroadcastState[K, V]:
            """The broadcast state of a descriptor that was passed to `broadcast`."""


class BroadcastProcessFunction(
    BaseBroadcastProcessFunction, Generic[IN1_contra, IN2_contra, OUT_co]
):
    """Processes a stream without key that is connected with a broadcast stream."""

    class Context(BaseBroadcastProcessFunction.Context):
        """The context of `process_broadcast_element`."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """The context of `process_element`."""

    @abstractmethod
    def process_element(
        self, value: IN1_contra, ctx: BroadcastProcessFunction.ReadOnlyContext
    ) -> Emitted[OUT_co]:
        """Yields the results for a record of the stream."""

    @abstractmethod
    def process_broadcast_element(
        self, value: IN2_contra, ctx: BroadcastProcessFunction.Context
    ) -> Emitted[OUT_co]:
        """Processes a broadcast record: usually stores it in the broadcast state."""


class KeyedBroadcastProcessFunction(
    BaseBroadcastProcessFunction, Generic[KEY_contra, IN1_contra, IN2_contra, OUT_co]
):
    """Processes a keyed stream that is connected with a broadcast stream, with keyed state and timers."""

    class Context(BaseBroadcastProcessFunction.Context):
        """The context of `process_broadcast_element`. It has no current key."""

        @abstractmethod
        def apply_to_keyed_state(
            self,
            state_descriptor: StateDescriptor[Any],
            function: Callable[[Any, Any], object],
        ) -> None:
            """Calls `function(key, state)` for every key of this subtask that has the state.

            The function may read, change and clear the state. The order of the keys is the same in every run. Flink:
            `applyToKeyedState`. Not in PyFlink.
            """

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext, _KeyedContext[KEY_co]):
        """The context of `process_element`."""

    class OnTimerContext(ReadOnlyContext[KEY_co], _OnTimerContext[KEY_co]):
        """The context of `on_timer`."""

    @abstractmethod
    def process_element(
        self, value: IN1_contra, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext[KEY_contra]
    ) -> Emitted[OUT_co]:
        """Yields the results for a record of the keyed stream."""

    @abstractmethod
    def process_broadcast_element(
        self, value: IN2_contra, ctx: KeyedBroadcastProcessFunction.Context
    ) -> Emitted[OUT_co]:
        """Processes a broadcast record: usually stores it in the broadcast state."""

    def on_timer(
        self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext[KEY_contra]
    ) -> Emitted[OUT_co]:
        """Yields the results of a timer; see `KeyedProcessFunction.on_timer`."""
