"""Process functions: records with their timestamps, clocks, timers, and side outputs.

Each method emits by yielding: `yield value` to the main output, `yield tag, value` with an OutputTag
to a side output. A method that yields nothing may return None. A context is valid during the call only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.functions.function import Function
from opchain.runtime.type_variables import (
    IN1_contra,
    IN2_contra,
    IN_contra,
    KEY_co,
    KEY_contra,
    OUT_co,
)

if TYPE_CHECKING:
    from opchain.runtime.output_tag import Emitted
    from opchain.runtime.time_domain import TimeDomain
    from opchain.runtime.timer_service import TimerService


class _Context(ABC):
    """What all process functions can ask about the current record or timer."""

    @abstractmethod
    def timer_service(self) -> TimerService:
        """The clocks, and on keyed streams the timers of the current key."""

    @abstractmethod
    def timestamp(self) -> int | Any:  # Any: None on streams without event time
        """Milliseconds: the event time of the record, or the time of the timer that fires."""


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
        """Yields what the record gives."""


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
        """Yields what the record gives; state and timers are those of its key."""

    def on_timer(
        self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext[KEY_contra]
    ) -> Emitted[OUT_co]:
        """Yields what a timer gives; it may register further ones.

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
        """Yields what a record of the first stream gives."""

    @abstractmethod
    def process_element2(
        self, value: IN2_contra, ctx: CoProcessFunction.Context
    ) -> Emitted[OUT_co]:
        """Yields what a record of the second stream gives."""


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
        """Yields what a record of the first stream gives."""

    @abstractmethod
    def process_element2(
        self, value: IN2_contra, ctx: KeyedCoProcessFunction.Context[KEY_contra]
    ) -> Emitted[OUT_co]:
        """Yields what a record of the second stream gives."""

    def on_timer(
        self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext[KEY_contra]
    ) -> Emitted[OUT_co]:
        """Yields what a timer gives; see `KeyedProcessFunction.on_timer`."""
