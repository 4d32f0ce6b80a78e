"""Sinks, and their halves in the StreamGraph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from opchain.runtime.operators.specs.operator_spec import OperatorSpec

if TYPE_CHECKING:
    from opchain.runtime.connectors.sink import Sink


@dataclass(frozen=True, slots=True)
class SinkSpec(OperatorSpec):
    """A sink of `sink_to`, as drawn; the StreamGraph has its writer and its committer."""

    kind: ClassVar[str] = "sink"
    default_name: ClassVar[str] = "Sink"
    sink: Sink[Any]


@dataclass(frozen=True, slots=True)
class SinkWriterSpec(OperatorSpec):
    """The writing half of a sink."""

    kind: ClassVar[str] = "sink_writer"
    default_name: ClassVar[str] = "Writer"
    takes_batches: ClassVar[bool] = True
    is_yielding: ClassVar[bool] = True
    sink: Sink[Any]

    def reads_timestamps(self) -> bool:
        """As the sink says."""
        return self.sink.reads_timestamps

    def changes_records(self) -> bool:
        """As the sink says."""
        return self.sink.changes_records


@dataclass(frozen=True, slots=True)
class SinkCommitterSpec(OperatorSpec):
    """The committing half of a sink that has a committer."""

    kind: ClassVar[str] = "sink_committer"
    default_name: ClassVar[str] = "Committer"
    sink: Sink[Any]

    def reads_timestamps(self) -> bool:
        """No: committables have none."""
        return False


@dataclass(frozen=True, slots=True)
class LegacySinkSpec(OperatorSpec):
    """A SinkFunction of `add_sink`, and `print`."""

    kind: ClassVar[str] = "legacy_sink"
    default_name: ClassVar[str] = "Unnamed"
    function: Any

    def reads_timestamps(self) -> bool:
        """Yes, unless the function says that it does not."""
        return bool(getattr(self.function, "reads_timestamps", True))


@dataclass(frozen=True, slots=True)
class TwoPhaseSinkSpec(LegacySinkSpec):
    """A sink of `add_sink` with two phases, as JdbcSink: tasks write, and the driver commits."""

    kind: ClassVar[str] = "two_phase_sink"
    takes_batches: ClassVar[bool] = True

    @property
    def sink(self) -> Sink[Any]:
        """What writes and commits."""
        found: Sink[Any] = self.function.two_phase
        return found

    def changes_records(self) -> bool:
        """As the sink says."""
        return self.sink.changes_records


@dataclass(frozen=True, slots=True)
class CollectSinkSpec(LegacySinkSpec):
    """The sink of `execute_and_collect`: one subtask hands the records to the program.

    Flink: `CollectSinkOperatorFactory`. The program finds the records by the operator's uid.
    """

    kind: ClassVar[str] = "collect_sink"
    takes_batches: ClassVar[bool] = True
    default_name: ClassVar[str] = "Data stream collect sink"
    function: None = None

    def reads_timestamps(self) -> bool:
        """No: only values are collected."""
        return False

    def changes_records(self) -> bool:
        """No: they are pickled."""
        return False
