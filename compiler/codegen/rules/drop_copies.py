"""Removes copies of records that no other code can change.

>>> change("drop_copies", lambda numbers: numbers.map(lambda x: [x]).map(lambda row: row * 2))
-   if value_2.__class__ not in IMMUTABLE:
-     value_2 = own_copy(value_2)

A record needs no copy in three cases:

- Its type is immutable.
- The function that created it is inlined and holds no other reference to it.
- The record is shared, and no reader changes records: exchanges copy by pickling, and inlined expressions only read.
"""

from __future__ import annotations

import ast
import json
import math
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.analysis import changes_object, fresh_of, only_reads, types_of
from opchain.compiler.codegen.displays import MAKERS
from opchain.compiler.codegen.function_source import calls_builtin
from opchain.compiler.codegen.internal_functions import Trait, calls
from opchain.compiler.codegen.static_types import is_frozen, type_of

if TYPE_CHECKING:
    from opchain.compiler.codegen.static_types import Types

_READS_ONLY = (json.loads, *(function for function in vars(math).values() if callable(function)))
"""Functions of libraries that keep and change no argument."""


def drop_copies(form: f.Form) -> None:
    """Removes each `CopyIfMutable` that makes no observable difference."""
    for function in form.functions:
        _drop_copies(form, function)


def _drop_copies(form: f.Form, function: f.Function) -> None:
    if not any(isinstance(item, f.CopyIfMutable) for item in f.all_statements(function.body)):
        return
    types = types_of(function, form)
    fresh = fresh_of(function, types)
    harmless = _is_harmless(form, function, types)
    dropped: set[str] = set()

    def rewrite(statement: ast.stmt) -> f.Lines | None:
        if not isinstance(statement, f.CopyIfMutable):
            return None
        kept = statement.target.id
        is_fork = notes.is_fork(statement)
        if notes.is_stored(statement):
            needless = harmless or _is_only_computed_with(function, kept)
        else:
            needless = harmless if is_fork else kept in fresh
        if needless or is_frozen(types.get(kept)):
            if is_fork:
                dropped.add(kept)
            return []
        form.names.bind("IMMUTABLE", "shared")
        form.names.bind("own_copy", "shared")
        return None

    function.body = f.rewritten(function.body, rewrite)
    # `value_to_0` and `value` are the same object.
    f.forward_variables(function, lambda name, _: name in dropped)


def _is_only_computed_with(function: f.Function, variable: str) -> bool:
    """Whether only fields of a record are read, and each is an operand. An operation creates a new object."""
    reads = operands = 0
    for statement in f.all_statements(function.body):
        nodes = list(f.own_nodes(statement))
        reads += sum(f.is_load_of(node, variable) for node in nodes)
        found = [statement.value] if isinstance(statement, ast.AugAssign) else []
        for node in nodes:
            if isinstance(node, ast.BinOp):
                found += [node.left, node.right]
            elif isinstance(node, ast.Compare):
                found += [node.left, *node.comparators]
        operands += sum(
            isinstance(item, (ast.Subscript, ast.Attribute)) and f.is_load_of(item.value, variable)
            for item in found
        )
    return reads == operands


def _is_harmless(form: f.Form, function: f.Function, types: Types) -> bool:
    """Whether nothing in a function changes records, or passes them to code that could change them."""
    program = form.program
    for statement in f.all_statements(function.body):
        if isinstance(statement, f.Fold):
            if statement.reduced is not None and not only_reads(statement.reduced):
                return False
        elif isinstance(statement, f.Append):
            sink = getattr(statement, "sink", None)
            if sink is not None and program.operators[sink].spec.changes_records:
                return False
        elif isinstance(statement, f.Send) or f.selects_key(statement):
            continue
        elif changes_object(statement) or (
            isinstance(statement, ast.AugAssign)
            and not is_frozen(types.get(getattr(statement.target, "id", "")))
        ):
            return False
        if isinstance(statement, (f.Fold, f.Append, f.CopyIfMutable, f.Count)):
            continue
        if not all(_is_pure(part, types, form) for part in f.own_expressions(statement)):
            return False
    return True


def _is_pure(node: ast.expr, types: Types, form: f.Form) -> bool:
    """Whether an expression has no side effects, including the internal functions that it calls."""
    for item in ast.walk(node):
        if isinstance(item, ast.Attribute):
            if item.attr != "__class__" and type_of(item.value, types) is not str:
                return False
        elif isinstance(item, ast.Call) and not isinstance(item.func, ast.Attribute):
            called = f.called(item)
            is_own = calls(item, Trait.KEEPS_NOTHING) or called == "zip" or notes.is_fresh(item)
            function = form.constants.get(called)
            is_known = calls_builtin(item) or any(function is known for known in _READS_ONLY)
            if not is_own and called not in MAKERS and not is_known:
                return False
    return True
