"""An epoch: one micro-batch of an unbounded job, which ends with a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.storage import StoredFile  # noqa: TC001 - its fields' types are read at run time

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.checkpoint.metadata import StateDescription
    from opchain.runtime.checkpoint.state_files import TaskState
    from opchain.runtime.state.keyed.keyed_backend import KeyedStateBackend
    from opchain.runtime.state.operator_snapshot import OperatorSnapshot


@dataclass(frozen=True, slots=True)
class RecordedOutput:
    """The output of a task to one target: the number of records, and a digest of them in order.

    `name` says where to: `exchange 0` by the number of the output, or `sink 3` by that of the operator.
    """

    name: str
    records: int
    digest: str


@dataclass(frozen=True, slots=True)
class RecordedTask:
    """The input of a source task, and the output of a task."""

    input: StoredFile | None = None
    outputs: tuple[RecordedOutput, ...] = ()


CHEAP_S = 0.002
"""Counting that takes longer than this is not done in every epoch."""


@dataclass(frozen=True, slots=True)
class StateSize:
    """Of one subtask of an operator at the end of an epoch.

    Attributes:
        entries: How many pairs of key and namespace (a window) hold something, over all its keyed states.
        written_bytes: What it wrote in the epoch, before the file puts its own around it.
    """

    entries: int
    written_bytes: int


class EntryCount:
    """Counts the entries of one backend.

    That is a look per namespace, and sessions have as many of these as keys: where it takes long, the last
    count stands until the state is written whole, which takes longer still.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._count = 0
        self._took_s = 0.0

    def of(self, backend: KeyedStateBackend, *, is_whole: bool) -> int:
        """The number, exact if the state is written whole now or counting is cheap."""
        if is_whole or self._took_s <= CHEAP_S:
            started = self._clock()
            self._count = backend.entry_count()
            self._took_s = self._clock() - started
        return self._count


def snapshot_bytes(snapshot: OperatorSnapshot) -> int:
    """The bytes of what an operator hands over to a checkpoint."""
    operator = snapshot.operator
    parts = (
        *snapshot.keyed.values(),
        *snapshot.timers.values(),
        *operator.maps.values(),
        *(item for _, items in operator.lists.values() for item in items),
    )
    return sum(map(len, parts))


@dataclass(frozen=True, slots=True)
class Epoch:
    """The parts of an epoch that all tasks share.

    Attributes:
        checkpoint_id: The checkpoint that ends the epoch; one more than that of the epoch before.
        timestamp_ms: The time that the clock of processing time shows throughout the epoch.
        is_first: Whether nothing ran before, in this run of the job or in the one that it continues with:
            bounded sources are read now. One that comes to a job later is read in its own first epoch.
        is_recorded: Whether tasks keep what it takes to run the epoch again.
        aborted: The checkpoints that failed since the last complete one; an epoch that is run again has its own.
        drains: Whether event time ends with it: no other epoch follows in this run.
        keeps_event_time: Whether event time goes on behind bounded sources: the job's state is what is wanted of it.
    """

    checkpoint_id: int
    timestamp_ms: int
    is_first: bool = False
    is_recorded: bool = False
    aborted: tuple[int, ...] = ()
    drains: bool = False
    keeps_event_time: bool = False


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    """The acknowledgement of a task at the end of an epoch.

    Attributes:
        state: Where its state is.
        progress: Watermarks and the like, pickled: see epochs.progress.
        next_timer_ms: When the first processing-time timer is due; None if none waits.
        states: The states that operators have, by operator id; those without any are left out.
        duration_ms: How long it took to take the snapshot and to write it.
        sizes: How much state its operators hold and wrote, by operator id; those without any are left out.
        recorded: What it takes to run its epoch again; None where that is not asked for.
    """

    state: TaskState
    progress: bytes
    next_timer_ms: int | None
    states: dict[str, tuple[StateDescription, ...]]
    duration_ms: float
    sizes: dict[str, StateSize] = field(default_factory=dict)
    recorded: RecordedTask | None = None
