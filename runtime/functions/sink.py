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
    """Who writes: what a writer notes with what it hides, so that it is found again.

    Attributes:
        lineage: What the job is known by: the same for all runs on one directory of checkpoints, another
            for each bounded job.
        operator_id: The sink's operator.
        where: Its name and call site, for errors.
        staging: A folder of the job, as path or URL, for what waits for its commit; None in a job without
            checkpoints.
    """

    lineage: str = NO_LINEAGE
    operator_id: str = ""
    where: str = "a sink"
    staging: str | None = None


def origin_of(context: RuntimeContext) -> SinkOrigin:
    """Who writes, as the task's context knows it; contexts of tests know nothing."""
    return getattr(context, "origin", SinkOrigin())


class SinkWriter(ABC, Generic[T]):
    """Writes the records of one subtask."""

    @abstractmethod
    def write(self, value: T, timestamp: int | None) -> None:
        """Takes one record with its event time in milliseconds, or None where it has none."""

    def write_batch(self, values: Sequence[T], timestamps: Sequence[int | None] | None) -> None:
        """Takes a batch; `timestamps` is None where no record has one. Default: record by record."""
        if timestamps is None:
            for value in values:
                self.write(value, None)
        else:
            for value, timestamp in zip(values, timestamps):  # noqa: B905 - equal by construction
                self.write(value, timestamp)

    def flush(self, *, end_of_input: bool) -> None:
        """Makes everything written so far durable; called before a checkpoint and at the end."""

    def prepare_commit(self) -> Sequence[Any]:
        """The committables of what was written since the last call; picklable."""
        return ()

    def prepare_commit_of(self, checkpoint_id: int | None) -> Sequence[Any]:  # noqa: ARG002 - for most no difference
        """`prepare_commit` for a writer whose committables tell of their checkpoint; None: the job ends."""
        return self.prepare_commit()

    def close(self) -> None:
        """Releases what the writer holds; called once, also after an error."""


class Committer(ABC):
    """Makes written data visible. `commit` must be idempotent: it may be called again."""

    @abstractmethod
    def commit(self, committables: Sequence[Any]) -> None:
        """Publishes each committable; one that is already published is left unchanged."""

    def abort(self, checkpoint_id: int) -> None:
        """Hears that an epoch failed: what was written for it will never be committed."""

    def discard_orphans(self, origin: SinkOrigin, confirm: Callable[[], None]) -> None:
        """Removes what writers of this origin have hidden: nobody will commit it, and none of them writes.

        Args:
            origin: Who wrote.
            confirm: To be called when it is known what there is, and before any of it goes for good. Raises where
                another run has the job by now: what there is may be its output.
        """

    def last_commit(self, origin: SinkOrigin) -> int | None:  # noqa: ARG002 - not every sink keeps a note
        """The checkpoint that the sink has committed last, by the note that it keeps with its output."""
        return None

    def reset_commits(self, origin: SinkOrigin, checkpoint_id: int) -> None:
        """Has the note say that a checkpoint was the last, so that later ones are committed again."""

    def how_to_reset(self, origin: SinkOrigin, checkpoint_id: int) -> str:  # noqa: ARG002 - as above
        """How to do that by hand, for errors."""
        return ""

    def close(self) -> None:
        """Releases what the committer holds."""


class Sink(ABC, Generic[T]):
    """A sink of `sink_to`.

    `reads_timestamps` says whether writers look at event times, `changes_records` whether they may
    change the records that they get; a sink that says no to either makes its chain faster.
    """

    reads_timestamps: bool = True
    changes_records: bool = True

    @abstractmethod
    def create_writer(self, context: RuntimeContext) -> SinkWriter[T]:
        """A writer for one subtask, made on the executor."""

    def create_committer(self) -> Committer | None:
        """The committer, or None for a sink whose writes are final."""
        return None

    def for_type(self, record_type: TypeInformation[Any]) -> Sink[T]:  # noqa: ARG002 - for most no difference
        """The sink for records of a declared type: this one, or one that writes them as it says."""
        return self

    @property
    def has_committer(self) -> bool:
        """Whether the StreamGraph gets a `Committer` operator behind the writer."""
        return False
