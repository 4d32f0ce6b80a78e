"""The state of a task as files: one per epoch, with a part for every operator and key group.

A task writes one file per epoch: the whole state of its operators (a base), or what has changed since
the file before. The files from the last base on are its *chain*, and all of it is read to restore. Each
writer gives its file a name of its own, with epoch, task, attempt and a random part: an attempt that is
taken for dead and goes on writing never overwrites the file of the one that replaced it.

Parts are bytes that this module doesn't look into: keyed state and timers per key group are formats that
may be put one behind the other (see keyed_snapshot), so neither folding a chain nor compacting it unpickles
a user's value. See `state_file_format` for the bytes.

Flink: `KeyGroupsStateHandle`, `IncrementalRemoteKeyedStateHandle`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opchain.runtime.checkpoint.storage import CheckpointStorage, StoredFile
    from opchain.runtime.state.key_groups import KeyGroupRange
    from opchain.runtime.state.operator_snapshot import OperatorSnapshot

FOLDER = "shared"
"""Where state files are, below the storage's root; `shared/<epoch>/...`."""


@dataclass(frozen=True, slots=True)
class TaskState:
    """Where the state of a task is: what it acknowledges a checkpoint with. Small and picklable.

    `files` is the chain, the base first; `base_bytes` is the size of that, `changes_bytes` of the rest.
    `key_groups` are the first and last key group that has something, None where there is none;
    `operators` the ids of the operators that have a part.
    """

    task: int
    epoch: int
    files: tuple[StoredFile, ...] = ()
    operators: tuple[str, ...] = ()
    key_groups: tuple[int, int] | None = None
    base_bytes: int = 0
    changes_bytes: int = 0

    def needs_base(self) -> bool:
        """Whether the next file should be a base: the changes weigh more, or are too many files.

        A new base then costs, spread over the epochs since the last one, as much as the changes did.
        """
        raise NotImplementedError


def write_task_state(
    storage: CheckpointStorage,
    epoch: int,
    task: int,
    attempt_id: str,
    states: Mapping[str, OperatorSnapshot],
    previous: TaskState | None = None,
) -> TaskState:
    """Writes one file with the state of a task's operators.

    Args:
        storage: Where to.
        epoch: The checkpoint's number.
        task: The task's number in its job.
        attempt_id: What tells this attempt from others of the same task.
        states: What each operator handed over, by operator id.
        previous: What the changes among the states are relative to: the state that this task wrote last.

    Raises:
        InternalError: There are changes, and no `previous`.
    """
    raise NotImplementedError


def read_task_state(
    storage: CheckpointStorage,
    tasks: Sequence[TaskState],
    operators: Sequence[str],
    key_groups: KeyGroupRange,
    parallelism: int,
    subtask: int,
) -> dict[str, OperatorSnapshot]:
    """What a subtask of `parallelism` gets of its operators' state; operators without state are left out.

    Args:
        storage: Where from.
        tasks: The tasks that ran the operators when the checkpoint was taken, in the order of subtasks.
        operators: Operator ids as stored.
        key_groups: The key groups of this subtask.
        parallelism: How many subtasks there are now.
        subtask: Which of them this is.

    Raises:
        CorruptCheckpointError: A file is missing, altered, or of a foreign format.
    """
    raise NotImplementedError


def read_operator_state(
    storage: CheckpointStorage,
    tasks: Sequence[TaskState],
    operator: str,
    key_groups: KeyGroupRange,
    parallelism: int,
    subtask: int,
) -> OperatorSnapshot | None:
    """`read_task_state` of one operator; None where it has no state."""
    found = read_task_state(storage, tasks, [operator], key_groups, parallelism, subtask)
    return found.get(operator)


@dataclass(frozen=True, slots=True)
class Compaction:
    """One file that stands for a run of files in a task's chain."""

    replaced: tuple[StoredFile, ...]
    by: StoredFile

    def applied_to(self, state: TaskState) -> TaskState:
        """The state with the file in place of the run; as it was where the chain doesn't hold the run."""
        raise NotImplementedError


def compact(storage: CheckpointStorage, state: TaskState) -> Compaction | None:
    """Merges the changes in a chain into one file; None where there is nothing to merge.

    No part is unpickled. The files that are replaced stay: checkpoints refer to them. The task goes on
    writing changes meanwhile: apply the compaction to whatever it acknowledges afterwards.
    """
    raise NotImplementedError
