"""Loops over a state, and operators, as calls of its methods: `list(self.many)` becomes `list(self.many.get())`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.changing_attributes import ITERATING
from opchain.compiler.codegen.source_text import text_of

if TYPE_CHECKING:
    Lines = list[ast.stmt]

_ITERATED = {
    "For": "iter",
    "comprehension": "iter",
    "ForEachResult": "iterable",
    "Starred": "value",
}
"""The field that a node iterates over, by the class of the node."""


def as_calls(block: Lines, state: str, kind: str) -> Lines:
    """The block with calls of one state, such as `self_0.many`. The kind of a map or list ends so: "broadcast map"."""
    calls = _AsCalls(state, kind)
    return [calls.visit(statement) for statement in block]


class _AsCalls(ast.NodeTransformer):
    def __init__(self, state: str, kind: str) -> None:
        self._state = state
        self._is_map = kind.endswith("map")
        self._is_read_only = kind == "broadcast map"

    def _is_state(self, node: ast.AST) -> bool:
        return isinstance(node, (ast.Name, ast.Attribute)) and text_of(node) == self._state

    def _is_item(self, node: ast.AST) -> bool:
        return self._is_map and isinstance(node, ast.Subscript) and self._is_state(node.value)

    def _iterated(self, state: ast.expr) -> ast.expr:
        return _call(state, "keys" if self._is_map else "get") if self._is_state(state) else state

    def visit(self, node: ast.AST) -> Any:
        """The node, or the call that replaces it."""
        iterated = _ITERATED.get(type(node).__name__)
        if iterated:
            setattr(node, iterated, self._iterated(getattr(node, iterated)))
        elif f.is_call_of(node, ITERATING):
            node.args = [*map(self._iterated, node.args)]  # type: ignore[attr-defined]
        return super().visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Compare(ops=[ast.In() | ast.NotIn() as operator], comparators=[state]):
                if self._is_map and self._is_state(state):
                    found = _call(state, "contains", node.left)
                    return found if isinstance(operator, ast.In) else ast.UnaryOp(ast.Not(), found)
                node.comparators = [self._iterated(state)]
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        parts = getattr(node.slice, "elts", [node.slice])
        is_slice = any(isinstance(part, ast.Slice) for part in parts)
        is_read = self._is_item(node) and isinstance(node.ctx, ast.Load) and not is_slice
        return _call(node.value, "get", node.slice) if is_read else node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        self.generic_visit(node)
        match node.targets:
            case [ast.Subscript(value=state, slice=ast.Name() | ast.Constant() as key)] if (
                self._is_item(node.targets[0])
                and not self._is_read_only
                and text_of(key) not in f.stores([node])  # Python evaluates the value first
            ):
                put = ast.Expr(_call(state, "put", key, node.value))
                notes.operator.set(put, notes.operator(node))
                f.with_comment([put], notes.comment(node))
                return f.placed([put], node)[0]
        return node


def _call(state: ast.expr, method: str, *arguments: ast.expr) -> ast.expr:
    call = ast.Call(ast.Attribute(state, method, ast.Load()), [*arguments], [])
    return f.placed(call, state)
