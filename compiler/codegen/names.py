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
_WORDS = """
add_timer as_declared as_tagged as_timestamp assigner attribute await_end backend batch before before_column
before_keys before_values broadcast calls carried column combined context count count_for counted counts create
current_key discard_timer due elements emit emit_side end end_run end_to entry event_timers fallback fast_dumps
fast_loads field field_of fields fire first first_to fits flush found gap_of got greatest has_plain held held_to
identify identify_to interleaved item item_to json_object keep key key_of key_to keys last_key latest_session
loop names names_to namespace new new_to next_change numbers_of object objects on_timer op open_panes pane
pane_for panes panes_for panes_since part plain plain_fields plain_fields_to plain_keys plain_keys_to previous
process rank rank_to read_json records refuse result results returned row run run_for run_to seen seen_to selected self
self_of sent_key session session_end session_for sessions_changed set_key set_state_key skip slice slice_to
start state_key sum sums sums_to table time_of timestamp timestamps timestamps_of touch touching tracks turn
unchanged usual usual_to value values values_of window write_sums
"""
_OURS = frozenset(_WORDS.split())
"""First words of the names in generated code. User functions and their variables get other names."""

PREFIXES = (
    *("add_timer_", "append_", "as_declared_", "as_timestamp_", "count_for_", "discard_timer_"),
    *("emit_", "entry_", "fast_dumps", "fast_loads", "field_of_", "greatest_", "identify_"),
    *("is_tagged", "json_object_", "key_of", "new_tuple", "own_copy", "pane_", "panes_", "refuse_"),
    *("row_of", "self_", "sent_key_", "session_", "set_key_", "set_state_key_", "skip_", "sums_"),
    *("fits_", "table_", "timer_millis", "zip"),
)
"""Rules recognize internal names by these beginnings, so no name of a user may have one."""


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
    if _NUMBERS.sub("", snake) in _OURS:
        snake = f"{snake}_fn"
    return f"my_{snake}" if f"{snake}_".startswith(PREFIXES) else snake


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
