"""The bytes of a state file.

    8 bytes   b"opchain" and a 0
    2 bytes   the format's version, big-endian: 1
    parts     one behind the other
    index     JSON
    8 bytes   the length of the index, big-endian

The index is {"epoch", "task", "operators": [{"id", "is_changes", "keyed": [[key group, bytes], ...],
"timers": [likewise], "operator": bytes}, ...]}; the parts come in the order in which the index names
them. A part of keyed state or timers is frames (see state/keyed_frames); the part of operator state is
a pickle of ({name: (mode, [pickled element, ...])}, {name: pickled map}).

The checksum of a file is not in it but with whoever refers to it.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import CorruptCheckpointError
from opchain.runtime.state.operator_snapshot import (
    ListMode,
    OperatorSnapshot,
    OperatorStateSnapshot,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opchain.runtime.state.keys.key_groups import KeyGroupRange

MAGIC = b"opchain\0"
VERSION = 1

_HEAD = len(MAGIC) + 2
_TAIL = 8


def encode(epoch: int, task: int, states: Mapping[str, OperatorSnapshot]) -> bytes:
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
    contents = {"epoch": epoch, "task": task, "operators": operators}
    index = json.dumps(contents, separators=(",", ":")).encode()
    head = MAGIC + VERSION.to_bytes(2, "big")
    return b"".join((head, *parts, index, len(index).to_bytes(_TAIL, "big")))


@dataclass(frozen=True, slots=True)
class StateFile:
    """A file that has been read; parts are cut out when they are asked for."""

    epoch: int
    task: int
    operators: tuple[dict[str, Any], ...]
    data: bytes

    def snapshots(self, key_groups: KeyGroupRange | None = None) -> dict[str, OperatorSnapshot]:
        """What the file has of each operator, of some key groups or of all."""
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
    """Reads a file's index.

    Args:
        data: What `encode` gave.
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
