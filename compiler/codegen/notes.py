"""Notes on the nodes of a form: what lowering and rules know about a node, and its syntax does not say.

A copy of a node has the notes of the original.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from opchain.runtime.program.vertex_program import NO_OPERATOR

if TYPE_CHECKING:
    import ast

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Note(Generic[T]):
    """A function that reads one note of a node. `default` is the value for nodes without the note."""

    name: str
    default: T

    def __call__(self, node: ast.AST) -> T:
        """The note, or the default."""
        value: T = getattr(node, self.name, self.default)
        return value

    def set(self, node: ast.AST, value: T) -> None:
        """Notes a value on a node."""
        setattr(node, self.name, value)


# Notes on statements

operator = Note("operator", NO_OPERATOR)
"""The index of the statement's operator."""

comment: Note[str | None] = Note("comment", None)
"""The comment at the end of the printed line."""

asks: Note[str | None] = Note("asks", None)
"""What an `if` asks of a record: "none" if it is None, "tag" if it goes to a side output."""

emits_caught = Note("emits_caught", False)
"""Whether an `if` after a `try` emits the result of an exception handler."""

is_fork = Note("is_fork", False)
"""Whether an assignment, or a copy, makes the record of one reader of several."""

is_stored = Note("is_stored", False)
"""Whether a copy is kept in state."""

# Notes on expressions

has_key = Note("has_key", False)
"""Whether the key must be set before this call of a state."""

is_fresh = Note("is_fresh", False)
"""Whether a call returns a new object."""

is_field = Note("is_field", False)
"""Whether an attribute or a subscript reads a field, which runs no code of users."""

is_state = Note("is_state", False)
"""Whether a call is one of a method of a state."""

user_line: Note[str | None] = Note("user_line", None)
"""The line of the user's program."""
