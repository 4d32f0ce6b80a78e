"""From a declared key type to the hasher of the Java class it stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opchain.runtime.state.key_hashers import (
    NAMED_HASHERS,
    hasher_named,
    list_of,
    row_of,
    tuple_of,
)

if TYPE_CHECKING:
    from opchain.runtime.state.java_hash import Hasher


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
