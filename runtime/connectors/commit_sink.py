"""CommitSink: a sink of three methods, whose output becomes visible once per epoch. Not in Flink.

    class Orders(CommitSink):
        def stage(self, owner, records): ...   # on executors: write invisibly; return a reference
        def commit(self, epoch, staged): ...   # on the driver: publish; may be called again
        def abort(self, owner): ...            # on the driver: remove staged records that will never be committed

It is a short form of the contract in `runtime.functions.sink`, which FileSink, JdbcSink and KafkaSink implement:
a writer on the executors, and a committer on the driver. `opchain.testing.sinks` tests any of them.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.runtime.functions.sink import Committer, Sink, SinkOrigin, SinkWriter, origin_of
from opchain.runtime.types.type_variables import T

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Self

    from opchain.runtime.functions.function import RuntimeContext


class SinkEpoch(NamedTuple):
    """The output that one commit publishes: of a sink between two checkpoints, or of a whole bounded job.

    Attributes:
        owner: Identifies the sink of the job. It is the same in all runs on one checkpoint directory, and different for
            each bounded job. It consists of hexadecimal digits and a dot, so it can be part of a file name.
        number: The checkpoint, from 1 on; 1 for a bounded job.
        where: The sink's name and call site, for errors.
    """

    owner: str
    number: int
    where: str

    @property
    def key(self) -> str:
        """Identifies the epoch: the same text in every attempt to commit it."""
        return f"{self.owner}.{self.number}"


class CommitSink(Sink[T]):
    """A sink for `sink_to` that stages records on executors and commits them on the driver. Not in Flink.

    - Each writer and each committer uses its own shallow copy of the sink, so `open` may set attributes.
    - The driver calls `commit` when the checkpoint of an epoch is complete, in the order of epochs. After a crash or an
      `abort` it may call it again with the same arguments. A repeated commit must change nothing.
    - A task that fails is retried. Records that its first attempt staged are never committed; the next `abort` removes
      them.
    - An epoch without records has no commit.

    Attributes:
        batch_size: The most records that a call of `stage` gets.
        staging: A folder of the job for staged records, as path or URL; set before `open`. None in a job without
            checkpoints.
    """

    reads_timestamps = False
    batch_size: int = 10_000
    staging: str | None = None
    _confirm: Callable[[], None] = staticmethod(lambda: None)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def open(self) -> None:
        """Connects; called once before the other methods, on executors and on the driver."""

    def close(self) -> None:
        """Disconnects; called once, also after an error."""

    @abstractmethod
    def stage(self, owner: str, records: Sequence[T]) -> Any:
        """Writes records durably where no reader sees them. Runs on executors.

        Args:
            owner: The sink. Mark the output with it, so that `abort` finds it. Two attempts for the same records may run
                at once, so each call must write under a new name.
            records: 1 to `batch_size` records of one subtask.

        Returns:
            A reference by which `commit` finds them. It is stored in the checkpoint, so it must be picklable and small.
        """

    @abstractmethod
    def commit(self, epoch: SinkEpoch, staged: Sequence[Any]) -> None:
        """Makes the records of an epoch visible, unless an earlier call did. Runs on the driver.

        Args:
            epoch: The epoch.
            staged: The results of `stage`, in the order of subtasks; at least one.
        """

    @abstractmethod
    def abort(self, owner: str) -> None:
        """Removes all staged records of an owner. Runs on the driver while no task of this driver writes.

        Find the records, call `self.confirm()`, and then remove those that were found. A driver may be frozen here until
        another one has replaced it. Records that are staged afterwards belong to that one.
        """

    def confirm(self) -> None:
        """For `abort`: raises an error if another driver has taken over the job."""
        self._confirm()

    def last_commit(self, owner: str) -> int | None:  # noqa: ARG002 - optional
        """The number of the last epoch that was committed, as the target stores it; None if unknown.

        A job refuses to start from checkpoints that are older than this: see `opchain.streaming.accept-duplicates`.
        """
        return None

    def reset_commits(self, owner: str, number: int) -> None:
        """Lowers the result of `last_commit` to `number`, so that later epochs are committed again."""

    @property
    def has_committer(self) -> bool:
        """True: the driver commits."""
        return True

    def create_writer(self, context: RuntimeContext) -> SinkWriter[T]:
        """The writer of one subtask."""
        return _StagingWriter(self, origin_of(context))

    def create_committer(self) -> Committer:
        """The committer, for the driver."""
        return _SinkCommitter(self)

    def opened(self, staging: str | None) -> Self:
        """An open copy."""
        opened = copy.copy(self)
        opened.staging = staging if self.staging is None else self.staging
        opened.open()
        return opened


class _Staged(NamedTuple):
    """The committable of a CommitSink."""

    owner: str
    checkpoint_id: int | None
    where: str
    token: Any


class _StagingWriter(SinkWriter[T]):
    def __init__(self, sink: CommitSink[T], origin: SinkOrigin) -> None:
        self._sink = sink.opened(origin.staging)
        self._owner = owner_of(origin)
        self._where = origin.where
        self._records: list[T] = []
        self._tokens: list[Any] = []

    def write(self, value: T, timestamp: int | None) -> None:  # noqa: ARG002 - not needed
        self._records.append(value)
        if len(self._records) >= self._sink.batch_size:
            self._stage()

    def flush(self, *, end_of_input: bool) -> None:  # noqa: ARG002 - records are staged in both cases
        if self._records:
            self._stage()

    def prepare_commit_of(self, checkpoint_id: int | None) -> Sequence[_Staged]:
        tokens, self._tokens = self._tokens, []
        return [_Staged(self._owner, checkpoint_id, self._where, token) for token in tokens]

    def close(self) -> None:
        self._sink.close()

    def _stage(self) -> None:
        records, self._records = self._records, []
        self._tokens.append(self._sink.stage(self._owner, records))


class _SinkCommitter(Committer):
    committable = _Staged

    def __init__(self, sink: CommitSink[Any]) -> None:
        self._given = sink
        self._opened: CommitSink[Any] | None = None

    def commit(self, committables: Sequence[_Staged]) -> None:
        for (owner, checkpoint_id, where), found in groupby(
            committables, key=lambda staged: staged[:3]
        ):
            epoch = SinkEpoch(owner, checkpoint_id or 1, where)
            self._sink().commit(epoch, [staged.token for staged in found])

    def discard_orphans(self, origin: SinkOrigin, confirm: Callable[[], None]) -> None:
        sink = self._sink(origin.staging)
        sink._confirm = confirm  # noqa: SLF001 - the other half of the sink
        sink.abort(owner_of(origin))

    def last_commit(self, origin: SinkOrigin) -> int | None:
        return self._sink(origin.staging).last_commit(owner_of(origin))

    def reset_commits(self, origin: SinkOrigin, checkpoint_id: int) -> None:
        self._sink(origin.staging).reset_commits(owner_of(origin), checkpoint_id)

    def how_to_reset(self, origin: SinkOrigin, checkpoint_id: int) -> str:
        return f"{self._given!r}.reset_commits({owner_of(origin)!r}, {checkpoint_id})"

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _sink(self, staging: str | None = None) -> CommitSink[Any]:
        if self._opened is None:
            self._opened = self._given.opened(staging)
        return self._opened


def owner_of(origin: SinkOrigin) -> str:
    """The owner of the staged records of a sink."""
    return f"{origin.lineage}.{origin.operator_id}"
