"""The configuration of a program: keys and values, as in Flink's configuration files."""

from __future__ import annotations

import builtins  # noqa: TC003 - `set` names a method here
import warnings
from typing import TYPE_CHECKING, Any, TypeVar, overload

from opchain.runtime.configuration.options import (
    BOOLEAN,
    DOUBLE,
    LONG,
    MAP,
    STRING,
    ConfigOption,
    ValueType,
)
from opchain.runtime.configuration.text import parse_list, to_text
from opchain.runtime.java_objects import no_java

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")

# A key that has one of these in it holds a secret. Flink: GlobalConfiguration.isSensitive.
_SECRET_WORDS = (
    "password",
    "secret",
    "fs.azure.account.key",
    "apikey",
    "api-key",
    "auth-params",
    "service-key",
    "token",
    "basic-auth",
    "jaas.config",
    "http-headers",
)
_HIDDEN = "******"


class Configuration:
    """Keys and values; a value keeps the type with which it was set.

    Reading converts: a number set as text can be read as a number, and the other way round. Two
    configurations are equal when they hold the same values of the same types, so "1" is not 1.
    The printed form hides passwords and the like; `to_dict` does not.

    >>> Configuration().set_string("interval", "5").get_integer("interval", 0)
    5

    Flink: org.apache.flink.configuration.Configuration. `get`, `set` and `contains` take typed
    options, which PyFlink lacks. Setting `pipeline.jars` keeps the value and loads nothing: there
    is not a class loader here.
    """

    def __init__(
        self, other: Configuration | None = None, j_configuration: Configuration | None = None
    ) -> None:
        if j_configuration is not None and not isinstance(j_configuration, Configuration):
            raise no_java("Configuration(j_configuration=...)")
        # PyFlink's class wraps the Java object, so the two share their settings.
        shared = None if j_configuration is None else j_configuration._values  # noqa: SLF001 - of this class
        self._values: dict[str, Any] = {} if shared is None else shared
        if other is not None:
            self.add_all(other)

    @classmethod
    def from_dict(cls, map: dict[str, str]) -> Configuration:  # noqa: A002 - PyFlink's name
        """A configuration with these strings."""
        configuration = cls()
        for key, value in map.items():
            configuration.set_string(key, value)
        return configuration

    def get_string(self, key: str, default_value: str) -> str:
        """The value as text, or the default."""
        return self._read(key, STRING, default_value)

    def set_string(self, key: str, value: str) -> Configuration:
        """Sets a text."""
        return self._write(key, value, str)

    @staticmethod
    def parse_list_value(value: str | None) -> list[str]:
        """The items of a list in text form: "a;b", "[a, b]", or lines that begin with "- "; none for None."""
        return parse_list(value) if value else []

    @staticmethod
    def parse_jars_value(value: str | None, jvm: object = None) -> list[str]:  # noqa: ARG004 - PyFlink 1.20's
        """`parse_list_value` in PyFlink 1.20."""
        warnings.warn(
            "Configuration.parse_jars_value is deprecated: use parse_list_value",
            DeprecationWarning,
            stacklevel=2,
        )
        return Configuration.parse_list_value(value)

    def get_integer(self, key: str, default_value: int) -> int:
        """The value as a 64-bit int, or the default.

        Raises:
            ValueError: The value is there, and is not a whole number.
        """
        return self._read(key, LONG, default_value)

    def set_integer(self, key: str, value: int) -> Configuration:
        """Sets an int of 64 bits."""
        _require(key, value, int)
        LONG.convert(value)
        return self._write(key, value, int)

    def get_boolean(self, key: str, default_value: bool) -> bool:
        """The value as a bool, or the default.

        Raises:
            ValueError: The value is there, and is neither true nor false.
        """
        return self._read(key, BOOLEAN, default_value)

    def set_boolean(self, key: str, value: bool) -> Configuration:
        """Sets a bool."""
        return self._write(key, value, bool)

    def get_float(self, key: str, default_value: float) -> float:
        """The value as a float, or the default.

        Raises:
            ValueError: The value is there, and is not a number.
        """
        return self._read(key, DOUBLE, float(default_value))

    def set_float(self, key: str, value: float) -> Configuration:
        """Sets a float; an int becomes one."""
        return self._write(key, float(value), float)

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        """A copy of the bytes, or of the default.

        Raises:
            ValueError: The value is there, and was not set with `set_bytearray`.
        """
        value = self._values.get(key, default_value)
        if not isinstance(value, (bytes, bytearray)):
            raise ValueError(f"configuration key {key!r} does not hold bytes")  # noqa: TRY004 - the state, not an argument, is wrong
        return bytearray(value)

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        """Sets a copy of the bytes."""
        return self._write(key, bytes(value), bytes)

    @overload
    def get(self, option: ConfigOption[T]) -> T: ...

    @overload
    def get(self, option: ConfigOption[T | None], default_value: T) -> T: ...

    @overload
    def get(self, option: ConfigOption[T], default_value: T) -> T: ...

    def get(self, option: ConfigOption[Any], default_value: Any = None) -> Any:
        """The option's value: as set, else `default_value`, else the option's own default.

        Raises:
            ValueError: The value that is set does not fit the option's type.
        """
        key = self._key_of(option)
        if key is not None:
            return _converted(key, self._values[key], option.value_type)
        if option.value_type == MAP and (gathered := self._below(option.key)):
            return _converted(option.key, gathered, option.value_type)
        if default_value is None and option.default is not None:
            # The conversion copies the option's list or dict, so a caller cannot change it.
            return option.value_type.convert(option.default)
        return default_value

    def set(self, option: ConfigOption[T], value: T) -> Configuration:
        """Sets an option.

        Raises:
            ValueError: The value does not fit the option's type.
            TypeError: It is None; `remove_config` unsets an option.
        """
        if value is None:
            raise TypeError(f"configuration key {option.key!r}: the value is None")
        self._values[option.key] = _converted(option.key, value, option.value_type)
        return self

    def contains(self, option: ConfigOption[Any]) -> bool:
        """Whether the option is set, by its own key or a fallback key."""
        is_prefix = option.value_type == MAP and bool(self._below(option.key))
        return is_prefix or self._key_of(option) is not None

    def key_set(self) -> builtins.set[str]:
        """A copy of the keys."""
        return set(self._values)

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Puts all values into the dict, each with the type with which it was set."""
        target_dict.update(self._values)

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Takes over all values of another configuration, with the prefix before each key."""
        added = {(prefix or "") + key: value for key, value in other._values.items()}
        self._values.update(added)
        return self

    def contains_key(self, key: str) -> bool:
        """Whether the key is set."""
        return key in self._values

    def to_dict(self) -> dict[str, str]:
        """All values as text, by sorted key; secrets are not hidden."""
        return {key: to_text(self._values[key]) for key in sorted(self._values)}

    def remove_config(self, key: str) -> bool:
        """Removes a key; says whether it was there."""
        return self._values.pop(key, _ABSENT) is not _ABSENT

    def _read(self, key: str, value_type: ValueType[T], default_value: T) -> T:
        if key not in self._values:
            return default_value
        return _converted(key, self._values[key], value_type)

    def _write(self, key: str, value: Any, of_type: type) -> Configuration:
        _require(key, value, of_type)
        self._values[key] = value
        return self

    def _key_of(self, option: ConfigOption[Any]) -> str | None:
        keys = (option.key, *option.fallback_keys)
        return next((key for key in keys if key in self._values), None)

    def _below(self, prefix: str) -> Mapping[str, Any]:
        start = prefix + "."
        return {
            key[len(start) :]: self._values[key]
            for key in sorted(self._values)
            if key.startswith(start)
        }

    def _shown(self, key: str) -> str:
        return _HIDDEN if _is_secret(key) else to_text(self._values[key])

    def __deepcopy__(self, memodict: dict[int, Any] | None = None) -> Configuration:
        return Configuration(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Configuration):
            return NotImplemented
        return _typed(self._values) == _typed(other._values)

    def __hash__(self) -> int:
        # As in Flink, of the keys alone; a configuration that gains or loses a key changes its hash.
        return hash(frozenset(self._values))

    def __str__(self) -> str:
        return "{" + ", ".join(f"{key}={self._shown(key)}" for key in sorted(self._values)) + "}"

    def __repr__(self) -> str:
        return f"Configuration({self})"


_ABSENT = object()


def _require(key: Any, value: Any, of_type: type) -> None:
    if not isinstance(key, str):
        raise TypeError(f"a configuration key must be a str, not {key!r}")
    if not isinstance(value, of_type) or (of_type is int and isinstance(value, bool)):
        found = _HIDDEN if _is_secret(key) else repr(value)
        raise TypeError(f"configuration key {key!r}: expected {of_type.__name__}, not {found}")


def _is_secret(key: str) -> bool:
    lowered = key.lower()
    return any(word in lowered for word in _SECRET_WORDS)


def _converted(key: str, value: Any, value_type: ValueType[T]) -> T:
    try:
        return value_type.convert(value)
    except ValueError as error:
        if _is_secret(key):
            raise ValueError(f"configuration key {key!r} is not a {value_type.name}") from None
        said = str(error)
        what = "" if " is not " in said else f" is not a {value_type.name}"
        raise ValueError(f"configuration key {key!r}{what}: {said}") from error


def _typed(values: Mapping[str, Any]) -> dict[str, tuple[type, Any]]:
    return {key: (type(value), value) for key, value in values.items()}
