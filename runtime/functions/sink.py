"""Sinks as in Flink's SinkV2: a writer and, if the sink is transactional, a committer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opchain.runtime.functions.function import RuntimeContext
    from opchain.runtime.types.type_information import TypeInformation


class DeliveryGuarantee(Enum):
    """How often a record may be written to the external system. Flink: DeliveryGuarantee."""

    EXACTLY_ONCE = 0
    """Exactly once, even after failures."""
    AT_LEAST_ONCE = 1
    """At least once: records may be repeated after a failure."""
    NONE = 2
    """No guarantee: records may be repeated or lost after a failure."""


T = TypeVar("T")


NO_LINEAGE = "none"
"""The lineage of a writer that runs without a job, in a test."""


@dataclass(frozen=True, slots=True)
class SinkOrigin:
    """Identifies the writer of uncommitted output, so that a later run can find the output.

    Attributes:
        lineage: The id of the job. All runs with the same checkpoint directory share it; each bounded job has a new
            one.
        operator_id: The operator id of the sink.
        where: The name and call site of the sink, for errors.
        staging: A folder of the job, as path or URL, for output that waits for its commit. None without checkpoints.
    """

    lineage: str = NO_LINEAGE
    operator_id: str = ""
    where: str = "a sink"
    staging: str | None = None


def origin_of(context: RuntimeContext) -> SinkOrigin:
    """The origin of a writer, from the context of its task. Contexts of tests have a default origin."""
    return getattr(context, "origin", SinkOrigin())


class SinkWriter(ABC, Generic[T]):
    """Writes the records of one subtask."""

    @abstractmethod
    def write(self, value: T, timestamp: int | None) -> None:
        """Writes one record. `timestamp` is its event time in milliseconds, or None."""

    def write_batch(self, values: Sequence[T], timestamps: Sequence[int | None] | None) -> None:
        """Writes a batch. `timestamps` is None if no record has a timestamp.

        The default calls `write` for each record.
        """
        if timestamps is None:
            for value in values:
                self.write(value, None)
        else:
            for value, timestamp in zip(values, timestamps):  # noqa: B905 - equal by construction
                self.write(value, timestamp)

    def flush(self, *, end_of_input: bool) -> None:
        """Makes all written records durable. It is called before each checkpoint and at the end."""

    def prepare_commit(self) -> Sequence[Any]:
        """Returns the committables of everything written since the last call. They must be picklable."""
        return ()

    def prepare_commit_of(self, checkpoint_id: int | None) -> Sequence[Any]:  # noqa: ARG002 - for most no difference
        """Like `prepare_commit`, for writers whose committables contain the checkpoint id.

        It is None at the end of the job.
        """
        return self.prepare_commit()

    def close(self) -> None:
        """Releases the writer's resources. It is called once, also after an error."""


class BatchSinkWriter(SinkWriter[T]):
    """A writer that writes records in batches."""

    def write(self, value: T, timestamp: int | None) -> None:
        """Writes a batch of one record."""
        self.write_batch([value], [timestamp])

    @abstractmethod
    def write_batch(self, values: Sequence[T], timestamps: Sequence[int | None] | None) -> None:
        """Writes a batch. `timestamps` is None if no record has a timestamp."""


class Committer(ABC):
    """Publishes written output. `commit` must be idempotent, because it may be called again.

    Attributes:
        committable: The class of its committables. A checkpoint of an earlier program may have those of another sink.
    """

    committable: type = object

    @abstractmethod
    def commit(self, committables: Sequence[Any]) -> None:
        """Publishes each committable. One that is already published is left unchanged."""

    def abort(self, checkpoint_id: int) -> None:
        """Called when an epoch has failed. Its output will never be committed."""

    def discard_orphans(self, origin: SinkOrigin, confirm: Callable[[], None]) -> None:
        """Removes uncommitted output of this origin that will never be committed.

        No writer of the origin runs at this time.

        Args:
            origin: The origin of the writers.
            confirm: Call it after listing the output and before removing any. It raises an error if another run has
                taken over the job, because the listed output may then belong to that run.
        """

    def last_commit(self, origin: SinkOrigin) -> int | None:  # noqa: ARG002 - not every sink keeps a note
        """The last checkpoint that the sink has committed, as recorded together with its output."""
        return None

    def reset_commits(self, origin: SinkOrigin, checkpoint_id: int) -> None:
        """Records this checkpoint as the last committed one, so that later checkpoints are committed again."""

    def how_to_reset(self, origin: SinkOrigin, checkpoint_id: int) -> str:  # noqa: ARG002 - as above
        """Instructions for resetting commits by hand, for error messages."""
        return ""

    def close(self) -> None:
        """Releases the committer's resources."""


class Sink(ABC, Generic[T]):
    """The base class of sinks for `sink_to`.

    Two attributes make the chain faster when they are False: `reads_timestamps` says whether the writers use event
    times, and `changes_records` whether they may change the records.
    """

    reads_timestamps: bool = True
    changes_records: bool = True

    @abstractmethod
    def create_writer(self, context: RuntimeContext) -> SinkWriter[T]:
        """Creates the writer of one subtask, on the executor."""

    def create_committer(self) -> Committer | None:
        """Creates the committer. None for a sink without one, whose writes are final."""
        return None

    def for_type(self, record_type: TypeInformation[Any]) -> Sink[T]:  # noqa: ARG002 - for most no difference
        """The sink for records of a declared type: the same sink, or one that converts records to the type."""
        return self

    @property
    def has_committer(self) -> bool:
        """Whether the StreamGraph gets a `Committer` operator after the writer."""
        return False
