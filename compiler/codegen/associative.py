"""Whether a reduce function is associative, as its source shows.

Associative is a function that treats each field of the records alone, and combines the two values of a field by `+`, `*`,
`|`, `&`, `^`, `and`, `or`, `max` or `min`, keeps one of them, or sets a constant:

    lambda a, b: (a[0], a[1] + b[1])        lambda a, b: Row(word=a.word, n=a.n + b.n)      lambda a, b: max(a, b)

So is one that chooses between the two records, or the two values of a field, by an order of them:
`a if a.price >= b.price else b`. A function that counts, `(a[0], a[1] + 1)`, is not associative: its second record may
be the result of other records. The same is true for one that chooses the value of a field by another field, because the
result need not have the other field of the chosen record.
"""

from __future__ import annotations

import ast
import builtins
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.displays import MAKERS, Display, display_of
from opchain.compiler.codegen.function_source import (
    Definition,
    Refused,
    definition_of,
    is_literal,
    plain_function,
)
from opchain.compiler.codegen.source_text import text_of
from opchain.runtime.functions.key_selectors import FieldAggregation

if TYPE_CHECKING:
    from collections.abc import Callable

_KNOWN: tuple[Any, ...] = (max, min, operator.add, operator.mul, operator.concat)
_KNOWN += (operator.or_, operator.and_, operator.xor)
_OPERATORS = (ast.Add, ast.Mult, ast.BitOr, ast.BitAnd, ast.BitXor)
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_READS: tuple[type[ast.AST], ...] = (ast.Name, ast.Subscript, ast.Attribute, ast.Constant)
_READS += (ast.Tuple, ast.UnaryOp, ast.expr_context, ast.unaryop)


def is_associative(function: Any) -> bool:
    """Whether records may be combined in groups, and the results of the groups afterwards."""
    if isinstance(function, FieldAggregation):
        return True
    called, owner = plain_function(function, "reduce")
    if any(called is known for known in _KNOWN):
        return True
    try:
        definition = definition_of(called)
    except Refused:
        return False
    parameters = definition.parameters[owner is not None :]
    if len(parameters) != 2:  # noqa: PLR2004 - the result so far, and a record
        return False
    return _Reduce(definition, *parameters).is_associative()


@dataclass(frozen=True, slots=True)
class _Reduce:
    definition: Definition
    old: str
    new: str

    def is_associative(self) -> bool:
        """Whether its statements show it."""
        *changes, last = self.definition.body
        match last:
            case ast.Return(value=ast.Name(id=name)) if name == self.old:
                if changes and self._change_fields(changes):
                    return True
        returned = _returned(self.definition.body, {})
        if isinstance(returned, ast.List):
            returned = ast.Tuple(returned.elts, ast.Load())
        if returned is None or f.called(returned) in MAKERS:
            return False
        display = display_of(returned, self.definition.function.__globals__)
        if display is None:
            return self._combines(returned, f.is_load_of)
        return all(
            is_literal(element) or self._combines(element, _field(display, place))
            for place, element in enumerate(display.elements)
        )

    def _change_fields(self, changes: f.Lines) -> bool:
        """Whether statements such as `a[1] += b[1]` change different fields, each associatively, or the record once."""
        changed: set[str] = set()
        kinds: set[Any] = set()
        for change in changes:
            match change:
                case ast.AugAssign(target=target, op=op, value=added):
                    value: ast.expr = ast.BinOp(target, op, added)
                case ast.Assign(targets=[ast.Attribute() | ast.Subscript() as target], value=value):
                    pass
                case _:
                    return False
            match target:
                case ast.Name(id=record):
                    key: Any = None
                case ast.Attribute(value=ast.Name(id=record), attr=key):
                    pass
                case ast.Subscript(
                    value=ast.Name(id=record), slice=ast.Constant(value=int() | str() as key)
                ):
                    pass
                case _:
                    return False
            if record != self.old or not self._combines(value, _same_field(target, self.old)):
                return False
            kinds.add((type(target), type(key)))
            changed.add(text_of(target))
        return len(kinds) == 1 and len(changed) == len(changes)

    def _combines(self, node: ast.expr, is_value: Callable[[ast.AST, str], bool]) -> bool:
        """Whether an expression combines the old and the new value of a field, or is one of them.

        Args:
            node: The expression.
            is_value: Whether an expression is the value of this field in a record.
        """

        def are_both(parts: list[ast.expr]) -> bool:
            pairs = ((self.old, self.new), (self.new, self.old))
            return any(
                len(parts) == len(pair) and all(map(is_value, parts, pair)) for pair in pairs
            )

        match node:
            case ast.BinOp(op=op):
                return isinstance(op, _OPERATORS) and are_both([node.left, node.right])
            case ast.BoolOp():
                return are_both(node.values)
            case ast.Call(func=ast.Name(id="max" | "min" as name)):
                return self._is_builtin(name) and are_both(node.args) and self._has_key(node)
            case ast.IfExp(test=ast.Compare(ops=[op]) as test):
                is_order = isinstance(op, _ORDERS) and self._compares(test, is_value)
                return is_order and are_both([node.body, node.orelse])
        return is_value(node, self.old) or is_value(node, self.new)

    def _compares(self, test: ast.Compare, is_value: Callable[[ast.AST, str], bool]) -> bool:
        """Whether a comparison compares the same of both values."""

        def only_reads_value(node: ast.AST) -> bool:
            """Whether an expression only reads, and of the records only the value."""
            if any(is_value(node, record) for record in (self.old, self.new)):
                return True
            is_record = isinstance(node, ast.Name) and node.id in (self.old, self.new)
            parts = ast.iter_child_nodes(node)
            return not is_record and isinstance(node, _READS) and all(map(only_reads_value, parts))

        sides = [test.left, *test.comparators]
        read = [f.names_in([ast.Expr(side)]) & {self.old, self.new} for side in sides]
        if sorted(map(sorted, read)) != sorted(([self.old], [self.new])) or not all(
            map(only_reads_value, sides)
        ):
            return False
        one, other = (text_of(f.replaced(side, {self.old: f.name(self.new)})) for side in sides)
        return one == other

    def _has_key(self, call: ast.Call) -> bool:
        """Whether `max` or `min` has no other arguments than a key that only reads."""
        return all(
            each.arg == "key"
            and isinstance(each.value, ast.Lambda)
            and all(isinstance(node, _READS) for node in ast.walk(each.value.body))
            for each in call.keywords
        )

    def _is_builtin(self, name: str) -> bool:
        function = self.definition.function
        is_hidden = name in function.__globals__ or name in function.__code__.co_freevars
        return hasattr(builtins, name) and not is_hidden


def _field(display: Display, place: int) -> Callable[[ast.AST, str], bool]:
    return lambda node, record: display.field_read(node, record) == place


def _same_field(target: ast.expr, old: str) -> Callable[[ast.AST, str], bool]:
    return lambda node, record: text_of(node) == text_of(f.replaced(target, {old: f.name(record)}))


def _returned(body: f.Lines, known: dict[str, ast.expr]) -> ast.expr | None:
    """The value that statements return, in terms of the parameters. None if they do anything else than computing it."""
    for place, statement in enumerate(body):
        match statement:
            case ast.Return(value=ast.expr() as value):
                return f.replaced(value, known)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                known = {**known, name: f.replaced(value, known)}
            case ast.If(test=test):
                rest = body[place + 1 :]
                taken, other = (
                    _returned([*branch, *rest], known)
                    for branch in (statement.body, statement.orelse)
                )
                if taken is None or other is None:
                    return None
                return ast.IfExp(f.replaced(test, known), taken, other)
            case _:
                return None
    return None
