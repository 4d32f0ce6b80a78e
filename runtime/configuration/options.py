"""Configuration options (a key, the type of its value, and a default), and memory sizes as Flink writes them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from functools import partial
from typing import Any, Generic, TypeVar

from opchain.runtime.configuration.text import (
    parse_boolean,
    parse_decimal,
    parse_integer,
    parse_list,
    parse_map,
    to_text,
)
from opchain.runtime.time import Duration

_KIBI, _MEBI, _GIBI, _TEBI = 1 << 10, 1 << 20, 1 << 30, 1 << 40
_MAX_BYTES = 2**63 - 1

_BYTES_OF_LABEL = {
    **dict.fromkeys(("b", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kibibytes"), _KIBI),
    **dict.fromkeys(("m", "mb", "mebibytes"), _MEBI),
    **dict.fromkeys(("g", "gb", "gibibytes"), _GIBI),
    **dict.fromkeys(("t", "tb", "tebibytes"), _TEBI),
}
# Flink prints no larger unit than this.
_PRINTED = ((_GIBI, "gb"), (_MEBI, "mb"), (_KIBI, "kb"), (1, "bytes"))

_NUMBER_AND_UNIT = re.compile(r"(?P<number>[0-9]+)\s*(?P<unit>.*)", re.DOTALL)


@dataclass(frozen=True, order=True, slots=True, repr=False)
class MemorySize:
    """A size in bytes; kilo, mega, giga and tera are powers of 1,024.

    Flink: org.apache.flink.configuration.MemorySize.

    >>> MemorySize.parse("64 mb").get_bytes()
    67108864
    """

    bytes_size: int

    def __post_init__(self) -> None:
        _require_int("MemorySize", self.bytes_size)
        if not 0 <= self.bytes_size <= _MAX_BYTES:
            raise ValueError(f"MemorySize of {self.bytes_size} bytes: it must be 0 to 2**63 - 1")

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        """A size in mebibytes (1,048,576 bytes)."""
        _require_int("MemorySize.of_mebi_bytes()", mebi_bytes)
        return MemorySize(mebi_bytes * _MEBI)

    @staticmethod
    def parse(text: str) -> MemorySize:
        """Reads a size as Flink's configuration writes it: "64 mb", "1g", "512 kibibytes".

        A number without a unit is bytes.

        Raises:
            ValueError: The text is empty, has another unit, or no whole number in front.
        """
        match = _NUMBER_AND_UNIT.fullmatch(text.strip())
        factor = _BYTES_OF_LABEL.get(match["unit"].lower() or "b") if match else None
        if match is None or factor is None:
            raise ValueError(
                f"{text!r} is not a memory size: expected a whole number and one of the units b, "
                "kb, mb, gb, tb, such as '64 mb'"
            )
        return MemorySize(int(match["number"]) * factor)

    def get_bytes(self) -> int:
        """The size in bytes."""
        return self.bytes_size

    def get_kibi_bytes(self) -> int:
        """The size in units of 1,024 bytes, rounded down."""
        return self.bytes_size // _KIBI

    def get_mebi_bytes(self) -> int:
        """The size in units of 1,024 ** 2 bytes, rounded down."""
        return self.bytes_size // _MEBI

    def get_gibi_bytes(self) -> int:
        """The size in units of 1,024 ** 3 bytes, rounded down."""
        return self.bytes_size // _GIBI

    def get_tebi_bytes(self) -> int:
        """The size in units of 1,024 ** 4 bytes, rounded down."""
        return self.bytes_size // _TEBI

    def __str__(self) -> str:
        if self.bytes_size == 0:
            return "0 bytes"
        # Flink prints terabytes (and only them) as plain bytes.
        units = ((1, "bytes"),) if self.bytes_size % _TEBI == 0 else _PRINTED
        factor, label = next(unit for unit in units if self.bytes_size % unit[0] == 0)
        return f"{self.bytes_size // factor} {label}"

    def __repr__(self) -> str:
        return f"MemorySize({self})"


def _require_int(where: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{where} takes a whole number, not {value!r}")


T = TypeVar("T")
E = TypeVar("E", bound=Enum)

_LARGEST_FLOAT = 3.4028234663852886e38


@dataclass(frozen=True)
class ValueType(Generic[T]):
    """The type of an option's value, and the conversion of text or a related type to it.

    `convert` takes any value that a Configuration may hold, and raises ValueError where it does not
    fit; Flink converts in the same generous way when a program reads an option.
    """

    name: str
    convert: Callable[[Any], T]


@dataclass(frozen=True)
class ConfigOption(Generic[T]):
    """A configuration option; made by `ConfigOptions.key(...)`, and never changed.

    Reading one gives a `T`: an option without default is one of `T | None`. `fallback_keys` are read,
    in order, where `key` itself is not set.
    """

    key: str
    value_type: ValueType[Any]
    default: T | None = None
    fallback_keys: tuple[str, ...] = ()

    def has_default_value(self) -> bool:
        """Whether reading the option gives a value also where none is set."""
        return self.default is not None

    def with_fallback_keys(self, *keys: str) -> ConfigOption[T]:
        """The same option with further fallback keys, after those that it has."""
        return replace(self, fallback_keys=(*self.fallback_keys, *keys))


class ConfigOptions:
    """Builds options.

    >>> ConfigOptions.key("parallelism.default").int_type().default_value(1).default
    1
    """

    @staticmethod
    def key(key: str) -> ConfigOptions.OptionBuilder:
        """Starts an option with this key."""
        return ConfigOptions.OptionBuilder(key)

    class OptionBuilder:
        """An option that has a key and waits for the type of its value."""

        def __init__(self, key: str) -> None:
            self._key = key

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            """A bool."""
            return self._typed(BOOLEAN)

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """An int of 32 bits."""
            return self._typed(INT)

        def long_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """An int of 64 bits."""
            return self._typed(LONG)

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """A float in the range of single precision."""
            return self._typed(FLOAT)

        def double_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """A float."""
            return self._typed(DOUBLE)

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            """A str."""
            return self._typed(STRING)

        def duration_type(self) -> ConfigOptions.TypedConfigOptionBuilder[Duration]:
            """A Duration, such as "10 s". Java only in Flink."""
            return self._typed(DURATION)

        def memory_type(self) -> ConfigOptions.TypedConfigOptionBuilder[MemorySize]:
            """A MemorySize, such as "64 mb". Java only in Flink."""
            return self._typed(MEMORY)

        def map_type(self) -> ConfigOptions.TypedConfigOptionBuilder[dict[str, str]]:
            """A dict of strings; also gathered from keys that begin with this one and a dot.

            Java only in Flink.
            """
            return self._typed(MAP)

        def enum_type(self, enum_class: type[E]) -> ConfigOptions.TypedConfigOptionBuilder[E]:
            """A member of the enum, by its name in any case. Java only in Flink."""
            return self._typed(ValueType(enum_class.__name__, _MemberOf(enum_class)))

        def _typed(self, value_type: ValueType[T]) -> ConfigOptions.TypedConfigOptionBuilder[T]:
            return ConfigOptions.TypedConfigOptionBuilder(self._key, value_type)

    class TypedConfigOptionBuilder(Generic[T]):
        """An option that has a key and a type, and waits for the word on its default."""

        def __init__(self, key: str, value_type: ValueType[T]) -> None:
            self._key = key
            self._value_type = value_type

        def as_list(self) -> ConfigOptions.TypedConfigOptionBuilder[list[T]]:
            """A list of such values, such as "a;b". Java only in Flink."""
            return ConfigOptions.TypedConfigOptionBuilder(
                self._key,
                ValueType(f"list of {self._value_type.name}", _ListOf(self._value_type)),
            )

        def default_value(self, value: T) -> ConfigOption[T]:
            """The option, with the value that a configuration without it gives.

            Raises:
                ValueError: The default does not fit the type.
            """
            return ConfigOption(self._key, self._value_type, self._value_type.convert(value))

        def no_default_value(self) -> ConfigOption[T | None]:
            """The option. A configuration without it gives None."""
            return ConfigOption(self._key, self._value_type)


@dataclass(frozen=True)
class _MemberOf(Generic[E]):
    enum_class: type[E]

    def __call__(self, value: Any) -> E:
        if isinstance(value, self.enum_class):
            return value
        wanted = to_text(value).upper()
        for member in self.enum_class:
            if member.name.upper() == wanted:
                return member
        names = ", ".join(member.name for member in self.enum_class)
        raise ValueError(f"{to_text(value)!r} is not one of {names}")


@dataclass(frozen=True)
class _ListOf(Generic[T]):
    item_type: ValueType[T]

    def __call__(self, value: Any) -> list[T]:
        is_list = isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))
        items = value if is_list else parse_list(to_text(value))
        return [self.item_type.convert(item) for item in items]


def _boolean(value: Any) -> bool:
    return value if isinstance(value, bool) else parse_boolean(to_text(value))


def _within(bits: int, value: Any) -> int:
    number = parse_integer(to_text(value))
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError(f"{number} does not fit {bits} bits")
    return number


def _double(value: Any) -> float:
    return value if isinstance(value, float) else parse_decimal(to_text(value))


def _float(value: Any) -> float:
    number = _double(value)
    if math.isfinite(number) and abs(number) > _LARGEST_FLOAT:
        raise ValueError(f"{number} does not fit single precision")
    return number


def _duration(value: Any) -> Duration:
    if isinstance(value, timedelta):
        return Duration.of_timedelta(value)
    return value if isinstance(value, Duration) else Duration.parse(to_text(value))


def _memory(value: Any) -> MemorySize:
    return value if isinstance(value, MemorySize) else MemorySize.parse(to_text(value))


def _map(value: Any) -> dict[str, str]:
    if isinstance(value, Mapping):
        return {to_text(key): to_text(item) for key, item in value.items()}
    return parse_map(to_text(value))


BOOLEAN = ValueType("boolean", _boolean)
INT = ValueType("int", partial(_within, 32))
LONG = ValueType("long", partial(_within, 64))
FLOAT = ValueType("float", _float)
DOUBLE = ValueType("double", _double)
STRING = ValueType("string", to_text)
DURATION = ValueType("duration", _duration)
MEMORY = ValueType("memory size", _memory)
MAP = ValueType("map", _map)
