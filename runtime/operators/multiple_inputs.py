"""Operators with several inputs: CoMap, CoFlatMap, and any number of inputs."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from opchain.runtime.operators.operator import StreamOperator, UserFunctionOperator
from opchain.runtime.operators.process import emit_where_read

if TYPE_CHECKING:
    from opchain.runtime.operators.context import OperatorContext
    from opchain.runtime.operators.operator import Collect, Output
    from opchain.runtime.program.operator_specs import MultiInputSpec
    from opchain.runtime.program.vertex_program import OperatorProgram


class _CoOperator(UserFunctionOperator):
    """On keyed streams both inputs set the key, so that the function's keyed state is that key's."""

    def set_key(self, number: int, value: Any) -> None:
        """Makes the record's key the current one, where its input has one."""
        key = self.program.keys[number]
        if key is not None and self.context.keyed_state is not None:
            self.context.keyed_state.set_current_key(key.selector(value))

    @property
    def current_key(self) -> Any:
        """The key of the record at hand."""
        backend = self.context.keyed_state
        return None if backend is None else backend.current_key


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

    Where all inputs have a key, the functions share the state of the record's key.
    """

    makes_records = True

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        spec: MultiInputSpec = program.spec  # type: ignore[assignment]
        self.functions = spec.functions

    @property
    def current_key(self) -> Any:
        """The key of the record at hand."""
        backend = self.context.keyed_state
        return None if backend is None else backend.current_key

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
            # Looked up each time: the chain puts generated code in its place.
            collect = self.output.collect
            for result in flat_map(value):
                collect(result, timestamp)

        return process

    def close(self) -> None:
        """Closes all functions, also when one of them fails to."""
        with ExitStack() as every_one:
            for function in self.functions:
                closed = getattr(function, "close", None)
                if closed is not None:
                    every_one.callback(closed)
