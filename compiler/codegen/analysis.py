"""Data flow analysis of generated functions: types of variables, and values to which no other code has a reference."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache, partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.displays import MAKERS
from opchain.compiler.codegen.function_source import BUILTINS, calls_builtin
from opchain.compiler.codegen.internal_functions import Trait, calls
from opchain.compiler.codegen.static_types import (
    ColumnsOf,
    IterableOf,
    TupleOf,
    is_frozen,
    item_type,
    type_of,
    type_of_constant,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opchain.compiler.codegen.static_types import StaticType, Types

    Setting = tuple[str, Callable[[Types], StaticType | None]]

_PASSES = 4


def types_of(function: f.Function, form: f.Form) -> Types:
    """The type of each variable whose values all have the same exact type."""
    given = dict(function.types)
    for name, value in form.constants.items():
        given[name] = type_of_constant(value)
    return _types_in(function.body, given)


def _types_in(block: f.Lines, given: Types) -> Types:
    """The types of variables after a block, given some types before it."""
    settings = list(_settings(block))
    changeable = cache(lambda: _may_be_changed(block))  # few blocks have lists
    known: Types = dict(given)
    for _ in range(_PASSES):
        found: Types = dict(given)
        current = dict(known)
        for name, of in settings:
            if name in given:
                continue
            kind = of(current)
            if isinstance(kind, IterableOf) and name in changeable():
                kind = None
            if found.get(name, kind) != kind or known.get(name, kind) is None:
                kind = None  # a loop may read it before it is set again
            found[name] = current[name] = kind
        if found == known:
            return known
        known = found
    return given


def _may_be_changed(block: f.Lines) -> set[str]:
    """The variables whose lists may be changed, because code does more with them than read their items."""
    read: Counter[str] = Counter()
    for node in f.nodes(block):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            read[node.id] += 1
        elif (item := _looked_at(node)) is not None:
            read[item.id] -= 1
    return {name for name, others in read.items() if others}


def _looked_at(node: ast.AST) -> ast.Name | None:
    """The variable of which an expression or a statement only reads items."""
    whole: ast.AST | None = None
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        whole = node.value
    elif isinstance(node, (ast.For, ast.comprehension)):
        whole = node.iter
    elif isinstance(node, f.ForEachResult):
        whole = node.iterable
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
        whole = node.value
    elif f.is_call_of(node, {"len"}):
        whole = node.args[0]  # type: ignore[attr-defined]
    return whole if isinstance(whole, ast.Name) else None


def _settings(block: f.Lines) -> Iterator[Setting]:
    for statement in f.all_statements(block):
        yield from _settings_of(statement)
        for handler in getattr(statement, "handlers", ()):
            yield handler.name or "", lambda _: None
        for name in f.imported(statement):
            yield name, lambda _: None
        for item in statement.items if isinstance(statement, ast.With) else ():
            yield from _unpacked(item.optional_vars, lambda _: None)
        nodes = list(f.own_nodes(statement))
        within = {
            id(inner)
            for node in nodes
            if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp))
            for inner in f.walk(node)
        }  # it may read the variables of the comprehension
        for node in nodes:
            if isinstance(node, ast.NamedExpr):
                of = _shared(_typed(node.value))
                yield node.target.id, (lambda _: None) if id(node) in within else of


def _settings_of(statement: ast.stmt) -> Iterator[Setting]:
    if isinstance(statement, ast.Assign):
        if calls(statement.value, Trait.KEEPS_TYPE):
            return
        of = _typed(statement.value)
        for target in statement.targets:
            yield from _unpacked(target, of if len(statement.targets) == 1 else _shared(of))
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        changed = ast.BinOp(f.name(statement.target.id), statement.op, statement.value)
        yield statement.target.id, _typed(changed)
    elif isinstance(statement, (ast.For, f.ForEachResult)):
        iterable = statement.iter if isinstance(statement, ast.For) else statement.iterable
        of = _typed(iterable)
        yield from _unpacked(statement.target, lambda types: item_type(of(types)))
    elif isinstance(statement, f.Fold):
        yield statement.previous, partial(_folded, statement)
        if statement.target is not None:
            yield statement.target.id, partial(_folded, statement)


def _folded(fold: f.Fold, types: Types) -> StaticType | None:
    """The type of a reduced record, if it stays the same when another record is reduced."""
    kind = type_of(fold.value, types)
    given = {**types, fold.previous: kind}
    if fold.reduced is not None:
        return kind if type_of(fold.reduced, given) == kind else None
    assert fold.body is not None
    assert fold.target is not None
    given = {name: given[name] for name in given.keys() - f.stores(fold.body).keys()}
    return kind if _types_in(fold.body, given).get(fold.target.id) == kind else None


def _typed(node: ast.expr) -> Callable[[Types], StaticType | None]:
    return lambda types: type_of(node, types)


def _shared(of: Callable[[Types], StaticType | None]) -> Callable[[Types], StaticType | None]:
    """The type of a value that several variables refer to. A list may change through any of them."""

    def shared(types: Types) -> StaticType | None:
        kind = of(types)
        return None if isinstance(kind, IterableOf) else kind

    return shared


def _unpacked(
    target: ast.expr | None, of: Callable[[Types], StaticType | None]
) -> Iterator[Setting]:
    if isinstance(target, ast.Name):
        yield target.id, of
    elif isinstance(target, ast.Starred):
        yield from _unpacked(target.value, lambda _: None)
    elif isinstance(target, (ast.Tuple, ast.List)):
        is_plain = not any(isinstance(item, ast.Starred) for item in target.elts)
        for position, item in enumerate(target.elts):

            def part(types: Types, position: int = position) -> StaticType | None:
                whole = of(types)
                if not isinstance(whole, TupleOf):
                    return item_type(whole)
                return whole.items[position] if is_plain and position < len(whole.items) else None

            yield from _unpacked(item, part)


def only_reads(node: ast.expr) -> bool:
    """Whether an expression calls only harmless builtins, and reads no attribute.

    Reading an attribute may run any code of its class, and may return the same object each time.
    """
    for item in f.walk(node):
        if isinstance(item, ast.Attribute) and notes.is_field(item):
            continue
        if isinstance(item, (ast.Attribute, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
            return False
        is_known = calls_builtin(item) or f.called(item) in MAKERS
        if isinstance(item, ast.Call) and not is_known:
            return False
    return True


def fresh_of(function: f.Function, types: Types) -> set[str]:
    """The variables whose values need no copy: those of `owned_of`, and the records that arrive."""
    return owned_of(function, types) | function.fresh


def owned_of(function: f.Function, types: Types) -> set[str]:
    """The variables whose values are immutable, or to which no other code has a reference, as far as it changes them."""
    values: dict[str, list[ast.expr]] = {}
    others: set[str] = set()
    for statement in f.all_statements(function.body):
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    values.setdefault(target.id, []).append(statement.value)
                else:
                    others |= f.names_in([target])
    escaped = escaping_of(function) | _held_twice(function, types)
    fresh, times = function.fresh - escaped, f.stores(function.body)
    fresh |= {name for name, kind in types.items() if is_frozen(kind)}
    for _ in range(_PASSES):
        before = len(fresh)
        for name, found in values.items():
            is_plain = name not in escaped | others and len(found) == times[name]
            if is_plain and all(_is_fresh(value, fresh) for value in found):
                fresh.add(name)
        if len(fresh) == before:
            break
    return fresh


def _is_fresh(value: ast.expr, fresh: set[str]) -> bool:
    if isinstance(value, ast.Call) and notes.is_fresh(value):
        given = value.args[f.called(value) == "new_tuple" :]  # without the class
        named = [keyword.value for keyword in value.keywords]
        return all(_is_fresh(argument, fresh) for argument in [*given, *named])
    if not only_reads_or_fresh(value):
        return False
    bound = {
        node.id
        for node in f.walk(value)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return all(
        node.id in fresh or node.id in bound or node.id in BUILTINS
        for node in f.walk(value)
        if isinstance(node, ast.Name)
    )


def only_reads_or_fresh(node: ast.expr) -> bool:
    """Like `only_reads`, but also allows calls that return new objects."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(map(only_reads_or_fresh, node.elts))
    if isinstance(node, ast.Call) and notes.is_fresh(node):
        return True
    return only_reads(node)


def escaping_of(function: f.Function) -> set[str]:  # noqa: C901 - one branch a statement
    """The variables that are stored, or passed to code that may keep a reference."""
    found: set[str] = set()
    for statement in f.all_statements(function.body):
        if isinstance(statement, f.Send) or f.selects_key(statement):
            continue  # a key selector gets the record that is sent, so a copy does not protect it
        if isinstance(statement, (ast.Assign, ast.AugAssign)) and changes_object(statement):
            found |= _names(statement.value)
        for node in f.walk(statement) if not list(f.blocks(statement)) else ():
            if isinstance(node, ast.Call) and not (
                calls_builtin(node) or calls(node, Trait.KEEPS_NOTHING)
            ):
                for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                    found |= _names(argument)
                if isinstance(node.func, ast.Attribute):
                    found |= _names(node.func.value)
        if list(f.blocks(statement)):
            for expression in f.own_expressions(statement):
                if isinstance(statement, ast.With) or not only_reads_or_fresh(expression):
                    found |= _names(expression)
    return found


def _changed_in(target: ast.expr) -> list[ast.expr]:
    """The objects that are changed when a target is set."""
    return [
        node.value
        for node in f.walk(target)
        if isinstance(node, (ast.Attribute, ast.Subscript)) and _is_target(node)
    ]


def changes_object(statement: ast.stmt) -> bool:
    """Whether a statement stores into an object: `row[0], row[1] = 1, 2` or `for self.last in rows`."""
    return any(_changed_in(part) for part in f.own_expressions(statement))


def _held_twice(function: f.Function, types: Types) -> set[str]:
    """The variables whose object is also part of another variable's: one may be emitted, and then changed or emitted."""
    found: set[str] = set()
    uses = cache(lambda: uses_of(function.body))  # few functions have such variables
    for statement in f.all_statements(function.body):
        if not isinstance(statement, ast.Assign) or notes.is_fork(statement):
            continue
        if isinstance(statement.value, ast.Constant) or f.selects_key(statement):
            continue
        set_here = f.stores([statement]).keys()
        if len(statement.targets) > 1:
            found |= set_here
        for part in _parts(statement.value):
            name = part[0]
            if is_frozen(types.get(name)) or is_frozen(_type_of_part(part, types)):
                continue
            if sum(times for other, times in uses().items() if _overlap(part, other)) > 1:
                found |= {name, *set_here}
    return found


Part = tuple[Any, ...]
"""A variable, or a variable and one of its fields."""


def _overlap(one: Part, other: Part) -> bool:
    return one[: len(other)] == other[: len(one)]


def _type_of_part(part: Part, types: Types) -> StaticType | None:
    kind = types.get(part[0])
    if len(part) > 1 and isinstance(kind, TupleOf) and type(part[1]) is int:
        return kind.items[part[1]] if 0 <= part[1] < len(kind.items) else None
    return None


def uses_of(block: f.Lines) -> Counter[Part]:
    """How often the object of each variable is passed on or changed, at most, on one path through a block."""
    total: Counter[Part] = Counter()
    for statement in block:
        if notes.is_fork(statement):
            continue
        inner = [uses_of(item) for item in f.blocks(statement)]
        once = sum(inner, Counter())
        total += reduce(or_, inner, Counter()) if isinstance(statement, ast.If) else once
        if isinstance(statement, (ast.For, ast.While, f.ForEachResult)) and inner:
            set_here = f.stores([statement])
            total += Counter({part: uses for part, uses in once.items() if part[0] not in set_here})
        for expression in f.own_expressions(statement):
            for part in _changed_in(expression) if _is_target(expression) else [expression]:
                total.update(_parts(part))
    return total


def _parts(node: ast.AST) -> set[Part]:
    """The objects that an expression passes on, or changes: as `_names`, but a field only counts as itself."""
    if isinstance(node, ast.Name):
        return {(node.id,)}
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        if isinstance(node.slice, ast.Constant):
            return {(node.value.id, node.slice.value)}
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        if notes.is_field(node):
            return {(node.value.id, node.attr)}
    elif isinstance(node, _COMPUTED) and not any(
        isinstance(item, ast.NamedExpr) for item in f.walk(node)
    ):
        return set()
    called = node.func if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None
    return set().union(
        *(_parts(child) for child in ast.iter_child_nodes(node) if child is not called)
    )


def _is_target(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))


_COMPUTED = (ast.BinOp, ast.Compare, ast.JoinedStr, ast.UnaryOp, ast.Constant)


def _names(node: ast.AST) -> set[str]:
    """The variables that an expression passes on, except variables of which it only reads an item."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, _COMPUTED):
        return set()
    found: set[str] = set()
    for child in ast.iter_child_nodes(node):
        found |= _names(child)
    return found


def elements_of(kind: StaticType | None) -> TupleOf | None:
    """The types of the fields of a record, if records are tuples."""
    if isinstance(kind, ColumnsOf):
        return kind.record if kind.shape is None else None
    return kind if isinstance(kind, TupleOf) else None
