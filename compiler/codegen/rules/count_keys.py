"""Batch mode: where records are combined before an exchange, keeps only the fields that vary, or a count.

>>> change(
...     "count_keys",
...     lambda lines: lines.map(lambda line: (line, 1)).key_by(lambda row: row[0]).sum(1),
...     mode="BATCH",
... )
- for value in values:
-   key_0 = value
-   sum_0 = combined_0.get(key_0, ABSENT)
-   combined_0[key_0] = (
-     (value, 1) if sum_0 is ABSENT else (sum_0[0], sum_0[1] + 1)
-   )
+ keys_0.extend(values)

Keys that are counted are gathered in a list, and counted together (runtime/operators/pending_batch.py). Of Rows, named
tuples, dataclasses and dictionaries a tuple of fields is kept.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.analysis import types_of
from opchain.compiler.codegen.rules.store_changed_fields import Narrow, narrowed
from opchain.compiler.codegen.static_types import CombinedOf, SentRecords, TupleOf, type_of
from opchain.runtime.program.vertex_program import FIRST_OUTPUT

if TYPE_CHECKING:
    from opchain.compiler.codegen.form import Form, Function

_PAIR = 2


def count_keys(form: Form) -> None:
    """Rewrites folds in front of an exchange, where each output has only one."""
    functions = [item for item in form.functions if not item.name.startswith("fallback_")]
    folds = [
        item
        for function in functions
        for item in f.all_statements(function.body)
        if isinstance(item, f.Fold) and item.target is None
    ]
    once = {fold.table for fold in folds if sum(other.table == fold.table for other in folds) == 1}
    for function in functions:
        _count_keys(form, function, once)


def _count_keys(form: Form, function: Function, once: set[str]) -> None:
    types = types_of(function, form)

    def rewrite(statement: ast.stmt) -> list[ast.stmt] | None:
        is_combine = isinstance(statement, f.Fold) and statement.table in once
        narrow = narrowed(form, function, statement, types) if is_combine else None  # type: ignore[arg-type]
        if narrow is None or narrow.display.shape != narrow.result.shape:
            return None
        assert isinstance(statement, f.Fold)
        where = f.operator_of(statement)
        if narrow.display.shape is not None:
            lines = _combined(form, statement, narrow)
        elif narrow.key is None or not narrow.is_alone or len(narrow.elements) != _PAIR:
            return None
        else:
            kinds = TupleOf(tuple(type_of(item, types) for item in narrow.elements))
            number = FIRST_OUTPUT - where
            form.sent[number] = SentRecords(CombinedOf(kinds, narrow.key), is_certain=False)
            if _counts(statement, narrow):
                lines = _counted(form, function, statement, narrow)
            else:
                lines = _combined(form, statement, narrow)
        return f.with_comment(f.marked(lines, where), f.comment_of(statement))

    function.body = f.rewritten(function.body, rewrite)


def _counts(fold: f.Fold, narrow: Narrow) -> bool:
    """Whether each record adds 1 to a sum that starts with 1."""
    added = ast.unparse(narrow.added(fold.previous, narrow.parts(f.name(fold.previous))))
    is_one = ast.unparse(narrow.elements[narrow.stored[0]]) == "1"
    return is_one and added in (f"{fold.previous} + 1", f"1 + {fold.previous}")


def _counted(form: Form, function: Function, fold: f.Fold, narrow: Narrow) -> list[ast.stmt]:
    where = f.operator_of(fold)
    number = FIRST_OUTPUT - where
    name = form.names.bind(f"keys_{number}", "counted_keys", number, narrow.key)
    form.remark(where, "counted before the exchange")
    for item in f.all_statements(function.body):
        if f.operator_of(item) == where and (comment := f.comment_of(item)):
            item.comment = comment.replace(", combined", ", counted")  # type: ignore[attr-defined]
    return [f.made(f.Append, list=name, value=f.name(fold.key.id))]


def _combined(form: Form, fold: f.Fold, narrow: Narrow) -> list[ast.stmt]:
    where, shape = f.operator_of(fold), narrow.result.shape
    number = FIRST_OUTPUT - where
    meaning: tuple[Any, ...] = ("combined_sums", number, narrow.key)
    if shape is not None:
        meaning = ("combined_fields", number, narrow.layout, shape)
    table = form.names.bind(f"sums_to_{number}", *meaning)
    form.remark(where, "summed up before the exchange")
    return f.statements(
        f"{fold.previous} = {table}.get({fold.key.id})\n"
        f"{table}[{fold.key.id}] = first if {fold.previous} is None else added",
        where,
        first=narrow.state([narrow.elements[position] for position in narrow.stored]),
        added=narrow.added(fold.previous, narrow.parts(f.name(fold.previous))),
    )
