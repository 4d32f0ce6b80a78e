"""Reduces that only ever change one field of their records keep that field alone.

>>> change(
...     "narrow_state",
...     lambda numbers: numbers.map(lambda x: (x % 7, x)).key_by(lambda row: row[0]).sum(1),
...     vertex=1,
... )
-   key_0 = field_0
-   previous_0 = table_0.get(key_0, ABSENT)
-   if previous_0 is ABSENT:
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

A record per key is an object more per record to make, to find and to drop: with 100,000 keys in no order most of
the time went into it. Nobody can tell, because:

- the records are tuples, Rows, named tuples or dictionaries; one field is the key, is an int or a str, and does not
  change;
- one other field is an int, a float or a str, and stays one; all others are constants;
- the expression cannot raise: no error will want to show the record.

The table gets the records when a snapshot is taken (ReduceOperator), and before a fallback takes a batch.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.analysis import types_of
from opchain.compiler.codegen.displays import Display, FieldReads, display_of
from opchain.compiler.codegen.rules.plain_keys import key_program
from opchain.compiler.codegen.static_types import never_raises, type_of
from opchain.runtime.program.vertex_program import NO_OPERATOR
from opchain.runtime.state.keys.key_identity import key_identity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.compiler.codegen.form import Form, Function
    from opchain.compiler.codegen.static_types import StaticType


@dataclass(frozen=True, slots=True)
class Narrow:
    """A record with one field that is the key, and one that changes; all others are constants.

    `changed` is the new value of the field over the fields of `previous` and variables.
    """

    key: int
    field: int
    display: Display
    changed: ast.expr

    @property
    def elements(self) -> Sequence[ast.expr]:
        """The fields of the record that comes."""
        return self.display.elements

    @property
    def layout(self) -> tuple[Any, ...]:
        """For each field "key", "sum", or the one constant."""
        return tuple(
            "key" if position == self.key else "sum" if position == self.field else (element.value,)  # type: ignore[attr-defined]
            for position, element in enumerate(self.elements)
        )

    def added(self, previous: str, total: ast.expr) -> ast.expr:
        """The new value of the field, where `total` is the old one."""
        fields = {self.field: total, self.key: self.elements[self.key]}
        transformer = FieldReads(self.display, previous, fields)
        found: ast.expr = transformer.visit(f.replaced(self.changed, {}))
        return found


def narrow_state(form: Form) -> None:
    """Rewrites folds into tables of reduces."""
    for function in form.functions:
        _narrow_state(form, function)
    for function in form.functions:
        _settle_first(form, function)


def _settle_first(form: Form, function: Function) -> None:
    """A fallback takes whole tuples from the table: those that are kept as one field go there before."""
    for item in f.all_statements(function.body):
        index = f.operator_of(item)
        if isinstance(item, f.Fold) and f"sums_{index}" in form.names.bindings:
            form.names.bind(f"settle_{index}", "attribute", index, "settle")
            function.before += f.statements(f"settle_{index}()", NO_OPERATOR)


def _narrow_state(form: Form, function: Function) -> None:
    types = types_of(function, form)

    def rewrite(statement: ast.stmt) -> list[ast.stmt] | None:
        if not isinstance(statement, f.Fold) or statement.target is None:
            return None
        narrow = narrowed(form, function, statement, types)
        if narrow is None:
            return None
        return _narrow_lines(form, statement, narrow)

    function.body = f.rewritten(function.body, rewrite)


def _narrow_lines(form: Form, fold: f.Fold, narrow: Narrow) -> list[ast.stmt]:
    assert fold.target is not None
    index = f.operator_of(fold)
    key, total, previous, table = fold.key.id, f"sum_{index}", fold.previous, fold.table
    display = narrow.display
    sums = form.names.bind(f"sums_{index}", "sums", index, narrow.layout, display.shape)
    addend = ast.unparse(narrow.elements[narrow.field])
    earlier = narrow.added(previous, display.read(f.name(previous), narrow.field))
    parts: list[ast.expr] = list(narrow.elements)
    parts[narrow.key], parts[narrow.field] = f.name(key), f.name(total)
    lines = f.statements(
        f"{total} = {sums}.get({key})\n"
        f"if {total} is None:\n"
        f"    {previous} = {table}.get({key})\n"
        f"    {total} = {addend} if {previous} is None else {ast.unparse(earlier)}\n"
        f"else:\n"
        f"    {total} = {ast.unparse(narrow.added(previous, f.name(total)))}\n"
        f"{sums}[{key}] = {total}",
        index,
    )
    if not form.program.is_batch:  # there nothing comes out before the end
        lines.append(
            f.let(fold.target.id, replace(display, elements=parts).expression(form), index)
        )
    form.remark(index, "kept as one field per key")
    return f.with_comment(lines, f.comment_of(fold))


def narrowed(  # noqa: PLR0911 - one for each condition
    form: Form, function: Function, fold: f.Fold, types: dict[str, StaticType | None]
) -> Narrow | None:
    """How the records of a fold are kept as one field, if they are."""
    index = f.operator_of(fold)
    display = display_of(fold.value, form.constants)
    program = key_program(form, index)
    if display is None or program is None:
        return None
    elements = display.elements
    key = _key_position(function, fold, elements)
    if key is None or not isinstance(elements[key], ast.Name):
        return None
    kind = type_of(elements[key], types)
    if kind not in (int, str) or kind not in key_identity(program.hasher).plain:
        return None
    reduced = display_of(fold.reduced, form.constants)
    if reduced is None or reduced.shape != display.shape or len(reduced.elements) != len(elements):
        return None
    changing = [
        position
        for position, item in enumerate(reduced.elements)
        if not (
            display.field_read(item, fold.previous) == position
            or (position == key and ast.dump(item) == ast.dump(elements[key]))
        )
    ]
    if len(changing) != 1 or changing[0] == key:
        return None
    (changed,) = changing
    others = set(range(len(elements))) - {key, changed}
    if not all(isinstance(elements[other], ast.Constant) for other in others):
        return None
    found = Narrow(key, changed, display, reduced.elements[changed])
    kind = type_of(elements[changed], types)
    probe = found.added(fold.previous, f.name("total"))
    known = {**types, "total": kind}
    if f.reads(probe, fold.previous) or kind not in (int, float, str):
        return None
    return found if type_of(probe, known) is kind and never_raises(probe, known) else None


def _key_position(function: Function, fold: f.Fold, elements: Sequence[ast.expr]) -> int | None:
    """The field that is the key."""
    names = (_selected(function, fold.key.id), fold.key.id)
    for position, element in enumerate(elements):
        if isinstance(element, ast.Name) and element.id in names:
            return position
    return None


def _selected(function: Function, key: str) -> str | None:
    """The variable that a key was set to."""
    for statement in f.all_statements(function.body):
        if (
            isinstance(statement, ast.Assign)
            and isinstance(statement.targets[0], ast.Name)
            and statement.targets[0].id == key
            and isinstance(statement.value, ast.Name)
        ):
            return statement.value.id
    return None
