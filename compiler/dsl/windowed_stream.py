"""WindowedStream: the windows of each key, and what is computed over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from opchain.compiler.dsl.argument_checks import checked_function
from opchain.compiler.dsl.declared_types import declared_type
from opchain.compiler.dsl.window_definition import WindowDefinition
from opchain.runtime.functions.aggregate_functions import AggregateFunction, ReduceFunction
from opchain.runtime.functions.window_functions import (
    PassThroughWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from opchain.runtime.type_variables import K, T, W

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opchain.compiler.dsl.data_stream import DataStream
    from opchain.compiler.dsl.declared_types import DeclaredType
    from opchain.compiler.dsl.keyed_stream import KeyedStream
    from opchain.runtime.operators.specs import WindowSpec
    from opchain.runtime.types.type_information import TypeInformation
    from opchain.runtime.windows.assigners import WindowAssigner

R = TypeVar("R")
ACC = TypeVar("ACC")
OUT = TypeVar("OUT")
_PASS_THROUGH: PassThroughWindowFunction[Any] = PassThroughWindowFunction()


class WindowedStream(WindowDefinition[T, W], Generic[K, T, W]):
    """The records of each key, grouped into windows.

    Flink: `WindowedStream`.
    """

    def __init__(
        self, keyed_stream: KeyedStream[K, T], window_assigner: WindowAssigner[T, W]
    ) -> None:
        super().__init__(keyed_stream.get_execution_environment(), window_assigner)
        self._keyed_stream = keyed_stream

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
        window_function: WindowFunction[T, R, K, W] | ProcessWindowFunction[T, R, K, W],
        output_type: DeclaredType = None,
    ) -> DataStream[R]: ...

    def reduce(
        self,
        reduce_function: ReduceFunction[T] | Callable[[T, T], T],
        window_function: WindowFunction[T, R, K, W]
        | ProcessWindowFunction[T, R, K, W]
        | None = None,
        output_type: DeclaredType = None,
    ) -> DataStream[T] | DataStream[R]:
        """Combines the records of each window as they come, keeping one value per window.

        Args:
            reduce_function: Combines two records.
            window_function: Gets that one value when the window fires; without it the value itself
                is emitted.
            output_type: The type of what is emitted.
        """
        checked_function(reduce_function, ReduceFunction, "reduce", callables=True)
        if window_function is None and output_type is None:
            output_type = declared_type(self._keyed_stream.transformation)
        spec = self.spec(
            reduce=reduce_function, function=_checked_behind(window_function, "reduce")
        )
        return self._windowed(spec, output_type, reduce_function, window_function or _PASS_THROUGH)

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
        window_function: WindowFunction[OUT, R, K, W]
        | ProcessWindowFunction[OUT, R, K, W]
        | None = None,
        accumulator_type: DeclaredType = None,  # noqa: ARG002 - PyFlink's signature
        output_type: DeclaredType = None,
    ) -> DataStream[OUT] | DataStream[R]:
        """Folds the records of each window as they come, keeping one accumulator per window.

        Args:
            aggregate_function: Folds records into an accumulator, and that into a result.
            window_function: Gets the result when the window fires; without it the result itself is
                emitted.
            accumulator_type: Taken as in PyFlink, and not needed.
            output_type: The type of what is emitted.
        """
        checked_function(aggregate_function, AggregateFunction, "aggregate")
        function = _checked_behind(window_function, "aggregate")
        spec = self.spec(aggregate=aggregate_function, function=function)
        return self._windowed(spec, output_type, aggregate_function, function or _PASS_THROUGH)

    def apply(
        self,
        window_function: WindowFunction[T, R, K, W] | Callable[[K, W, Iterable[T]], Iterable[R]],
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Gives all records of a window to a function when the window fires."""
        checked_function(window_function, WindowFunction, "apply", callables=True)
        return self._windowed(self.spec(function=window_function), output_type, window_function)

    def process(
        self,
        process_window_function: ProcessWindowFunction[T, R, K, W],
        output_type: DeclaredType = None,
    ) -> DataStream[R]:
        """Gives all records of a window, and a context with state, to a function when it fires."""
        checked_function(process_window_function, ProcessWindowFunction, "process")
        spec = self.spec(function=process_window_function)
        return self._windowed(spec, output_type, process_window_function)

    def _windowed(
        self, spec: WindowSpec, output_type: DeclaredType, *functions: Any
    ) -> DataStream[Any]:
        stream = self._keyed_stream.transform(spec, output_type, name=self.operator_name())
        return stream.set_description(self.description("Window", *functions))


def _checked_behind(window_function: Any, call: str) -> Any:
    if window_function is None:
        return None
    return checked_function(window_function, (WindowFunction, ProcessWindowFunction), call)
