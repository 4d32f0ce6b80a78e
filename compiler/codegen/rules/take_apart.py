"""Tuples that are made only to be read are not made.

>>> change("take_apart", lambda numbers: numbers.map(lambda x: (x % 7, x)).map(lambda row: row[0] + row[1]))
-   value_1 = (value % 7, value)
-   value_2 = value_1[0] + value_1[1]
+   item_1_0 = value % 7
+   value_2 = item_1_0 + value

Where a tuple is handed on as a whole, to an exchange or to state, it is made there.
"""

from __future__ import annotations

import ast
import copy
from functools import partial
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.analysis import fresh_of, types_of

if TYPE_CHECKING:
    from opchain.compiler.codegen.form import Form, Function

_MOST_COLD_USES = 3


def take_apart(form: Form) -> None:
    """Replaces items of tuples by the expressions that they were made of."""
    for function in form.functions:
        done: set[str] = set()
        while (found := _candidate(function, done)) is not None:
            done.add(found)
            _Apart(function, found, fresh_of(function, types_of(function, form))).run()


def _candidate(function: Function, done: set[str]) -> str | None:
    set_in = f.stores(function.body)
    for statement in f.all_statements(function.body):
        name = _tuple_variable(statement)
        if name is not None and name not in done and set_in[name] == 1:
            return name
    return None


def _tuple_variable(statement: ast.stmt) -> str | None:
    if (
        isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and len(statement.targets) == 1
        and isinstance(statement.value, ast.Tuple)
        and not any(isinstance(item, ast.Starred) for item in statement.value.elts)
    ):
        return statement.targets[0].id
    return None


class _Apart:
    """One tuple variable of a function."""

    def __init__(self, function: Function, name: str, fresh: set[str]) -> None:
        self.function = function
        self.name = name
        self.fresh = fresh
        self.stable = {
            variable
            for variable, times in f.stores(function.body).items()
            if times == 1 or variable.startswith("field_of_")  # set before anybody reads it
        }

    def run(self) -> None:
        uses = Uses(self.name)
        uses.block(self.function.body, is_cold=False)
        if not (uses.items or uses.whole):
            return
        is_made = uses.others > 0 or uses.cold > _MOST_COLD_USES
        if is_made and (uses.keeps or not uses.items):
            return
        self.is_made = is_made
        self.function.body = self._block(self.function.body)

    def _block(self, block: list[ast.stmt]) -> list[ast.stmt]:
        """The block in which the tuple is made, and what is in and behind it, rewritten."""
        done: list[ast.stmt] = []
        for position, statement in enumerate(block):
            if _tuple_variable(statement) == self.name:
                assert isinstance(statement, ast.Assign)
                lines, elements = self._elements(statement)
                rest = block[position + 1 :]
                transformer = _Items(self.name, elements, is_made=self.is_made)
                rest = f.rewritten(rest, partial(self._kept, elements))
                rest = [transformer.visit(item) for item in rest]
                comment = f.comment_of(statement)
                if self.is_made:
                    made = f.let(
                        self.name, ast.Tuple(elements, ast.Load()), f.operator_of(statement)
                    )
                    lines.append(made)
                if comment and lines:
                    f.with_comment(lines, comment)
                elif comment:
                    f.with_comment(rest, comment)
                return [*done, *lines, *rest]
            for part in ("side", "body", "orelse"):
                inner = getattr(statement, part, None)
                if isinstance(inner, list):
                    setattr(statement, part, self._block(inner))
            done.append(statement)
        return done

    def _kept(self, elements: list[ast.expr], statement: ast.stmt) -> list[ast.stmt] | None:
        """A copy of the tuple is one of its elements."""
        if not isinstance(statement, f.Keep) or statement.target.id != self.name:
            return None
        names = dict.fromkeys(item.id for item in elements if isinstance(item, ast.Name))
        kept: list[ast.stmt] = [
            f.made(f.Keep, target=f.target(name)) for name in names if name not in self.fresh
        ]
        return f.marked(kept, f.operator_of(statement))

    def _elements(self, statement: ast.Assign) -> tuple[list[ast.stmt], list[ast.expr]]:
        """Variables for the elements that are none yet."""
        lines: list[ast.stmt] = []
        elements: list[ast.expr] = []
        assert isinstance(statement.value, ast.Tuple)
        operator = f.operator_of(statement)
        base = self.name.partition("_")[2] or "0"
        for position, item in enumerate(statement.value.elts):
            if isinstance(item, ast.Constant) or (
                isinstance(item, ast.Name) and item.id in self.stable
            ):
                elements.append(item)
                continue
            variable = f"item_{base}_{position}"
            while variable in self.stable:
                variable += "_too"
            lines.append(f.let(variable, item, operator))
            elements.append(f.name(variable))
        return lines, elements


class Uses:
    """How a variable is used: by items, as a whole by statements of ours, in branches that hardly run, otherwise."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.items = self.whole = self.cold = self.others = self.keeps = 0

    def block(self, block: list[ast.stmt], *, is_cold: bool) -> None:
        """Looks at a suite."""
        for statement in block:
            if isinstance(statement, f.Keep) and statement.target.id == self.name:
                self.keeps += 1
                continue
            for field in statement._fields:
                self._value(getattr(statement, field, None), statement, field, is_cold=is_cold)
            branch = isinstance(statement, ast.If) and not statement.orelse
            for inner in f.blocks(statement):
                self.block(inner, is_cold=is_cold or (branch and _is_unusual(statement)))

    def _value(self, value: Any, statement: ast.stmt, field: str, *, is_cold: bool) -> None:
        if isinstance(value, list):
            for item in value:
                if isinstance(item, ast.expr):
                    self._expression(item, is_cold=is_cold)
        elif isinstance(value, ast.expr):
            is_whole = isinstance(statement, (f.Send, f.Fold, f.Declare)) and field == "value"
            if is_whole and isinstance(value, ast.Name) and value.id == self.name:
                self.whole += 1
            else:
                self._expression(value, is_cold=is_cold)

    def _expression(self, node: ast.AST, *, is_cold: bool) -> None:
        if isinstance(node, ast.expr) and _index(node, self.name) is not None:
            self.items += 1
        elif isinstance(node, ast.Name):
            if node.id == self.name and isinstance(node.ctx, ast.Load):
                self.cold += is_cold
                self.others += not is_cold
        else:
            for child in ast.iter_child_nodes(node):
                self._expression(child, is_cold=is_cold)


_UNUSUAL = ("as_timestamp_", "refuse_", "pane_for_")


def _is_unusual(statement: ast.stmt) -> bool:
    """Whether a branch hardly ever runs: it converts a timestamp, or opens a window."""
    return isinstance(statement, ast.If) and any(
        isinstance(node, ast.Name) and node.id.startswith(_UNUSUAL)
        for inner in statement.body
        if not isinstance(inner, ast.If)
        for node in ast.walk(inner)
    )


def _index(node: ast.expr, name: str) -> int | None:
    item = f.constant_item(node, name)
    return item if type(item) is int and item >= 0 else None


class _Items(ast.NodeTransformer):
    def __init__(self, name: str, elements: list[ast.expr], *, is_made: bool) -> None:
        self._name = name
        self._elements = elements
        self._is_made = is_made

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        index = _index(node, self._name)
        if index is not None and index < len(self._elements) and isinstance(node.ctx, ast.Load):
            return copy.deepcopy(self._elements[index])
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id != self._name or self._is_made or not isinstance(node.ctx, ast.Load):
            return node
        return ast.Tuple(copy.deepcopy(self._elements), ast.Load())
