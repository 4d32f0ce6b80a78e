"""Readable names in generated code, and the objects that they refer to on the executor.

A name is derived from the user's function (`parse_0`, `is_click_1`), else from the operator's kind (`map_2`). A number
at the end makes it unique.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass, field
from typing import Any

_NOT_IN_A_NAME = re.compile(r"[^0-9a-zA-Z]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NUMBERS = re.compile(r"(_\d+)+$")
_LONGEST = 40
_OURS = frozenset(
    {
        *(
            "add_timer",
            "assigner",
            "discard_timer",
            "due",
            "elements",
            "fire",
            "event_timers",
            "fallback",
            "fast_dumps",
            "fast_loads",
            "field_of",
            "fits",
            "has_plain",
            "interleaved",
            "json_object",
            "keep",
            "namespace",
            "on_timer",
        ),
        *("loop", "numbers_of", "objects", "read_json", "self", "sums_to", "unchanged"),
        *("as_declared", "as_timestamp", "attribute", "batch", "column", "flush", "plain", "row"),
        *(
            "combined",
            "context",
            "count",
            "create",
            "emit",
            "emit_side",
            "field",
            "found",
            "greatest",
            "held",
        ),
        *("object", "first", "first_to", "identify", "item", "time_of"),
        *(
            "identify_to",
            "key",
            "keys",
            "op",
            "pane",
            "pane_for",
            "panes",
            "panes_for",
            "panes_since",
            "part",
            "plain_keys",
        ),
        *("plain_fields", "plain_fields_to", "set_state_key", "state_key", "current_key"),
        *("plain_keys_to", "previous", "process", "refuse", "run", "set_key", "write_sums", "skip"),
        *("count_for", "counted", "gap_of", "latest_session", "next_change", "open_panes"),
        *("returned", "session", "session_end", "session_for", "sessions_changed", "window"),
        *("as_tagged", "await_end", "backend", "broadcast", "start", "touch", "tracks"),
        *("sum", "sums", "table", "timestamp", "timestamps"),
        *("timestamps_of", "value", "values", "values_of"),
    }
)
"""First words of the variable names in generated code."""


def readable(function: Any, otherwise: str) -> str:
    """An identifier from the name of a function or class, else from `otherwise`.

    >>> def parse_line(text): ...
    >>> readable(parse_line, "map"), readable(lambda x: x, "flat map")
    ('parse_line', 'flat_map')
    """
    name = getattr(function, "__name__", None)
    if name is None and hasattr(function, "open"):
        name = type(function).__name__
    if name is None or not name.isascii() or not name.isidentifier():
        name = otherwise
    snake = _NOT_IN_A_NAME.sub("_", _HUMP.sub("_", name)).strip("_").lower()[:_LONGEST]
    if not snake or not snake[0].isalpha() or keyword.iskeyword(snake):
        snake = f"call_{snake}".rstrip("_")
    return f"{snake}_fn" if _NUMBERS.sub("", snake) in _OURS else snake


@dataclass(slots=True)
class Names:
    """The free names of a generated module, and what each is bound to (see task.generated_code)."""

    bindings: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    def bind(self, name: str, *what: Any) -> str:
        """Binds a name and returns it. It may be bound again to the same object."""
        known = self.bindings.setdefault(name, what)
        assert known == what, f"{name} stands for {known} and for {what}"
        return name

    def can_be_array(self, name: str) -> bool:
        """Whether the list of an output may be an array of ints. Records and sinks need a list."""
        return self.bindings[name][0] in ("column", "counted_keys")

    def bind_array(self, name: str) -> None:
        """Makes the list of an output an array."""
        self.bindings[name] = (*self.bindings[name], True)

    def function(self, function: Any, kind: str, where: int | str) -> str:
        """The name of a user's function at a place: `parse_1`, `user_to_0`."""
        return f"{readable(function, kind)}_{where}"

    def bind_function(self, function: Any, kind: str, where: str, *what: Any) -> str:
        """Binds the name of a user's function and returns it. Uses a similar name if it is taken."""
        name = self.function(function, kind, where)
        while self.bindings.get(name, what) != what:
            name += "_too"
        return self.bind(name, *what)
