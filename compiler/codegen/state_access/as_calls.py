"""Loops over a state, and operators, as calls of its methods: `list(self.many)` becomes `list(self.many.get())`.

`self.counts[name] += 1` becomes a `get`, the addition and a `put`, in the order in which Python evaluates them, and
`del self.counts[name]` a `remove`.
"""

from __future__ import annotations

import ast
from typing import Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.changing_attributes import ITERATING
from opchain.compiler.codegen.source_text import text_of

_ITERATED = {
    "For": "iter",
    "comprehension": "iter",
    "ForEachResult": "iterable",
    "Starred": "value",
}
"""The field that a node iterates over, by the class of the node."""


def as_calls(block: f.Lines, state: str, kind: str) -> f.Lines:
    """The block with calls of one state, such as `self_0.many`. The kind of a map or list ends so: "broadcast map"."""
    calls = _AsCalls(state, kind)
    return f.flattened(calls.visit(statement) for statement in block)


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
        is_read = self._is_item(node) and isinstance(node.ctx, ast.Load) and not _has_slice(node)
        return _call(node.value, "get", node.slice) if is_read else node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | f.Lines:
        self.generic_visit(node)
        (target,) = node.targets if len(node.targets) == 1 else (None,)
        if not (isinstance(target, ast.Subscript) and self._is_written(target)):
            return node
        lines: f.Lines = []
        if not f.is_simple(0, target.slice) or text_of(target.slice) in f.stores([node]):
            lines.append(self._let("entry", node, "value"))  # Python evaluates the value first
            lines.append(self._let("part", target, "slice"))
        return self._placed([*lines, _put(target, node.value)], node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt | f.Lines:
        self.generic_visit(node)
        target = node.target
        if not (isinstance(target, ast.Subscript) and self._is_written(target)):
            return node
        lines: f.Lines = []
        if not f.is_simple(0, target.slice) or text_of(target.slice) in f.stores([node]):
            lines.append(self._let("part", target, "slice"))
        item = ast.Subscript(target.value, target.slice, ast.Load())
        entry = self._variable("entry")
        lines.append(ast.Assign([f.target(entry)], self.visit(item), lineno=0))
        lines.append(ast.AugAssign(f.target(entry), node.op, node.value))
        return self._placed([*lines, _put(target, f.name(entry))], node)

    def visit_Delete(self, node: ast.Delete) -> f.Lines:
        self.generic_visit(node)
        lines: f.Lines = []
        for target in node.targets:
            if isinstance(target, ast.Subscript) and self._is_written(target):
                lines.append(ast.Expr(_call(target.value, "remove", target.slice)))
            else:
                lines.append(ast.Delete([target]))
        return self._placed(lines, node)

    def _is_written(self, target: ast.Subscript) -> bool:
        """Whether a target is an item of a map that can be changed, and no slice."""
        return self._is_item(target) and not self._is_read_only and not _has_slice(target)

    def _variable(self, stem: str) -> str:
        return f"{stem}_{self._state.partition('_')[2].replace('.', '_')}"

    def _let(self, stem: str, node: ast.AST, part: str) -> ast.stmt:
        """Assigns a part of a node to a variable, which then replaces the part."""
        variable = self._variable(stem)
        line = ast.Assign([f.target(variable)], getattr(node, part), lineno=0)
        setattr(node, part, f.name(variable))
        return line

    def _placed(self, lines: f.Lines, node: ast.stmt) -> f.Lines:
        f.with_comment(f.marked(lines, notes.operator(node)), notes.comment(node))
        return f.placed(lines, node)


def _put(target: ast.Subscript, value: ast.expr) -> ast.stmt:
    return ast.Expr(_call(target.value, "put", target.slice, value))


def _has_slice(node: ast.Subscript) -> bool:
    parts = getattr(node.slice, "elts", [node.slice])
    return any(isinstance(part, ast.Slice) for part in parts)


def _call(state: ast.expr, method: str, *arguments: ast.expr) -> ast.expr:
    call = ast.Call(ast.Attribute(state, method, ast.Load()), [*arguments], [])
    return f.placed(call, state)
