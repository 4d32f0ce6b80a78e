"""How a loop uses a record: its fields, the whole record, and whether it asks for None or a tag."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.internal_functions import Trait, has
from opchain.compiler.codegen.static_types import StaticType, TupleOf

if TYPE_CHECKING:
    from opchain.compiler.codegen.displays import Display


class Uses:
    """Counts the uses of a record: reads of fields, whole uses by added statements, uses in rare branches, and others."""

    def __init__(self, name: str, display: Display) -> None:
        self.name = name
        self.display = display
        self.items = self.whole = self.cold = self.others = self.keeps = 0
        self.positions: set[int] = set()

    def block(self, block: f.Lines, *, is_cold: bool) -> None:
        """Looks at a suite."""
        for statement in block:
            if isinstance(statement, f.CopyIfMutable) and statement.target.id == self.name:
                self.keeps += 1
                continue
            if is_fork_of(statement, self.name):
                self.whole += 1
                continue
            takes_whole = isinstance(statement, (f.Send, f.Fold, f.Convert))
            for part in f.own_expressions(statement):
                if takes_whole and part is statement.value and f.is_load_of(part, self.name):  # type: ignore[attr-defined]
                    self.whole += 1
                else:
                    self._expression(part, is_cold=is_cold)
            for inner in f.blocks(statement):
                is_first = inner is getattr(statement, "body", None)
                self.block(inner, is_cold=is_cold or (is_first and _is_unusual(statement)))

    def _expression(self, node: ast.AST, *, is_cold: bool) -> None:
        position = self.display.field_read(node, self.name)
        if position is not None:
            self.items += 1
            self.positions.add(position)
        elif f.is_load_of(node, self.name):
            self.cold += is_cold
            self.others += not is_cold
        else:
            for child in ast.iter_child_nodes(node):
                self._expression(child, is_cold=is_cold)


def is_fork_of(statement: ast.stmt, variable: str) -> bool:
    """Whether a statement gives a reader at a fork a record of its own."""
    return (
        notes.is_fork(statement)
        and isinstance(statement, ast.Assign)
        and f.is_load_of(statement.value, variable)
    )


def _is_unusual(statement: ast.stmt) -> bool:
    """Whether a branch hardly ever runs: it converts a timestamp, or opens a window."""
    return isinstance(statement, ast.If) and any(
        isinstance(node, ast.Name) and has(node.id, Trait.RARE)
        for inner in statement.body
        if not isinstance(inner, ast.If)
        for node in ast.walk(inner)
    )


def is_answered(asks: str, known: StaticType | None) -> bool:
    """Whether a type says that a record is not None, or has no tag."""
    if asks == "tag" and isinstance(known, TupleOf):
        return len(known.items) != len(("tag", "value")) or known.items[0] is not None
    return known not in (None, type(None), tuple)
