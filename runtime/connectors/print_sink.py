"""The sink behind `print`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.source_sink_functions import SinkFunction

if TYPE_CHECKING:
    from opchain.runtime.functions.function import RuntimeContext


class PrintSinkFunction(SinkFunction[Any]):
    """Prints each record as a line, on the standard output (or error) of the process that runs it.

    Flink: `PrintSinkFunction` and `PrintSinkOutputWriter`.

    Args:
        sink_identifier: Begins each line; nothing if empty or None.
        to_stderr: Prints to standard error.
    """

    reads_timestamps = False

    def __init__(self, sink_identifier: str | None = None, to_stderr: bool = False) -> None:
        self.sink_identifier = sink_identifier or ""
        self.to_stderr = to_stderr
        self._prefix = ""

    def __repr__(self) -> str:
        return "Print to System.err" if self.to_stderr else "Print to System.out"

    def open(self, runtime_context: RuntimeContext) -> None:
        """Builds the prefix: identifier, and the subtask from 1 where there are several."""
        parts = [self.sink_identifier] if self.sink_identifier else []
        if runtime_context.get_number_of_parallel_subtasks() > 1:
            parts.append(str(runtime_context.get_index_of_this_subtask() + 1))
        self._prefix = f"{':'.join(parts)}> " if parts else ""

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:  # noqa: ARG002 - no timestamp
        """Prints one record."""
        # One write per line, so that lines of several tasks in one process don't mix. The stream is
        # looked up each time: whoever captures it may replace it between two records.
        (sys.stderr if self.to_stderr else sys.stdout).write(f"{self._prefix}{value}\n")

    def finish(self) -> None:
        """Flushes."""
        (sys.stderr if self.to_stderr else sys.stdout).flush()
