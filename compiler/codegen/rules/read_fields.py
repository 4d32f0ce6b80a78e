"""Records that arrive as columns are read field by field.

>>> change(
...     "read_fields",
...     lambda numbers: numbers.map(lambda x: (x, 1)).rebalance().map(lambda row: row[0] + row[1]),
...     vertex=1,
... )
- for value in values:
-   value_0 = value[0] + value[1]
+ for field_0 in values.rows():
+   value_0 = field_0 + 1

A field that is the same in all records is a constant. If only its fields are read, the record is not built
(unpack_records.py).
"""

from __future__ import annotations

import ast

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.displays import Display
from opchain.compiler.codegen.record_uses import Uses
from opchain.compiler.codegen.static_types import ColumnsOf, CombinedOf
from opchain.runtime.program.vertex_program import NO_OPERATOR
from opchain.runtime.records.columns import Shape
from opchain.runtime.types.row import Row


def read_fields(form: f.Form) -> None:
    """Rewrites loops over batches whose values are columns."""
    for function in form.batch_functions():
        columns = function.types.get("values")
        if isinstance(columns, CombinedOf):
            _read_combined(form, function, columns)
        if isinstance(columns, ColumnsOf) and read_columns(form, function, columns):
            function.fresh.update(columns.variables)


def _read_combined(form: f.Form, function: f.Function, combined: CombinedOf) -> None:
    """Records from a sender that combined them, with their keys. The pairs of key and record are not built."""
    (loop,) = function.body
    assert isinstance(loop, ast.For)
    place, unpacked = next(
        (place, item) for place, item in enumerate(loop.body) if isinstance(item, ast.Assign)
    )
    (both,) = unpacked.targets
    if isinstance(loop.target, ast.Tuple) or not isinstance(both, ast.Tuple):
        return
    key, item = both.elts
    assert isinstance(key, ast.Name)
    assert isinstance(item, ast.Name)
    record, fields = combined.record, combined.variables
    loop.iter = f.expression("values.rows()")
    loop.target = ast.Tuple([f.target(name) for name in fields], ast.Store())
    function.types.update(zip(record.fields, record.record.items, strict=True))
    function.types[fields[0]] = combined.key
    function.fresh.update(fields)
    operator = notes.operator(unpacked)
    lines = [
        f.let(key.id, f.name(fields[0]), operator),
        f.let(item.id, display_of_columns(record).expression(form), operator),
    ]
    loop.body[place : place + 1] = f.with_comment(lines, notes.comment(unpacked))


def read_columns(form: f.Form, function: f.Function, columns: ColumnsOf) -> bool:
    """Has a loop over `values` read their fields. Returns whether that is possible."""
    if not function.body:
        return False
    (loop,) = function.body
    assert isinstance(loop, ast.For)
    display = display_of_columns(columns)
    uses = Uses("value", display)
    uses.block(loop.body, is_cold=False)
    if uses.others and not uses.items:
        return False  # the records themselves are read
    variables: list[ast.expr] = [ast.Name(text, ast.Store()) for text in columns.variables]
    beside = ""
    if isinstance(loop.target, ast.Tuple):
        beside = "timestamps"
        variables.append(f.target("timestamp"))
    loop.iter = f.expression(f"values.rows({beside})")
    loop.target = variables[0] if len(variables) == 1 else ast.Tuple(variables, ast.Store())
    loop.body.insert(0, f.let("value", display.expression(form), NO_OPERATOR))
    known = dict(zip(columns.fields, columns.record.items, strict=True))
    function.types.update((text, known[text]) for text in columns.variables)
    return True


def display_of_columns(columns: ColumnsOf) -> Display:
    """The record whose fields are variables or constants."""
    fields = [ast.parse(text, mode="eval").body for text in columns.fields]
    if columns.shape is not None and columns.shape.names_vary:
        return Display(fields[:-1], Shape(Row), f.name(columns.fields[-1]))
    return Display(fields, columns.shape)
