"""SourceFunction and SinkFunction, the legacy sources and sinks.

Flink: `SourceFunction` and `SinkFunction` of its `legacy` packages. PyFlink only wraps Java ones. A SinkFunction may
also prepare and commit output, as a Sink does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.errors import InternalError, UnsupportedFeatureError
from opchain.runtime.functions.function import Function
from opchain.runtime.types.type_variables import IN_contra, OUT_co, T, T_contra

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from typing_extensions import Self

    from opchain.runtime.functions.sink import Sink
    from opchain.runtime.functions.source import Source


class SourceFunction(Function, Generic[OUT_co]):
    """A source with its own loop, in one subtask.

    `run` is called on a separate thread. A source with state must change the state and emit the record while it holds
    `ctx.get_checkpoint_lock()`, so that a snapshot includes both or neither.

    In process (execution.target = local), records are processed immediately, even if `run` never returns. On Spark, a
    job has results only after `run` has returned.

    Attributes:
        is_bounded: Whether `run` returns by itself. On Spark, False is an error, and None causes a warning.
    """

    is_bounded: bool | None = None

    class SourceContext(ABC, Generic[T_contra]):
        """Emits the records of a source. Each call blocks while downstream operators are busy."""

        @abstractmethod
        def collect(self, element: T_contra) -> None:
            """Emits a record without a timestamp."""

        @abstractmethod
        def collect_with_timestamp(self, element: T_contra, timestamp: int) -> None:
            """Emits a record with its event time in milliseconds."""

        @abstractmethod
        def emit_watermark(self, timestamp: int) -> None:
            """Declares that no record with this event time (milliseconds) or an earlier one will follow."""

        @abstractmethod
        def mark_as_temporarily_idle(self) -> None:
            """Marks the source idle until its next record. Downstream operators do not wait for its watermark."""

        @abstractmethod
        def get_checkpoint_lock(self) -> AbstractContextManager[Any]:
            """The lock that snapshots acquire: `with ctx.get_checkpoint_lock(): ...`."""

        def close(self) -> None:
            """Releases the context's resources. It is called after `run` has returned."""

    @abstractmethod
    def run(self, ctx: SourceFunction.SourceContext[OUT_co]) -> None:
        """Emits records until there are no more, or until `cancel` is called."""

    @abstractmethod
    def cancel(self) -> None:
        """Makes `run` return soon. It is called from another thread, possibly after `run` has returned."""


class SourceBackedFunction(SourceFunction[OUT_co]):
    """A SourceFunction of Flink's old connectors. `add_source` replaces it with a new-style source.

    Unlike a function with its own loop, it thus stores its position in checkpoints.
    """

    @abstractmethod
    def as_source(self) -> Source[Any]:
        """The new-style source."""

    def run(self, ctx: SourceFunction.SourceContext[OUT_co]) -> None:
        """Not supported: `add_source` uses the new-style source.

        Raises:
            InternalError: Always.
        """
        raise InternalError(f"{self!r} was run with {ctx!r}; its source is read")

    def cancel(self) -> None:
        """Does nothing, because `run` is never called."""


class ParallelSourceFunction(SourceFunction[OUT_co]):
    """A SourceFunction that may run in several subtasks, each with its own copy."""


class SinkFunction(Function, Generic[IN_contra]):
    """A sink that is called with each record."""

    class Context(ABC):
        """The clocks, and the timestamp of the record."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The current time of the machine in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The current watermark in milliseconds."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """The record's event time in milliseconds, or None."""

    def __new__(cls, *_arguments: Any, **_keywords: Any) -> Self:
        """Refuses SinkFunction itself, which PyFlink creates with the name of a Java class."""
        if cls is SinkFunction:
            raise UnsupportedFeatureError(
                "SinkFunction(...) with a Java class is not supported, because no JVM of Flink runs here: write a "
                "subclass with invoke(), or use print() or sink_to(DiscardingSink())"
            )
        return super().__new__(cls)

    @abstractmethod
    def invoke(self, value: IN_contra, context: SinkFunction.Context) -> None:
        """Writes one record. After a failure, it may be called again with the same record."""

    def finish(self) -> None:
        """Called after the last record, before `close`: flush here. It is not called after a failure."""


class TwoPhaseSinkFunction(SinkFunction[T], Generic[T]):
    """A sink for `add_sink` that publishes its output when the job, or the checkpoint, is complete.

    It wraps a Sink. Plans show one operator, as in Flink, and the driver commits. Flink: `TwoPhaseCommitSinkFunction`.

    Attributes:
        two_phase: The wrapped Sink.
    """

    def __init__(self, sink: Sink[T]) -> None:
        self.two_phase = sink
        self.reads_timestamps = sink.reads_timestamps

    def __repr__(self) -> str:
        return repr(self.two_phase)

    def invoke(self, value: T, context: SinkFunction.Context) -> None:  # noqa: ARG002 - the contract
        """Not supported: the writer of the wrapped sink takes the records.

        Raises:
            InternalError: Always.
        """
        raise InternalError(f"{self!r} was called with a record; its writer takes them")
