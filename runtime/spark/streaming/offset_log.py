"""Reads Spark's log of offsets.

Sources hear from the driver up to where an epoch has read. And before Spark 4.2 `latestOffset` has no argument: a
reader that starts again needs the position of the last micro-batch.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from opchain.runtime.checkpoint.storage import checkpoint_storage

if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDER = "offsets"


def last_offset(log: str, key: str) -> dict[str, Any] | None:
    """The offset of the last micro-batch that has one with this key; None where nothing is logged.

    Args:
        log: Path or URL of the query's checkpoint.
        key: What the offset of no other source has.
    """
    numbers = [int(name) for name in checkpoint_storage(log).children(_FOLDER) if name.isdecimal()]
    return offset_of(log, max(numbers), key) if numbers else None


def offset_of(log: str, batch: int, key: str) -> dict[str, Any] | None:
    """The offset of a micro-batch that has one with this key; None where nothing is logged.

    Args:
        log: Path or URL of the query's checkpoint.
        batch: The micro-batch.
        key: What the offset of no other source has.
    """
    try:
        text = checkpoint_storage(log).read(f"{_FOLDER}/{batch}").decode()
    except FileNotFoundError:
        return None
    return next((found for found in _objects(text) if key in found), None)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The lines that are objects: behind the version and what the micro-batch was set to, an offset a line."""
    for line in text.splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found
