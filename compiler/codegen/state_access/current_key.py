"""Which code of a keyed function may read the current key, so that it is set only there."""

from __future__ import annotations

import ast
import inspect
from types import FunctionType
from typing import Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.changing_attributes import called_by_syntax
from opchain.compiler.codegen.function_source import calls_builtin
from opchain.compiler.codegen.internal_functions import Trait, has
from opchain.compiler.codegen.state_access.declared_states import states_are_handed_on

_METHODS = frozenset(
    {
        *("add", "append", "copy", "count", "discard", "endswith", "extend", "format", "get"),
        *("index", "insert", "items", "join", "keys", "lower", "pop", "replace", "setdefault"),
        *("sort", "split", "startswith", "strip", "update", "upper", "values"),
    }
)
"""Methods of containers and texts: they don't ask for the current key."""


_FUNCTIONS = (FunctionType, staticmethod, classmethod)


def handles_in(block: f.Lines, handles: set[str]) -> set[str]:
    """Variables that may refer to the function, its context, or objects that it got from these."""
    for statement in f.all_statements(block):
        if isinstance(statement, ast.Assign) and any(
            f.reads(statement.value, name) for name in handles
        ):
            handles = handles | set(f.stores([statement]))
    return handles


def calls_hidden_code(block: f.Lines, kind: Any, owner: str, handles: set[str]) -> bool:
    """Whether an attribute or operator may call code that reads the key: of the function's class, or of another object."""
    if states_are_handed_on(kind):
        return True  # `self.shown + 1` may call a method that reads a state
    called = {id(node.func) for node in f.nodes(block) if isinstance(node, ast.Call)}
    for node in f.nodes(block):
        if not isinstance(node, ast.Attribute) or id(node) in called or node.attr == "__class__":
            continue
        if f.is_load_of(node.value, owner):
            member = inspect.getattr_static(kind, node.attr, None)
            if hasattr(type(member), "__get__") and not isinstance(member, _FUNCTIONS):
                return True
        elif any(f.reads(node.value, name) for name in handles):
            return True
    return False


def with_key(block: f.Lines, set_key: ast.stmt, handles: set[str]) -> f.Lines:
    """A block that sets the current key before code that may read it: at its start, or in branches."""
    operator = notes.operator(set_key)
    readers = [item for item in block if reads_key(item, operator, handles)]
    if not all(
        isinstance(item, ast.If) and not _reads_key_itself(item, handles) for item in readers
    ):
        return [set_key, *block]
    for item in readers:
        for inner in f.blocks(item):
            inner[:] = with_key(inner, f.copied(set_key), handles)
    return block


def reads_key(statement: ast.stmt, operator: int, handles: set[str]) -> bool:
    """Whether a statement, or a statement inside it, may read the current key of the operator."""
    return any(
        _reads_key_itself(item, handles)
        for item in f.all_statements([statement])
        if notes.operator(item) == operator
    )


def _reads_key_itself(statement: ast.stmt, handles: set[str]) -> bool:
    """Whether an expression of a statement calls unknown code, or passes a handle to other code."""
    parts = list(f.own_nodes(statement))
    used = [item for node in (statement, *parts) for item in called_by_syntax(node)]
    if any(f.reads(item, name) for item in used for name in handles):
        return True
    for call in parts:
        if not isinstance(call, ast.Call) or notes.has_key(call):
            continue
        called = call.func
        if any(f.reads(call, name) for name in handles):
            return True
        if notes.is_fresh(call):
            continue  # it only makes a record
        if isinstance(called, ast.Name):
            is_builtin = called.id == "iter" or calls_builtin(call)
            if not is_builtin and not has(called.id, Trait.NEEDS_NO_KEY):
                return True
        elif not (isinstance(called, ast.Attribute) and called.attr in _METHODS):
            return True
    return False
