"""SourceFunction and SinkFunction, the legacy sources and sinks.

Flink: `SourceFunction` and `SinkFunction` of its `legacy` packages. PyFlink only wraps Java ones. A SinkFunction may
also prepare and commit output, as a Sink does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic

from opchain.runtime.errors import InternalError
from opchain.runtime.functions.function import Function
from opchain.runtime.types.type_variables import IN_contra, OUT_co, T, T_contra

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from opchain.runtime.functions.sink import Sink
    from opchain.runtime.functions.source import Source


class SourceFunction(Function, Generic[OUT_co]):
    """A source that runs its own loop, in one subtask.

    `run` lives on a thread of its own. A source with state changes it and collects under
    `ctx.get_checkpoint_lock()`, so that no snapshot falls between the two.

    In process (execution.target = local) its records go on as they come, whether `run` ever returns or not. On Spark
    a job gives its results when `run` has returned.

    Attributes:
        is_bounded: Whether `run` returns by itself: False has it refused on Spark, None has a warning there.
    """

    is_bounded: bool | None = None

    class SourceContext(ABC, Generic[T_contra]):
        """Emits the records of a source. Each call waits while downstream operators are busy."""

        @abstractmethod
        def collect(self, element: T_contra) -> None:
            """Emits a record without a timestamp."""

        @abstractmethod
        def collect_with_timestamp(self, element: T_contra, timestamp: int) -> None:
            """Emits a record with its event time in milliseconds."""

        @abstractmethod
        def emit_watermark(self, timestamp: int) -> None:
            """Says that no record at or before this event time (milliseconds) will follow."""

        @abstractmethod
        def mark_as_temporarily_idle(self) -> None:
            """Marks the source idle until its next record: downstream does not wait for its watermark."""

        @abstractmethod
        def get_checkpoint_lock(self) -> AbstractContextManager[Any]:
            """The lock that a snapshot takes: `with ctx.get_checkpoint_lock(): ...`."""

        def close(self) -> None:
            """Releases the context's resources. It is called after `run` has returned."""

    @abstractmethod
    def run(self, ctx: SourceFunction.SourceContext[OUT_co]) -> None:
        """Emits records until there are no more, or `cancel` was called."""

    @abstractmethod
    def cancel(self) -> None:
        """Makes `run` return soon; called from another thread, maybe after `run` has returned."""


class SourceBackedFunction(SourceFunction[OUT_co]):
    """A SourceFunction of Flink's old connectors, for which `add_source` takes a new-style source.

    So it has positions in checkpoints, which a function that runs a loop has not.
    """

    @abstractmethod
    def as_source(self) -> Source[Any]:
        """The source."""

    def run(self, ctx: SourceFunction.SourceContext[OUT_co]) -> None:
        """Not by itself.

        Raises:
            InternalError: Always.
        """
        raise InternalError(f"{self!r} was run with {ctx!r}; its source is read")

    def cancel(self) -> None:
        """Does nothing: it never runs."""


class ParallelSourceFunction(SourceFunction[OUT_co]):
    """A SourceFunction that may run in several subtasks, each with a copy of it."""


class SinkFunction(Function, Generic[IN_contra]):
    """A sink that is called with each record."""

    class Context(ABC):
        """The clocks, and the record's timestamp."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The machine's time in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The event time reached so far, in milliseconds."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """The record's event time in milliseconds, or None."""

    @abstractmethod
    def invoke(self, value: IN_contra, context: SinkFunction.Context) -> None:
        """Writes one record; may be called again with it after a failure."""

    def finish(self) -> None:
        """Runs after the last record, before `close`: the place to flush. Not called on failure."""


class TwoPhaseSinkFunction(SinkFunction[T], Generic[T]):
    """A sink of `add_sink` whose writes show once the job, or the checkpoint, is complete.

    Flink: `TwoPhaseCommitSinkFunction`. Here it stands for a Sink: plans show one operator, as Flink's do,
    and the driver commits.

    Attributes:
        two_phase: What writes and commits.
    """

    def __init__(self, sink: Sink[T]) -> None:
        self.two_phase = sink
        self.reads_timestamps = sink.reads_timestamps

    def __repr__(self) -> str:
        return repr(self.two_phase)

    def invoke(self, value: T, context: SinkFunction.Context) -> None:  # noqa: ARG002 - the contract
        """Not without its sink.

        Raises:
            InternalError: Always.
        """
        raise InternalError(f"{self!r} was called with a record; its writer takes them")
