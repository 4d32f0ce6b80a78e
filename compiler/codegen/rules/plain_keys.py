"""Values of known types are not looked at: keys that stand for themselves in tables, timestamps that are ints.

>>> change(
...     "plain_keys",
...     lambda numbers: numbers.map(lambda x: (x % 7, x)).key_by(lambda row: row[0]).max(1),
...     vertex=1,
... )
-   if key_0.__class__ not in plain_keys_0:
-     key_0 = identify_0(key_0)
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.analysis import types_of
from opchain.runtime.program.vertex_program import FIRST_OUTPUT, NO_OPERATOR, KeyProgram
from opchain.runtime.state.keys.key_identity import key_identity

if TYPE_CHECKING:
    from opchain.compiler.codegen.form import Form, Function


def plain_keys(form: Form) -> None:
    """Removes the look at a key's class."""
    for function in form.functions:
        _plain_keys(form, function)


def _plain_keys(form: Form, function: Function) -> None:
    types = types_of(function, form)

    def rewrite(statement: ast.stmt) -> list[ast.stmt] | None:
        if _checks_for_int(statement, types):
            return []
        key = _identified(statement)
        if key is None:
            return None
        program = key_program(form, f.operator_of(statement))
        kind = types.get(key)
        is_plain = program is not None and kind in key_identity(program.hasher).plain
        return [] if is_plain else None

    function.body = f.rewritten(function.body, rewrite)


def _checks_for_int(statement: ast.stmt, types: dict[str, Any]) -> bool:
    """Whether a statement is `if x.__class__ is not int: ...`, where x is one."""
    test = statement.test if isinstance(statement, ast.If) else None
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Attribute)
        and test.left.attr == "__class__"
        and isinstance(test.left.value, ast.Name)
        and isinstance(test.ops[0], ast.IsNot)
        and ast.unparse(test.comparators[0]) == "int"
        and types.get(test.left.value.id) is int
    )


def key_program(form: Form, operator: int) -> KeyProgram | None:
    """The key of an operator's input, or of an output that a line readies records for."""
    if operator < NO_OPERATOR:
        return form.program.outputs[FIRST_OUTPUT - operator].key
    keys = form.program.operators[operator].keys
    return keys[0] if keys else None


def _identified(statement: ast.stmt) -> str | None:
    """The key of `if key.__class__ not in plain: key = identify(key)`."""
    if not isinstance(statement, ast.If) or len(statement.body) != 1:
        return None
    (inner,) = statement.body
    if not (isinstance(inner, ast.Assign) and isinstance(inner.value, ast.Call)):
        return None
    called, target = inner.value.func, inner.targets[0]
    if isinstance(called, ast.Name) and called.id.startswith("identify_"):
        assert isinstance(target, ast.Name)
        return target.id
    return None
