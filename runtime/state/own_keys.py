"""Finds records that are in the wrong subtask, where no exchange has put them into the right one.

A stream that is reinterpreted as keyed must be partitioned as `key_by` would have done it. Where it is not,
a key's records would be spread over subtasks, each with state of its own, and lost from it at the next
change of parallelism. Flink finds that out when state is used: `StateTable.getMapForKeyGroup`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import StateError, short_repr
from opchain.runtime.state.java_hash import java_hash_code
from opchain.runtime.state.key_groups import key_group
from opchain.runtime.state.key_identity import KeyIdentity

if TYPE_CHECKING:
    from opchain.runtime.state.java_hash import Hasher
    from opchain.runtime.state.key_groups import KeyGroupRange

_KNOWN_LIMIT = 1 << 16


class OwnKeys:
    """Identifies keys as another identity does, and refuses those of other subtasks.

    Args:
        identity: How keys are told apart.
        key_groups: Those of this subtask.
        max_parallelism: The number of all key groups.
        hasher: The hash code of keys, where their type declares another than their class's.
        where: The operator and its call site, for messages.
    """

    def __init__(
        self,
        identity: KeyIdentity,
        key_groups: KeyGroupRange,
        max_parallelism: int,
        hasher: Hasher | None,
        where: str,
    ) -> None:
        self._identify = identity.of
        self._key_groups = key_groups
        self._max_parallelism = max_parallelism
        self._hasher = hasher or java_hash_code
        self._where = where
        self._known: set[Any] = set()

    @property
    def identity(self) -> KeyIdentity:
        """The identity that checks: every key comes by, also a plain one."""
        return KeyIdentity(frozenset(), self)

    def __call__(self, key: Any) -> Any:
        """The state key of a key.

        Raises:
            StateError: The key belongs to another subtask.
        """
        state_key = self._identify(key)
        if state_key in self._known:
            return state_key
        group = key_group(key, self._max_parallelism, self._hasher)
        if group not in self._key_groups:
            first, last = self._key_groups.first, self._key_groups.last
            raise StateError(
                f"{self._where} gets the key {short_repr(key)}, which belongs to key group {group}, in "
                f"the subtask of the key groups {first} to {last}; reinterpret_as_keyed_stream() takes "
                "streams that are partitioned by that key already: use key_by()"
            )
        if len(self._known) >= _KNOWN_LIMIT:
            self._known.clear()
        self._known.add(state_key)
        return state_key
