"""Removes lists that are filled and then looped over: each item is processed where it would be appended.

>>> def both(x):
...     found = []
...     for number in (x, -x):
...         if number % 3:
...             found.append(number)
...     return found
>>> change("fuse_lists", lambda numbers: numbers.flat_map(both))
- returned_1 = None
-   found_fn_1 = []
-     found_fn_1.append(number_1)
-   for value_1 in (returned_1 := found_fn_1):
-     if value_1.__class__ not in IMMUTABLE:
-       value_1 = own_copy(value_1)
-     values_0.append(value_1)
+     values_0.append(number_1)

The list is a list of the user's function, or the list of its collector. With this rule, records are emitted before the
function returns. The rule applies in two cases, in which this makes no difference:

- The downstream code only appends records to lists, which are discarded if the function fails. The function does not
  change a record after it has appended it.
- The function cannot fail after it has emitted a record. All values that it reads from then on are immutable and have
  known types.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.analysis import only_reads, types_of
from opchain.compiler.codegen.displays import MAKERS
from opchain.compiler.codegen.function_source import BUILTINS
from opchain.compiler.codegen.inlining.emits import MOST_COPIES
from opchain.compiler.codegen.names import unused
from opchain.compiler.codegen.record_uses import is_answered
from opchain.compiler.codegen.static_types import (
    IterableOf,
    is_frozen,
    item_type,
    never_raises,
    type_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.compiler.codegen.static_types import StaticType, Types


_CHANGED_AS_NUMBERS = (int, float, bool, str)


def fuse_lists(form: f.Form) -> None:
    """Rewrites loops over lists that the same function fills, where this makes no difference."""
    for function in form.functions:
        _fuse_in(form, function, function.body)


def _fuse_in(form: f.Form, function: f.Function, block: f.Lines) -> None:
    for statement in block:
        for inner in f.blocks(statement):
            _fuse_in(form, function, inner)
    for made in list(block):
        name = _new_list(made)
        if name is not None and (fused := _fused(form, function, block, made, name)) is not None:
            block[:] = fused


def _fused(
    form: f.Form, function: f.Function, block: f.Lines, made: ast.stmt, name: str
) -> f.Lines | None:
    """The block without the list `name`, which its statement `made` creates; None if the list has to be built."""
    start = block.index(made)
    loops = [
        item
        for item in block
        if isinstance(item, f.ForEachResult) and f.is_load_of(item.iterable, name)
    ]
    if len(loops) != 1:
        return None
    (loop,) = loops
    end = block.index(loop)
    filling = block[start + 1 : end]
    values = [value for item in f.all_statements(filling) if (value := _appended(item, name))]
    is_other = f.stores(function.body)[name] != 1 or f.reads(function.body, name) != len(values) + 1
    size = sum(1 for _ in f.all_statements(loop.body))
    if is_other or not values or (len(values) - 1) * size > MOST_COPIES:
        return None
    types = types_of(function, form)
    kinds = [type_of(value, types) for value in values]
    if not all(kind == kinds[0] for kind in kinds) or f.stores(function.body)[loop.target.id] != 1:
        return None
    if loop.side is not None and not is_answered("tag", kinds[0]):
        return None
    given = {**function.types, loop.target.id: kinds[0]}
    types = types_of(replace(function, types=given), form)
    if not _Filling(filling, name, types).may_be_interrupted(loop.body):
        return None
    used = f.names_in(function.body)
    set_in = function.variables_of_a_record([ast.Expr(loop.target), *loop.body])
    is_first = True

    def rewrite(statement: ast.stmt) -> f.Lines | None:
        nonlocal is_first
        value = _appended(statement, name)
        if value is None:
            return None
        parts: dict[str, ast.expr] = {}
        for variable in () if is_first or kinds[0] is int else set_in:
            another = unused(variable, used, form.names.bindings)
            used.add(another)
            parts[variable] = f.name(another)
        is_first = False
        emits = f.replaced(loop, parts)
        lines = [f.let(emits.target.id, value, notes.operator(loop)), *emits.body]
        return f.with_comment(lines, notes.comment(statement))

    fused = f.with_comment(f.rewritten(filling, rewrite), notes.comment(made))
    return [*block[:start], *fused, *block[end + 1 :]]


def _new_list(statement: ast.stmt) -> str | None:
    """The variable that a statement sets to an empty list."""
    value = getattr(statement, "value", None)
    is_empty = isinstance(value, ast.List) and not value.elts
    return f.variable_set(statement) or None if is_empty else None


def _appended(statement: ast.stmt, name: str) -> ast.expr | None:
    """The value that a statement appends to a list."""
    method, given = f.method_called(statement, name)
    is_one = method == "append" and len(given) == 1 and not isinstance(given[0], ast.Starred)
    return given[0] if is_one else None


class _Filling:
    """The statements that fill a list."""

    def __init__(self, block: f.Lines, name: str, types: Types) -> None:
        self._name = name
        self._types = types
        first = next(
            place
            for place, item in enumerate(block)
            if any(_appended(inner, name) for inner in f.all_statements([item]))
        )
        self._later = block[first:]

    def may_be_interrupted(self, block: f.Lines) -> bool:
        """Whether an item may be processed by a block when it is appended."""
        if not all(map(self._is_simple, f.all_statements(self._later))):
            return False
        expressions = list(self._expressions())
        if all(self._waits(item) for item in f.all_statements(block)):
            return all(only_reads(item) or self._is_quiet(item) for item in expressions)
        read = f.names_in(expressions)
        return (
            all(map(self._is_quiet, expressions))
            and all(_is_constant(self._types.get(name)) for name in read - BUILTINS.union(MAKERS))
            and not any(map(_unpacks, f.all_statements(self._later)))
        )

    def _expressions(self) -> Iterator[ast.expr]:
        """What is computed once an item may have been appended."""
        for item in f.all_statements(self._later):
            if (value := _appended(item, self._name)) is not None:
                yield value
            elif isinstance(item, ast.For):
                if item is not self._later[0] or item_type(type_of(item.iter, self._types)) is None:
                    yield item.iter
            elif not (isinstance(item, ast.If) and item is self._later[0]):
                yield from (
                    part
                    for part in f.own_expressions(item)
                    if not isinstance(getattr(part, "ctx", None), ast.Store)
                )

    def _is_simple(self, item: ast.stmt) -> bool:
        """Whether a statement only sets variables, and decides."""
        if isinstance(item, ast.Assign):
            return all(_is_variable(target) for target in item.targets)
        if isinstance(item, ast.AugAssign):
            target = item.target
            kind = self._types.get(target.id) if isinstance(target, ast.Name) else None
            return kind is not None and kind in _CHANGED_AS_NUMBERS
        if isinstance(item, ast.For):
            return _is_variable(item.target)
        return isinstance(item, (ast.Expr, ast.If, ast.While, ast.Pass, ast.Continue, ast.Break))

    def _waits(self, item: ast.stmt) -> bool:
        """Whether a statement that processes an item has no effect before the batch ends, and never raises."""
        if isinstance(item, f.CopyIfMutable):
            return is_frozen(self._types.get(item.target.id))
        if isinstance(item, ast.Assign):
            is_set = all(map(_is_variable, item.targets))
            return is_set and isinstance(item.targets[0], ast.Name) and self._is_quiet(item.value)
        if not isinstance(item, (f.Send, f.Append, f.Count, ast.If)):
            return False
        return all(map(self._is_quiet, f.own_expressions(item)))

    def _is_quiet(self, node: ast.expr) -> bool:
        return never_raises(node, self._types)


def _is_variable(target: ast.expr) -> bool:
    """Whether a target only sets variables."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(map(_is_variable, target.elts))
    return isinstance(target, ast.Name)


def _unpacks(statement: ast.stmt) -> bool:
    """Whether a statement takes a value apart, which may raise."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    targets = [statement.target] if isinstance(statement, ast.For) else targets
    return not all(isinstance(target, ast.Name) for target in targets)


def _is_constant(kind: StaticType | None) -> bool:
    """Whether no other code can change values of a type. Lists have a type only where none changes them."""
    return is_frozen(kind) or isinstance(kind, IterableOf)
