"""The id of one run of a job."""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEX = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, order=True, slots=True)
class JobID:
    """128 bits, printed as 32 hexadecimal digits. Flink: JobID.

    Raises:
        ValueError: The text is something else.
    """

    hex_string: str

    def __post_init__(self) -> None:
        if not isinstance(self.hex_string, str) or not _HEX.fullmatch(self.hex_string):
            raise ValueError(
                f"JobID takes 32 lower-case hexadecimal digits, not {self.hex_string!r}"
            )

    def __str__(self) -> str:
        return self.hex_string
