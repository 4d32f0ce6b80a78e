"""Calls of functions with several statements, taken out of an expression.

    row = {"at": value["at"], "level": level_of(value)}

becomes

    part = value["at"]
    ...                                     the body of level_of, which sets `result`
    row = {"at": part, "level": result}

Python evaluates an expression from left to right, so variables hold what it evaluates before the call. A call that may
not run, or that runs several times, stays: one within `x if y else z`, for example.
"""

from __future__ import annotations

import ast
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opchain.compiler.codegen.inlining.scope import Scope

    Part = tuple[Any, Any]
    """A list or a dictionary, and the place of an expression in it."""

_FIELDS: dict[Any, str] = {
    **dict.fromkeys((ast.Assign, ast.AugAssign, ast.Expr), "value"),
    ast.If: "test",
    ast.For: "iter",
    f.ForEachResult: "iterable",
}
"""The field with the expression that a statement evaluates first."""


class Hoisting:
    """Takes calls out of the expressions of statements.

    Args:
        computed: Returns the statements of the function that an expression calls, and an expression for the result. No
            statements if the call stays.
        is_fixed: Whether looking up a method, or a name, has the same result after the call.
    """

    def __init__(
        self,
        scope: Scope,
        operator: int,
        computed: Callable[[ast.expr], tuple[f.Lines, ast.expr]],
        is_fixed: Callable[[ast.expr], bool],
    ) -> None:
        self._scope = scope
        self._operator = operator
        self._computed = computed
        self._is_fixed = is_fixed

    def before(self, statement: ast.stmt) -> f.Lines:
        """The statements before a statement, whose expression then has variables in place of the calls."""
        field = _FIELDS.get(type(statement))
        if field is None or not isinstance(getattr(statement, "target", f.name("")), ast.Name):
            return []
        if any(isinstance(node, ast.NamedExpr) for node in f.walk(getattr(statement, field))):
            return []  # a variable may have another value after the call
        return self._hoisted(vars(statement), field)

    def _hoisted(self, container: Any, place: Any) -> f.Lines:
        parts = list(self._parts(container[place]))
        found = [self._hoisted(*part) for part in parts]
        last = max((number for number, lines in enumerate(found) if lines), default=0)
        for (inner, where), lines in zip(parts[:last], found, strict=False):
            if not f.is_simple(0, inner[where]):
                variable = self._scope.fresh("part", self._operator)
                lines.append(f.let(variable, inner[where], self._operator))
                inner[where] = f.name(variable)
        lines, container[place] = self._computed(container[place])
        return f.flattened([*found, lines])

    def _parts(self, node: ast.expr) -> Iterator[Part]:
        """The parts of an expression that are evaluated first, in this order, and certainly once."""
        match node:
            case ast.Tuple(elts=items) | ast.List(elts=items):
                yield from _items(items)
            case ast.Dict(keys=keys, values=values):
                plain = takewhile(lambda key: isinstance(key, ast.Constant), keys)
                yield from ((values, place) for place, _ in enumerate(plain))
            case ast.Call(func=called, args=items, keywords=keywords):
                if self._is_fixed(called):
                    yield from _items(items)
                    if not any(isinstance(item, ast.Starred) for item in items):
                        named = takewhile(lambda item: item.arg, keywords)
                        yield from ((vars(item), "value") for item in named)
                elif isinstance(called, ast.Attribute):
                    yield vars(called), "value"
            case ast.ListComp(generators=[first, *_]) | ast.SetComp(generators=[first, *_]):
                yield vars(first), "iter"
            case ast.JoinedStr(values=values):
                formatted = (item for item in values if isinstance(item, ast.FormattedValue))
                yield from ((vars(item), "value") for item in [next(formatted, None)] if item)
            case _:
                yield from evaluated_first(node)


def evaluated_first(node: ast.expr) -> Iterator[Part]:
    """The operands that Python always evaluates, in this order."""
    match node:
        case ast.BinOp():
            yield from ((vars(node), side) for side in ("left", "right"))
        case ast.Compare(comparators=comparators):
            yield from ((vars(node), "left"), (comparators, 0))
        case ast.BoolOp(values=values):
            yield values, 0
        case ast.IfExp():
            yield vars(node), "test"
        case ast.Subscript():
            yield from ((vars(node), part) for part in ("value", "slice"))
        case ast.UnaryOp():
            yield vars(node), "operand"
        case ast.Attribute():
            yield vars(node), "value"


def _items(items: Sequence[ast.expr]) -> Iterator[Part]:
    plain = takewhile(lambda item: not isinstance(item, ast.Starred), items)
    return ((items, place) for place, _ in enumerate(plain))
