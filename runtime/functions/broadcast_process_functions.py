"""Process functions of a stream connected to a broadcast one, with broadcast state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.functions.function import Function
from opchain.runtime.type_variables import (
    IN1_contra,
    IN2_contra,
    KEY_co,
    KEY_contra,
    OUT_co,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.output_tag import Emitted
    from opchain.runtime.state.descriptors import MapStateDescriptor, StateDescriptor
    from opchain.runtime.state.state import BroadcastState, ReadOnlyBroadcastState
    from opchain.runtime.time_domain import TimeDomain
    from opchain.runtime.timer_service import TimerService
    from opchain.runtime.type_variables import K, V


class BaseBroadcastProcessFunction(Function):
    """What both broadcast process functions share: their contexts."""

    class BaseContext(ABC):
        """The clocks, on either side."""

        @abstractmethod
        def timestamp(self) -> int | Any:  # Any: None on streams without event time
            """Milliseconds: the event time of the record, or the time of the timer that fires."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The machine's time in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The event time reached so far, in milliseconds."""

    class Context(BaseContext):
        """The broadcast side's: it may change the broadcast state.

        Every subtask sees the same broadcast records and must make the same changes; the state's
        copies differ otherwise, and after a restore it is open which one a subtask gets.
        """

        @abstractmethod
        def get_broadcast_state(
            self, state_descriptor: MapStateDescriptor[K, V]
        ) -> BroadcastState[K, V]:
            """The broadcast state of a descriptor that was given to `broadcast`."""

    class ReadOnlyContext(BaseContext):
        """The other side's: it reads the broadcast state."""

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
        """Yields what a record of the stream gives."""

    @abstractmethod
    def process_broadcast_element(
        self, value: IN2_contra, ctx: BroadcastProcessFunction.Context
    ) -> Emitted[OUT_co]:
        """Takes in a broadcast record, usually into the broadcast state."""


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

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext, Generic[KEY_co]):
        """Handed to `process_element`."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """The clocks, and the timers of the current key."""

        @abstractmethod
        def get_current_key(self) -> KEY_co:
            """The key of the record, or of the timer that fires."""

    class OnTimerContext(ReadOnlyContext[KEY_co]):
        """Handed to `on_timer`."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Which clock the firing timer follows."""

    @abstractmethod
    def process_element(
        self, value: IN1_contra, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext[KEY_contra]
    ) -> Emitted[OUT_co]:
        """Yields what a record of the keyed stream gives."""

    @abstractmethod
    def process_broadcast_element(
        self, value: IN2_contra, ctx: KeyedBroadcastProcessFunction.Context
    ) -> Emitted[OUT_co]:
        """Takes in a broadcast record, usually into the broadcast state."""

    def on_timer(
        self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext[KEY_contra]
    ) -> Emitted[OUT_co]:
        """Yields what a timer gives; see `KeyedProcessFunction.on_timer`."""
