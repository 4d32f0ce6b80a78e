"""Batch mode: pairs that are combined before an exchange are kept as sums per key, or only counted.

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

Keys that are counted are gathered in a list, and counted together (runtime/operators/pending_batch.py).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.analysis import types_of
from opchain.compiler.codegen.rules.store_changed_fields import Narrow, narrowed
from opchain.compiler.codegen.static_types import CombinedOf, SentRecords, TupleOf, type_of

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

    def note(narrow: Narrow, number: int) -> None:
        assert narrow.key is not None
        kinds = TupleOf(tuple(type_of(item, types) for item in narrow.elements))
        form.sent[number] = SentRecords(CombinedOf(kinds, narrow.key), is_certain=False)

    def rewrite(statement: ast.stmt) -> list[ast.stmt] | None:
        if not isinstance(statement, f.Fold) or statement.target is not None:
            return None
        if statement.table not in once:
            return None
        narrow = narrowed(form, function, statement, types)
        if narrow is None or narrow.display.shape or len(narrow.elements) != _PAIR:
            return None
        if narrow.key is None or not narrow.is_alone:
            return None
        number, where = statement.output, f.operator_of(statement)  # type: ignore[attr-defined]
        key = statement.key.id
        addend = narrow.elements[narrow.stored[0]]
        added = narrow.added(statement.previous, narrow.parts(f.name(statement.previous)))
        if ast.unparse(addend) == "1" and ast.unparse(added) in (
            f"{statement.previous} + 1",
            f"1 + {statement.previous}",
        ):
            note(narrow, number)
            name = form.names.bind(f"keys_{number}", "counted_keys", number, narrow.key)
            form.remark(where, "counted before the exchange")
            append = f.made(f.Append, list=name, value=f.name(key))
            for item in f.all_statements(function.body):
                if f.operator_of(item) == where and f.comment_of(item):
                    item.comment = item.comment.replace(", combined", ", counted")  # type: ignore[attr-defined]
            return f.with_comment(f.marked([append], where), f.comment_of(statement))
        table = f"sums_to_{number}"
        note(narrow, number)
        form.names.bind(table, "combined_sums", number, narrow.key)
        form.remark(where, "summed up before the exchange")
        lines = f.statements(
            f"{statement.previous} = {table}.get({key})\n"
            f"{table}[{key}] = {ast.unparse(addend)} if {statement.previous} is None"
            f" else {ast.unparse(added)}",
            where,
        )
        return f.with_comment(lines, f.comment_of(statement))

    function.body = f.rewritten(function.body, rewrite)
