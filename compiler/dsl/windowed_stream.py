"""WindowedStream and AllWindowedStream: windows per key, in a single subtask, or over each whole partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, overload

from opchain.compiler.dsl.argument_checks import (
    DeclaredType,
    at_call,
    check_field,
    checked,
    checked_function,
    declared_type,
)
from opchain.compiler.graph.transformation import ChainingStrategy
from opchain.runtime.errors import GraphError
from opchain.runtime.functions.callables import name_of
from opchain.runtime.functions.key_selectors import FieldAggregation, NullByteKeySelector
from opchain.runtime.functions.record_functions import (
    AggregateFunction,
    MapPartitionFunction,
    ReduceFunction,
)
from opchain.runtime.functions.type_variables import W
from opchain.runtime.functions.window import (
    AllWindowFunction,
    PassThroughAllWindowFunction,
    PassThroughWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from opchain.runtime.program.operator_specs import FullWindowSpec, MapPartitionSpec, WindowSpec
from opchain.runtime.time import Duration, Time, millis_of
from opchain.runtime.types.output_tag import OutputTag
from opchain.runtime.types.type_variables import K, T
from opchain.runtime.windows.assigners import MergingWindowAssigner, WindowAssigner
from opchain.runtime.windows.evictors import Evictor
from opchain.runtime.windows.triggers import Trigger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import timedelta

    from typing_extensions import Self

    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.compiler.dsl.environment import StreamExecutionEnvironment
    from opchain.compiler.dsl.keyed_stream import KeyedStream
    from opchain.runtime.types.type_information import TypeInformation


class WindowDefinition(Generic[T, W]):
    """The window settings of a stream. Each setter returns the object itself."""

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        window_assigner: WindowAssigner[T, W],
        call: str = "window",
    ) -> None:
        checked(window_assigner, WindowAssigner, call, "the window")
        self._environment = environment
        self._assigner = window_assigner
        self._trigger: Trigger[T, W] | None = None
        self._evictor: Evictor[T, W] | None = None
        self._allowed_lateness_ms = 0
        self._late_tag: OutputTag[T] | None = None

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment that the stream belongs to."""
        return self._environment

    def trigger(self, trigger: Trigger[T, W]) -> Self:
        """Sets the trigger that decides when windows fire. It replaces the default trigger of the assigner."""
        checked(trigger, Trigger, "trigger", "the trigger")
        if isinstance(self._assigner, MergingWindowAssigner) and not trigger.can_merge():
            raise GraphError(
                f"{at_call('trigger')}: {type(trigger).__name__} cannot merge windows, but the "
                f"windows of {self._assigner} merge; use a trigger that implements on_merge()"
            )
        self._trigger = trigger
        return self

    def evictor(self, evictor: Evictor[T, W]) -> Self:
        """Sets an evictor, which removes records from a window before or after the window function is called.

        The window then keeps all records until it fires, also for `reduce` and `aggregate`.

        Flink: `WindowedStream.evictor`. Not in PyFlink.
        """
        self._evictor = checked(evictor, Evictor, "evictor", "the evictor")
        return self

    def allowed_lateness(self, time_ms: int | Duration | Time | timedelta) -> Self:
        """Keeps each window this long after its end, and fires it again for records that arrive in that time.

        This applies to event time only. Even later records go to the late side output, if one is set. Otherwise they
        are dropped and counted.
        """
        lateness = millis_of(time_ms)
        if lateness < 0:
            raise ValueError(
                f"{at_call('allowed_lateness')}: the lateness is {lateness} ms; "
                "it must not be negative"
            )
        self._allowed_lateness_ms = lateness
        return self

    def side_output_late_data(self, output_tag: OutputTag[T]) -> Self:
        """Sends late records to a side output instead of dropping them."""
        self._late_tag = checked(output_tag, OutputTag, "side_output_late_data", "the tag")
        return self

    def take_over(self, other: WindowDefinition[Any, W]) -> None:
        """Copies the settings of another definition, except the assigner."""
        self._trigger = other._trigger
        self._evictor = other._evictor
        self._allowed_lateness_ms = other._allowed_lateness_ms
        self._late_tag = other._late_tag

    def spec(
        self,
        *,
        reduce: Any = None,
        aggregate: Any = None,
        function: Any = None,
        is_all: bool = False,
    ) -> WindowSpec:
        """The spec of the window operator that applies these functions."""
        return WindowSpec(
            assigner=self._assigner,
            trigger=self._trigger_in_use(),
            evictor=self._evictor,
            allowed_lateness_ms=self._allowed_lateness_ms,
            late_tag=self._late_tag,
            reduce=reduce,
            aggregate=aggregate,
            function=function,
            is_all=is_all,
        )

    def operator_name(self) -> str:
        """The name of the operator: the class of the assigner, as in Flink."""
        return type(self._assigner).__name__

    def description(self, kind: str, *functions: Any) -> str:
        """The description of the operator in plans: `Window(TumblingEventTimeWindows(5000), ...)`."""
        parts = [self._assigner.plan_name, type(self._trigger_in_use()).__name__]
        if self._evictor is not None:
            parts.append(type(self._evictor).__name__)
        parts += [name_of(function) for function in functions]
        return f"{kind}({', '.join(parts)})"

    def _trigger_in_use(self) -> Trigger[Any, W]:
        if self._trigger is not None:
            return self._trigger
        return self._assigner.get_default_trigger(self._environment)


R = TypeVar("R")
ACC = TypeVar("ACC")
OUT = TypeVar("OUT")


class _Windows(WindowDefinition[T, W]):
    """The base class of windowed streams, with aggregations of one field.

    In Flink, only the Java API has these aggregations.

    A field is an index or a name. Field 0 of a plain value is the value itself. `sum`, `min` and `max` keep the values
    of the window's first record in the other fields.
    """

    _keyed_stream: KeyedStream[Any, T]
    _window_functions: ClassVar[tuple[type, type]]
    _pass_through: ClassVar[WindowFunction[Any, Any, Any, Any] | AllWindowFunction[Any, Any, Any]]
    _is_all: ClassVar[bool]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or not hasattr(type(self._keyed_stream), name):
                raise AttributeError(f"a {type(self).__name__} has no attribute {name!r}")
            raise AttributeError(
                f"{at_call(name)}: a {type(self).__name__} has no {name}(); call reduce(), aggregate(), "
                f"apply() or process() first, which return a stream of results",
                name=None,  # so Python does not propose a similar name
            )

    def get_input_type(self) -> TypeInformation[Any]:
        """The declared type of the records; see `DataStream.get_type`."""
        return self._keyed_stream.get_type()

    def sum(self, field: int | str = 0) -> DataStream[T]:
        """Adds up a field."""
        return self._of_field("sum", field)

    def min(self, field: int | str = 0) -> DataStream[T]:
        """The smallest value of a field."""
        return self._of_field("min", field)

    def max(self, field: int | str = 0) -> DataStream[T]:
        """The greatest value of a field."""
        return self._of_field("max", field)

    def min_by(self, field: int | str = 0, *, first: bool = True) -> DataStream[T]:
        """The record with the smallest value of a field.

        Of equal values, the first record wins or, with `first=False`, the last.
        """
        return self._of_field("min_by", field, first=first)

    def max_by(self, field: int | str = 0, *, first: bool = True) -> DataStream[T]:
        """The record with the greatest value of a field.

        Of equal values, the first record wins or, with `first=False`, the last.
        """
        return self._of_field("max_by", field, first=first)

    def _of_field(self, kind: str, field: int | str, *, first: bool = True) -> DataStream[T]:
        checked(field, (int, str), kind, "the field")
        check_field(kind, field, declared_type(self._keyed_stream.transformation))
        return self._reduced(FieldAggregation(kind, field, first=first), None, None)

    def _reduced(
        self, reduce_function: Any, window_function: Any, output_type: DeclaredType
    ) -> DataStream[Any]:
        checked_function(reduce_function, ReduceFunction, "reduce", callables=True)
        if window_function is None and output_type is None:
            output_type = declared_type(self._keyed_stream.transformation)
        function = self._checked(window_function, "reduce")
        shown = (reduce_function, function or self._pass_through)
        return self._windowed(output_type, shown, reduce=reduce_function, function=function)

    def _aggregated(
        self, aggregate_function: Any, window_function: Any, output_type: DeclaredType
    ) -> DataStream[Any]:
        checked_function(aggregate_function, AggregateFunction, "aggregate")
        function = self._checked(window_function, "aggregate")
        shown = (aggregate_function, function or self._pass_through)
        return self._windowed(output_type, shown, aggregate=aggregate_function, function=function)

    def _applied(self, window_function: Any, output_type: DeclaredType) -> DataStream[Any]:
        checked_function(window_function, self._window_functions[0], "apply", callables=True)
        return self._windowed(output_type, (window_function,), function=window_function)

    def _processed(self, window_function: Any, output_type: DeclaredType) -> DataStream[Any]:
        checked_function(window_function, self._window_functions[1], "process")
        return self._windowed(output_type, (window_function,), function=window_function)

    def _checked(self, window_function: Any, call: str) -> Any:
        if window_function is None:
            return None
        return checked_function(window_function, self._window_functions, call)

    def _windowed(
        self, output_type: DeclaredType, shown: tuple[Any, ...], **computed: Any
    ) -> DataStream[Any]:
        spec = self.spec(**computed, is_all=self._is_all)
        stream = self._keyed_stream.transform(spec, output_type, name=self.operator_name())
        if self._is_all:
            stream.force_non_parallel()
        return stream.set_description(
            self.description("AllWindow" if self._is_all else "Window", *shown)
        )


class WindowedStream(_Windows[T, W], Generic[K, T, W]):
    """The records of each key, grouped into windows.

    Flink: `WindowedStream`.
    """

    _window_functions = (WindowFunction, ProcessWindowFunction)
    _pass_through = PassThroughWindowFunction()
    _is_all = False

    def __init__(
        self, keyed_stream: KeyedStream[K, T], window_assigner: WindowAssigner[T, W]
    ) -> None:
        super().__init__(keyed_stream.get_execution_environment(), window_assigner)
        self._keyed_stream = keyed_stream

    @overload
    def reduce(
        self,
        reduce_function: ReduceFunction[T] | Callable[[T, T], T],
        window_function: None = None,
        output_type: DeclaredType = None,
    ) -> DataStream[T]: ...

    @overload
    def reduce(
        self,
        reduce_function: ReduceFunction[T] | Callable[[T, T], T],
        window_function: WindowFunction[T, R, K, W] | ProcessWindowFunction[T, R, K, W],
        output_type: DeclaredType = None,
    ) -> DataStream[R]: ...

    def reduce(
        self,
        reduce_function: ReduceFunction[T] | Callable[[T, T], T],
        window_function: Any = None,
        output_type: DeclaredType = None,
    ) -> DataStream[Any]:
        """Combines the records of each window when they arrive. The state is one value per window.

        Args:
            reduce_function: Combines two records.
            window_function: Gets the combined value when the window fires. Without it, the value itself is emitted.
            output_type: The type of the emitted records.
        """
        return self._reduced(reduce_function, window_function, output_type)

    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T, ACC, OUT],
        window_function: None = None,
        accumulator_type: DeclaredType = None,
        output_type: DeclaredType = None,
    ) -> DataStream[OUT]: ...

    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T, ACC, OUT],
        window_function: WindowFunction[OUT, R, K, W] | ProcessWindowFunction[OUT, R, K, W],
        accumulator_type: DeclaredType = None,
        output_type: DeclaredType = None,
    ) -> DataStream[R]: ...

    def aggregate(
        self,
        aggregate_function: AggregateFunction[T, ACC, OUT],
        window_function: Any = None,
        accumulator_type: DeclaredType = None,  # noqa: ARG002 - PyFlink's signature
        output_type: DeclaredType = None,
    ) -> DataStream[Any]:
        """Adds the records of each window to an accumulator when they arrive. The state is one accumulator per window.

        Args:
            aggregate_function: Adds records to an accumulator, and turns the accumulator into a result.
            window_function: Gets the result when the window fires. Without it, the result itself is emitted.
            accumulator_type: Accepted as in PyFlink, but not used.
            output_type: The type of the emitted records.
        """
        return self._aggregated(aggregate_function, window_function, output_type)

    def apply(
        self,
        window_function: WindowFunction[T, R, K, W] | Callable[[K, W, Iterable[T]], Iterable[R]],
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Calls a function with all records of a window when the window fires."""
        return self._applied(window_function, output_type)

    def process(
        self,
        process_window_function: ProcessWindowFunction[T, R, K, W],
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Calls a function with all records of a window, and a context with state, when the window fires."""
        return self._processed(process_window_function, output_type)


class AllWindowedStream(_Windows[T, W]):
    """All records of a stream, grouped into windows. The operator is not parallel.

    Flink: `AllWindowedStream`, which also keys the stream by a constant.
    """

    _window_functions = (AllWindowFunction, ProcessAllWindowFunction)
    _pass_through = PassThroughAllWindowFunction()
    _is_all = True

    def __init__(self, data_stream: DataStream[T], window_assigner: WindowAssigner[T, W]) -> None:
        super().__init__(data_stream.get_execution_environment(), window_assigner, "window_all")
        self._keyed_stream = data_stream.key_by(NullByteKeySelector())

    @overload
    def reduce(
        self,
        reduce_function: ReduceFunction[T] | Callable[[T, T], T],
        window_function: None = None,
        output_type: DeclaredType = None,
    ) -> DataStream[T]: ...

    @overload
    def reduce(
        self,
        reduce_function: ReduceFunction[T] | Callable[[T, T], T],
        window_function: AllWindowFunction[T, R, W] | ProcessAllWindowFunction[T, R, W],
        output_type: DeclaredType = None,
    ) -> DataStream[R]: ...

    def reduce(
        self,
        reduce_function: ReduceFunction[T] | Callable[[T, T], T],
        window_function: Any = None,
        output_type: DeclaredType = None,
    ) -> DataStream[Any]:
        """Combines the records of each window when they arrive; see `WindowedStream.reduce`."""
        return self._reduced(reduce_function, window_function, output_type)

    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T, ACC, OUT],
        window_function: None = None,
        accumulator_type: DeclaredType = None,
        output_type: DeclaredType = None,
    ) -> DataStream[OUT]: ...

    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T, ACC, OUT],
        window_function: AllWindowFunction[OUT, R, W] | ProcessAllWindowFunction[OUT, R, W],
        accumulator_type: DeclaredType = None,
        output_type: DeclaredType = None,
    ) -> DataStream[R]: ...

    def aggregate(
        self,
        aggregate_function: AggregateFunction[T, ACC, OUT],
        window_function: Any = None,
        accumulator_type: DeclaredType = None,  # noqa: ARG002 - PyFlink's signature
        output_type: DeclaredType = None,
    ) -> DataStream[Any]:
        """Adds the records of each window to an accumulator; see `WindowedStream.aggregate`."""
        return self._aggregated(aggregate_function, window_function, output_type)

    def apply(
        self,
        window_function: AllWindowFunction[T, R, W] | Callable[[W, Iterable[T]], Iterable[R]],
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Calls a function with all records of a window when the window fires."""
        return self._applied(window_function, output_type)

    def process(
        self,
        process_window_function: ProcessAllWindowFunction[T, R, W],
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Calls a function with all records of a window, and a context with state, when the window fires."""
        return self._processed(process_window_function, output_type)


# As in Flink's plans, for any function.
_KEYED_DESCRIPTION = (
    "Window(GlobalWindows(trigger=EndOfStreamTrigger), EndOfStreamTrigger, "
    "KeyedMapPartitionWindowFunction)"
)


class PartitionWindowedStream(Generic[T]):
    """All records of each subtask, or of each key on a keyed stream, as one window.

    Flink: `NonKeyedPartitionWindowedStream` and `KeyedPartitionWindowedStream`.
    """

    def __init__(self, stream: DataStream[T]) -> None:
        self._stream = stream

    def map_partition(
        self,
        map_partition_function: MapPartitionFunction[T, R] | Callable[[Iterable[T]], Iterable[R]],
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Calls a function with all records of each partition when the input has ended."""
        checked_function(
            map_partition_function, MapPartitionFunction, "map_partition", callables=True
        )
        if self._stream.state_key is not None:
            keyed = self._stream.transform(FullWindowSpec(map_partition_function), output_type)
            return keyed.set_description(_KEYED_DESCRIPTION)
        # As in Flink, the operator has the parallelism of its input, as if the user had set it, and is never chained.
        stream = self._stream.transform(
            MapPartitionSpec(map_partition_function),
            output_type,
            parallelism=self._stream.get_parallelism(),
            parallelism_configured=True,
        )
        return stream.set_chaining_strategy(ChainingStrategy.NEVER)
