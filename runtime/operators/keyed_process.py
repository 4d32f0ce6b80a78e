"""Process functions on keyed streams: keyed state, the TimerService, timers and side outputs.

As in Flink, a record that `on_timer` emits for an event-time timer has the timer's time as its timestamp. A record for
a processing-time timer has no timestamp. Records for side outputs get the timer's time in both cases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.process_functions import (
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    TimerService,
)
from opchain.runtime.operators.operator import OperatorContext, Output, UserFunctionOperator
from opchain.runtime.operators.process import (
    RecordContext,
    emit_processing_time_results,
    emit_results,
    process_record,
)
from opchain.runtime.state.keyed.keyed_backend import VOID, KeyedStateBackend
from opchain.runtime.time import TimeDomain, timer_millis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opchain.runtime.program.vertex_program import OperatorProgram
    from opchain.runtime.state.timers.internal_timer_service import InternalTimerService
    from opchain.runtime.state.timers.keyed_timers import KeyedTimers


USER_TIMERS = "user-timers"
"""The name of the timer service that functions use, as in Flink."""


class KeyedTimerService(TimerService):
    """Timers of the current key, without namespaces. Flink: `SimpleTimerService`.

    Fractions of a millisecond are dropped. A time that is not a number is refused with TypeError.
    """

    __slots__ = ("_timers",)

    def __init__(self, timers: InternalTimerService) -> None:
        self._timers = timers

    @property
    def waiting(self) -> KeyedTimers:
        """The event-time timers of all keys."""
        return self._timers.event_timers

    def current_processing_time(self) -> int:
        """The task's clock in milliseconds."""
        return self._timers.current_processing_time()

    def current_watermark(self) -> int:
        """The event time reached so far, in milliseconds."""
        return self._timers.current_watermark

    def register_processing_time_timer(self, timestamp: int) -> None:
        """See TimerService."""
        self._timers.register_processing_time_timer(VOID, timer_millis(timestamp))

    def register_event_time_timer(self, timestamp: int) -> None:
        """See TimerService."""
        self._timers.register_event_time_timer(VOID, timer_millis(timestamp))

    def delete_processing_time_timer(self, timestamp: int) -> None:
        """See TimerService."""
        self._timers.delete_processing_time_timer(VOID, timer_millis(timestamp))

    def delete_event_time_timer(self, timestamp: int) -> None:
        """See TimerService."""
        self._timers.delete_event_time_timer(VOID, timer_millis(timestamp))


class KeyedContext(RecordContext):
    """The record or timer that an operator with a key processes."""

    _timers: KeyedTimerService
    _domain: TimeDomain | None = None

    def timer_service(self) -> KeyedTimerService:
        """The clocks, and the timers of the current key."""
        return self._timers

    def get_current_key(self) -> Any:
        """The key of the record, or of the timer that fires."""
        return self._operator.backend.current_key

    def time_domain(self) -> TimeDomain:
        """The time domain of the timer that fires.

        Raises:
            RuntimeError: No timer is firing: a record is processed.
        """
        if self._domain is None:
            raise RuntimeError("time_domain() is only available in on_timer()")
        return self._domain


class KeyedProcessContext(
    KeyedContext,
    KeyedProcessFunction.OnTimerContext[Any],
    KeyedCoProcessFunction.OnTimerContext[Any],
):
    """The context of both process functions on keyed streams."""


class KeyedFunctionOperator(UserFunctionOperator):
    """An operator whose function has keyed state and timers. The timers fire in this operator.

    `fire` is generated code. It replaces `on_event_time`, for all timers that are due.
    """

    touches_keys = True
    function_context: KeyedContext
    fire: Callable[[Iterator[tuple[int, Any, Any]]], None] | None = None

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.backend: KeyedStateBackend = context.keyed_state
        self.function_context = KeyedProcessContext(self)

    def open(self) -> None:
        """Restores the timers, then opens the function."""
        timers = self.context.timers.service(USER_TIMERS, self)
        timers.fire_due = self._fire_due if self.fire else timers.fire_due
        self.function_context._timers = KeyedTimerService(timers)  # noqa: SLF001 - the operator owns its context
        super().open()

    def event_timers(self) -> KeyedTimers:
        """The registered event-time timers, for generated code, which selects the key itself."""
        return self.function_context.timer_service().waiting

    def on_event_time(self, time: int, _namespace: Any) -> None:
        """Emits what the function yields for an event-time timer."""
        self._fire(TimeDomain.EVENT_TIME, emit_results, time)

    def on_processing_time(self, time: int, _namespace: Any) -> None:
        """Emits what the function yields for a processing-time timer."""
        self._fire(TimeDomain.PROCESSING_TIME, emit_processing_time_results, time)

    def _fire_due(self, due: Iterator[tuple[int, Any, Any]]) -> None:
        assert self.fire is not None
        function_context = self.function_context
        function_context._domain = TimeDomain.EVENT_TIME  # noqa: SLF001 - the operator owns its context
        self.fire(due)
        function_context._timestamp = function_context._domain = None  # noqa: SLF001

    def _fire(self, domain: TimeDomain, emit: Callable[..., None], time: int) -> None:
        function_context = self.function_context
        function_context._timestamp = time  # noqa: SLF001 - the operator owns its context
        function_context._domain = domain  # noqa: SLF001
        emit(self.output, self.function.on_timer(time, function_context), time)
        function_context._timestamp = function_context._domain = None  # noqa: SLF001


class KeyedProcessOperator(KeyedFunctionOperator):
    """Flink: `KeyedProcessOperator`."""

    method = "process_element"

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.select_key = program.key_selector()

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Emits what the function yields."""
        self.backend.set_current_key(self.select_key(value))
        process_record(self.output, self.call, value, self.function_context, timestamp)


class KeyedCoProcessOperator(KeyedFunctionOperator):
    """Flink: `KeyedCoProcessOperator`."""

    method = "process_element1"

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.select_keys = (program.key_selector(0), program.key_selector(1))

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Emits what the function yields for a record of the first stream."""
        self.backend.set_current_key(self.select_keys[0](value))
        process_record(self.output, self.call, value, self.function_context, timestamp)

    def process_element2(self, value: Any, timestamp: int | None) -> None:
        """Emits what the function yields for a record of the second stream."""
        self.backend.set_current_key(self.select_keys[1](value))
        process = self.function.process_element2
        process_record(self.output, process, value, self.function_context, timestamp)
