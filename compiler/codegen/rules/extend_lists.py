"""Loops that only append become `extend`.

>>> change("extend_lists", lambda lines: lines.flat_map(lambda line: line.split(",")))
-   for value_1 in value.split(','):
-     values_0.append(value_1)
+   values_0.extend(value.split(','))
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f

if TYPE_CHECKING:
    from opchain.compiler.codegen.form import Form


def extend_lists(form: Form) -> None:
    """Rewrites loops that only append to lists, the innermost first."""
    for function in form.functions:
        function.body = f.rewritten(function.body, _extended)


def _extended(statement: ast.stmt) -> list[ast.stmt] | None:
    if isinstance(statement, ast.For) and not statement.orelse:
        iterable = statement.iter
    elif (
        isinstance(statement, f.ForEachResult) and not statement.nullable and statement.side is None
    ):
        iterable = statement.iterable
    else:
        return None
    if len(statement.body) != 1 or not isinstance(statement.target, ast.Name):
        return None
    name = _appended(statement.body[0], statement.target.id)
    if name is None:
        return None
    extended = ast.Expr(ast.Call(f.expression(f"{name}.extend"), [iterable], []))
    extended.operator = f.operator_of(statement)  # type: ignore[attr-defined]
    comments = [f.comment_of(statement), f.comment_of(statement.body[0])]
    text = ", ".join(comment for comment in comments if comment).replace(", ->", " ->")
    return f.with_comment([extended], text)


def _appended(statement: ast.stmt, variable: str) -> str | None:
    """The list that a statement appends a variable to."""
    if isinstance(statement, f.Append):
        name = statement.list
    elif isinstance(statement, f.Send) and statement.key is None and statement.time is None:
        name = f"values_{statement.number}"
    else:
        return None
    return name if f.is_load_of(statement.value, variable) else None
