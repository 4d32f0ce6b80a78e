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
each batch; batches for which it returns False are sorted and processed last. Partial results of senders (fold_windows.py)
are not sorted either.

Every field of the accumulator must be such a fold. Its values must be ints in any batch, also if a sender took its
fallback. Nothing in the loop may have an effect beyond the windows.
"""

from __future__ import annotations

import ast

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.analysis import types_of
from opchain.compiler.codegen.function_source import calls_builtin
from opchain.compiler.codegen.internal_functions import TABLES, Trait, has
from opchain.compiler.codegen.names import stem
from opchain.compiler.codegen.source_text import text_of
from opchain.compiler.codegen.static_types import SentRecords
from opchain.compiler.codegen.window_folds import IN_ANY_ORDER, fold_of
from opchain.runtime.operators.windows.aligned_window_operator import is_aligned
from opchain.runtime.program import operator_specs as specs


def skip_sort(form: f.Form) -> None:
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
    body: f.Lines = f.marked([ast.Return(answer)], 0)
    form.functions.append(f.Function("in_any_order_0", "values", about, body, is_batch=True))
    form.remark(0, "not sorted by time: its results do not depend on the order of records")


def _is_fold(form: f.Form, function: f.Function) -> bool:
    """Whether the loop over a batch only folds ints into windows."""
    (loop,) = function.body if len(function.body) == 1 else (None,)
    counts_only = all(text_of(item).startswith("op_0.count(") for item in function.after)
    if not isinstance(loop, ast.For) or function.before or not counts_only:
        return False
    nodes = list(f.nodes(loop.body))
    if not all(_is_harmless(node) for node in nodes if isinstance(node, ast.Call)):
        return False
    spec = form.program.operators[0].spec
    assert isinstance(spec, specs.WindowSpec)
    fold = fold_of(spec, loop.body)
    if fold is None:
        return False
    keys = {"key_0", *(text_of(n.value) for n in loop.body if _sets_key(n))}  # type: ignore[attr-defined]
    kinds = fold.kinds(types_of(function, form), keys)
    return kinds is not None and IN_ANY_ORDER.issuperset(kinds)


def _sets_key(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and text_of(statement.targets[0]) == "key_0"


def _is_harmless(call: ast.Call) -> bool:
    called = call.func
    if isinstance(called, ast.Name):
        return calls_builtin(call) or has(called.id, Trait.IN_ANY_ORDER)
    return (
        isinstance(called, ast.Attribute)
        and called.attr == "get"
        and isinstance(called.value, ast.Name)
        and stem(called.value.id) in TABLES
    )
