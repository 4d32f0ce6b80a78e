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
from opchain.compiler.codegen.column_reads import display_of_columns, read_columns
from opchain.compiler.codegen.static_types import ColumnsOf, CombinedOf


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
