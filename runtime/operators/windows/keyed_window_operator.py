"""What the window operators have in common: functions, lateness, where late records go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.metrics.metric_names import NUM_LATE_RECORDS_DROPPED
from opchain.runtime.operators.operator import StreamOperator
from opchain.runtime.operators.windows.evaluation import WindowEvaluation
from opchain.runtime.operators.windows.lateness import Lateness
from opchain.runtime.operators.windows.window_context import WindowContext

if TYPE_CHECKING:
    from opchain.runtime.metrics.counter import Counter
    from opchain.runtime.operators.context import OperatorContext
    from opchain.runtime.operators.operator import Output
    from opchain.runtime.operators.specs import WindowSpec
    from opchain.runtime.state.keyed_backend import KeyedStateBackend
    from opchain.runtime.task.vertex_program import OperatorProgram


class KeyedWindowOperator(StreamOperator):
    """A window operator without the windows themselves."""

    makes_records = True

    def __init__(self, program: OperatorProgram, context: OperatorContext, output: Output) -> None:
        super().__init__(program, context, output)
        spec: WindowSpec = program.spec  # type: ignore[assignment]
        key = program.keys[0]
        assert key is not None
        self.spec = spec
        self.select_key = key.selector
        self.backend: KeyedStateBackend = context.keyed_state
        self.lateness = Lateness.of(spec)
        self.evaluation = WindowEvaluation(spec, WindowContext(self), output)
        self.late_records_dropped: Counter

    @property
    def current_key(self) -> Any:
        """The key of the record or window at hand."""
        return self.backend.current_key

    def event_time(self) -> int:
        """The event time reached so far, as the windows see it."""
        return self.current_watermark

    def open(self) -> None:
        """Registers the counter, and opens the user's functions.

        Flink refuses to open a reduce or aggregate function, so that it can't be rich; here it can.
        """
        self.late_records_dropped = self.context.metrics.counter(NUM_LATE_RECORDS_DROPPED)
        for function in self._functions():
            opened = getattr(function, "open", None)
            if opened is not None:
                opened(self.context.runtime_context)

    def close(self) -> None:
        """Closes the user's functions."""
        for function in self._functions():
            closed = getattr(function, "close", None)
            if closed is not None:
                closed()

    def _functions(self) -> list[Any]:
        spec = self.spec
        return [item for item in (spec.reduce, spec.aggregate, spec.function) if item is not None]

    def skip(self, value: Any, timestamp: int | None) -> None:
        """Takes a record that went into no window: to the late output, or it is counted, or ignored."""
        if self.lateness.is_element_late(timestamp, self.event_time()):
            if self.spec.late_tag is not None:
                self.output.collect_to(self.spec.late_tag.tag_id, value, timestamp)
            else:
                self.late_records_dropped.inc()
