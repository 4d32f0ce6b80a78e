"""Sinks that print records, and sinks that drop them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.sink import BatchSinkWriter, Sink, SinkWriter
from opchain.runtime.functions.source_sink_functions import SinkFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.runtime.functions.function import RuntimeContext
    from opchain.runtime.types.type_information import TypeInformation


class PrintSinkFunction(SinkFunction[Any]):
    """Prints each record as a line, on standard output or standard error of the program.

    In process, lines are printed at once. On Spark they are sent to the driver, which prints them task by task when the
    job has succeeded. So each line is printed once, even if tasks are retried. Flink: `PrintSinkFunction` and
    `PrintSinkOutputWriter`, which print where the task runs.

    Args:
        sink_identifier: A prefix of each line; none if empty or None.
        to_stderr: Whether lines go to standard error.
        record_type: The declared type of the records, which are then printed as Java shows them. Without a type they are
            printed as Python shows them.
    """

    reads_timestamps = False

    def __init__(
        self,
        sink_identifier: str | None = None,
        to_stderr: bool = False,
        record_type: TypeInformation[Any] | None = None,
    ) -> None:
        self.sink_identifier = sink_identifier or ""
        self.to_stderr = to_stderr
        self.record_type = record_type
        self._prefix = ""
        self._text: Callable[[Any], str] = str
        self._print_line: Callable[[str, bool], None] | None = None

    def __repr__(self) -> str:
        return "Print to System.err" if self.to_stderr else "Print to System.out"

    def open(self, runtime_context: RuntimeContext) -> None:
        """Sets the prefix of the lines. With several subtasks it contains the subtask, counted from 1."""
        self._print_line = getattr(runtime_context, "print_line", None)
        parts = [self.sink_identifier] if self.sink_identifier else []
        if runtime_context.get_number_of_parallel_subtasks() > 1:
            parts.append(str(runtime_context.get_index_of_this_subtask() + 1))
        self._prefix = f"{':'.join(parts)}> " if parts else ""
        if self.record_type is not None:
            # Loaded only if a type is declared.
            from opchain.runtime.types.printed_form import printer_of  # noqa: PLC0415

            self._text = printer_of(self.record_type)

    def line(self, value: Any) -> str:
        """The line of a record, with its prefix and without its end."""
        return f"{self._prefix}{self._text(value)}"

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:  # noqa: ARG002 - no timestamp
        """Prints one record."""
        if self._print_line is not None:
            self._print_line(self.line(value), self.to_stderr)
            return
        # One write per line, so that lines of several tasks in one process don't mix. The stream is looked up for each
        # line, because a test may replace it at any time.
        (sys.stderr if self.to_stderr else sys.stdout).write(self.line(value) + "\n")

    def finish(self) -> None:
        """Flushes."""
        (sys.stderr if self.to_stderr else sys.stdout).flush()


class DiscardingSink(Sink[Any]):
    """Drops every record. Flink: the SinkV2 `DiscardingSink`."""

    reads_timestamps = False
    changes_records = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def create_writer(self, context: RuntimeContext) -> SinkWriter[Any]:  # noqa: ARG002 - no context
        """A writer that does nothing."""
        return DiscardingWriter()


class DiscardingSinkFunction(SinkFunction[Any]):
    """Drops every record. Flink: the legacy `DiscardingSink`."""

    reads_timestamps = False
    changes_records = False

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        """Does nothing."""


class DiscardingWriter(BatchSinkWriter[Any]):
    """Drops every record."""

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Does nothing, at once."""
