"""Batch mode: where records are combined before an exchange, keeps only the fields that vary, or a count.

>>> change(
...     "count_keys",
...     lambda lines: lines.map(lambda line: (line, 1)).key_by(lambda row: row[0]).sum(1),
...     mode="BATCH",
... )
- for value in values:
-   key_0 = value
-   sum_0 = combined_0.get(key_0)
-   combined_0[key_0] = (
-     (value, 1) if sum_0 is None else (sum_0[0], sum_0[1] + 1)
-   )
+ keys_0.extend(values)

Keys that are counted are gathered in a list, and counted together (runtime/operators/pending_batch.py). One field is kept
as it is, several as a tuple. They are sent as columns, so the reader builds no records either.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.analysis import types_of
from opchain.compiler.codegen.rules.store_changed_fields import Narrow, columns_of, narrowed
from opchain.compiler.codegen.source_text import text_of
from opchain.compiler.codegen.static_types import (
    CombinedOf,
    SentRecords,
    StaticType,
    TupleOf,
    Types,
    common,
    type_of,
)
from opchain.runtime.program.vertex_program import FIRST_OUTPUT
from opchain.runtime.records.columns import Shape
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from opchain.compiler.codegen.displays import Display


def count_keys(form: f.Form) -> None:
    """Rewrites folds in front of exchanges."""
    places: dict[str, list[_Place]] = {}
    for function in form.functions:
        folds = [
            item
            for item in f.all_statements(function.body)
            if isinstance(item, f.Fold) and item.target is None
        ]
        if folds and function.kind != "fallback":
            types = types_of(function, form)
            for fold in folds:
                places.setdefault(fold.table, []).append(_Place(function, fold, types))
    for of_output in places.values():
        narrows = _alike(form, of_output)
        if narrows:
            _rewrite(form, of_output, narrows)


class _Place(NamedTuple):
    """A fold, and the types of its function's variables."""

    function: f.Function
    fold: f.Fold
    types: Types


def _alike(form: f.Form, places: list[_Place]) -> list[Narrow]:
    """What is kept of the records of all folds of an output, if it is the same; else nothing."""
    for keeps_key in (False, True):
        found = [narrowed(form, *place, keeps_key=keeps_key) for place in places]
        narrows = [narrow for narrow in found if narrow is not None]
        layouts = {(repr(each.layout), each.display.shape, each.result.shape) for each in narrows}
        if len(narrows) == len(places) and len(layouts) == 1:
            return narrows
    return []


def _rewrite(form: f.Form, places: list[_Place], narrows: list[Narrow]) -> None:
    where = notes.operator(places[0].fold)
    number, shape = FIRST_OUTPUT - where, narrows[0].result.shape
    names: list[str] = []
    if shape != narrows[0].display.shape:
        narrows = [replace(narrow, is_alone=False) for narrow in narrows]
        names = [_names(form, number, kind) for kind in (narrows[0].display, narrows[0].result)]
        shape = Shape(Row, names_vary=True)
    keys, *kinds = (common([*each]) for each in zip(*map(_types, places, narrows), strict=True))
    fields = narrows[0].layout
    if names:
        kinds, fields = [*kinds, None], (*fields, len(narrows[0].stored))
    record = columns_of(fields, kinds, shape)
    form.sent[number] = SentRecords(CombinedOf(record, keys, narrows[0].key), is_certain=False)
    layout = (number, fields, shape)
    are_counts = all(map(_counts, (place.fold for place in places), narrows))
    for (function, fold, _), each in zip(places, narrows, strict=True):
        if are_counts:
            lines = _counted(form, function, fold, layout)
        else:
            lines = _combined(form, fold, each, layout, names)
        lines = f.with_comment(f.marked(lines, where), notes.comment(fold))
        function.body = f.replaced_by(function.body, fold, lines)


def _names(form: f.Form, number: int, record: Display) -> str:
    """A name for the names of a Row's fields. All Rows share the list, which is pickled once per buffer."""
    if not (record.shape and record.shape.names):
        return "None"
    return form.names.bind(f"names_to_{number}", "value", list(record.shape.names))


def _types(place: _Place, narrow: Narrow) -> list[StaticType | None]:
    """The types of the key and of all fields. The type of a field is unknown if combining may change it."""
    _, fold, types = place
    kinds = [type_of(element, types) for element in narrow.elements]
    changed = narrow.added(fold.previous, narrow.parts(f.name(fold.previous)))
    results = [changed] if narrow.is_alone else changed.elts  # type: ignore[attr-defined]
    for _ in narrow.stored:
        stored = [kinds[position] for position in narrow.stored]
        state = stored[0] if narrow.is_alone else TupleOf(tuple(stored))
        known = {**types, fold.previous: state}
        for position, result in zip(narrow.stored, results, strict=True):
            if type_of(result, known) != kinds[position]:
                kinds[position] = None
    return [types.get(fold.key.id), *kinds]


def _counts(fold: f.Fold, narrow: Narrow) -> bool:
    """Whether each record adds 1 to a sum that starts with 1."""
    added = text_of(narrow.added(fold.previous, narrow.parts(f.name(fold.previous))))
    is_one = text_of(narrow.elements[narrow.stored[0]]) == "1"
    is_sum = narrow.is_alone and narrow.key is not None
    return is_sum and is_one and added in (f"{fold.previous} + 1", f"1 + {fold.previous}")


def _counted(form: f.Form, function: f.Function, fold: f.Fold, layout: tuple[Any, ...]) -> f.Lines:
    where = notes.operator(fold)
    number = FIRST_OUTPUT - where
    name = form.names.bind(f"keys_{number}", "counted_keys", *layout)
    form.remark(where, "counted before the exchange")
    for item in f.all_statements(function.body):
        if notes.operator(item) == where and (comment := notes.comment(item)):
            notes.comment.set(item, comment.replace(", combined", ", counted"))
    return [f.made(f.Append, list=name, value=f.name(fold.key.id))]


def _combined(
    form: f.Form, fold: f.Fold, narrow: Narrow, layout: tuple[Any, ...], names: list[str]
) -> f.Lines:
    where = notes.operator(fold)
    table = form.names.bind(f"sums_to_{FIRST_OUTPUT - where}", "combined_sums", *layout)
    form.remark(where, "summed up before the exchange")
    first = narrow.state([narrow.elements[position] for position in narrow.stored])
    added = narrow.added(fold.previous, narrow.parts(f.name(fold.previous)))
    for state, of_fields in zip((first, added), names, strict=False):
        state.elts.append(f.expression(of_fields))  # type: ignore[attr-defined]
    return f.statements(
        f"{fold.previous} = {table}.get({fold.key.id})\n"
        f"{table}[{fold.key.id}] = first if {fold.previous} is None else added",
        where,
        first=first,
        added=added,
    )
