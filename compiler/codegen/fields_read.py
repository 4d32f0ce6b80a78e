"""Which fields of its records a vertex reads. Its sender leaves out the other fields.

If the reader runs other code for such records, a field may be missing. Its generated code and the functions that it inlines
are equal, so both read the same fields. There is other code in two cases:

- A value of a global name or of a class differs on an executor (`START = time.time()`), and the code depends on it. Then no
  field is left out.
- A function or a method is replaced while the job runs, or differs on an executor. That is an error (`ChangedCodeError`).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.source_text import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.compiler.codegen.form import Form, Reader
    from opchain.compiler.codegen.static_types import ColumnsOf

MOST_COLUMNS, MOST_COLUMNS_OF_OTHERS = 3, 12
"""The maximum number of fields to send as separate lists, for tuples and for other records."""


def reader_without_fields(form: Form, output: int, *how: object) -> Reader | None:
    """The only reader of an output (see `Form.reader_of`), if records need only the fields that its functions read.

    A window operator emits late records whole, if the program reads them.
    """
    if form.program.outputs[output].carries_key:
        return None
    reader = form.reader_of(output, *how)  # type: ignore[arg-type]
    if reader is None or reader.form.assumes_values:
        return None
    spec = reader.form.program.operators[0].spec
    return reader if getattr(spec, "late_tag", None) is None else None


def positions_read(form: Form, output: int, columns: ColumnsOf) -> set[int]:
    """The fields of an output's records that the reader reads."""
    everything = set(range(len(columns.fields)))
    reader = reader_without_fields(form, output, columns, "trust_known_types")
    if reader is None or not reader.function.body:
        return everything
    (loop,) = reader.function.body
    if not isinstance(loop, ast.For) or not text_of(loop.iter).startswith("values.rows("):
        return everything
    names = {node.id for item in loop.body for node in _read_in(item) if isinstance(node, ast.Name)}
    return {place for place, name in enumerate(columns.fields) if name in names}


def _read_in(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree, except the records that it passes to operators. They only call the same functions with them."""
    if f.called(node).startswith(f.RARE):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _read_in(child)
