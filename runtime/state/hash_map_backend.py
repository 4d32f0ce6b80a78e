"""Keyed state in dictionaries: one per state, from key to value.

Flink: `HashMapStateBackend`, `HeapKeyedStateBackend`.
"""

from __future__ import annotations

from typing import Any


class HashMapKeyedStateBackend:
    """The keyed state of one operator's subtask.

    `current_key` is set before each record and each timer; states follow it.
    """

    __slots__ = ("current_key", "tables")

    def __init__(self) -> None:
        self.current_key: Any = None
        self.tables: dict[str, dict[Any, Any]] = {}

    def set_current_key(self, key: Any) -> None:
        """Makes a key the current one."""
        self.current_key = key

    def table(self, name: str) -> dict[Any, Any]:
        """The table of a state, made on first use; operators may work on it directly."""
        return self.tables.setdefault(name, {})
