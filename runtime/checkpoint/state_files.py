"""The state of a task as files: one per epoch, with a part for every operator and key group.

A task writes one file per epoch: the whole state of its operators (a base), or the changes since the previous
file. The files since the last base are the task's *chain*. A restore reads all of them. Changes are merged when they
are written: every few epochs, a new file also takes the contents of earlier small files. So a chain has few files. The
task copies some bytes for this, spread over epochs, and nothing runs in the background. (Rejected: merging by the
driver in the background. A task would resume from files that it did not write, and merging would stop with the driver.)

The name of a file contains checkpoint id, task, attempt and a random part. So an attempt that is considered dead, but still
writes, never overwrites the file of the attempt that replaced it.

This module does not read the bytes of parts. Keyed state and timers have formats that can be concatenated (see
state/keyed/keyed_snapshot.py). So neither reading a chain nor merging its files unpickles a user's value.

A state file consists of:

    8 bytes   b"opchain" and a 0
    2 bytes   the version of the format, big-endian: 1
    parts     concatenated
    index     JSON
    8 bytes   the length of the index, big-endian

The index is {"epoch", "task", "operators": [{"id", "is_changes", "keyed": [[key group, bytes], ...],
"timers": [the same], "operator": bytes}, ...]}. The parts come in the order in which the index names them. A part
of keyed state or timers consists of frames. The part of operator state is a pickle of
({name: (mode, [pickled element, ...])}, {name: pickled map}). The checksum of a file is stored where the file is
referred to, not in the file.

Flink: `KeyGroupsStateHandle`, `IncrementalRemoteKeyedStateHandle`.
"""

from __future__ import annotations

import json
import pickle
import re
import secrets
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.storage import StoredFile  # noqa: TC001 - its fields' types are read at run time
from opchain.runtime.errors import CorruptCheckpointError, InternalError
from opchain.runtime.state.operator_snapshot import (
    ListMode,
    OperatorSnapshot,
    OperatorStateSnapshot,
    redistribute,
    with_changes,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from opchain.runtime.checkpoint.storage import CheckpointStorage
    from opchain.runtime.state.keys.key_groups import KeyGroupRange


MAGIC = b"opchain\0"
VERSION = 1

_HEAD = len(MAGIC) + 2
_TAIL = 8


def encode(checkpoint_id: int, task: int, states: Mapping[str, OperatorSnapshot]) -> bytes:
    """The file of a task."""
    operators: list[dict[str, Any]] = []
    parts: list[bytes] = []
    for operator_id, state in states.items():
        operator = _encoded(state.operator)
        parts += [*state.keyed.values(), *state.timers.values(), operator]
        operators.append(
            {
                "id": operator_id,
                "is_changes": state.is_changes,
                "keyed": [[group, len(data)] for group, data in state.keyed.items()],
                "timers": [[group, len(data)] for group, data in state.timers.items()],
                "operator": len(operator),
            }
        )
    contents = {"epoch": checkpoint_id, "task": task, "operators": operators}
    index = json.dumps(contents, separators=(",", ":")).encode()
    head = MAGIC + VERSION.to_bytes(2, "big")
    return b"".join((head, *parts, index, len(index).to_bytes(_TAIL, "big")))


@dataclass(frozen=True, slots=True)
class StateFile:
    """A file that has been read. Its parts are extracted on request."""

    checkpoint_id: int
    task: int
    operators: tuple[dict[str, Any], ...]
    data: bytes

    def snapshots(self, key_groups: KeyGroupRange | None = None) -> dict[str, OperatorSnapshot]:
        """The state of each operator in the file, for some key groups or for all."""
        found = {}
        position = _HEAD
        for operator in self.operators:
            keyed, position = self._cut(operator["keyed"], position, key_groups)
            timers, position = self._cut(operator["timers"], position, key_groups)
            end = position + operator["operator"]
            found[operator["id"]] = OperatorSnapshot(
                keyed, timers, _decoded(self.data[position:end]), is_changes=operator["is_changes"]
            )
            position = end
        return found

    def _cut(
        self, sizes: list[list[int]], position: int, key_groups: KeyGroupRange | None
    ) -> tuple[dict[int, bytes], int]:
        found = {}
        for group, size in sizes:
            if key_groups is None or group in key_groups:
                found[group] = self.data[position : position + size]
            position += size
        return found, position


def decode(data: bytes, name: str) -> StateFile:
    """Decodes the index of a file.

    Args:
        data: The content of the file.
        name: The file, for messages.

    Raises:
        CorruptCheckpointError: It is not a state file, or of another version.
    """
    if not data.startswith(MAGIC):
        raise CorruptCheckpointError(name, "is not a state file of opchain")
    version = int.from_bytes(data[len(MAGIC) : _HEAD], "big")
    if version != VERSION:
        raise CorruptCheckpointError(
            name, f"has format {version}, but this version of opchain reads format {VERSION}"
        )
    length = int.from_bytes(data[-_TAIL:], "big")
    try:
        index = json.loads(data[-_TAIL - length : -_TAIL])
        file = StateFile(index["epoch"], index["task"], tuple(index["operators"]), data)
        total = sum(_sizes(file.operators))
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptCheckpointError(
            name, f"has an unreadable index: {type(error).__name__}: {error}"
        ) from error
    if _HEAD + total + length + _TAIL != len(data):
        raise CorruptCheckpointError(name, "has parts whose sizes differ from its index")
    return file


def _sizes(operators: tuple[dict[str, Any], ...]) -> Iterator[int]:
    for operator in operators:
        yield operator["operator"]
        for _, size in chain(operator["keyed"], operator["timers"]):
            yield size


def _encoded(state: OperatorStateSnapshot) -> bytes:
    if not (state.lists or state.maps):
        return b""
    lists = {name: (mode.value, elements) for name, (mode, elements) in state.lists.items()}
    return pickle.dumps((lists, state.maps), 5)


def _decoded(data: bytes) -> OperatorStateSnapshot:
    if not data:
        return OperatorStateSnapshot()
    lists, maps = pickle.loads(data)
    return OperatorStateSnapshot(
        {name: (ListMode(mode), elements) for name, (mode, elements) in lists.items()}, maps
    )


FOLDER = "shared"
"""The folder of state files, below the storage's root: `shared/<checkpoint id>/...`."""

_FEWEST_TO_MERGE = 8
_MARKS = 32
_REMEMBERED_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class TaskState:
    """The state files of a task, with which it acknowledges a checkpoint. Small and picklable.

    `files` is the chain, the base first. `base_bytes` is the size of the base, `changes_bytes` that of the other files.
    `key_groups` are the first and last key group with state, or None. `operators` are the ids of the operators with
    state. `has_operator_state` says whether there is operator state, which any subtask may get a part of. `marks` are
    the random parts of the names of the latest files that the task wrote, including files that were merged since.
    """

    task: int
    checkpoint_id: int
    files: tuple[StoredFile, ...] = ()
    operators: tuple[str, ...] = ()
    key_groups: tuple[int, int] | None = None
    base_bytes: int = 0
    changes_bytes: int = 0
    has_operator_state: bool = False
    marks: tuple[str, ...] = ()

    def is_same_state_as(self, other: TaskState) -> bool:
        """Whether both are the state of the same task at the end of the same epoch."""
        ends = [(state.task, state.checkpoint_id, state.files[-1:]) for state in (self, other)]
        return ends[0] == ends[1]

    def is_behind(self, earlier: TaskState) -> bool:
        """Whether this state follows an earlier state of the task, at most some epochs ago."""
        return bool(earlier.marks) and self.task == earlier.task and earlier.marks[-1] in self.marks

    def needs_base(self) -> bool:
        """Whether the next file should be a base, because the changes are larger than the base.

        So all bases together are about as large as all changes.
        """
        return self.changes_bytes > self.base_bytes


class RecentFiles:
    """The latest files that a task has written, up to some megabytes, so that it can merge them without reading."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}
        self._size = 0

    def keep(self, file: StoredFile, data: bytes) -> None:
        """Adds a file, if it is small, and evicts the oldest files."""
        if file.size > _REMEMBERED_BYTES // 2:
            return
        self._files[file.name] = data
        self._size += file.size
        while self._size > _REMEMBERED_BYTES:
            oldest = next(iter(self._files))
            self._size -= len(self._files.pop(oldest))

    def read(self, storage: CheckpointStorage, file: StoredFile) -> StateFile:
        """Reads a file from memory or from the storage.

        Raises:
            CorruptCheckpointError: It is missing or altered.
        """
        data = self._files.get(file.name)
        return _read(storage, file) if data is None else decode(data, file.name)


def write_task_state(
    storage: CheckpointStorage,
    checkpoint_id: int,
    task: int,
    attempt_id: str,
    states: Mapping[str, OperatorSnapshot],
    previous: TaskState | None = None,
    recent: RecentFiles | None = None,
) -> TaskState:
    """Writes one file with the state of a task's operators. It may also take the contents of the latest files.

    Args:
        storage: The checkpoint directory.
        checkpoint_id: The checkpoint's number.
        task: The task's number in its job.
        attempt_id: Identifies this attempt of the task.
        states: The snapshot of each operator, by operator id. Operators without changes may be left out.
        previous: The state that this task wrote last, which changes are relative to.
        recent: The recent files of the task.

    Raises:
        InternalError: There are changes, and no `previous`.
        CorruptCheckpointError: A file that must be merged is missing or altered.
    """
    is_changes = any(state.is_changes for state in states.values())
    if is_changes and previous is None:
        raise InternalError(f"task {task} writes changes in epoch {checkpoint_id}, but has no base")
    # An operator without changes may have no snapshot: its state is in earlier files.
    continues = previous is not None and (
        is_changes or not states.keys() >= set(previous.operators)
    )
    start = previous if previous is not None and continues else TaskState(task, checkpoint_id)
    kept = recent if recent is not None else RecentFiles()
    data = encode(checkpoint_id, task, states)
    merged = _to_merge(start.files, len(data))
    if merged:
        before = [kept.read(storage, file) for file in start.files[-merged:]]
        data = encode(checkpoint_id, task, _joined((*before, decode(data, "changes")), None))
    mark = secrets.token_hex(4)
    name = f"{FOLDER}/{checkpoint_id}/{task}-{_plain(attempt_id)}-{mark}.state"
    file = storage.put(name, data)
    kept.keep(file, data)
    unmerged = start.files[: len(start.files) - merged]
    groups = {group for state in states.values() for group in (*state.keyed, *state.timers)}
    groups.update(start.key_groups or ())
    return TaskState(
        task,
        checkpoint_id,
        (*unmerged, file),
        tuple(dict.fromkeys((*start.operators, *states))),
        (min(groups), max(groups)) if groups else None,
        base_bytes=start.base_bytes or file.size,
        changes_bytes=sum(found.size for found in (*unmerged, file)[1:]),
        has_operator_state=start.has_operator_state
        or any(state.operator.lists or state.operator.maps for state in states.values()),
        marks=(*(previous.marks if previous is not None else ()), mark)[-_MARKS:],
    )


def read_task_state(
    storage: CheckpointStorage,
    tasks: Sequence[TaskState],
    operators: Sequence[str],
    key_groups: KeyGroupRange,
    parallelism: int,
    subtask: int,
) -> dict[str, OperatorSnapshot]:
    """The state of each operator that one of `parallelism` subtasks restores. Operators without state are left out.

    Args:
        storage: The checkpoint directory.
        tasks: The tasks that ran the operators when the checkpoint was taken, in the order of subtasks.
        operators: Operator ids as stored.
        key_groups: The key groups of this subtask.
        parallelism: The new number of subtasks.
        subtask: The index of this subtask.

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
    """`read_task_state` of one operator, or None if it has no state."""
    found = read_task_state(storage, tasks, [operator], key_groups, parallelism, subtask)
    return found.get(operator)


def read_changes(
    storage: CheckpointStorage, state: TaskState, known: TaskState
) -> dict[str, OperatorSnapshot] | None:
    """The changes of a task's state since an earlier state, or None if they are not available as changes.

    Args:
        storage: The checkpoint directory.
        state: The state.
        known: An earlier state of the same task.

    Raises:
        CorruptCheckpointError: A file is missing, altered, or of a foreign format.
    """
    if not known.files or not state.is_behind(known) or state.has_operator_state:
        return None
    # A merged file may begin with known changes. Applying them again, in order, has no effect.
    since = _checkpoint_of(known.files[-1])
    later = [file for file in state.files if _checkpoint_of(file) > since]
    found = _joined((_read(storage, file) for file in later), None)
    return found if all(snapshot.is_changes for snapshot in found.values()) else None


def _to_merge(files: Sequence[StoredFile], size: int) -> int:
    """The number of files at the end of a chain to merge with new changes of some size.

    A file is merged if the later files together are at least half as large. So each change is copied only a few times,
    and the length of a chain grows with the logarithm of its size.
    """
    first, total = len(files), size
    while first > 1 and files[first - 1].size <= 2 * total:
        first -= 1
        total += files[first].size
    count = len(files) - first
    return count if count + 1 >= _FEWEST_TO_MERGE else 0


def _of_task(
    storage: CheckpointStorage,
    state: TaskState,
    operators: set[str],
    key_groups: KeyGroupRange,
) -> dict[str, OperatorSnapshot]:
    """The state of some key groups in a task's chain of files, or {} without reading if the task has none."""
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


def _checkpoint_of(file: StoredFile) -> int:
    """The id of the checkpoint for which a file was written, which is the last one of its changes."""
    return int(file.name.split("/")[1])


def _overlap(found: tuple[int, int] | None, key_groups: KeyGroupRange) -> bool:
    return found is not None and found[0] <= key_groups.last and key_groups.first <= found[1]


def _plain(attempt_id: str) -> str:
    """An attempt's id as a part of a file name."""
    return re.sub(r"[^A-Za-z0-9_.]", "_", attempt_id)
