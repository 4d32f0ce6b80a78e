"""Records that arrive as columns are read field by field.

    for value in values:        for field_0, field_2 in values.rows():
        ...                         value = (field_0, 1, field_2)
                                    ...

A field that is the same in all records is a constant. Nobody makes the tuple where only its items are read
(take_apart.py).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.rules.take_apart import Uses
from opchain.compiler.codegen.static_types import ColumnsOf
from opchain.runtime.program.vertex_program import NO_OPERATOR

if TYPE_CHECKING:
    from opchain.compiler.codegen.form import Form


def read_fields(form: Form) -> None:
    """Rewrites loops over batches whose values are columns."""
    for function in form.batch_functions():
        columns = function.types.get("values")
        if not isinstance(columns, ColumnsOf) or not function.body:
            continue
        (loop,) = function.body
        assert isinstance(loop, ast.For)
        uses = Uses("value")
        uses.block(loop.body, is_cold=False)
        if uses.others and not uses.items:
            continue  # the tuples themselves are read
        fields = [ast.parse(text, mode="eval").body for text in columns.fields]
        variables: list[ast.expr] = [ast.Name(text, ast.Store()) for text in columns.variables]
        beside = ""
        if isinstance(loop.target, ast.Tuple):
            beside = "timestamps"
            variables.append(f.target("timestamp"))
        loop.iter = f.expression(f"values.rows({beside})")
        loop.target = variables[0] if len(variables) == 1 else ast.Tuple(variables, ast.Store())
        loop.body.insert(0, f.let("value", ast.Tuple(fields, ast.Load()), NO_OPERATOR))
        for text, kind in zip(columns.fields, columns.record.items, strict=True):
            if text in columns.variables:
                function.types[text] = kind
                function.fresh.add(text)
