"""Attributes of a function object are read before a loop and stored after it, if no code in the loop can see them.

>>> from opchain.datastream import FlatMapFunction
>>> class Tally(FlatMapFunction):
...     def __init__(self):
...         self.count = 0
...     def flat_map(self, value):
...         self.count += 1
...         return ()
>>> change("cache_attributes", lambda lines: lines.flat_map(Tally()))
- for value in values:
-   self_1.count += 1
+ if not has_plain(self_1, (), ('count',)):
+   return plain_0(values)
+ attribute_1_count = self_1.count
+ try:
+   for value in values:
+     attribute_1_count += 1
+ finally:
+   self_1.count = attribute_1_count

A running sum over 1,000 keys whose results are added up this way takes a third less time. The loop may only
call builtins, look-ups in tables, and functions of opchain that change nothing, because none of them can see the object.
It may also call methods of lists, dictionaries and sets in attributes, such as `self.seen.add(value)`. If an attribute
is not simply stored in the object, such as a property, or holds something else than a list, a dictionary or a set, the
original loop processes the batch. Changed attributes are stored even if the loop fails.
"""

from __future__ import annotations

import ast
from itertools import combinations
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.function_source import BUILTINS
from opchain.compiler.codegen.internal_functions import SETS_KEY, TABLES, Trait, has
from opchain.compiler.codegen.names import stem
from opchain.compiler.codegen.source_text import text_of
from opchain.runtime.program.vertex_program import NO_OPERATOR

if TYPE_CHECKING:
    from collections.abc import Iterator


_OF_CONTAINERS = frozenset(
    {
        *("add", "append", "appendleft", "clear", "copy", "count", "discard", "extend", "get"),
        *("index", "insert", "items", "keys", "pop", "popleft", "remove", "setdefault", "update"),
        "values",
    }
)
"""Methods of lists, dictionaries, sets and deques, which call no code but that of their items."""

_OF_ITEMS = {"len", "list", "max", "min", "set", "sorted", "sum", "tuple"}
"""Builtins that take such a container."""


def cache_attributes(form: f.Form) -> None:
    """Rewrites the loops of functions over batches."""
    for function in form.batch_functions():
        if function.kind in ("process", "batch") and len(function.body) == 1:
            (loop,) = function.body
            if isinstance(loop, ast.For):
                _rewrite(form, function, loop)


def _rewrite(form: f.Form, function: f.Function, loop: ast.For) -> None:
    nodes = [node for item in f.all_statements(loop.body) for node in f.own_nodes(item)]
    uses = [node for node in nodes if isinstance(node, ast.Attribute) and _is_of_object(node)]
    of_objects = set(map(id, uses))
    others = (node for node in nodes if id(node) not in of_objects)
    names = sum(isinstance(node, ast.Name) and node.id.startswith("self_") for node in nodes)
    if not uses or names != len(uses) or not all(_is_harmless(form, node) for node in others):
        return  # an object is handed on as a whole, or something else may see it
    runs_others = any(isinstance(item, ast.With) for item in f.all_statements(loop.body))
    if runs_others or any(isinstance(node.ctx, ast.Del) for node in uses):
        return
    held = {text_of(item) for item in _containers(loop, nodes)}
    if not all(_stays_container(statement, held) for statement in f.all_statements(loop.body)):
        return
    found: dict[str, dict[str, bool]] = {}
    for node in uses:
        attributes = found.setdefault(text_of(node.value), {})
        is_stored = isinstance(node.ctx, ast.Store)
        attributes[node.attr] = attributes.get(node.attr, False) or is_stored
    owners = sorted(found)
    f.insert_fallback(form, function, function.copy(), "plain")
    form.names.bind("has_plain", "has_plain")
    guards = [f.expression(f"{one} is not {other}") for one, other in combinations(owners, 2)]
    before: f.Lines = []
    behind: f.Lines = []
    for owner in owners:
        index = int(owner.rpartition("_")[2])
        plain_names = tuple(sorted(found[owner]))
        of_owner = tuple(name for name in plain_names if f"{owner}.{name}" in held)
        held_names = f", {of_owner!r}" if of_owner else ""
        guards.append(f.expression(f"has_plain({owner}, (), {plain_names!r}{held_names})"))
        for name, is_stored in sorted(found[owner].items()):
            variable = _variable(owner, name)
            before += f.statements(f"{variable} = {owner}.{name}", index)
            if is_stored:
                behind += f.statements(f"{owner}.{name} = {variable}", index)
    function.guards = [*guards, *function.guards]
    rewritten: ast.stmt = f.changed(loop, _as_variable)
    if behind:
        rewritten = ast.Try([rewritten], [], [], behind)
        f.marked([rewritten], NO_OPERATOR)
    function.body = [*before, rewritten]
    for owner in owners:
        form.remark(int(owner.rpartition("_")[2]), "reads attributes once a batch")


def _containers(loop: ast.For, nodes: list[ast.AST]) -> Iterator[ast.expr]:
    """The attributes of function objects that are used as lists, dictionaries or sets."""
    for statement in f.all_statements(loop.body):
        if isinstance(statement, ast.For) and _is_of_object(statement.iter):
            yield statement.iter
        elif isinstance(statement, f.ForEachResult) and _is_of_object(statement.iterable):
            yield statement.iterable
    for node in nodes:
        if isinstance(node, ast.comprehension) and _is_of_object(node.iter):
            yield node.iter
        elif isinstance(node, ast.Call) and not notes.is_state(node):
            yield from filter(_is_of_object, node.args)
            if isinstance(node.func, ast.Attribute) and _is_of_object(node.func.value):
                yield node.func.value


def _stays_container(statement: ast.stmt, held: set[str]) -> bool:
    """Whether a statement sets the attributes in `held` to lists, dictionaries or sets only."""
    if isinstance(statement, ast.Assign):
        stored = {text_of(target) for target in statement.targets if _is_of_object(target)}
        return not stored & held or isinstance(statement.value, (ast.List, ast.Dict, ast.Set))
    return not any(
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and text_of(node) in held
        for node in f.own_nodes(statement)
    )


def _variable(owner: str, name: str) -> str:
    return f"attribute_{owner.rpartition('_')[2]}_{name}"


def _is_of_object(node: ast.AST) -> bool:
    """Whether a node is an attribute of a function object: `self_1.count`."""
    match node:
        case ast.Attribute(value=ast.Name(id=owner)):
            return owner.startswith("self_")
    return False


def _is_harmless(form: f.Form, node: ast.AST) -> bool:
    """Whether a node runs no code that could see a function object."""
    if isinstance(node, ast.Attribute):
        return _is_look_up(node) or node.attr == "__class__" or notes.is_field(node)
    if isinstance(node, ast.Call):
        called = node.func
        if node.keywords:
            return False  # a key function may be the object's own
        if any(map(_is_of_object, node.args)):
            return f.is_call_of(node, _OF_ITEMS)
        if isinstance(called, ast.Attribute):
            return _is_look_up(called) or notes.is_state(node)
        return isinstance(called, ast.Name) and (
            called.id in BUILTINS
            or has(called.id, Trait.SEES_NO_ATTRIBUTE)
            or _only_sets_key(form, called.id)
        )
    return not isinstance(node, (ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom, ast.Starred))


def _only_sets_key(form: f.Form, name: str) -> bool:
    """Whether a call only sets the current key. In batch mode it may also fire the timers of the previous key."""
    if stem(name) not in SETS_KEY:
        return False
    operator = form.program.operators[int(name.rpartition("_")[2])]
    return not (form.program.is_batch and operator.spec.makes_timestamps)


def _is_look_up(node: ast.Attribute) -> bool:
    """Whether a node is `table_0.get` or `table_0.pop`, or a method of a list, dictionary or set: `self_1.seen.add`."""
    owner = node.value
    if _is_of_object(owner):
        return node.attr in _OF_CONTAINERS
    return node.attr in ("get", "pop") and isinstance(owner, ast.Name) and stem(owner.id) in TABLES


def _as_variable(node: ast.AST) -> ast.expr | None:
    """The variable of an attribute of a function object."""
    if not _is_of_object(node):
        return None
    owner, name, context = node.value.id, node.attr, node.ctx  # type: ignore[attr-defined]
    return f.placed(ast.Name(_variable(owner, name), context), node)
