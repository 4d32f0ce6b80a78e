"""Reduces store only the fields that vary: one field, or a tuple of fields.

>>> change(
...     "store_changed_fields",
...     lambda numbers: numbers.map(lambda x: (x % 7, x)).key_by(lambda row: row[0]).sum(1),
...     vertex=1,
... )
-   key_0 = field_0
-   previous_0 = table_0.get(key_0)
-   if previous_0 is None:
-     value_0 = (field_0, field_1)
+   sum_0 = sums_0.get(field_0)
+   if sum_0 is None:
+     previous_0 = table_0.get(field_0)
+     sum_0 = field_1 if previous_0 is None else previous_0[1] + field_1
-     value_0 = (previous_0[0], previous_0[1] + field_1)
-   table_0[key_0] = value_0
-   values_0.append(value_0)
+     sum_0 = sum_0 + field_1
+   sums_0[field_0] = sum_0
+   item_0_1 = sum_0
+   column_0_0.append(field_0)
+   column_0_1.append(item_0_1)

Storing whole records needs one more object per record. With 100,000 keys in random order, most of the time was spent on
creating and dropping these objects. The state omits constants, and the key if it is an int or a str that does not change:

- A single field is stored without a tuple if it is always an int, a float or a str, and its expression cannot raise.
- Several fields of a Row, a named tuple or a dictionary are stored as a tuple, which takes less time to make. Tuples
  stay as they are.

If the first record of a key is a Row with other names than the results, the table stores the Row.

The table gets the records when a snapshot is taken (ReduceOperator), and before a fallback takes a batch.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.analysis import types_of
from opchain.compiler.codegen.displays import Display, display_of, field_reads
from opchain.compiler.codegen.keys import key_program
from opchain.compiler.codegen.rules.read_fields import read_columns
from opchain.compiler.codegen.source_text import text_of
from opchain.compiler.codegen.static_types import (
    ColumnsOf,
    StaticType,
    TupleOf,
    Types,
    never_raises,
    type_of,
)
from opchain.runtime.program.vertex_program import NO_OPERATOR
from opchain.runtime.records.columns import Shape
from opchain.runtime.state.keys.key_identity import key_identity
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from collections.abc import Sequence


def store_changed_fields(form: f.Form) -> None:
    """Rewrites folds into the tables of reduces."""
    for function in form.functions:
        _narrow_state(form, function)
    for function in form.functions:
        _write_sums_first(form, function)


def _write_sums_first(form: f.Form, function: f.Function) -> None:
    """Writes values that are stored as one field back to the table before a fallback runs, which reads whole tuples."""
    for item in f.all_statements(function.body):
        index = notes.operator(item)
        if isinstance(item, f.Fold) and f"sums_{index}" in form.names.bindings:
            form.names.bind(f"write_sums_{index}", "attribute", index, "write_sums")
            function.before += f.statements(f"write_sums_{index}()", NO_OPERATOR)


def _narrow_state(form: f.Form, function: f.Function) -> None:
    types = types_of(function, form)

    def rewrite(statement: ast.stmt) -> f.Lines | None:
        if not isinstance(statement, f.Fold) or statement.target is None:
            return None
        narrow = narrowed(form, function, statement, types)
        if narrow is None:
            return None
        if form.program.is_batch and narrow.display.shape == narrow.result.shape:
            _read_results(form, notes.operator(statement), narrow, types)
        return _narrow_lines(form, statement, narrow)

    function.body = f.rewritten(function.body, rewrite)


def _read_results(form: f.Form, index: int, narrow: Narrow, types: Types) -> None:
    """Has the function for the results of batch mode read the stored fields. BatchReduceOperator emits columns."""
    function = next((item for item in form.functions if item.name == f"batch_{index}"), None)
    guard = f.expression("values.__class__ is Columns")
    if function is None or text_of(guard) in map(text_of, function.guards):
        return
    kinds = [
        type_of(element, types) if position == narrow.key or narrow.is_alone else None
        for position, element in enumerate(narrow.elements)
    ]
    plain = function.copy()
    columns = columns_of(narrow.layout, kinds, narrow.result.shape)
    if read_columns(form, function, columns):
        form.names.bind("Columns", "shared")
        function.guards.append(guard)
        if function.fallback is None:
            f.add_fallback(form, function, plain)


def _narrow_lines(form: f.Form, fold: f.Fold, narrow: Narrow) -> f.Lines:
    assert fold.target is not None
    index = notes.operator(fold)
    key, previous, table = fold.key.id, fold.previous, fold.table
    display, result = narrow.display, narrow.result
    sums = form.names.bind(f"sums_{index}", "sums", index, narrow.layout, result.shape)
    state = f"sum_{index}" if narrow.is_alone else f"entry_{index}"
    first = narrow.state([narrow.elements[position] for position in narrow.stored])
    whole = by_place(display, result)
    restored = {position: whole.read(f.name(previous), position) for position in narrow.stored}
    earlier = narrow.added(previous, restored)
    added = narrow.added(previous, narrow.parts(f.name(state)))
    if display.shape == result.shape:
        text = (
            f"{state} = {sums}.get({key})\n"
            f"if {state} is None:\n"
            f"    {previous} = {table}.get({key})\n"
            f"    {state} = first if {previous} is None else earlier\n"
            f"else:\n"
            f"    {state} = added\n"
            f"{sums}[{key}] = {state}"
        )
    else:
        names = f"names_{index}"
        text = (
            f"{names} = later\n"
            f"{state} = {sums}.get({key})\n"
            f"if {state} is not None:\n"
            f"    {sums}[{key}] = {state} = added\n"
            f"else:\n"
            f"    {previous} = {table}.get({key})\n"
            f"    if {previous} is not None:\n"
            f"        {sums}[{key}] = {state} = earlier\n"
            f"    else:\n"
            f"        {names} = known\n"
            f"        {state} = first\n"
            f"        {table}[{key}] = record"
        )
    parts = {"first": first, "earlier": earlier, "added": added}
    parts["record"] = display.expression(form)
    parts["known"], parts["later"] = map(_names_of, (display, result))
    lines = f.statements(text, index, **parts)
    if not form.program.is_batch:  # in batch mode, nothing is emitted before the end
        elements = list(narrow.elements)
        for position, part in narrow.parts(f.name(state)).items():
            elements[position] = part
        if narrow.key is not None:
            elements[narrow.key] = f.name(key)
        made = replace(result, elements=elements)
        if display.shape != result.shape:
            made = Display(elements, Shape(Row), f.name(f"names_{index}"))
        lines.append(f.let(fold.target.id, made.expression(form), index))
    what = "one field" if narrow.is_alone else f"{len(narrow.stored)} fields"
    form.remark(index, f"stored as {what} per key")
    return f.with_comment(lines, notes.comment(fold))


def _names_of(display: Display) -> ast.expr:
    """The names of a Row's fields."""
    names = () if display.shape is None else display.shape.names
    return ast.List([*map(ast.Constant, names)], ast.Load()) if names else ast.Constant(None)


@dataclass(frozen=True, slots=True)
class Narrow:
    """A record, and the fields that are stored: as a tuple, or as a single value if it `is_alone`.

    Attributes:
        key: The position of the key. None if the key is stored too.
        stored: The positions of the stored fields.
        is_alone: Whether the state is a single field instead of a tuple.
        display: The input record.
        changed: The new values of the fields, as expressions over `previous` and variables.
        result: The emitted record.
    """

    key: int | None
    stored: tuple[int, ...]
    is_alone: bool
    display: Display
    changed: tuple[ast.expr, ...]
    result: Display

    @property
    def elements(self) -> Sequence[ast.expr]:
        """The fields of the input record."""
        return self.display.elements

    @property
    def layout(self) -> tuple[Any, ...]:
        """For each field: "key", "sum", the number of a stored field, or the constant in a tuple."""
        return tuple(
            "key"
            if position == self.key
            else (element.value,)  # type: ignore[attr-defined]
            if position not in self.stored
            else "sum"
            if self.is_alone
            else self.stored.index(position)
            for position, element in enumerate(self.elements)
        )

    def state(self, elements: Sequence[ast.expr]) -> ast.expr:
        """The expression of the stored value."""
        return elements[0] if self.is_alone else ast.Tuple(list(elements), ast.Load())

    def parts(self, state: ast.expr) -> dict[int, ast.expr]:
        """The stored fields."""
        if self.is_alone:
            return {self.stored[0]: state}
        whole = Display(self.changed)
        return {field: whole.read(state, place) for place, field in enumerate(self.stored)}

    def added(self, previous: str, fields: dict[int, ast.expr]) -> ast.expr:
        """The new state. `fields` are the old fields."""
        known = dict(enumerate(self.elements)) | fields
        reads = field_reads(by_place(self.display, self.result), previous, known)
        return self.state([f.changed(f.copied(item), reads) for item in self.changed])


def columns_of(
    layout: Sequence[Any], kinds: Sequence[StaticType | None], shape: Shape | None
) -> ColumnsOf:
    """How the reader gets records of a layout, whose fields have these types."""
    constants = (
        text_of(ast.Constant(*each)) if isinstance(each, tuple) else None for each in layout
    )
    return ColumnsOf(TupleOf(tuple(kinds)), tuple(constants), shape)


def by_place(first: Display, later: Display) -> Display:
    """A display that reads both records; by position if their names differ."""
    return first if first.shape == later.shape else Display(first.elements, Shape(Row))


def narrowed(  # noqa: PLR0911 - one for each condition
    form: f.Form, function: f.Function, fold: f.Fold, types: Types, *, keeps_key: bool = False
) -> Narrow | None:
    """What is stored of the records of a fold, in any case the key if it `keeps_key`. None if they are stored whole."""
    index = notes.operator(fold)
    display, result = (display_of(item, form.constants) for item in (fold.value, fold.reduced))
    program = key_program(form, index)
    if display is None or result is None or program is None or display.names or result.names:
        return None
    elements = display.elements
    kinds = {getattr(item.shape, "kind", tuple) for item in (display, result)}
    has_names = {bool(item.shape and item.shape.names) for item in (display, result)}
    if len(elements) != len(result.elements) or len(kinds) > 1:
        return None
    if display.shape != result.shape and (kinds != {Row} or len(has_names) == 1):
        return None
    whole = by_place(display, result)
    key = None if keeps_key else _key_position(function, fold, elements)
    if key is not None:
        kind = type_of(elements[key], types)
        if kind not in (int, str) or kind not in key_identity(program.hasher).plain:
            key = None
    same = {
        position
        for position, item in enumerate(result.elements)
        if whole.field_read(item, fold.previous) == position
        or (
            (position == key or isinstance(item, ast.Constant))
            and ast.dump(item) == ast.dump(elements[position])
        )
    }
    stored = tuple(
        position
        for position, element in enumerate(elements)
        if not (position in same and (position == key or isinstance(element, ast.Constant)))
    )
    if not stored:
        return None
    changed = tuple(result.elements[position] for position in stored)
    found = Narrow(key if key in same else None, stored, False, display, changed, result)
    if f.reads(found.added(fold.previous, {p: ast.Constant(0) for p in stored}), fold.previous):
        return None
    kind = type_of(elements[stored[0]], types)
    alone = replace(found, is_alone=True)
    probe = alone.added(fold.previous, {stored[0]: f.name("total")}) if len(stored) == 1 else None
    known = {**types, "total": kind}
    if (
        probe is not None
        and kind in (int, float, str)
        and type_of(probe, known) is kind
        and never_raises(probe, known)
    ):
        return alone
    return None if display.shape is None else found


def _key_position(function: f.Function, fold: f.Fold, elements: Sequence[ast.expr]) -> int | None:
    """The field that is the key."""
    names = (_selected(function, fold.key.id), fold.key.id)
    for position, element in enumerate(elements):
        if isinstance(element, ast.Name) and element.id in names:
            return position
    return None


def _selected(function: f.Function, key: str) -> str | None:
    """The variable that a key was assigned from."""
    for variable, value in f.assignments(f.all_statements(function.body)):
        if variable == key and isinstance(value, ast.Name):
            return value.id
    return None
