"""SinkFunctions for `add_sink` that write and commit as a Sink does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

from opchain.runtime.errors import InternalError
from opchain.runtime.functions.source_sink_functions import SinkFunction
from opchain.runtime.type_variables import T

if TYPE_CHECKING:
    from opchain.runtime.connectors.sink import Sink


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
