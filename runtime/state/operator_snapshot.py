"""The part of a checkpoint that one subtask of an operator writes, and the parts that each subtask restores.

Flink: `OperatorSnapshotFutures`, `OperatorSubtaskState`; `StateAssignmentOperation` and
`RoundRobinOperatorStateRepartitioner` for restoring.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.runtime.state.keys.key_groups import KeyGroupRange


class ListMode(Enum):
    """How the elements of a list state are redistributed when the parallelism changes."""

    SPLIT = "split"
    UNION = "union"


@dataclass(frozen=True, slots=True)
class OperatorStateSnapshot:
    """Operator state: pickled elements of lists, and pickled broadcast maps, by name."""

    lists: dict[str, tuple[ListMode, list[bytes]]] = field(default_factory=dict)
    maps: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OperatorSnapshot:
    """All state of one subtask of an operator, with keyed state and timers by key group.

    If `is_changes`, keyed state and timers are the changes since the previous snapshot. `operator` is always complete,
    because it is small.
    """

    keyed: dict[int, bytes] = field(default_factory=dict)
    timers: dict[int, bytes] = field(default_factory=dict)
    operator: OperatorStateSnapshot = field(default_factory=OperatorStateSnapshot)
    is_changes: bool = False

    def is_empty(self) -> bool:
        """Whether there is no state."""
        return not (self.keyed or self.timers or self.operator.lists or self.operator.maps)


def with_changes(chain: Sequence[OperatorSnapshot]) -> OperatorSnapshot:
    """Combines a snapshot and the changes that follow it into one snapshot, without unpickling.

    The result `is_changes` if all of the chain are changes.
    """
    first = max((n for n, part in enumerate(chain) if not part.is_changes), default=0)
    parts = chain[first:]
    return OperatorSnapshot(
        keyed=_joined([part.keyed for part in parts]),
        timers=_joined([part.timers for part in parts]),
        operator=parts[-1].operator,
        is_changes=parts[0].is_changes,
    )


def _joined(parts: Sequence[dict[int, bytes]]) -> dict[int, bytes]:
    groups: dict[int, list[bytes]] = {}
    for part in parts:
        for group, data in part.items():
            groups.setdefault(group, []).append(data)
    return {group: b"".join(groups[group]) for group in sorted(groups)}


def redistribute(
    snapshots: Sequence[OperatorSnapshot],
    key_groups: KeyGroupRange,
    parallelism: int,
    subtask: int,
) -> OperatorSnapshot:
    """The state that one of `parallelism` subtasks restores from the snapshots of all subtasks, in their order."""
    return OperatorSnapshot(
        keyed=_of_key_groups([snapshot.keyed for snapshot in snapshots], key_groups),
        timers=_of_key_groups([snapshot.timers for snapshot in snapshots], key_groups),
        operator=_operator_state(
            [snapshot.operator for snapshot in snapshots], parallelism, subtask
        ),
    )


def _of_key_groups(
    parts: Sequence[dict[int, bytes]], key_groups: KeyGroupRange
) -> dict[int, bytes]:
    return {group: data for part in parts for group, data in part.items() if group in key_groups}


def _operator_state(
    parts: Sequence[OperatorStateSnapshot], parallelism: int, subtask: int
) -> OperatorStateSnapshot:
    lists: dict[str, tuple[ListMode, list[bytes]]] = {}
    modes = {name: mode for part in parts for name, (mode, _) in part.lists.items()}
    for name, mode in modes.items():
        per_part = [part.lists.get(name, (mode, []))[1] for part in parts]
        if mode is ListMode.SPLIT and len(parts) == parallelism:
            elements = per_part[subtask]
        else:
            elements = [element for part in per_part for element in part]
            if mode is ListMode.SPLIT:
                elements = _share(elements, parallelism, subtask)
        lists[name] = (mode, elements)
    maps: dict[str, bytes] = {}
    for part in (parts[subtask % len(parts)], *parts) if parts else ():
        for name, entries in part.maps.items():
            maps.setdefault(name, entries)
    return OperatorStateSnapshot(lists, maps)


def _share(elements: list[bytes], parallelism: int, subtask: int) -> list[bytes]:
    """A run of the elements for one subtask. The lengths of runs differ by at most one, and longer runs come first."""
    size, longer = divmod(len(elements), parallelism)
    first = subtask * size + min(subtask, longer)
    return elements[first : first + size + (subtask < longer)]
