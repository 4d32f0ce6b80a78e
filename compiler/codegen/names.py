"""Readable names in generated code, and the objects that they refer to on the executor.

A name is derived from the user's function (`parse_0`, `is_click_1`), else from the operator's kind (`map_2`). A number
at the end makes it unique.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Container

_NOT_IN_A_NAME = re.compile(r"[^0-9a-zA-Z]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_STEM = re.compile(r"(.*?)(?:_to)?_\d+(?:_|$)")
_LONGEST = 40
_WORDS = """
accessed add_timer append as_declared as_tagged as_timestamp assigner attribute await_end backend batch before
before_column before_keys before_values broadcast broadcast_state calls carried checked column combined context copied
copies count count_for counted counts create current_key discard_timer due elements emit emit_side end end_run entries
entry event_timers fallback fast_dumps fast_loads field field_of fields fire first fits fits_each flush found
functions gap_of got greatest has_plain held identify inner interleaved is_tagged item json_object keep key key_of
keys last_key latest_session loop names namespace new new_tuple next_change now numbers_of object objects on_timer op
open_panes own_copy pane pane_for panes panes_for panes_since part plain plain_fields plain_keys previous process rank
read read_all read_json records refuse result results returned row row_of run run_for seen selected self self_of
sent_key session session_end session_for sessions_changed set_key set_state_key skip slice start state_key sum sums
table time_of timer_millis timestamp timestamps timestamps_of touch touching tracks ttl turn unchanged unchanged_ms
usual value values values_of window write_sums zip
"""
_OURS = frozenset(_WORDS.split())
"""Stems of the names in generated code. User functions and their variables get other names."""


@lru_cache(1 << 12)
def stem(name: str) -> str:
    """The part of a name of generated code before its numbers. Rules recognize internal names by it.

    >>> stem("pane_for_3"), stem("table_1_seen"), stem("identify_to_0")
    ('pane_for', 'table', 'identify')
    """
    found = _STEM.match(name)
    return name if found is None else found[1]


def unused(name: str, *taken: Container[str]) -> str:
    """The name, or a similar one if it is taken.

    >>> unused("item_1", {"item_1"})
    'item_1_too'
    """
    while any(name in each for each in taken):
        name += "_too"
    return name


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
    return next(each for each in (snake, f"{snake}_fn", f"my_{snake}") if not _is_internal(each))


def _is_internal(name: str) -> bool:
    return stem(f"{name}_0") in _OURS or name.startswith("self_")


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
        return self.bind_like(self.function(function, kind, where), *what)

    def bind_like(self, name: str, *what: Any, taken: Container[str] = ()) -> str:
        """Binds a name, or a similar one if it is taken or stands for something else. Returns the name."""
        while name in taken or self.bindings.get(name, what) != what:
            name += "_too"
        return self.bind(name, *what)
