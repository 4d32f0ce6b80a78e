"""opchain's own functions that generated code calls, and what rules may assume of each of them.

A name of generated code is recognized by its stem (see `names.stem`): `pane_for_3` calls `pane_for` of operator 3.
"""

from __future__ import annotations

from enum import Flag, auto
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.names import stem

if TYPE_CHECKING:
    import ast


class Trait(Flag):
    """What a rule may assume of a function."""

    NONE = 0
    RARE = auto()
    """It runs for few records, so it may get a record that is built for it."""
    KEEPS_NOTHING = auto()
    """It keeps no reference to its arguments."""
    KEEPS_TYPE = auto()
    """It returns its argument, or replaces a value of an unusual class."""
    GIVES_TEXT = auto()
    """It returns a str."""
    NEEDS_NO_KEY = auto()
    """It does not ask for the current key."""
    SEES_NO_ATTRIBUTE = auto()
    """It runs no code that could read or set an attribute of a user's function object."""
    IN_ANY_ORDER = auto()
    """Its effects are the same in any order of records."""


_RARE, _KEEPS_NOTHING, _KEEPS_TYPE = Trait.RARE, Trait.KEEPS_NOTHING, Trait.KEEPS_TYPE
_GIVES_TEXT, _NEEDS_NO_KEY = Trait.GIVES_TEXT, Trait.NEEDS_NO_KEY
_SEES_NO_ATTRIBUTE, _IN_ANY_ORDER = Trait.SEES_NO_ATTRIBUTE, Trait.IN_ANY_ORDER

INTERNAL_FUNCTIONS = {
    "accessed": _NEEDS_NO_KEY | _SEES_NO_ATTRIBUTE,
    "add_timer": _NEEDS_NO_KEY | _SEES_NO_ATTRIBUTE,
    "append": _NEEDS_NO_KEY,
    "as_declared": _NEEDS_NO_KEY,
    "as_timestamp": _RARE | _KEEPS_NOTHING | _KEEPS_TYPE | _NEEDS_NO_KEY | _SEES_NO_ATTRIBUTE,
    "checked": _NEEDS_NO_KEY | _SEES_NO_ATTRIBUTE,
    "copied": _NEEDS_NO_KEY | _SEES_NO_ATTRIBUTE,
    "count_for": _RARE,
    "discard_timer": _NEEDS_NO_KEY | _SEES_NO_ATTRIBUTE,
    "emit": _NEEDS_NO_KEY,
    "emit_side": _NEEDS_NO_KEY,
    "fast_dumps": _KEEPS_NOTHING | _GIVES_TEXT | _SEES_NO_ATTRIBUTE,
    "fits": _NEEDS_NO_KEY,
    "fits_each": _NEEDS_NO_KEY,
    "identify": _KEEPS_NOTHING | _KEEPS_TYPE | _NEEDS_NO_KEY | _SEES_NO_ATTRIBUTE | _IN_ANY_ORDER,
    "is_tagged": _KEEPS_NOTHING | _NEEDS_NO_KEY,
    "json_object": _KEEPS_NOTHING | _GIVES_TEXT | _SEES_NO_ATTRIBUTE,
    "key_of": _NEEDS_NO_KEY | _SEES_NO_ATTRIBUTE,
    "new_tuple": _NEEDS_NO_KEY | _SEES_NO_ATTRIBUTE,
    "own_copy": _NEEDS_NO_KEY | _SEES_NO_ATTRIBUTE,
    "pane_for": _RARE | _IN_ANY_ORDER,
    "panes_for": _RARE | _IN_ANY_ORDER,
    "read": _NEEDS_NO_KEY | _SEES_NO_ATTRIBUTE,
    "read_all": _NEEDS_NO_KEY | _SEES_NO_ATTRIBUTE,
    "refuse": _RARE | _KEEPS_NOTHING | _SEES_NO_ATTRIBUTE | _IN_ANY_ORDER,
    "row_of": _NEEDS_NO_KEY | _SEES_NO_ATTRIBUTE,
    "session_for": _RARE,
    "skip": _IN_ANY_ORDER,
    "timer_millis": _NEEDS_NO_KEY,
}
"""By stem. Nothing is assumed of other functions."""

SETS_KEY = ("set_key", "set_state_key")
"""Functions that make a key the current one."""

TABLES = ("copies", "entries", "pane", "panes", "panes_since", "sums", "table")
"""Dictionaries of operators, by the stems of their names."""


def has(name: str, trait: Trait) -> bool:
    """Whether a name of generated code is an internal function with a trait.

    >>> has("pane_for_3", Trait.RARE), has("identify_to_0", Trait.RARE), has("parse_1", Trait.RARE)
    (True, False, False)
    """
    return trait in INTERNAL_FUNCTIONS.get(stem(name), Trait.NONE)


def calls(node: ast.AST, trait: Trait) -> bool:
    """Whether an expression calls an internal function with a trait."""
    return has(f.called(node), trait)
