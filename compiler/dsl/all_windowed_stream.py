"""AllWindowedStream: windows over a whole stream, computed in a single subtask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from opchain.compiler.dsl.argument_checks import checked_function
from opchain.compiler.dsl.declared_types import declared_type
from opchain.compiler.dsl.window_definition import WindowDefinition
from opchain.runtime.functions.aggregate_functions import AggregateFunction, ReduceFunction
from opchain.runtime.functions.key_selectors import NullByteKeySelector
from opchain.runtime.functions.window_functions import (
    AllWindowFunction,
    PassThroughAllWindowFunction,
    ProcessAllWindowFunction,
)
from opchain.runtime.type_variables import T, W

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.compiler.dsl.declared_types import DeclaredType
    from opchain.runtime.operators.specs import WindowSpec
    from opchain.runtime.types.type_information import TypeInformation
    from opchain.runtime.windows.assigners import WindowAssigner

R = TypeVar("R")
ACC = TypeVar("ACC")
OUT = TypeVar("OUT")
_PASS_THROUGH: PassThroughAllWindowFunction[Any] = PassThroughAllWindowFunction()


class AllWindowedStream(WindowDefinition[T, W]):
    """All records of a stream, grouped into windows; the operator is not parallel.

    Flink: `AllWindowedStream`, which is also a key-by on one constant key.
    """

    def __init__(self, data_stream: DataStream[T], window_assigner: WindowAssigner[T, W]) -> None:
        super().__init__(data_stream.get_execution_environment(), window_assigner, "window_all")
        self._keyed_stream = data_stream.key_by(NullByteKeySelector())

    def get_input_type(self) -> TypeInformation[Any]:
        """The declared type of the records; see `DataStream.get_type`."""
        return self._keyed_stream.get_type()

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
        window_function: AllWindowFunction[T, R, W]
        | ProcessAllWindowFunction[T, R, W]
        | None = None,
        output_type: DeclaredType = None,
    ) -> DataStream[T] | DataStream[R]:
        """Combines the records of each window as they come; see `WindowedStream.reduce`."""
        checked_function(reduce_function, ReduceFunction, "reduce", callables=True)
        if window_function is None and output_type is None:
            output_type = declared_type(self._keyed_stream.transformation)
        function = _checked_behind(window_function, "reduce")
        spec = self.spec(reduce=reduce_function, function=function, is_all=True)
        return self._windowed(spec, output_type, reduce_function, function or _PASS_THROUGH)

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
        window_function: AllWindowFunction[OUT, R, W]
        | ProcessAllWindowFunction[OUT, R, W]
        | None = None,
        accumulator_type: DeclaredType = None,  # noqa: ARG002 - PyFlink's signature
        output_type: DeclaredType = None,
    ) -> DataStream[OUT] | DataStream[R]:
        """Folds the records of each window as they come; see `WindowedStream.aggregate`."""
        checked_function(aggregate_function, AggregateFunction, "aggregate")
        function = _checked_behind(window_function, "aggregate")
        spec = self.spec(aggregate=aggregate_function, function=function, is_all=True)
        return self._windowed(spec, output_type, aggregate_function, function or _PASS_THROUGH)

    def apply(
        self,
        window_function: AllWindowFunction[T, R, W] | Callable[[W, Iterable[T]], Iterable[R]],
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Gives all records of a window to a function when the window fires."""
        checked_function(window_function, AllWindowFunction, "apply", callables=True)
        spec = self.spec(function=window_function, is_all=True)
        return self._windowed(spec, output_type, window_function)

    def process(
        self,
        process_window_function: ProcessAllWindowFunction[T, R, W],
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Gives all records of a window, and a context with state, to a function when it fires."""
        checked_function(process_window_function, ProcessAllWindowFunction, "process")
        spec = self.spec(function=process_window_function, is_all=True)
        return self._windowed(spec, output_type, process_window_function)

    def _windowed(
        self, spec: WindowSpec, output_type: DeclaredType, *functions: Any
    ) -> DataStream[Any]:
        stream = self._keyed_stream.transform(spec, output_type, name=self.operator_name())
        stream.force_non_parallel()
        return stream.set_description(self.description("AllWindow", *functions))


def _checked_behind(window_function: Any, call: str) -> Any:
    if window_function is None:
        return None
    return checked_function(window_function, (AllWindowFunction, ProcessAllWindowFunction), call)
