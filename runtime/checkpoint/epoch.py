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

    `name` is the target: `exchange 0` with the number of the output, or `sink 3` with that of the operator.
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
"""If counting takes longer than this, it is not repeated in every epoch."""


@dataclass(frozen=True, slots=True)
class StateSize:
    """The size of the state of one subtask of an operator at the end of an epoch.

    Attributes:
        entries: The number of (state, key, namespace) with contents.
        written_bytes: The bytes of its part of the state file of this epoch.
    """

    entries: int
    written_bytes: int


class EntryCount:
    """Counts the entries of one backend.

    Counting visits each namespace, and sessions have as many namespaces as keys. If it takes long, the last count is
    reused until a full snapshot is written, which takes longer still.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._count = 0
        self._took_s = 0.0

    def of(self, backend: KeyedStateBackend, *, is_whole: bool) -> int:
        """The number of entries. It is exact if `is_whole` (a full snapshot is written), or if counting is cheap."""
        if is_whole or self._took_s <= CHEAP_S:
            started = self._clock()
            self._count = backend.entry_count()
            self._took_s = self._clock() - started
        return self._count


def snapshot_bytes(snapshot: OperatorSnapshot) -> int:
    """The size of an operator's snapshot in bytes."""
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
        checkpoint_id: The checkpoint that ends the epoch; one more than that of the previous epoch.
        timestamp_ms: The processing time during the whole epoch.
        is_first: Whether the job starts without a checkpoint. Bounded sources are read in this epoch. A bounded source
            that is added to the program later is read in its own first epoch.
        is_recorded: Whether tasks record what a replay of the epoch needs.
        aborted: The checkpoints that failed since the last complete one.
        drains: Whether event time ends with this epoch. No other epoch follows in this run.
        keeps_event_time: Whether event time does not end with bounded sources, because the job only builds state.
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
        state: Its state files.
        event_time: Its event time, pickled; see epochs/event_time.py.
        next_timer_ms: When the first processing-time timer is due, or None if there is none.
        states: The states of operators, by operator id. Operators without state are left out.
        duration_ms: How long it took to take the snapshot and to write it.
        sizes: The sizes of operators' states, by operator id. Operators without state are left out.
        recorded: What a replay of its epoch needs, or None if epochs are not recorded.
    """

    state: TaskState
    event_time: bytes
    next_timer_ms: int | None
    states: dict[str, tuple[StateDescription, ...]]
    duration_ms: float
    sizes: dict[str, StateSize] = field(default_factory=dict)
    recorded: RecordedTask | None = None
