"""A function over all records of a subtask, or of a key, once the input has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.constants import MAX_LONG_VALUE
from opchain.runtime.operators.operator import UserFunctionOperator
from opchain.runtime.state.keyed.keyed_backend import VOID

if TYPE_CHECKING:
    from opchain.runtime.operators.context import OperatorContext
    from opchain.runtime.operators.operator import Output
    from opchain.runtime.program.vertex_program import OperatorProgram
    from opchain.runtime.state.keyed.keyed_backend import KeyedStateBackend
    from opchain.runtime.state.timers.internal_timer_service import InternalTimerService

CONTENTS = "window-contents"
"""The name of the table of what a key has gathered, as of a window's state in Flink."""


class MapPartitionOperator(UserFunctionOperator):
    """All records of the subtask. Flink: `MapPartitionOperator`.

    Results have no timestamp. Flink runs the function in a thread beside the input, and keeps a bounded
    part of the records; here all of them are kept, and the function runs at the end, which gives the
    same results.
    """

    method = "map_partition"

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        self.values: list[Any] = []

    def process_element(self, value: Any, timestamp: int | None) -> None:  # noqa: ARG002 - the contract
        """Keeps the record."""
        self.values.append(value)

    def finish(self) -> None:
        """Emits what the function makes of the records; also of none at all."""
        values, self.values = self.values, []
        collect = self.output.collect
        for result in self.call(iter(values)) or ():
            collect(result, None)


class FullWindowOperator(UserFunctionOperator):
    """All records of each key, key by key in the order in which they came.

    Flink: a window operator over GlobalWindows that fires at the end of the stream. Results carry the
    largest timestamp, as that of this window.
    """

    method = "map_partition"

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        key = program.keys[0]
        assert key is not None
        self.select_key = key.selector
        self.backend: KeyedStateBackend = context.keyed_state
        self.contents = self.backend.table(CONTENTS)
        self.timers: InternalTimerService

    @property
    def current_key(self) -> Any:
        """The key of the record or of the call at hand."""
        return self.backend.current_key

    def open(self) -> None:
        """Opens the function."""
        self.timers = self.context.timers.service("window-timers", self)
        super().open()

    def process_element(self, value: Any, timestamp: int | None) -> None:  # noqa: ARG002 - the contract
        """Keeps the record with those of its key."""
        self.backend.set_current_key(self.select_key(value))
        values = self.contents.get(self.backend.state_key)
        if values is None:
            self.contents[self.backend.state_key] = [value]
            self.timers.register_event_time_timer(VOID, MAX_LONG_VALUE)
        else:
            values.append(value)

    def on_event_time(self, time: int, _namespace: Any) -> None:
        """Emits what the function makes of the current key's records: event time is over."""
        values = self.contents.pop(self.backend.state_key)
        collect = self.output.collect
        for result in self.call(iter(values)) or ():
            collect(result, time)

    def on_processing_time(self, time: int, namespace: Any) -> None:
        """Never called: no such timer is registered."""
