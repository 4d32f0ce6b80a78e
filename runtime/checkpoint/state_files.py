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

import re
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opchain.runtime.checkpoint.state_file_format import decode, encode
from opchain.runtime.checkpoint.storage import StoredFile  # noqa: TC002 - pydantic needs it
from opchain.runtime.errors import InternalError
from opchain.runtime.state.operator_snapshot import OperatorSnapshot, redistribute, with_changes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opchain.runtime.checkpoint.state_file_format import StateFile
    from opchain.runtime.checkpoint.storage import CheckpointStorage
    from opchain.runtime.state.key_groups import KeyGroupRange

FOLDER = "shared"
"""Where state files are, below the storage's root; `shared/<epoch>/...`."""

_LONGEST_CHAIN = 200
_FEWEST_TO_COMPACT = 8


@dataclass(frozen=True, slots=True)
class TaskState:
    """Where the state of a task is: what it acknowledges a checkpoint with. Small and picklable.

    `files` is the chain, the base first; `base_bytes` is the size of that, `changes_bytes` of the rest.
    `key_groups` are the first and last key group that has something, None where there is none;
    `operators` the ids of the operators that have a part. `has_operator_state` says whether one has
    state without key, which any subtask may get a share of.
    """

    task: int
    epoch: int
    files: tuple[StoredFile, ...] = ()
    operators: tuple[str, ...] = ()
    key_groups: tuple[int, int] | None = None
    base_bytes: int = 0
    changes_bytes: int = 0
    has_operator_state: bool = False

    def is_same_state_as(self, other: TaskState) -> bool:
        """Whether both are of what the task had at the end of one epoch, merged files or not."""
        ends = [(state.task, state.epoch, state.files[-1:]) for state in (self, other)]
        return ends[0] == ends[1]

    def needs_base(self) -> bool:
        """Whether the next file should be a base: the changes weigh more, or are too many files.

        A new base then costs, spread over the epochs since the last one, as much as the changes did.
        """
        return self.changes_bytes > self.base_bytes or len(self.files) >= _LONGEST_CHAIN


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
    is_changes = any(state.is_changes for state in states.values())
    if is_changes and previous is None:
        raise InternalError(f"task {task} writes changes in epoch {epoch}, and nothing before them")
    name = f"{FOLDER}/{epoch}/{task}-{_plain(attempt_id)}-{secrets.token_hex(4)}.state"
    file = storage.put(name, encode(epoch, task, states))
    start = previous if previous is not None and is_changes else TaskState(task, epoch)
    groups = {group for state in states.values() for group in (*state.keyed, *state.timers)}
    groups.update(start.key_groups or ())
    return TaskState(
        task,
        epoch,
        (*start.files, file),
        tuple(dict.fromkeys((*start.operators, *states))),
        (min(groups), max(groups)) if groups else None,
        base_bytes=start.base_bytes or file.size,
        changes_bytes=start.changes_bytes + file.size if start.files else 0,
        has_operator_state=start.has_operator_state
        or any(state.operator.lists or state.operator.maps for state in states.values()),
    )


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
    of_tasks = [_of_task(storage, state, set(operators), key_groups) for state in tasks]
    return {
        operator: redistribute(
            [found.get(operator, OperatorSnapshot()) for found in of_tasks],
            key_groups,
            parallelism,
            subtask,
        )
        for operator in operators
        if any(operator in state.operators for state in tasks)
    }


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


def read_changes(
    storage: CheckpointStorage, state: TaskState, known: TaskState
) -> dict[str, OperatorSnapshot] | None:
    """What a task's state has beyond what it had before; None where that is not all changes.

    Args:
        storage: Where from.
        state: The state.
        known: An earlier one of the same task.

    Raises:
        CorruptCheckpointError: A file is missing, altered, or of a foreign format.
    """
    length = len(known.files)
    if not length or state.files[:length] != known.files or state.has_operator_state:
        return None
    found = _joined((_read(storage, file) for file in state.files[length:]), None)
    return found if all(snapshot.is_changes for snapshot in found.values()) else None


@dataclass(frozen=True, slots=True)
class Compaction:
    """One file that stands for a run of files in a task's chain."""

    replaced: tuple[StoredFile, ...]
    by: StoredFile

    def applied_to(self, state: TaskState) -> TaskState:
        """The state with the file in place of the run; as it was where the chain doesn't hold the run."""
        files, length = state.files, len(self.replaced)
        for start in range(len(files) - length + 1):
            if files[start : start + length] == self.replaced:
                shorter = (*files[:start], self.by, *files[start + length :])
                saved = sum(file.size for file in self.replaced) - self.by.size
                return replace(
                    state, files=shorter, changes_bytes=max(0, state.changes_bytes - saved)
                )
        return state


def compact(storage: CheckpointStorage, state: TaskState) -> Compaction | None:
    """Merges the latest changes in a chain into one file; None where there is too little to merge.

    A file is merged where those behind it weigh half as much or more, so that a change is copied a few times in its
    life, however many there are. No part is unpickled. The files that are replaced stay: checkpoints refer to them. The task goes on
    writing changes meanwhile: apply the compaction to whatever it acknowledges afterwards.

    Raises:
        CorruptCheckpointError: A file is missing, altered, or of a foreign format.
    """
    first, total = len(state.files), 0
    while first > 1 and state.files[first - 1].size <= 2 * (total or state.files[-1].size):
        first -= 1
        total += state.files[first].size
    changes = state.files[first:]
    if len(changes) < _FEWEST_TO_COMPACT:
        return None
    files = [_read(storage, file) for file in changes]
    joined = _joined(files, None)
    name = f"{FOLDER}/{state.epoch}/{state.task}-compacted-{secrets.token_hex(4)}.state"
    return Compaction(changes, storage.put(name, encode(state.epoch, state.task, joined)))


def _of_task(
    storage: CheckpointStorage,
    state: TaskState,
    operators: set[str],
    key_groups: KeyGroupRange,
) -> dict[str, OperatorSnapshot]:
    """What a task's chain has of some key groups; nothing is read where there is nothing."""
    if operators.isdisjoint(state.operators) or not (
        state.has_operator_state or _overlap(state.key_groups, key_groups)
    ):
        return {}
    return _joined((_read(storage, file) for file in state.files), key_groups)


def _joined(
    files: Iterable[StateFile], key_groups: KeyGroupRange | None
) -> dict[str, OperatorSnapshot]:
    chains: dict[str, list[OperatorSnapshot]] = {}
    for file in files:
        for operator, snapshot in file.snapshots(key_groups).items():
            chains.setdefault(operator, []).append(snapshot)
    return {operator: with_changes(chain) for operator, chain in chains.items()}


def _read(storage: CheckpointStorage, file: StoredFile) -> StateFile:
    return decode(storage.get(file), storage.full_name(file.name))


def _overlap(found: tuple[int, int] | None, key_groups: KeyGroupRange) -> bool:
    return found is not None and found[0] <= key_groups.last and key_groups.first <= found[1]


def _plain(attempt_id: str) -> str:
    """An attempt's id as a part of a file name."""
    return re.sub(r"[^A-Za-z0-9_.]", "_", attempt_id)
