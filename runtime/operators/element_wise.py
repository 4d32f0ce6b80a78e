"""Map, filter and flat map: one record at a time. The interpreted forms; chains run generated code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.operators.operator import UserFunctionOperator
from opchain.runtime.operators.process import emit_where_read

if TYPE_CHECKING:
    from opchain.runtime.operators.context import OperatorContext
    from opchain.runtime.operators.operator import Output
    from opchain.runtime.program.vertex_program import OperatorProgram


class ElementWiseOperator(UserFunctionOperator):
    """What the three share: on a keyed stream a rich function may use keyed state, so the key is set."""

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.sets_key = context.keyed_state is not None and hasattr(self.function, "open")
        self.sorts_batch_input = self.sets_key

    def set_key(self, value: Any) -> None:
        """Makes the record's key the current one."""
        if self.sets_key:
            self.context.keyed_state.set_current_key(self.select_key(value))

    def select_key(self, value: Any) -> Any:
        """The key of a record of the first input."""
        key = self.program.keys[0]
        assert key is not None
        return key.selector(value)

    @property
    def current_key(self) -> Any:
        """The key of the record at hand, where the function may see it."""
        return self.context.keyed_state.current_key if self.sets_key else None


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
    makes_records = False

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
        for result in self.call(value):
            emit_where_read(output, result, timestamp)
