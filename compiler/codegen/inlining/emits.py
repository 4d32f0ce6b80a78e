"""The downstream code in place of what an inlined function emits."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.function_source import Definition, Refused
from opchain.runtime.types.output_tag import OutputTag

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opchain.compiler.codegen.inlining.scope import Scope


MOST_COPIES = 30
"""Statements downstream of an operator that emits at several places; with more it stays a call."""

_PAIR = 2
_TAG = "OutputTag"


class Places:
    """The places at which an inlined function emits. Each has a copy of the downstream code.

    The copies have separate variables, except if the input is a sequence of numbers: then the rule `use_arrays` turns
    them into one loop.
    """

    def __init__(self, scope: Scope, statement: f.ForEachResult, *, is_nullable: bool) -> None:
        self.count = self.copied = 0
        self._emitted: set[str] = set()
        self._scope = scope
        self._has_numbers = scope.function.types.get("value") is int
        self._statement = statement
        self._is_nullable = is_nullable

    def _another(self) -> f.ForEachResult:
        self.count += 1
        parts: dict[str, ast.expr] = {}
        if self.count > 1 and not self._has_numbers:
            parts = self._scope.others([ast.Expr(self._statement.target), *self._statement.body])
        return f.replaced(self._statement, parts)

    def loop_over(self, iterable: ast.expr) -> f.Lines:
        """The code that emits the items of an iterable."""
        items = iterable.elts if isinstance(iterable, (ast.Tuple, ast.List)) else None
        if items == []:
            return []
        if items is not None and len(items) == 1 and not isinstance(items[0], ast.Starred):
            return self.emit(items[0])
        emits = self._another()
        emits.iterable = iterable
        emits.nullable = self._is_nullable and not isinstance(iterable, _LISTS)
        return [emits]

    def emit(self, value: ast.expr) -> f.Lines:
        """The code that emits a value."""
        statement = self._statement
        tag = _tag_of(value, self._scope.form.constants)
        if statement.side is not None and tag is not None:
            assert isinstance(value, ast.Tuple)
            if tag.tag_id in statement.by_tag:
                return self._emit_tagged(tag.tag_id, value.elts[1])
            if not statement.side:  # nobody reads any side output
                return f.marked(evaluated(value.elts[1]), notes.operator(statement))
            return [f.replaced(item, {statement.target.id: value}) for item in statement.side]
        emits, operator = self._another(), notes.operator(statement)
        target = emits.target.id
        lines = [f.let(target, value, operator)]
        if emits.side is None or not _may_be_tagged(value):
            return [*lines, *emits.body]
        test = f.expression(f.is_tagged(target))
        if isinstance(value, ast.Tuple) and _has_no_star(value):  # the pair need not be made
            test = f.expression(f"isinstance({target}[0], {_TAG})")
            self._scope.form.names.bind(_TAG, "shared")
        tagged = ast.If(test, emits.side, emits.body)
        if not emits.side:
            tagged = ast.If(ast.UnaryOp(ast.Not(), test), emits.body, [])
        notes.asks.set(tagged, "tag")
        return f.marked([*lines, tagged], operator)

    def _emit_tagged(self, tag: str, value: ast.expr) -> f.Lines:
        """The code that emits a value to a side output."""
        variable, lines = self._statement.by_tag[tag]
        parts: dict[str, ast.expr] = {}
        if tag in self._emitted:
            parts = self._scope.others([ast.Expr(f.target(variable)), *lines])
            self.copied += sum(1 for _ in f.all_statements(lines))
        self._emitted.add(tag)
        first = f.let(variable, value, notes.operator(self._statement))
        return [f.replaced(item, parts) for item in (first, *lines)]


def evaluated(value: ast.expr) -> f.Lines:
    """The statement that evaluates an expression whose value is not used."""
    return [] if isinstance(value, (ast.Constant, ast.Name)) else [ast.Expr(value)]


def each_yield(body: f.Lines) -> ast.expr | None:
    """X of a body that is `yield from X`, or `for y in X: yield y`."""
    match body:
        case [ast.Expr(value=ast.YieldFrom(value=items))]:
            return items
        case [
            ast.For(
                target=ast.Name(id=name),
                iter=items,
                body=[ast.Expr(value=ast.Yield(value=ast.Name(id=item)))],
            )
        ] if item == name:
            return items
    return None


def is_iterable(node: ast.expr) -> bool:
    """Whether looping over the value of this expression cannot fail."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name in ("range", "enumerate", "zip", "sorted", "reversed", "list")
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in ("split", "rsplit", "splitlines", "items", "values")
    return isinstance(node, _LISTS)


_LISTS = (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp)


def with_yields(
    body: f.Lines,
    emit: Callable[[ast.expr], f.Lines],
    loop_over: Callable[[ast.expr], f.Lines],
    definition: Definition,
) -> f.Lines:
    """A generator's body with the downstream code in place of `yield`."""

    def rewrite(statement: ast.stmt) -> f.Lines | None:
        match statement:
            case ast.Expr(value=ast.Yield(value=value)):
                return emit(value or ast.Constant(None))
            case ast.Expr(value=ast.YieldFrom(value=items)):
                return loop_over(items)
        if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in f.own_nodes(statement)):
            raise Refused(
                f"{definition.name} uses the value of a yield; yield in a statement of its own"
            )
        return None

    return f.rewritten(body, rewrite)


def with_appends(body: f.Lines, records: str, definition: Definition) -> f.Lines:
    """A body that appends to a list what it collected with a collector of the same name."""
    appends = 0

    def rewrite(statement: ast.stmt) -> f.Lines | None:
        nonlocal appends
        method, arguments = f.method_called(statement, records)
        if method == "close" and not arguments:
            return []
        if method == "collect" and len(arguments) == 1:
            statement.value.func.attr = "append"  # type: ignore[attr-defined]
            appends += not isinstance(arguments[0], ast.Starred)
        return None

    body = f.rewritten(body, rewrite)
    if f.reads(body, records) != appends:
        raise Refused(
            f"{definition.name} uses its collector for more than collect(); call collect() in statements of its own"
        )
    return body


def _may_be_tagged(value: ast.expr) -> bool:
    """Whether a value may be a (tag, record) pair."""
    if isinstance(value, ast.Tuple):
        if not _has_no_star(value):
            return True
        return len(value.elts) == _PAIR and _may_be_tag(value.elts[0])
    return _may_be_tuple(value)


def _may_be_tuple(value: ast.expr) -> bool:
    """Whether a value may be a tuple. Most operations are arithmetic, and a test of each result takes time."""
    if isinstance(value, ast.BinOp):
        is_sum = isinstance(value.op, ast.Add)
        return is_sum and _may_be_tuple(value.left) and _may_be_tuple(value.right)
    return not isinstance(
        value, (ast.Constant, ast.JoinedStr, ast.Dict, ast.List, ast.Compare, ast.UnaryOp)
    )


def _has_no_star(value: ast.Tuple) -> bool:
    return not any(isinstance(item, ast.Starred) for item in value.elts)


def _tag_of(value: ast.expr, constants: Mapping[str, Any]) -> OutputTag[Any] | None:
    """The tag of a value that is a pair of a tag, by its global name, and a record."""
    if not isinstance(value, ast.Tuple) or len(value.elts) != _PAIR:
        return None
    tag, record = value.elts
    known = constants.get(tag.id) if isinstance(tag, ast.Name) else None
    return known if isinstance(known, OutputTag) and not isinstance(record, ast.Starred) else None


def _may_be_tag(value: ast.expr) -> bool:
    return not isinstance(
        value, (ast.Constant, ast.BinOp, ast.JoinedStr, ast.Dict, ast.List, ast.Compare, ast.Tuple)
    )
