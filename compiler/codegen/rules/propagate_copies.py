"""Removes variables that only hold the value of another variable.

>>> change(
...     "propagate_copies",
...     lambda numbers: numbers.map(lambda x: (x % 7, x)).key_by(lambda row: row[0]).sum(1),
...     vertex=1,
... )
-   key_0 = field_0
-   sum_0 = sums_0.get(key_0)
+   sum_0 = sums_0.get(field_0)
-     previous_0 = table_0.get(key_0)
+     previous_0 = table_0.get(field_0)
-   sums_0[key_0] = sum_0
+   sums_0[field_0] = sum_0
-   column_0_0.append(key_0)
+   column_0_0.append(field_0)

This applies only if all functions of the user are inlined: error messages of the others show these variables.
"""

from __future__ import annotations

import ast

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.names import stem


def propagate_copies(form: f.Form) -> None:
    """Replaces these variables in functions without calls."""
    for function in form.functions:
        called = f.names_in(function.body)
        if not called & set(form.callees):
            folds = any(isinstance(item, f.Fold) for item in f.all_statements(function.body))
            shows_key = folds or any(stem(name) in ("pane", "entry", "session") for name in called)
            _forward(function, kept="key" if shows_key else "timestamp")


def _forward(function: f.Function, *, kept: str) -> None:
    times = f.stores([*function.before, *function.body])
    parts: dict[str, ast.expr] = {}
    copied = {
        item.target.id
        for item in f.all_statements(function.body)
        if isinstance(item, f.CopyIfMutable)
    }

    def rewrite(statement: ast.stmt) -> f.Lines | None:
        name, value = f.variable_set(statement), getattr(statement, "value", None)
        if (
            name
            and isinstance(value, ast.Name)
            and times[name] == times.get(value.id) == 1
            and stem(name) != kept
            and not copied & {name, value.id}
        ):
            parts[name] = value
            return []
        return None

    function.body = f.rewritten(function.body, rewrite)
    f.replace_variables(function, parts)
