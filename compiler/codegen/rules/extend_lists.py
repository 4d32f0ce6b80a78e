"""Loops that only append become `extend`.

>>> change("extend_lists", lambda lines: lines.flat_map(lambda line: line.split(",")))
-   for value_1 in value.split(','):
-     values_0.append(value_1)
+   values_0.extend(value.split(','))

So do loops with a filter that cannot raise:

>>> words = lambda lines: lines.flat_map(lambda line: line.split(","))
>>> change("extend_lists", lambda lines: words(lines).filter(lambda word: word != ""))
-   for value_1 in value.split(','):
-     if not (value_1 != ''):
-       continue
-     values_0.append(value_1)
+   results_1 = value.split(',')
+   values_0.extend([value_1 for value_1 in results_1 if value_1 != ''])
"""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.analysis import types_of
from opchain.compiler.codegen.source_text import text_of
from opchain.compiler.codegen.static_types import IterableOf, never_raises, type_of

if TYPE_CHECKING:
    from opchain.compiler.codegen.static_types import Types


_COUNTER = re.compile(r"count_\d+(_too)*")


def extend_lists(form: f.Form) -> None:
    """Rewrites loops that only append to lists, the innermost first."""
    for function in form.functions:
        types, read_later = types_of(function, form), f.names_in(function.after)
        function.body = f.rewritten(function.body, partial(_extended, types, read_later))


def _extended(types: Types, read_later: set[str], statement: ast.stmt) -> f.Lines | None:
    if isinstance(statement, ast.For) and not statement.orelse:
        iterable = statement.iter
    elif (
        isinstance(statement, f.ForEachResult) and not statement.nullable and statement.side is None
    ):
        iterable = statement.iterable
    else:
        return None
    target, operator = statement.target, notes.operator(statement)
    if not isinstance(target, ast.Name) or target.id in read_later or not statement.body:
        return None
    variable = target.id
    *counts, last = statement.body
    comments = [notes.comment(statement), notes.comment(last)]
    lines: f.Lines = []
    if isinstance(last, ast.If) and not last.orelse and len(last.body) == 1:
        if not _is_list(iterable, types) or not never_raises(last.test, types):
            return None
        comments.append(notes.comment(last.body[0]))
        if counts:
            name = f"results_{operator}"
            lines.append(f.let(name, iterable, operator))
            iterable = f.name(name)
        test, (last,) = last.test, last.body
    else:
        test = None
    filled = _filled(last, variable)
    if filled is None or len(counts) > (test is not None) or not all(map(_counts_one, counts)):
        return None
    if test is not None and f.names_in([test]) & f.stores(counts).keys():
        return None
    lines += [_count_of(count, iterable) for count in counts]
    if test is not None:
        each = ast.comprehension(f.target(variable), iterable, [test], 0)
        iterable = ast.ListComp(f.name(variable), [each])
    lines.append(ast.Expr(ast.Call(f.expression(f"{filled}.extend"), [iterable], [])))
    text = ", ".join(comment for comment in comments if comment).replace(", ->", " ->")
    return f.with_comment(f.marked(lines, operator), text)


def _filled(statement: ast.stmt, variable: str) -> str | None:
    """The list that a statement appends a variable to."""
    if isinstance(statement, f.Send) and (statement.key or statement.time):
        return None
    name, value = f.appended(statement)
    return name if value is not None and f.is_load_of(value, variable) else None


def _is_list(node: ast.expr, types: Types) -> bool:
    """Whether an expression certainly makes a list: `text.split()`."""
    is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return is_method and isinstance(type_of(node, types), IterableOf)


def _counts_one(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.AugAssign)
        and _COUNTER.fullmatch(text_of(statement.target)) is not None
        and text_of(statement.value) == "1"
    )


def _count_of(statement: ast.stmt, iterable: ast.expr) -> ast.stmt:
    """`count += len(iterable)` for `count += 1`."""
    assert isinstance(statement, ast.AugAssign)
    count = f.expression("len(items)", items=iterable)
    return ast.AugAssign(f.copied(statement.target), ast.Add(), count)
