"""Map, filter, flat map, process functions on streams without key, and operators with several inputs.

These are the interpreted forms; chains run generated code where they can. `yield value` emits to the main output,
`yield tag, value` to a side output.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NoReturn

from opchain.runtime.errors import short_repr
from opchain.runtime.functions.function import may_use_state
from opchain.runtime.functions.process_functions import (
    CoProcessFunction,
    ProcessFunction,
    TimerService,
)
from opchain.runtime.operators.operator import StreamOperator, UserFunctionOperator
from opchain.runtime.time import MIN_LONG_VALUE
from opchain.runtime.types.output_tag import OutputTag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opchain.runtime.operators.operator import Collect, OperatorContext, Output
    from opchain.runtime.program.operator_specs import MultiInputSpec
    from opchain.runtime.program.vertex_program import OperatorProgram


class ElementWiseOperator(UserFunctionOperator):
    """Map, filter and flat map. On a keyed stream a rich function may use keyed state, so the key is set."""

    touches_keys = True

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        is_keyed = context.keyed is not None
        self.sets_key = is_keyed and may_use_state(self.function)
        self.sorts_batch_input = is_keyed and hasattr(self.function, "open")

    def set_key(self, value: Any) -> None:
        """Makes the record's key the current key."""
        if self.sets_key:
            self.context.keyed_state.set_current_key(self.select_key(value))

    def select_key(self, value: Any) -> Any:
        """The key of a record of the first input."""
        return self.program.key_selector()(value)


class MapOperator(ElementWiseOperator):
    """Flink: `StreamMap`."""

    method = "map"

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Emits the function's result."""
        self.set_key(value)
        emit_where_read(self.output, self.call(value), timestamp)


class FilterOperator(ElementWiseOperator):
    """Flink: `StreamFilter`."""

    method = "filter"

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Emits the record where the function's result is true."""
        self.set_key(value)
        if self.call(value):
            emit_where_read(self.output, value, timestamp)


class FlatMapOperator(ElementWiseOperator):
    """Flink: `StreamFlatMap`."""

    method = "flat_map"

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Emits each of the function's results."""
        self.set_key(value)
        output = self.output
        results = self.call(value)
        self.look_at(results)
        for result in results:
            emit_where_read(output, result, timestamp)

    def look_at(self, results: Any) -> None:
        """Remembers a result that is a str, for a warning: each of its characters becomes a record."""
        if isinstance(results, str) and results:
            self.warning = (
                f"{short_repr(results)} is a text that its function returned, and each of its characters became a "
                "record. Return [text] for one record, or use map"
            )


PAIR = 2


def is_tagged(result: Any) -> bool:
    """Whether a result of a process function is a (tag, value) pair, for a side output."""
    return result.__class__ is tuple and len(result) == PAIR and isinstance(result[0], OutputTag)


def emit_results(output: Output, results: Iterable[Any] | None, timestamp: int | None) -> None:
    """Emits the results of a process function to the main output and side outputs. None means no results."""
    if results is None:
        return
    collect = output.collect
    for result in results:
        # The condition of `is_tagged`, without the call.
        if result.__class__ is tuple and len(result) == PAIR and isinstance(result[0], OutputTag):
            output.collect_to(result[0].tag_id, result[1], timestamp)
        else:
            collect(result, timestamp)


def process_record(
    output: Output,
    process: Callable[[Any, Any], Iterable[Any] | None],
    value: Any,
    context: Any,
    timestamp: int | None,
) -> None:
    """Emits the results of a process function for a record. The context has the record's timestamp."""
    context._timestamp = timestamp  # noqa: SLF001 - operators own their contexts
    emit_results(output, process(value, context), timestamp)


def emit_where_read(output: Output, result: Any, timestamp: int | None) -> None:
    """Emits the result of a function without context, such as a map.

    As in PyFlink, a (tag, value) pair goes to the side output if the operator has a side output that is read.
    Otherwise the pair is a record like any other.
    """
    if output.sides and is_tagged(result):
        output.collect_to(result[0].tag_id, result[1], timestamp)
    else:
        output.collect(result, timestamp)


def emit_processing_time_results(output: Output, results: Iterable[Any] | None, time: int) -> None:
    """Emits the results of a processing-time timer. As in Flink, only side outputs get the timer's time."""
    for result in () if results is None else results:
        if is_tagged(result):
            output.collect_to(result[0].tag_id, result[1], time)
        else:
            output.collect(result, None)


class OperatorClocks:
    """The clocks of an operator."""

    def __init__(self, operator: StreamOperator) -> None:
        self._operator = operator

    def current_processing_time(self) -> int:
        """The task's clock in milliseconds."""
        return self._operator.context.processing_time.current_processing_time()

    def current_watermark(self) -> int:
        """The event time reached so far, in milliseconds."""
        return self._operator.current_watermark


class UnkeyedTimerService(OperatorClocks, TimerService):
    """The clocks of a process function without key. As in Flink, timers need a key."""

    def _refuse(self, timestamp: int) -> None:
        program = self._operator.program
        raise TypeError(
            f"{program.label} registers a timer for {timestamp}, but its "
            f"stream has no key, and timers need one: call key_by() before process()"
        )

    register_processing_time_timer = _refuse
    register_event_time_timer = _refuse
    delete_processing_time_timer = _refuse
    delete_event_time_timer = _refuse


class RecordContext:
    """The record that an operator processes. There is one object per operator, so it is valid during a call only."""

    def __init__(self, operator: StreamOperator) -> None:
        self._operator: Any = operator
        self._timestamp: int | None = None

    def timestamp(self) -> int:
        """The time of the record or timer in milliseconds; MIN_LONG_VALUE for a record without timestamp."""
        return MIN_LONG_VALUE if self._timestamp is None else self._timestamp


class ProcessContext(RecordContext, ProcessFunction.Context, CoProcessFunction.Context):
    """The context of both process functions on streams without key."""

    def __init__(self, operator: StreamOperator) -> None:
        super().__init__(operator)
        self._timers = UnkeyedTimerService(operator)

    def timer_service(self) -> TimerService:
        """The clocks."""
        return self._timers

    def get_current_key(self) -> NoReturn:
        """Raises an error, because the stream has no key.

        Raises:
            TypeError: Always.
        """
        program = self._operator.program
        raise TypeError(
            f"{program.label} asks for the current key, but its stream has no key: call key_by() before process()"
        )


class ProcessOperator(UserFunctionOperator):
    """Flink: `ProcessOperator`."""

    touches_keys = True
    method = "process_element"

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.function_context = ProcessContext(self)

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Emits what the function yields."""
        process_record(self.output, self.call, value, self.function_context, timestamp)


class CoProcessOperator(ProcessOperator):
    """Flink: `CoProcessOperator`."""

    method = "process_element1"

    def process_element2(self, value: Any, timestamp: int | None) -> None:
        """Emits what the function yields for a record of the second stream."""
        process = self.function.process_element2
        process_record(self.output, process, value, self.function_context, timestamp)


class _CoOperator(UserFunctionOperator):
    """An operator with two inputs. On keyed streams a record of either input sets the current key."""

    touches_keys = True

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.sets_key = context.keyed is not None and may_use_state(self.function)

    def set_key(self, number: int, value: Any) -> None:
        """Makes the record's key the current key, if its input has a key."""
        key = self.program.keys[number]
        if key is not None and self.sets_key:
            self.context.keyed_state.set_current_key(key.selector(value))


class CoMapOperator(_CoOperator):
    """Flink: `CoStreamMap`; as in PyFlink, None emits nothing."""

    method = "map1"

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Emits the result for a record of the first stream."""
        self.set_key(0, value)
        result = self.function.map1(value)
        if result is not None:
            emit_where_read(self.output, result, timestamp)

    def process_element2(self, value: Any, timestamp: int | None) -> None:
        """Emits the result for a record of the second stream."""
        self.set_key(1, value)
        result = self.function.map2(value)
        if result is not None:
            emit_where_read(self.output, result, timestamp)


class CoFlatMapOperator(_CoOperator):
    """Flink: `CoStreamFlatMap`; as in PyFlink, None emits nothing."""

    method = "flat_map1"

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Emits the results for a record of the first stream."""
        self.set_key(0, value)
        results = self.function.flat_map1(value)
        for result in () if results is None else results:
            emit_where_read(self.output, result, timestamp)

    def process_element2(self, value: Any, timestamp: int | None) -> None:
        """Emits the results for a record of the second stream."""
        self.set_key(1, value)
        results = self.function.flat_map2(value)
        for result in () if results is None else results:
            emit_where_read(self.output, result, timestamp)


class MultiInputOperator(StreamOperator):
    """Flat-maps the records of each input with that input's function. Flink: `MultipleInputStreamOperator`.

    If all inputs have a key, the functions share the state of the record's key.
    """

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        spec: MultiInputSpec = program.spec  # type: ignore[assignment]
        self.functions = spec.functions

    def open(self) -> None:
        """Opens the functions, in the order of the inputs."""
        for function in self.functions:
            opened = getattr(function, "open", None)
            if opened is not None:
                opened(self.context.runtime_context)

    def input(self, number: int) -> Collect:
        """The function that takes the records of an input."""
        function = self.functions[number]
        flat_map = getattr(function, "flat_map", function)
        key = self.program.keys[number]

        def process(value: Any, timestamp: int | None) -> None:
            if key is not None:
                self.context.keyed_state.set_current_key(key.selector(value))
            # Looked up for each record: the chain replaces `collect` by generated code.
            collect = self.output.collect
            for result in flat_map(value):
                collect(result, timestamp)

        return process

    def close(self) -> None:
        """Closes all functions, even if closing one of them fails."""
        with ExitStack() as every_one:
            for function in self.functions:
                closed = getattr(function, "close", None)
                if closed is not None:
                    every_one.callback(closed)
