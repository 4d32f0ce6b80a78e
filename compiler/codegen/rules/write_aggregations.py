"""`sum`, `min`, `max`, `min_by` and `max_by` of a field of tuples are written out as the reduces that they stand for.

>>> change(
...     "write_aggregations",
...     lambda numbers: numbers.map(lambda x: (x % 7, x**2)).key_by(lambda row: row[0]).max(1),
...     vertex=1,
... )
-   value = (field_0, field_1)
-     value_0 = first_0(value)
+     value_0 = (field_0, field_1)
-     value_0 = comparable_aggregator_0(previous_0, value)
+     value_0 = (previous_0[0], max(previous_0[1], field_1))

Only for tuples whose length is known: of other records the aggregation itself finds out what has the field.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.analysis import elements_of, types_of
from opchain.runtime.functions.key_selectors import FieldAggregation

if TYPE_CHECKING:
    from opchain.compiler.codegen.form import Form
    from opchain.compiler.codegen.static_types import StaticType

_COMBINED = {"sum": "old + new", "min": "min(old, new)", "max": "max(old, new)"}


def write_aggregations(form: Form) -> None:
    """Rewrites calls of aggregations in folds."""
    for function in form.functions:
        types = types_of(function, form)
        for statement in f.all_statements(function.body):
            if isinstance(statement, f.Fold):
                _write(form, statement, types.get(_record(statement)))


def _record(fold: f.Fold) -> str:
    return fold.value.id if isinstance(fold.value, ast.Name) else ""


def _write(form: Form, fold: f.Fold, kind: StaticType | None) -> None:
    record = elements_of(kind)
    call = fold.reduced
    if record is None or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return
    aggregation = form.aggregations.get(call.func.id)
    if type(aggregation) is not FieldAggregation:
        return
    field = aggregation.field
    if type(field) is not int or not 0 <= field < len(record.items):
        return
    fold.first = None  # the record has the field
    value, previous = fold.value, f.name(fold.previous)
    old, new = (ast.Subscript(item, ast.Constant(field), ast.Load()) for item in (previous, value))
    if aggregation.kind in _COMBINED:
        items: list[ast.expr] = [
            ast.Subscript(previous, ast.Constant(position), ast.Load())
            for position in range(len(record.items))
        ]
        items[field] = f.expression(_COMBINED[aggregation.kind], old=old, new=new)
        fold.reduced = ast.Tuple(items, ast.Load())
    else:
        is_better = ("<" if aggregation.kind == "min_by" else ">") + "=" * (
            not aggregation.is_first
        )
        fold.reduced = f.expression(
            f"value if new {is_better} old else previous",
            value=value,
            previous=previous,
            old=old,
            new=new,
        )
    form.remark(f.operator_of(fold), f"{aggregation!r} is written out")
