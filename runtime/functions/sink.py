"""Sinks in the shape of Flink's SinkV2: a writer, and a committer if the sink is transactional."""

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
    """How often a record may reach the outside. Flink: DeliveryGuarantee."""

    EXACTLY_ONCE = 0
    """Once, also over failures."""
    AT_LEAST_ONCE = 1
    """At least once: records may come again after a failure."""
    NONE = 2
    """Records may come again, or be lost, after a failure."""


T = TypeVar("T")


NO_LINEAGE = "none"
"""The lineage of a writer that runs alone, in a test of it."""


@dataclass(frozen=True, slots=True)
class SinkOrigin:
    """Identifies the writer of hidden output, so that a later run can find the output.

    Attributes:
        lineage: The id of the job: the same for all runs with one directory of checkpoints, a new one for each
            bounded job.
        operator_id: The sink's operator.
        where: Its name and call site, for errors.
        staging: A folder of the job, as path or URL, for output that waits for its commit; None in a job without
            checkpoints.
    """

    lineage: str = NO_LINEAGE
    operator_id: str = ""
    where: str = "a sink"
    staging: str | None = None


def origin_of(context: RuntimeContext) -> SinkOrigin:
    """The origin of a writer, from the context of its task; a default origin in contexts of tests."""
    return getattr(context, "origin", SinkOrigin())


class SinkWriter(ABC, Generic[T]):
    """Writes the records of one subtask."""

    @abstractmethod
    def write(self, value: T, timestamp: int | None) -> None:
        """Writes one record. `timestamp` is its event time in milliseconds, or None."""

    def write_batch(self, values: Sequence[T], timestamps: Sequence[int | None] | None) -> None:
        """Writes a batch. `timestamps` is None if no record has one. By default, writes record by record."""
        if timestamps is None:
            for value in values:
                self.write(value, None)
        else:
            for value, timestamp in zip(values, timestamps):  # noqa: B905 - equal by construction
                self.write(value, timestamp)

    def flush(self, *, end_of_input: bool) -> None:
        """Makes everything written so far durable; called before a checkpoint and at the end."""

    def prepare_commit(self) -> Sequence[Any]:
        """The committables of everything that was written since the last call; picklable."""
        return ()

    def prepare_commit_of(self, checkpoint_id: int | None) -> Sequence[Any]:  # noqa: ARG002 - for most no difference
        """`prepare_commit` for a writer whose committables contain their checkpoint; None at the end of the job."""
        return self.prepare_commit()

    def close(self) -> None:
        """Releases the writer's resources. It is called once, also after an error."""


class Committer(ABC):
    """Makes written data visible. `commit` must be idempotent: it may be called again."""

    @abstractmethod
    def commit(self, committables: Sequence[Any]) -> None:
        """Publishes each committable; one that is already published is left unchanged."""

    def abort(self, checkpoint_id: int) -> None:
        """Called when an epoch has failed: its output will never be committed."""

    def discard_orphans(self, origin: SinkOrigin, confirm: Callable[[], None]) -> None:
        """Removes hidden output of this origin that will not be committed. No writer of the origin runs meanwhile.

        Args:
            origin: The writers.
            confirm: Call it after listing the output, and before removing any of it. Raises if another run has taken
                over the job, because the listed output may be that run's.
        """

    def last_commit(self, origin: SinkOrigin) -> int | None:  # noqa: ARG002 - not every sink keeps a note
        """The last checkpoint that the sink has committed, as recorded with its output."""
        return None

    def reset_commits(self, origin: SinkOrigin, checkpoint_id: int) -> None:
        """Changes the note so that this checkpoint is the last one, and later ones are committed again."""

    def how_to_reset(self, origin: SinkOrigin, checkpoint_id: int) -> str:  # noqa: ARG002 - as above
        """How to reset commits by hand, for error messages."""
        return ""

    def close(self) -> None:
        """Releases the committer's resources."""


class Sink(ABC, Generic[T]):
    """A sink of `sink_to`.

    `reads_timestamps` says whether writers look at event times, `changes_records` whether they may
    change the records that they get; a sink that says no to either makes its chain faster.
    """

    reads_timestamps: bool = True
    changes_records: bool = True

    @abstractmethod
    def create_writer(self, context: RuntimeContext) -> SinkWriter[T]:
        """Creates the writer of one subtask, on the executor."""

    def create_committer(self) -> Committer | None:
        """The committer, or None for a sink whose writes are final."""
        return None

    def for_type(self, record_type: TypeInformation[Any]) -> Sink[T]:  # noqa: ARG002 - for most no difference
        """The sink for records of a declared type: this sink, or one that converts records to the type."""
        return self

    @property
    def has_committer(self) -> bool:
        """Whether the StreamGraph has a `Committer` operator after the writer."""
        return False
