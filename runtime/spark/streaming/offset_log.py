"""Reads Spark's log of offsets, for the Sparks that do not tell a Python source where the stream is.

Before Spark 4.2 `latestOffset` has no argument. A reader that starts anew then knows nothing of the micro-batches
before, unless somebody else has looked.
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
    storage = checkpoint_storage(log)
    numbers = [int(name) for name in storage.children(_FOLDER) if name.isdecimal()]
    if not numbers:
        return None
    text = storage.read(f"{_FOLDER}/{max(numbers)}").decode()
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
