"""A number of bytes, as Flink's configuration and slot sharing groups give it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

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
        """That many times 1,048,576 bytes."""
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
