"""Rewrites `match` as `if`, for patterns of values, names and tuples, so that a function with a `match` can be inlined.

    match kind, price:                       matched, matched_too = kind, price
        case "buy" | "cart", n:              if matched == "buy" or matched == "cart":
            return n                  ->         n = matched_too
        case _:                                  return n
            return 0                         else:
                                                 return 0

A `match` with other patterns, such as classes and dictionaries, is not rewritten.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.names import unused

if TYPE_CHECKING:
    from collections.abc import Iterable

    Found = tuple[list[ast.expr], f.Lines]
    """The conditions of a pattern, and the assignments of its names."""

    Subject = ast.expr | list[ast.expr]
    """An expression without side effects, or a list with the expressions of a tuple's items."""


def without_matches(body: f.Lines, taken: Iterable[str]) -> f.Lines:
    """A body with `if` statements for each `match`. Its new variables have none of the names in `taken`."""
    if not any(isinstance(node, ast.Match) for node in f.nodes(body)):
        return body
    names = set(taken)

    def change(node: ast.AST) -> f.Lines | None:
        return _as_ifs(node, names) if isinstance(node, ast.Match) else None

    return f.changed(f.copied(body), change, inner_first=True)  # type: ignore[no-any-return]


def _as_ifs(statement: ast.Match, names: set[str]) -> f.Lines | None:
    is_tuple = isinstance(statement.subject, ast.Tuple)
    items = statement.subject.elts if is_tuple else [statement.subject]  # type: ignore[attr-defined]
    if any(isinstance(item, ast.Starred) for item in items):
        return None
    lines: f.Lines = []
    subjects: list[ast.expr] = []
    for item in items:
        if isinstance(item, ast.Name) and not is_tuple:
            subjects.append(item)
            continue
        variable = unused("matched", names)
        names.add(variable)
        subjects.append(f.name(variable))
        lines.append(ast.copy_location(ast.Assign([f.target(variable)], item), item))
    rest: f.Lines = []
    for case in reversed(statement.cases):
        found = _found(case.pattern, subjects if is_tuple else subjects[0])
        if found is None or (all(found) and case.guard is not None):
            return None
        tests, named = found
        if case.guard is not None:
            tests = [*tests, case.guard]
        before, within = (named, []) if case.guard is not None else ([], named)
        block = [*within, *case.body]
        if tests:
            condition = _joined(ast.And(), tests)
            chosen = ast.copy_location(ast.If(condition, block, rest), case.pattern)
            rest = [*before, chosen]
        else:
            rest = block
    return [*lines, *rest]


def _found(  # noqa: PLR0911 - one a kind of pattern
    pattern: ast.pattern, subject: Subject
) -> Found | None:
    """What a pattern tests and names. None for a pattern that stays."""
    match pattern, subject:
        case ast.MatchAs(pattern=None, name=None), _:
            return [], []
        case ast.MatchOr(patterns=patterns), _:
            parts = [_found(each, subject) for each in patterns]
            if any(part is None or part[1] or not part[0] for part in parts):
                return None
            return [_joined(ast.Or(), [_joined(ast.And(), part[0]) for part in parts if part])], []
        case ast.MatchSequence(patterns=patterns), [*items] if len(patterns) == len(items):
            parts = [_found(each, item) for each, item in zip(patterns, items, strict=True)]
            kept = [part for part in parts if part is not None]
            if len(kept) == len(parts):
                tests = [test for found in kept for test in found[0]]
                return tests, [line for found in kept for line in found[1]]
        case ast.MatchValue(value=value), ast.expr():
            return [_compared(subject, ast.Eq(), value, pattern)], []
        case ast.MatchSingleton(value=constant), ast.expr():
            return [_compared(subject, ast.Is(), ast.Constant(constant), pattern)], []
        case ast.MatchAs(pattern=inner, name=str(name)), ast.expr():
            found = ([], []) if inner is None else _found(inner, subject)
            named = ast.copy_location(ast.Assign([f.target(name)], subject), pattern)
            return None if found is None else (found[0], [*found[1], named])
    return None


def _compared(one: ast.expr, test: ast.cmpop, other: ast.expr, at: ast.pattern) -> ast.expr:
    return ast.copy_location(ast.Compare(one, [test], [other]), at)


def _joined(operator: ast.boolop, tests: list[ast.expr]) -> ast.expr:
    return tests[0] if len(tests) == 1 else ast.copy_location(ast.BoolOp(operator, tests), tests[0])
