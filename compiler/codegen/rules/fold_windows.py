"""Records for windows are folded before the exchange, per key and slice of event time, if the fold is associative.

>>> from opchain.common import WatermarkStrategy
>>> from opchain.datastream.window import TumblingEventTimeWindows
>>> strategy = WatermarkStrategy.for_monotonous_timestamps()
>>> strategy = strategy.with_timestamp_assigner(lambda row, _: row[1])
>>> change(
...     "fold_windows",
...     lambda numbers: numbers.map(lambda x: (x % 7, x))
...     .set_parallelism(1)
...     .assign_timestamps_and_watermarks(strategy)
...     .set_parallelism(1)
...     .key_by(lambda row: row[0])
...     .window(TumblingEventTimeWindows.of(1000))
...     .reduce(lambda a, b: (a[0], a[1] + b[1])),
...     vertex=1,
... )
+ slice_to_0 = None
-   column_0_0.append(item_0_0)
-   column_0_1.append(value)
-   timestamps_0.append(timestamp_1)
+   start_to_0 = timestamp_1 - timestamp_1 % 1000
+   if start_to_0 != slice_to_0:
+     slice_to_0, run_to_0 = run_for_to_0(start_to_0)
+   if run_to_0 is None:
+     column_0_0.append(item_0_0)
+     column_0_1.append(value)
+     timestamps_0.append(timestamp_1)
+     continue
+   seen_to_0.append(item_0_0)
+   held_to_0 = run_to_0.get(item_0_0)
+   run_to_0[item_0_0] = (item_0_0, value) if held_to_0 is None else (held_to_0[0], held_to_0[1] + value)

The boundaries of all windows cut time into slices. So a sender can fold the records of a slice, and the window operator
merges the results (runtime/operators/window_folds.py). Associative are sums, minima and maxima of ints, the first and the
last record, and tuples of them. Records whose key is not plain are sent as they are, and so are all records if most keys
come once in a batch. The aggregate's own `merge` is not used: without merging windows, programs may leave it empty.
"""

from __future__ import annotations

import ast
import math
from functools import partial
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.analysis import types_of
from opchain.compiler.codegen.displays import FieldReads, display_of
from opchain.compiler.codegen.static_types import type_of
from opchain.compiler.codegen.window_folds import HELD, WindowFold
from opchain.runtime.program.vertex_program import FIRST_OUTPUT, NO_OPERATOR
from opchain.runtime.state.keys.key_identity import PLAIN_CLASSES

if TYPE_CHECKING:
    from opchain.compiler.codegen.form import Form, Function


def fold_windows(form: Form) -> None:
    """Rewrites the sends of loops over batches to windows that can be folded, where an output has one."""
    for number, fold in list(form.window_folds.items()):
        sends = [
            (function, item)
            for function in form.functions
            for item in f.all_statements(function.body)
            if isinstance(item, f.Send)
            and item.number == number
            and not function.name.startswith("fallback_")
        ]
        lines = _folded(form, *sends[0], fold) if len(sends) == 1 else None
        if lines is None:
            del form.window_folds[number]
            continue
        ((function, send),) = sends
        rewrite = partial(_replaced, send, lines)
        function.body = f.rewritten(function.body, rewrite)
        function.before += f.statements(f"slice_to_{number} = None", NO_OPERATOR)
        form.remark(f.operator_of(send), "folded into windows before the exchange")


def _replaced(send: f.Send, lines: list[ast.stmt], item: ast.stmt) -> list[ast.stmt] | None:
    return lines if item is send else None


def _folded(  # noqa: C901 - one branch for each form of a record
    form: Form, function: Function, send: f.Send, fold: WindowFold
) -> list[ast.stmt] | None:
    """The statements that fold a record. None if the fold is not associative for its type."""
    number, time = send.number, send.time
    # Timestamps that this chain assigns are ints. Others may be None.
    is_timed = isinstance(time, ast.Name) and time.id.startswith("timestamp_")
    if not (is_timed and function.name.startswith("process_") and send.key is not None):
        return None
    types = types_of(function, form)
    operator, where = f.operator_of(send), FIRST_OUTPUT - number
    lines = [f.let(f"key_to_{number}", send.key, where)]
    display = display_of(send.value, form.constants)
    if display is not None and display.shape is None:
        elements: list[ast.expr] = []
        for place, item in enumerate(display.elements):
            if isinstance(item, (ast.Name, ast.Constant)):
                elements.append(item)
                continue
            elements.append(f.name(f"item_to_{number}_{place}"))
            lines.append(f.let(f"item_to_{number}_{place}", item, operator))
            types[f"item_to_{number}_{place}"] = type_of(item, types)
        send.value = ast.Tuple(elements, ast.Load())
        reads = FieldReads(display, "value", elements, send.value)
        first, folded = (reads.visit(f.replaced(item, {})) for item in (fold.first, fold.folded))
    elif isinstance(send.value, ast.Name):
        first, folded = (
            f.replaced(item, {"value": send.value}) for item in (fold.first, fold.folded)
        )
    else:
        return None
    fold = WindowFold(fold.pace, first, folded, fold.is_reduce)
    kinds = fold.kinds(types, set())
    if kinds is None:
        return None
    if not fold.is_reduce:
        first = _after_first(first, folded, kinds)
        if first is None:
            return None
    kinds = tuple("first" if kind == "same" else kind for kind in kinds)
    is_count = (
        kinds == ("sum",) and ast.unparse(first) == "1" and ast.unparse(folded) == f"{HELD} + 1"
    )
    if is_count:
        kinds = ("count",)
    size, slide, offset = fold.pace
    names = {
        name: form.names.bind(f"{name}_to_{number}", "window_folds", number, name, kinds, size)
        for name in ("seen", "run_for", "end_run")
    }
    key, run, slice_, now = (f"{word}_to_{number}" for word in ("key", "run", "slice", "start"))
    since = f"({time.id} - {offset})" if offset else time.id  # type: ignore[union-attr]
    lines += f.statements(
        f"{now} = {time.id} - {since} % {math.gcd(size, slide)}\n"  # type: ignore[union-attr]
        f"if {now} != {slice_}:\n"
        f"    {slice_}, {run} = {names['run_for']}({now})",
        where,
    )
    key_type = type_of(send.key, types)
    if key_type not in PLAIN_CLASSES:
        plain = form.names.bind(f"plain_keys_to_{number}", "value", frozenset(PLAIN_CLASSES))
        lines += f.statements(
            f"if {run} is not None and {key}.__class__ not in {plain}:\n"
            f"    {slice_}, {run} = {names['end_run']}()",
            where,
        )
    held = f"held_to_{number}"
    folds = f.statements(f"{names['seen']}.append({key})", where)
    if not is_count:
        later = f.replaced(folded, {HELD: f.name(held)})
        folds += f.statements(
            f"{held} = {run}.get({key})\n{run}[{key}] = first if {held} is None else later",
            where,
            first=first,
            later=later,
        )
    send.key = f.name(key)
    return f.with_comment(
        [*lines, *f.marked([ast.If(f.expression(f"{run} is None"), [send], folds)], where)],
        (f.comment_of(send) or "") + ", folded here",
    )


def _after_first(first: ast.expr, folded: ast.expr, kinds: tuple[str, ...]) -> ast.expr | None:
    """The accumulator after the first record. None if merging would add the initial value twice."""
    if kinds[0] != "tuple":
        return _after(first, folded, HELD, kinds[0])
    assert isinstance(first, ast.Tuple)
    assert isinstance(folded, ast.Tuple)
    fields = [
        _after(begin, item, f"{HELD}[{place}]", kind)
        for place, (begin, item, kind) in enumerate(
            zip(first.elts, folded.elts, kinds[1:], strict=True)
        )
    ]
    return None if None in fields else ast.Tuple(fields, ast.Load())  # type: ignore[arg-type]


def _after(first: ast.expr, folded: ast.expr, old: str, kind: str) -> ast.expr | None:
    if kind != "sum":
        found: ast.expr = _Reads(old, first).visit(f.replaced(folded, {}))  # type: ignore[assignment]
        return found
    if ast.unparse(first) != "0":
        return None
    assert isinstance(folded, ast.BinOp)
    return folded.right if ast.unparse(folded.left) == old else folded.left


class _Reads(ast.NodeTransformer):
    """Replaces the old value by an expression."""

    def __init__(self, old: str, new: ast.expr) -> None:
        self._old = old
        self._new = new

    def visit(self, node: ast.AST) -> ast.AST:
        """The node, or its replacement."""
        if isinstance(node, ast.expr) and ast.unparse(node) == self._old:
            return f.replaced(self._new, {})
        self.generic_visit(node)
        return node
