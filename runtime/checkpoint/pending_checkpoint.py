"""A checkpoint that waits for its tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.state_files import FOLDER
from opchain.runtime.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opchain.runtime.checkpoint.epoch import RecordedTask
    from opchain.runtime.checkpoint.metadata import Committable
    from opchain.runtime.checkpoint.state_files import TaskState

_SHOWN_TASKS = 10


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """What a task says at the end of an epoch: where its state is, and what its sinks prepared.

    `rest` is what the task wants back and nobody else looks into. `duration_ms` is how long it took to
    snapshot and write the state. `recorded` is what the epoch was, where epochs are recorded.
    """

    task: int
    vertex_id: str
    subtask: int
    state: TaskState
    rest: bytes = b""
    committables: tuple[Committable, ...] = ()
    duration_ms: float = 0.0
    recorded: RecordedTask | None = None

    @property
    def state_bytes(self) -> int:
        """What the task wrote in this epoch."""
        written_now = f"{FOLDER}/{self.state.epoch}/"
        files = self.state.files
        return sum(file.size for file in files if file.name.startswith(written_now))


class PendingCheckpoint:
    """A checkpoint of which acknowledgements are missing; made by CheckpointCoordinator.begin.

    Attributes:
        epoch: Its number.
        timestamp_ms: When it was begun.
        acknowledged: What there is so far, by task.
    """

    def __init__(self, epoch: int, timestamp_ms: int, tasks: Iterable[int]) -> None:
        self.epoch = epoch
        self.timestamp_ms = timestamp_ms
        self.acknowledged: dict[int, Acknowledgement] = {}
        self._tasks = dict.fromkeys(sorted(tasks))

    def acknowledge(self, acknowledgement: Acknowledgement) -> None:
        """Takes a task's acknowledgement.

        Raises:
            CheckpointError: The task is none of this checkpoint's, has acknowledged before, or speaks of
                another epoch.
        """
        task = acknowledgement.task
        if task not in self._tasks:
            raise CheckpointError(
                f"task {task} acknowledges checkpoint {self.epoch}, which does not include that "
                f"task"
            )
        if task in self.acknowledged:
            raise CheckpointError(f"task {task} acknowledges checkpoint {self.epoch} a second time")
        if acknowledgement.state.epoch != self.epoch:
            raise CheckpointError(
                f"task {task} acknowledges checkpoint {self.epoch} with the state of epoch "
                f"{acknowledgement.state.epoch}"
            )
        self.acknowledged[task] = acknowledgement

    @property
    def missing(self) -> list[int]:
        """The tasks that have not acknowledged, in order."""
        return [task for task in self._tasks if task not in self.acknowledged]

    def require_all(self) -> list[Acknowledgement]:
        """The acknowledgements of all tasks, in order.

        Raises:
            CheckpointError: Some are missing.
        """
        missing = self.missing
        if missing:
            shown = ", ".join(map(str, missing[:_SHOWN_TASKS]))
            more = len(missing) - _SHOWN_TASKS
            raise CheckpointError(
                f"checkpoint {self.epoch} can't be completed: of {len(self._tasks)} tasks, {len(missing)} "
                f"have not acknowledged ({shown}{f' and {more} more' if more > 0 else ''})"
            )
        return [self.acknowledged[task] for task in self._tasks]
