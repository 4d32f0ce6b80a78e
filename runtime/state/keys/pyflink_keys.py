"""The hash codes of keys in PyFlink, so that each key is in the same subtask as in PyFlink.

PyFlink sends a key to Java by its declared type. Without a declared type it sends the pickle as a byte array. The key is
wrapped in a Row of one field. The hash code of the Row chooses the key group. It is the hash code of the key plus 62: a
Row starts from 1 and hashes each field as an array of one. Flink: KeyByKeySelector, RowUtils.deepHashCodeRow.

In opchain, equal keys must have equal bytes. But a pickle refers back to an object that it has already written, so it
depends on whether equal strings are the same object. So strings inside containers are copied before pickling, so that no
two are the same object. PyFlink does not copy them, and treats such equal keys as different keys.
"""

from __future__ import annotations

import datetime as dt
import decimal
import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.runtime.errors import UnstableKeyError
from opchain.runtime.state.keys.java_hash import (
    Hasher,
    hash_bytes,
    hasher_of_class,
    java_hash_code,
    plain_scalar,
    signed,
)
from opchain.runtime.state.keys.key_hashers import in_row
from opchain.runtime.types.coders import coder_converter

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.runtime.types.type_information import TypeInformation

ROW_OF_ONE = 62
"""The hash code of a Row minus that of its one field: 31 for the row, 31 for the array that contains the field."""

_ROW_OF_NONE = 31
_PROTOCOL = 5
_PLAIN = (int, bool, type(None), decimal.Decimal, dt.date)


class _NotPlainError(Exception):
    """A value whose pickle may differ between processes."""


@dataclass(frozen=True)
class RowKey:
    """Hashes a key of a declared type as PyFlink does, in a Row."""

    inner: Hasher

    def __call__(self, key: Any) -> int:
        """The hash code of the Row."""
        return signed(_ROW_OF_NONE + in_row(self.inner, key))


def hash_pickled(key: Any) -> int:
    """The hash code of PyFlink's Row around the pickle of a key without a declared type.

    Enums, dataclasses and similar classes are hashed by their values, because the pickle of a class of the program
    differs between processes.
    """
    try:
        plain = _copied(key)
    except _NotPlainError:
        try:
            return signed(ROW_OF_ONE + java_hash_code(key))
        except UnstableKeyError:
            return signed(ROW_OF_ONE + hash_bytes(pickled(key)))
    return signed(ROW_OF_ONE + hash_bytes(pickle.dumps(plain, _PROTOCOL)))


def pickled(key: Any) -> bytes:
    """Bytes that are equal for equal values of any class. Objects are equal if their attributes are."""
    try:
        plain = _copied(key)
    except _NotPlainError:
        plain = _described(key)
    return pickle.dumps(plain, _PROTOCOL)


def pyflink_hasher(key_type: Any, inner: Hasher | None) -> Hasher:
    """The hasher of the keys of a `key_by`, given the hasher of the declared type, if there is one."""
    return hash_pickled if key_type is None or inner is None else RowKey(inner)


class TypedSelector:
    """Selects a key, and converts it to its declared type."""

    def __init__(self, selector: Callable[[Any], Any], key_type: TypeInformation[Any]) -> None:
        self._selector = selector
        self._key_type = key_type
        self._convert = coder_converter(key_type) or (lambda key: key)

    def __reduce__(self) -> tuple[Any, ...]:
        return TypedSelector, (self._selector, self._key_type)

    def __call__(self, value: Any) -> Any:
        """The key of a record."""
        key = self._selector(value)
        return None if key is None else self._convert(key)


def _copied(value: Any) -> Any:  # noqa: PLR0911 - one for each kind
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is float:
        return value if value == value else float("nan")  # noqa: PLR0124  (only a NaN differs from itself)
    if kind is str:
        return value.encode("utf-8", "surrogatepass").decode("utf-8", "surrogatepass")
    if kind is bytes:
        return bytes(bytearray(value))
    if kind in (tuple, list):
        return kind(map(_copied, value))
    if kind is dict:
        return {_copied(key): _copied(item) for key, item in value.items()}
    if kind in (set, frozenset):
        if len(value) > 1:  # the order of a set depends on the process
            raise _NotPlainError
        return kind(map(_copied, value))
    scalar = plain_scalar(value)
    if scalar is not value:
        return _copied(scalar)
    raise _NotPlainError


def _described(value: Any) -> Any:
    """A plain value that represents a value of another class."""
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, sorted(map(pickled, value))
    if isinstance(value, dict):
        return "dict", [(pickled(key), pickled(item)) for key, item in value.items()]
    if isinstance(value, (tuple, list)):
        return type(value).__name__, list(map(pickled, value))
    if hasher_of_class(type(value)) is not None:
        return type(value).__qualname__, java_hash_code(value), repr(value)
    if hasattr(value, "__dict__"):
        return type(value).__qualname__, [(name, pickled(of)) for name, of in vars(value).items()]
    return type(value).__qualname__, pickle.dumps(value, _PROTOCOL)
