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
    copied = {
        item.target.id
        for item in f.all_statements(function.body)
        if isinstance(item, f.CopyIfMutable)
    }
    f.forward_variables(
        function,
        lambda name, other: (
            times[name] == times.get(other) == 1
            and stem(name) != kept
            and not copied & {name, other}
        ),
    )
