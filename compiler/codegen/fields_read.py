"""Which fields of its records a vertex reads. Its sender leaves out the other fields.

A batch may be processed by `fallback_0`, which calls the functions that the generated code inlines. They read the same
fields. So a field can only be missing if these functions are others than when the program was compiled:

- The code depends on a value of a global name or of a class, which may differ on an executor (`START = time.time()`). Then no
  field is left out.
- A function, a method or a class is replaced while the job runs, or differs on an executor. That is an error
  (`ChangedCodeError`). Dictionaries, lists and numbers may be replaced: functions read the same fields for any of them.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from opchain.compiler.codegen.internal_functions import Trait, calls
from opchain.compiler.codegen.source_text import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.compiler.codegen.form import Form, Reader
    from opchain.compiler.codegen.static_types import ColumnsOf, StaticType

MOST_COLUMNS, MOST_COLUMNS_OF_OTHERS = 3, 12
"""The maximum number of fields to send as separate lists, for tuples and for other records."""


def reader_without_fields(
    form: Form, output: int, records: StaticType, until: str
) -> Reader | None:
    """The only reader of an output, if records need only the fields that its functions read. See `Form.reader_of`.

    A window operator emits late records whole, if the program reads them.
    """
    if form.program.outputs[output].carries_key:
        return None
    reader = form.reader_of(output, records, until)
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
    """The nodes of a tree, except the records that it passes to operators.

    Operators pass these records only to functions that the code calls, too.
    """
    if calls(node, Trait.RARE):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _read_in(child)
