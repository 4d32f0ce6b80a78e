"""An epoch: one micro-batch of an unbounded job, which ends with a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opchain.runtime.checkpoint.metadata import StateDescription
    from opchain.runtime.checkpoint.recorded import RecordedTask
    from opchain.runtime.checkpoint.state_files import TaskState
    from opchain.runtime.checkpoint.state_size import StateSize


@dataclass(frozen=True, slots=True)
class Epoch:
    """What all tasks of an epoch share.

    Attributes:
        checkpoint_id: The checkpoint that ends the epoch; one more than that of the epoch before.
        timestamp_ms: The time that the clock of processing time shows throughout the epoch.
        is_first: Whether nothing ran before, in this run of the job or in the one that it continues with:
            bounded sources are read now. One that comes to a job later is read in its own first epoch.
        is_recorded: Whether tasks keep what it takes to run the epoch again.
        aborted: The checkpoints that failed since the last complete one; an epoch that is run again has its own.
        drains: Whether event time ends with it: no other epoch follows in this run.
    """

    checkpoint_id: int
    timestamp_ms: int
    is_first: bool = False
    is_recorded: bool = False
    aborted: tuple[int, ...] = ()
    drains: bool = False


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    """What a task acknowledges at the end of an epoch.

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
