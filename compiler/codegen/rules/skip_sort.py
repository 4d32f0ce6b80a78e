"""Batch mode folds records into event-time windows as they arrive, if their order makes no difference.

>>> from opchain.common import WatermarkStrategy
>>> from opchain.datastream.window import TumblingEventTimeWindows
>>> strategy = WatermarkStrategy.for_monotonous_timestamps()
>>> strategy = strategy.with_timestamp_assigner(lambda row, _: row[1])
>>> change(
...     "skip_sort",
...     lambda numbers: numbers.map(lambda x: (x % 7, x))
...     .assign_timestamps_and_watermarks(strategy)
...     .key_by(lambda row: row[0])
...     .window(TumblingEventTimeWindows.of(1000))
...     .reduce(lambda a, b: (a[0], a[1] + b[1])),
...     vertex=1,
...     mode="BATCH",
... )
+ def in_any_order_0(values):
+   return True

A function in batch mode sees the records of a key in the order of time, so its input is read whole and sorted first
(runtime/task/input/batch_input.py). Sums, minima and maxima of ints are the same in any order. Sorting is a quarter of
the CPU time of a job that counts records and finds the greatest price in windows. The input asks the new function for
each batch; batches for which it says no are sorted, and come last.

Every field of the accumulator must be such a fold. Its values must be ints in any batch, also if a sender took its
fallback. Nothing in the loop may have an effect beyond the windows.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.analysis import types_of
from opchain.compiler.codegen.function_source import BUILTINS
from opchain.compiler.codegen.static_types import SentRecords, StaticType, never_raises, type_of
from opchain.runtime.operators.windows.aligned_window_operator import is_aligned
from opchain.runtime.program import operator_specs as specs

if TYPE_CHECKING:
    from opchain.compiler.codegen.form import Form, Function

    Types = dict[str, StaticType | None]

_OURS = ("identify_", "pane_for_", "panes_for_", "refuse_", "skip_")
_TABLES = ("pane_", "panes_")
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def skip_sort(form: Form) -> None:
    """Adds the function that decides whether the order of a batch's records makes no difference."""
    spec = form.program.operators[0].spec
    if not (form.program.is_batch and isinstance(spec, specs.WindowSpec)):
        return
    if not is_aligned(spec, is_batch=True):
        return
    function = next((item for item in form.functions if item.name == "process_0"), None)
    received = form.received.get(0, SentRecords())
    if function is None or not (received.is_certain or received.is_typed):
        return
    guards = function.guards
    is_simple = not any(isinstance(n, ast.NamedExpr) for item in guards for n in ast.walk(item))
    if not is_simple or not _is_fold(form, function):
        form.remark(0, "sorted by time first: its results may depend on the order of records")
        return
    answer: ast.expr = ast.Constant(value=True)
    if guards:
        answer = guards[0] if len(guards) == 1 else ast.BoolOp(ast.And(), list(guards))
    about = "Whether the records of a batch may come in any order"
    body: list[ast.stmt] = f.marked([ast.Return(answer)], 0)
    form.functions.append(f.Function("in_any_order_0", "values", about, body, is_batch=True))
    form.remark(0, "not sorted by time: its results do not depend on the order of records")


def _is_fold(form: Form, function: Function) -> bool:  # noqa: PLR0911 - one for each condition
    """Whether the loop over a batch only folds ints into windows."""
    (loop,) = function.body if len(function.body) == 1 else (None,)
    counts_only = all(ast.unparse(item).startswith("op_0.count(") for item in function.after)
    if not isinstance(loop, ast.For) or function.before or not counts_only:
        return False
    nodes = list(f.nodes(loop.body))
    if not all(_is_harmless(node) for node in nodes if isinstance(node, ast.Call)):
        return False
    blocks = [
        loop.body,
        *(block for item in f.all_statements(loop.body) for block in f.blocks(item)),
    ]
    starts = [
        (block, place)
        for block in blocks
        for place, item in enumerate(block)
        if isinstance(item, ast.Assign) and ast.unparse(item) == "held_0 = pane_0.get(key_0)"
    ]
    if len(starts) != 1:
        return False
    ((block, place),) = starts
    choice, *rest = block[place + 1 :]
    if not isinstance(choice, ast.If) or ast.unparse(choice.test) != "held_0 is None" or not rest:
        return False
    if ast.unparse(rest.pop()) != "pane_0[key_0] = held_0" or (choice.orelse and rest):
        return False
    tuples = _tuples(loop.body)
    first, folded = _value(choice.body, tuples), _value(choice.orelse or rest, {})
    if first is None or folded is None:
        return False
    keys = {"key_0", *(ast.unparse(n.value) for n in loop.body if _sets_key(n))}  # type: ignore[attr-defined]
    fold = _Fold(types_of(function, form), keys, is_reduce=bool(choice.orelse))
    return fold.is_in_any_order(first, folded)


def _sets_key(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "key_0"


def _is_harmless(call: ast.Call) -> bool:
    called = call.func
    if isinstance(called, ast.Name):
        return called.id in BUILTINS or called.id.startswith(_OURS)
    return (
        isinstance(called, ast.Attribute)
        and called.attr == "get"
        and isinstance(called.value, ast.Name)
        and called.value.id.startswith(_TABLES)
    )


def _tuples(block: list[ast.stmt]) -> dict[str, ast.expr]:
    """The variables that are set once, to a tuple display: records with known fields."""
    stores = f.stores(block)
    return {
        ast.unparse(item.targets[0]): item.value
        for item in block
        if isinstance(item, ast.Assign)
        and isinstance(item.value, ast.Tuple)
        and stores.get(ast.unparse(item.targets[0])) == 1
    }


def _value(block: list[ast.stmt], known: dict[str, ast.expr]) -> ast.expr | None:
    """The expression to which statements without branches set `held_0`, in terms of its previous value."""
    for statement in block:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        (target,) = statement.targets
        value = f.replaced(statement.value, known)
        if isinstance(target, ast.Name):
            known[target.id] = value
        elif isinstance(target, ast.Tuple) and all(isinstance(n, ast.Name) for n in target.elts):
            for place, item in enumerate(target.elts):
                part = ast.Subscript(value, ast.Constant(place), ast.Load())
                known[item.id] = part  # type: ignore[attr-defined]
        else:
            return None
    return known.get("held_0")


class _Fold:
    """Checks field by field whether the order of folded values makes a difference."""

    def __init__(self, types: Types, keys: set[str], *, is_reduce: bool) -> None:
        self._types = types
        self._keys = keys
        self._is_reduce = is_reduce

    def is_in_any_order(self, first: ast.expr, folded: ast.expr) -> bool:
        """Whether the order makes no difference for any field. `first` is the initial accumulator."""
        if not isinstance(first, ast.Tuple):
            return self._is_field(first, folded, "held_0")
        if not isinstance(folded, ast.Tuple) or len(folded.elts) != len(first.elts):
            return False
        return all(
            self._is_field(begin, item, f"held_0[{place}]")
            for place, (begin, item) in enumerate(zip(first.elts, folded.elts, strict=True))
        )

    def _is_field(self, first: ast.expr, folded: ast.expr, old: str) -> bool:
        if ast.unparse(folded) == old:
            return _is_int(first) or ast.unparse(first) in self._keys
        new = _combined_with(folded, old)
        if new is None or f.reads(new, "held_0") or type_of(new, self._types) is not int:
            return False
        if not (never_raises(new, self._types) or f.item_variable(new)):
            return False
        if self._is_reduce:  # a reduce begins with the first record
            return ast.unparse(first) == ast.unparse(new)
        return _is_int(first)


def _is_int(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) is int


def _combined_with(folded: ast.expr, old: str) -> ast.expr | None:
    """The other operand of a sum, minimum or maximum with the old value."""
    if isinstance(folded, ast.BinOp) and isinstance(folded.op, ast.Add):
        both = [folded.left, folded.right]
    elif isinstance(folded, ast.Call) and ast.unparse(folded.func) in ("max", "min"):
        both = list(folded.args)
    elif isinstance(folded, ast.IfExp) and isinstance(folded.test, ast.Compare):
        test = folded.test
        both = [folded.body, folded.orelse]
        compared = [test.left, *test.comparators]
        if not isinstance(test.ops[0], _ORDERS) or {*map(ast.unparse, compared)} != {
            *map(ast.unparse, both)
        }:
            return None
    else:
        return None
    others = [item for item in both if ast.unparse(item) != old]
    return others[0] if len(both) == 2 and len(others) == 1 else None  # noqa: PLR2004 - a pair
