"""`sum`, `min`, `max`, `min_by` and `max_by` of a field are written out as the reduces that they stand for.

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

Only for records whose fields are known. For other records, the aggregation is called.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.analysis import elements_of, types_of
from opchain.compiler.codegen.displays import Display, display_of
from opchain.compiler.codegen.static_types import type_of
from opchain.runtime.functions.key_selectors import FieldAggregation
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from opchain.compiler.codegen.static_types import Types

_COMBINED = {"sum": "old + new", "min": "min(old, new)", "max": "max(old, new)"}


def write_aggregations(form: f.Form) -> None:
    """Rewrites calls of aggregations in folds."""
    for function in form.functions:
        folds = [
            (item, aggregation)
            for item in f.all_statements(function.body)
            if isinstance(item, f.Fold)
            and item.reduced is not None
            and type(aggregation := form.aggregations.get(f.called(item.reduced)))
            is FieldAggregation
        ]
        if folds:
            types, values = types_of(function, form), f.values_set_once(function.body)
            for fold, aggregation in folds:
                _write(form, fold, aggregation, _record(form, fold, types, values))


def _record(
    form: f.Form, fold: f.Fold, types: Types, values: dict[str, ast.expr]
) -> Display | None:
    """The fields and the class of the records that a fold gets."""
    known = elements_of(type_of(fold.value, types))
    if known is not None:
        return Display([ast.Constant(None) for _ in known.items])
    value = fold.value
    while isinstance(value, ast.Name) and value.id in values:
        value = values[value.id]
    return display_of(value, form.constants)


def _position(display: Display, field: int | str) -> int | None:
    """The place of the field in a record."""
    names = () if display.shape is None else display.shape.names
    if isinstance(field, str):
        return names.index(field) if field in names else None
    has_places = display.shape is None or not display.is_mutable or display.shape.kind is Row
    return field if has_places and 0 <= field < len(display.elements) else None


def _write(
    form: f.Form, fold: f.Fold, aggregation: FieldAggregation, display: Display | None
) -> None:
    position = None if display is None else _position(display, aggregation.field)
    if display is None or position is None or display.names is not None:
        return
    fold.first = None  # the record has the field
    value, previous = fold.value, f.name(fold.previous)
    old, new = (display.read(record, position) for record in (previous, value))
    if aggregation.kind in _COMBINED:
        items = [display.read(previous, place) for place in range(len(display.elements))]
        items[position] = f.expression(_COMBINED[aggregation.kind], old=old, new=new)
        fold.reduced = replace(display, elements=items).expression(form)
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
    form.remark(notes.operator(fold), f"{aggregation!r} is written out")
