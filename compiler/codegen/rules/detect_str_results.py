"""Detects a flat map that returns a str: its last result is stored and checked at the end of a batch.

>>> change("detect_str_results", lambda numbers: numbers.flat_map(lambda number: number.digits))
+ returned_1 = None
-   for value_1 in value.digits:
+   for value_1 in (returned_1 := value.digits):

Each character of a str becomes a record, which is almost always a mistake. The operator checks `returned_1` after each
batch, unless the function cannot return a str. The assignment costs a nanosecond per record.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from typing import Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.runtime.program.operator_specs import FlatMapSpec
from opchain.runtime.program.vertex_program import NO_OPERATOR

_GIVE_LISTS = frozenset({"findall", "finditer", "items", "keys", "rsplit", "split", "splitlines"})
_ITERABLES = (enumerate, filter, list, map, range, reversed, set, sorted, tuple, zip)
_DISPLAYS = (
    *(ast.List, ast.Tuple, ast.Set, ast.Dict),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


def detect_str_results(form: f.Form) -> None:
    """Rewrites loops over results that could be a str, in functions over batches."""
    for function in form.batch_functions():
        found: set[int] = set()
        for statement in f.all_statements(function.body):
            index = notes.operator(statement)
            if (
                isinstance(statement, f.ForEachResult)
                and isinstance(form.program.operators[index].spec, FlatMapSpec)
                and _could_be_text(statement.iterable, form)
            ):
                found.add(index)
                statement.iterable = ast.NamedExpr(
                    f.target(f"returned_{index}"), statement.iterable
                )
        for index in sorted(found):
            function.before += f.statements(f"returned_{index} = None", NO_OPERATOR)
            function.after += f.statements(f"op_{index}.look_at(returned_{index})", NO_OPERATOR)


def _could_be_text(node: ast.expr, form: f.Form) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name not in _GIVE_LISTS
        case ast.Call(func=ast.Name(id=name)):
            callee = form.callees.get(name)
            return _could_give_text(
                getattr(builtins, name, None) if callee is None else callee.function
            )
    return not isinstance(node, _DISPLAYS)


def _could_give_text(function: Any) -> bool:
    if getattr(function, "__objclass__", None) is str:
        return function.__name__ not in _GIVE_LISTS
    is_iterable = any(function is known for known in _ITERABLES)
    return not is_iterable and not inspect.isgeneratorfunction(function)
