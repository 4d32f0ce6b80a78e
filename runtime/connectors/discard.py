"""Sinks that drop what they get: for benchmarks, plans and tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.functions.sink import Committer, Sink, SinkWriter
from opchain.runtime.functions.source_sink_functions import SinkFunction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.runtime.functions.function import RuntimeContext


class DiscardingSink(Sink[Any]):
    """Drops every record. Flink: the SinkV2 `DiscardingSink`."""

    reads_timestamps = False
    changes_records = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def create_writer(self, context: RuntimeContext) -> SinkWriter[Any]:  # noqa: ARG002 - no context
        """A writer that does nothing."""
        return _DiscardingWriter()


class CountingDiscardingSink(DiscardingSink):
    """Drops every record, and commits how many: the smallest sink that has a committer."""

    @property
    def has_committer(self) -> bool:
        """True."""
        return True

    def create_writer(self, context: RuntimeContext) -> SinkWriter[Any]:  # noqa: ARG002 - no context
        """A writer that counts."""
        return _CountingWriter()

    def create_committer(self) -> Committer:
        """A committer with nothing to publish."""
        return _NoCommit()


class DiscardingSinkFunction(SinkFunction[Any]):
    """Drops every record. Flink: the legacy `DiscardingSink`."""

    reads_timestamps = False
    changes_records = False

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        """Does nothing."""


class _DiscardingWriter(SinkWriter[Any]):
    def write(self, value: Any, timestamp: int | None) -> None:
        """Does nothing."""

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        """Does nothing, at once."""


class _CountingWriter(SinkWriter[Any]):
    def __init__(self) -> None:
        self._count = 0

    def write(self, value: Any, timestamp: int | None) -> None:  # noqa: ARG002 - the record is dropped
        """Counts one."""
        self._count += 1

    def write_batch(
        self,
        values: Sequence[Any],
        timestamps: Sequence[int | None] | None,  # noqa: ARG002 - the records are dropped
    ) -> None:
        """Counts all."""
        self._count += len(values)

    def prepare_commit(self) -> Sequence[int]:
        """The number of records since the last call."""
        counted, self._count = self._count, 0
        return (counted,)


class _NoCommit(Committer):
    def commit(self, committables: Sequence[Any]) -> None:
        """Does nothing: the count itself is the message."""
