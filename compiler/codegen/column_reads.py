"""Loops over records that arrive as columns read fields instead."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.displays import Display
from opchain.compiler.codegen.record_uses import Uses
from opchain.runtime.program.vertex_program import NO_OPERATOR
from opchain.runtime.records.columns import Shape
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from opchain.compiler.codegen.static_types import ColumnsOf


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
