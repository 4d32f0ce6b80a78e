"""Hashers of declared key types, and the check for records in the wrong subtask where no exchange put them into the right one.

A stream that is reinterpreted as keyed must be partitioned as `key_by` would have done it. Where it is not,
a key's records would be spread over subtasks, each with state of its own, and lost from it at the next
change of parallelism. Flink finds that out when state is used: `StateTable.getMapForKeyGroup`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import StateError, short_repr
from opchain.runtime.state.keys.java_hash import java_hash_code
from opchain.runtime.state.keys.key_groups import key_group
from opchain.runtime.state.keys.key_hashers import (
    NAMED_HASHERS,
    hasher_named,
    list_of,
    row_of,
    tuple_of,
)
from opchain.runtime.state.keys.key_identity import KeyIdentity

if TYPE_CHECKING:
    from opchain.runtime.state.keys.java_hash import Hasher
    from opchain.runtime.state.keys.key_groups import KeyGroupRange


def hasher_of_type(key_type: Any) -> Hasher | None:
    """The hasher that a key type asks for, None where the key's own value decides.

    `Types.INT()` hashes as Java's Integer, `Types.TUPLE([Types.STRING(), Types.SHORT()])` field by
    field. Types without a hash code of their own (PICKLED, arrays of numbers) are hashed by value.
    """
    java_class = getattr(key_type, "java_class", "Object")
    if java_class == "Tuple":
        return tuple_of(*map(_nested, key_type.get_field_types()))
    if java_class == "Row":
        return row_of(*map(_nested, key_type.get_field_types()))
    if java_class == "List":
        return list_of(_nested(key_type.element_type))
    return None if java_class == "Object" else NAMED_HASHERS.get(java_class)


def _nested(field_type: Any) -> Hasher:
    return hasher_of_type(field_type) or hasher_named("Object")


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
                f"the subtask of the key groups {first} to {last}; reinterpret_as_keyed_stream() "
                f"needs a stream that is already partitioned by this key; otherwise use key_by()"
            )
        if len(self._known) >= _KNOWN_LIMIT:
            self._known.clear()
        self._known.add(state_key)
        return state_key
