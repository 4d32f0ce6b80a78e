"""Process functions: records with their timestamps, timers, side outputs and broadcast state.

A method emits by yielding: `yield value` to the main output, `yield tag, value` with an OutputTag to a side output.
A method that emits nothing may return None. A context is only valid during the call.
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
    """Reads both clocks and sets timers; all times are milliseconds since the epoch.

    A timer belongs to the current key and fires once, however often the same time is registered.
    On a stream without key the clocks can be read, and setting a timer is an error.
    """

    @abstractmethod
    def current_processing_time(self) -> int:
        """The machine's time."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The event time reached so far; -2**63 before the first watermark."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Registers a call of `on_timer` for when the machine's time reaches the timestamp."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Registers a call of `on_timer` for when the watermark reaches the timestamp."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Deletes a timer of the current key, if it exists."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Deletes a timer of the current key, if it exists."""


def has_on_timer(function: Any) -> bool:
    """Whether the function's class, or one between it and the class that it extends, has an `on_timer`.

    Results of timers have the timer's timestamp, whether records have one or not.
    """
    owners = (kind for kind in type(function).__mro__ if "on_timer" in vars(kind))
    owner = next(owners, None)
    return owner is not None and not owner.__module__.startswith("opchain.runtime.functions.")


class _Context(ABC):
    """Information about the current record or timer, for all process functions."""

    @abstractmethod
    def timer_service(self) -> TimerService:
        """The clocks, and on keyed streams the timers of the current key."""

    @abstractmethod
    def timestamp(self) -> int:
        """Milliseconds: the record's event time, MIN_LONG_VALUE without one; or the time of the timer that fires."""


class _KeyedContext(_Context, Generic[KEY_co]):
    @abstractmethod
    def get_current_key(self) -> KEY_co:
        """The key of the record, or of the timer that fires."""


class _OnTimerContext(_KeyedContext[KEY_co]):
    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """Which clock the firing timer follows."""


class ProcessFunction(Function, Generic[IN_contra, OUT_co]):
    """Processes the records of a stream without key."""

    class Context(_Context):
        """Handed to `process_element`."""

    @abstractmethod
    def process_element(self, value: IN_contra, ctx: ProcessFunction.Context) -> Emitted[OUT_co]:
        """Yields the results for a record."""


class KeyedProcessFunction(Function, Generic[KEY_contra, IN_contra, OUT_co]):
    """Processes the records of a keyed stream, with keyed state and timers."""

    class Context(_KeyedContext[KEY_co]):
        """Handed to `process_element`."""

    class OnTimerContext(Context[KEY_co], _OnTimerContext[KEY_co]):
        """Handed to `on_timer`."""

    @abstractmethod
    def process_element(
        self, value: IN_contra, ctx: KeyedProcessFunction.Context[KEY_contra]
    ) -> Emitted[OUT_co]:
        """Yields the results for a record. State and timers belong to its key."""

    def on_timer(
        self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext[KEY_contra]
    ) -> Emitted[OUT_co]:
        """Yields the results of a timer. It may register other timers.

        Args:
            timestamp: The time that the timer was registered for.
            ctx: State and timers of the key that registered it.
        """


class CoProcessFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Processes the records of two connected streams without keys."""

    class Context(_Context):
        """Handed to both methods."""

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
    """Processes two connected keyed streams; records of equal keys share state and timers."""

    class Context(_KeyedContext[KEY_co]):
        """Handed to `process_element1` and `process_element2`."""

    class OnTimerContext(Context[KEY_co], _OnTimerContext[KEY_co]):
        """Handed to `on_timer`."""

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
    """The contexts of both broadcast process functions."""

    class BaseContext(ABC):
        """The clocks, on either side."""

        @abstractmethod
        def timestamp(self) -> int:
            """Milliseconds: the record's event time, MIN_LONG_VALUE without one; or the time of the timer that fires."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The machine's time in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The event time reached so far, in milliseconds."""

    class Context(BaseContext):
        """The context of broadcast records, which may change the broadcast state.

        Every subtask gets the same broadcast records, and must make the same changes. Otherwise the copies of the state
        differ, and after a restore a subtask may get any of them.
        """

        @abstractmethod
        def get_broadcast_state(
            self, state_descriptor: MapStateDescriptor[K, V]
        ) -> BroadcastState[K, V]:
            """The broadcast state of a descriptor that was given to `broadcast`."""

    class ReadOnlyContext(BaseContext):
        """The context of other records, which only read the broadcast state."""

        @abstractmethod
        def get_broadcast_state(
            self, state_descriptor: MapStateDescriptor[K, V]
        ) -> ReadOnlyBroadcastState[K, V]:
            """The broadcast state of a descriptor that was given to `broadcast`."""


class BroadcastProcessFunction(
    BaseBroadcastProcessFunction, Generic[IN1_contra, IN2_contra, OUT_co]
):
    """Processes a stream without key beside a broadcast one."""

    class Context(BaseBroadcastProcessFunction.Context):
        """Handed to `process_broadcast_element`."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """Handed to `process_element`."""

    @abstractmethod
    def process_element(
        self, value: IN1_contra, ctx: BroadcastProcessFunction.ReadOnlyContext
    ) -> Emitted[OUT_co]:
        """Yields the results for a record of the stream."""

    @abstractmethod
    def process_broadcast_element(
        self, value: IN2_contra, ctx: BroadcastProcessFunction.Context
    ) -> Emitted[OUT_co]:
        """Processes a broadcast record: usually adds it to the broadcast state."""


class KeyedBroadcastProcessFunction(
    BaseBroadcastProcessFunction, Generic[KEY_contra, IN1_contra, IN2_contra, OUT_co]
):
    """Processes a keyed stream beside a broadcast one, with keyed state and timers."""

    class Context(BaseBroadcastProcessFunction.Context):
        """Handed to `process_broadcast_element`; it has no key."""

        @abstractmethod
        def apply_to_keyed_state(
            self,
            state_descriptor: StateDescriptor[Any],
            function: Callable[[Any, Any], object],
        ) -> None:
            """Calls `function(key, state)` for every key of this subtask that has the state.

            Flink: `applyToKeyedState`, which PyFlink lacks. The order of the keys is fixed, but means
            nothing; the function may read, change and clear the state it is given.
            """

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext, _KeyedContext[KEY_co]):
        """Handed to `process_element`."""

    class OnTimerContext(ReadOnlyContext[KEY_co], _OnTimerContext[KEY_co]):
        """Handed to `on_timer`."""

    @abstractmethod
    def process_element(
        self, value: IN1_contra, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext[KEY_contra]
    ) -> Emitted[OUT_co]:
        """Yields the results for a record of the keyed stream."""

    @abstractmethod
    def process_broadcast_element(
        self, value: IN2_contra, ctx: KeyedBroadcastProcessFunction.Context
    ) -> Emitted[OUT_co]:
        """Processes a broadcast record: usually adds it to the broadcast state."""

    def on_timer(
        self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext[KEY_contra]
    ) -> Emitted[OUT_co]:
        """Yields the results of a timer; see `KeyedProcessFunction.on_timer`."""
