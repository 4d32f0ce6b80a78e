"""Removes checks of values whose types are known: keys that are used as they are, and timestamps that are ints.

If a key is a tuple, only the fields of unknown types are checked.

>>> change(
...     "trust_known_types",
...     lambda numbers: numbers.map(lambda x: (x % 7, x**2)).key_by(lambda row: row[0]).max(1),
...     vertex=1,
... )
-   if key_0.__class__ not in plain_keys_0:
-     key_0 = identify_0(key_0)
>>> change(
...     "trust_known_types",
...     lambda numbers: numbers.map(lambda x: (str(x), x**2)).key_by(lambda row: row).max(1),
...     vertex=1,
... )
-   if key_0.__class__ not in plain_keys_0:
+   if key_0[1].__class__ not in plain_fields_0:
"""

from __future__ import annotations

import ast
from typing import Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.analysis import types_of
from opchain.compiler.codegen.keys import fields_looked_at, key_program
from opchain.compiler.codegen.names import stem
from opchain.runtime.state.keys.key_identity import key_identity


def trust_known_types(form: f.Form) -> None:
    """Removes the check of a key's class."""
    for function in form.functions:
        _plain_keys(form, function)


def _plain_keys(form: f.Form, function: f.Function) -> None:
    types = types_of(function, form)

    def rewrite(statement: ast.stmt) -> f.Lines | None:
        if _checks_for_int(statement, types):
            return []
        key = _identified(statement)
        if key is None:
            return None
        program = key_program(form, notes.operator(statement))
        kind = types.get(key)
        if program is not None and kind in key_identity(program.hasher).plain:
            return []
        looked_at = fields_looked_at(form, notes.operator(statement), key, kind)
        if looked_at is not None:
            assert isinstance(statement, ast.If)
            statement.test = f.expression(looked_at)
        return None

    function.body = f.rewritten(function.body, rewrite)


def _checks_for_int(statement: ast.stmt, types: dict[str, Any]) -> bool:
    """Whether a statement is `if x.__class__ is not int: ...`, and x is known to be an int."""
    match statement:
        case ast.If(
            test=ast.Compare(
                left=ast.Attribute(value=ast.Name(id=name), attr="__class__"),
                ops=[ast.IsNot()],
                comparators=[ast.Name(id="int")],
            )
        ):
            return types.get(name) is int
    return False


def _identified(statement: ast.stmt) -> str | None:
    """The key of `if key.__class__ not in plain: key = identify(key)`."""
    match statement:
        case ast.If(body=[ast.Assign(targets=[ast.Name(id=key)], value=value)]):
            return key if stem(f.called(value)) == "identify" else None
    return None
