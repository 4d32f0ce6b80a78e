"""Window functions that keep the records with the greatest or least value of an expression, and ignore all others.

An example is `reduce(lambda a, b: a if a[1] >= b[1] else b)`. Another one is an aggregate whose accumulator is the list of
the records with the highest price. A sender may omit each record that the function would ignore because of another
record of the batch (rules/fold_windows.py). The window adds the remaining records by the function itself.

The function's code is executed once for each order of the two values, once without an order, and once for the first
record, with symbols instead of records.
"""

from __future__ import annotations

import ast
import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.source_text import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HELD = "held_0"
"""The variable of the contents of a window."""

NEW, OLD, BOTH = "new", "old", "both"
"""What the window keeps after a record: the record, its earlier contents, or both in a list."""

_ORDERS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}

# For the tests of the sender: which orders of the new value to the old one replace the contents.
_TESTS = {(1,): ast.Gt, (0, 1): ast.GtE, (-1,): ast.Lt, (-1, 0): ast.LtE}


@dataclass(frozen=True, slots=True)
class WindowSelection:
    """The records that the windows of a vertex keep.

    Attributes:
        pace: The size, slide and offset of the windows.
        rank: The expression over `value` that is compared.
        replaces: The comparison of a record's rank with the earlier rank for which the record replaces the contents.
        keeps_ties: Whether records of an equal rank are kept too. Then the sender keeps lists.
        ignores_nan: Whether a later record is ignored if no order exists between the two ranks, as for NaN.
    """

    pace: tuple[int, int, int]
    rank: ast.expr
    replaces: type[ast.cmpop]
    keeps_ties: bool
    ignores_nan: bool = False


class _NoSelectionError(Exception):
    """The code does something else than to compare one value and to keep records."""


class _Execution:
    """Executes the code of a window function for one order of the new rank and the old one; None for the first record."""

    def __init__(self, order: float | None, empty: ast.expr, ranks: set[str]) -> None:
        self._order = order
        self._is_list = isinstance(empty, ast.List)
        self._ranks = ranks
        self._known: dict[str, ast.expr] = {}
        self.kept: str | None = OLD

    def run(self, block: Sequence[ast.stmt]) -> None:
        """Executes statements."""
        for statement in block:
            match statement:
                case ast.Pass():
                    pass
                case ast.If(test=test, body=body, orelse=orelse):
                    self.run(body if self._is_true(self._expanded(test)) else orelse)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    if name == HELD:
                        self.kept = self._kept(self._expanded(value))
                    else:
                        self._known[name] = self._expanded(value)
                case ast.Expr(value=ast.Call(func=function, args=[item], keywords=[])):
                    is_append = text_of(function) == f"{HELD}.append" and self._is_list
                    if not is_append or not f.is_load_of(item, "value") or self.kept != OLD:
                        raise _NoSelectionError
                    self.kept = NEW if self._order is None else BOTH
                case _:
                    raise _NoSelectionError

    def _expanded(self, node: ast.expr) -> ast.expr:
        if self.kept != OLD and f.reads(node, HELD) and not f.is_load_of(node, HELD):
            raise _NoSelectionError  # `held_0` is no longer the earlier contents
        return f.replaced(node, self._known)

    def _kept(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.IfExp):
            return self._kept(node.body if self._is_true(node.test) else node.orelse)
        if f.is_load_of(node, HELD):
            return self.kept
        text = text_of(node)
        if text == ("[value]" if self._is_list else "value"):
            return NEW
        if self._is_list and text in (f"{HELD} + [value]", f"[*{HELD}, value]"):
            return NEW if self._order is None else BOTH
        raise _NoSelectionError

    def _is_true(self, test: ast.expr) -> bool:
        if self.kept != OLD and f.reads(test, HELD):
            raise _NoSelectionError
        match test:
            case ast.BoolOp(op=ast.And(), values=values):
                return all(self._is_true(item) for item in values)
            case ast.BoolOp(values=values):
                return any(self._is_true(item) for item in values)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self._is_true(operand)
            case ast.Name(id=name) if name == HELD and self._is_list:
                return self._order is not None
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as op], comparators=[other]):
                is_none = text_of(left) == HELD and text_of(other) == "None"
                if not is_none or self._is_list:
                    raise _NoSelectionError
                return (self._order is None) == isinstance(op, ast.Is)
            case ast.Compare(left=left, ops=[op], comparators=[other]) if type(op) in _ORDERS:
                return self._compared(left, op, other)
        raise _NoSelectionError

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> bool:
        if self._order is None:
            raise _NoSelectionError
        is_reversed = f.reads(left, HELD)
        new, old = (right, left) if is_reversed else (left, right)
        if f.reads(new, HELD) or text_of(old) != text_of(self.rank_of_held(new)):
            raise _NoSelectionError
        self._ranks.add(text_of(new))
        return _ORDERS[type(op)](*((0, self._order) if is_reversed else (self._order, 0)))

    def rank_of_held(self, rank: ast.expr) -> ast.expr:
        """The rank of the contents."""
        return rank_of_held(rank, HELD, is_list=self._is_list)


def rank_of_held(rank: ast.expr, held: str, *, is_list: bool) -> ast.expr:
    """The rank of the contents, from the rank of a record. All records of a list have the same rank."""
    return f.replaced(rank, {"value": f.expression(f"{held}[0]" if is_list else held)})


def selection_of(
    pace: tuple[int, int, int], empty: Sequence[ast.stmt], add: Sequence[ast.stmt]
) -> WindowSelection | None:
    """The selection of a window function. None if the function does anything else.

    Args:
        pace: The size, slide and offset of the windows.
        empty: The statements that set `HELD` for a window without records. Empty if the first record is the first contents.
        add: The statements that add a later record.
    """
    contents: ast.expr = ast.Constant(None)
    if empty:
        match empty:
            case [ast.Assign(targets=[ast.Name(id=name)], value=value)] if name == HELD:
                contents = value
            case _:
                return None
        if text_of(contents) not in ("None", "[]"):
            return None
    ranks: set[str] = set()
    kept: dict[float | None, str | None] = {}
    try:
        for order in (None, -1, 0, 1, math.nan) if empty else (-1, 0, 1, math.nan):
            execution = _Execution(order, contents, ranks)
            execution.run(add)
            kept[order] = execution.kept
    except _NoSelectionError:
        return None
    replacing = tuple(order for order in (-1, 0, 1) if kept[order] == NEW)
    is_selection = (
        kept.get(None, NEW) == NEW
        and replacing in _TESTS
        and len(ranks) == 1
        and "value" not in ranks  # the greatest or least value itself is a fold
        and BOTH not in (kept[-1], kept[1])
    )
    if not is_selection:
        return None
    return WindowSelection(
        pace,
        f.expression(ranks.pop()),
        _TESTS[replacing],
        keeps_ties=kept[0] == BOTH,
        ignores_nan=kept[math.nan] == OLD,
    )
