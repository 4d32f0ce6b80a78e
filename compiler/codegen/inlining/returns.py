"""Rewrites an inlined function: replaces each `return`, and moves each `yield` out of a `try`.

The code that processes a returned value replaces a `return` at the end of a function or of a branch. In a loop or a
`try` it must be an assignment, because the function would catch errors of other code. For the same reason, records are
emitted after the `try`:

    try:                                    try:
        yield parse(value)                      parsed = parse(value)
    except ValueError as error:             except ValueError as error:
        yield BAD, str(error)         ->        text, is_caught = str(error), True
                                            else:
                                                yield parsed
                                            if is_caught:
                                                yield BAD, text

A `yield` at the end of a branch is emitted there if a variable says that the branch was taken.

If a branch may return but need not, the statements after the `if` are in both branches.
"""

from __future__ import annotations

import ast
from itertools import takewhile
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.function_source import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from opchain.compiler.codegen.function_source import Definition

    Give = Callable[[ast.expr | None], f.Lines]
    """What happens to the value that a function returns; None where it returns nothing."""

_MOST_REPEATED = 10
"""Statements after an `if` that may return. They are in both branches."""

_LOOPS = (ast.For, ast.While)
_YIELDS = (ast.Yield, ast.YieldFrom)


def structured(body: f.Lines, give: Give, definition: Definition) -> f.Lines:
    """A body whose `return`s are replaced by what happens to the value."""
    done: f.Lines = []
    for position, statement in enumerate(body):
        rest = body[position + 1 :]
        if isinstance(statement, ast.Return):
            return [*done, *give(statement.value)]
        if isinstance(statement, ast.Raise):
            return [*done, statement]
        if _returns(statement):
            if isinstance(statement, ast.If):
                lines = _branches(statement, rest, give, definition)
            elif isinstance(statement, _LOOPS):
                lines = _loop(statement, rest, give, definition)
            else:
                assert isinstance(statement, ast.Try)
                lines = _try(statement, rest, give, definition)
            return [*done, *lines]
        if isinstance(statement, ast.Pass):
            continue
        done.append(statement)
    return [*done, *give(None)]


def returns_within(body: f.Lines) -> bool:
    """Whether a loop or a `try` has a `return`."""
    return any(
        isinstance(statement, (*_LOOPS, ast.Try)) and _returns(statement)
        for statement in f.all_statements(body)
    )


def _branches(statement: ast.If, rest: f.Lines, give: Give, definition: Definition) -> f.Lines:
    if _leaves(statement.body):
        branches = statement.body, [*statement.orelse, *rest]
    elif _leaves(statement.orelse):
        branches = [*statement.body, *rest], statement.orelse
    elif not definition.is_generator and sum(1 for _ in f.all_statements(rest)) <= _MOST_REPEATED:
        branches = [*statement.body, *f.copied(rest)], [*statement.orelse, *rest]
    else:
        raise Refused(
            f"{definition.name} returns from the middle (line {statement.lineno}); return from both "
            "branches, or at the end"
        )
    first, second = (structured(branch, give, definition) for branch in branches)
    if first:
        return [ast.If(statement.test, first, second)]
    if second:
        return [ast.If(ast.UnaryOp(ast.Not(), statement.test), second, [])]
    return [ast.Expr(statement.test)]


def _loop(
    statement: ast.For | ast.While, rest: f.Lines, give: Give, definition: Definition
) -> f.Lines:
    """A loop with a `break` in place of its `return`. The statements after it become its `else`."""
    within = list(f.all_statements(statement.body))
    emits_and_returns = any(map(notes.emits_caught, within)) and returns_within(statement.body)
    if emits_and_returns or any(isinstance(item, (*_LOOPS, ast.Break)) for item in within):
        raise Refused(
            f"{definition.name} returns from within a loop (line {statement.lineno}); break, and return after the loop"
        )

    def rewrite(item: ast.stmt) -> f.Lines | None:
        return [*give(item.value), ast.Break()] if isinstance(item, ast.Return) else None

    statement.body = f.rewritten(statement.body, rewrite)
    statement.orelse = structured([*statement.orelse, *rest], give, definition)
    return [statement]


def _try(statement: ast.Try, rest: f.Lines, give: Give, definition: Definition) -> f.Lines:
    """A `try` without statements after it: they become its `else`, or the end of a handler."""
    emits_caught = list(takewhile(notes.emits_caught, rest))
    rest = rest[len(emits_caught) :]
    is_simple = _is_harmless(rest)
    body_returns = any(map(_returns, statement.body))
    if statement.finalbody or (body_returns and not _leaves(statement.body)):
        raise Refused(
            f"{definition.name} returns from the middle of a try (line {statement.lineno}); set a variable, "
            "and return after the try"
        )
    for handler in statement.handlers:
        if not (_leaves(handler.body) or (is_simple and not any(map(_returns, handler.body)))):
            raise Refused(
                f"{definition.name} returns in a try, but not in its except (line {handler.lineno}); "
                "return from each except"
            )
        behind = [] if _leaves(handler.body) else f.copied(rest)
        handler.body = structured([*handler.body, *behind], give, definition)
    if body_returns:
        statement.body, statement.orelse = structured(statement.body, give, definition), []
    else:
        statement.orelse = structured([*statement.orelse, *rest], give, definition)
    return [statement, *emits_caught]


def _is_harmless(rest: f.Lines) -> bool:
    """Whether statements only return a constant or a variable, which cannot fail, so they may be in an `except`."""
    first = rest[0] if rest else ast.Return()
    if not isinstance(first, ast.Return):
        return False
    value = first.value
    is_empty = isinstance(value, (ast.List, ast.Tuple)) and not value.elts
    return value is None or is_empty or isinstance(value, (ast.Constant, ast.Name))


def _returns(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Return) for node in ast.walk(statement))


def _leaves(block: f.Lines) -> bool:
    if not block:
        return False
    last = block[-1]
    if isinstance(last, ast.If):
        return _leaves(last.body) and _leaves(last.orelse)
    if isinstance(last, ast.Try):
        ends = _leaves(last.body) or _leaves(last.orelse)
        return ends and all(_leaves(handler.body) for handler in last.handlers)
    return isinstance(last, (ast.Return, ast.Raise))


def yields_behind_tries(
    body: f.Lines, fresh: Callable[[str], str], definition: Definition
) -> f.Lines:
    """A generator's body in which no `try` has a `yield`, except in its `else`. `fresh` names variables."""
    end = body[-1]

    def rewrite(statement: ast.stmt) -> f.Lines | None:
        if not isinstance(statement, ast.Try):
            return None
        before, behind = [], []
        if statement is end and not statement.orelse:
            statement.body = _without_early_returns(statement.body)
        count = len(statement.body) - _is_harmless(statement.body[-1:])
        block, returned = statement.body[:count], statement.body[count:]
        taken, flags = ([], []) if statement.finalbody else _taken_from_branches(block, fresh)
        if taken:
            before += [_set(flag, ast.Constant(value=False)) for flag in flags]
            statement.body = block or [ast.Pass()]
            statement.orelse = [*taken, *returned, *statement.orelse]
        for handler in statement.handlers:
            if not statement.finalbody and _ends_with_yield(handler.body):
                is_caught = fresh("is_caught")
                returned = [handler.body.pop()] if isinstance(handler.body[-1], ast.Return) else []
                yielded = _taken_out(handler.body, fresh, handler.name)
                handler.body += [_set(is_caught, ast.Constant(value=True)), *returned]
                before.append(_set(is_caught, ast.Constant(value=False)))
                emits = ast.If(f.name(is_caught), [yielded], [])
                notes.emits_caught.set(emits, True)
                behind.append(emits)
        held = [statement.body, statement.finalbody, *(item.body for item in statement.handlers)]
        if statement.finalbody:
            held.append(statement.orelse)
        if any(isinstance(node, _YIELDS) for block in held for node in f.nodes(block)):
            raise Refused(
                f"{definition.name} yields within a try (line {statement.lineno}); yield after the try, or at its end"
            )
        return [*before, statement, *behind]

    return f.rewritten(body, rewrite)


def _without_early_returns(block: f.Lines) -> f.Lines:
    """A block at the end of a generator in which the statements after an `if` that returns are its `else`."""
    for position, statement in enumerate(block):
        match statement:
            case ast.If(body=[*lines, ast.Return(value=None)], orelse=[]):
                rest = _without_early_returns(block[position + 1 :])
                branches = ast.If(statement.test, lines or [ast.Pass()], rest)
                return [*block[:position], ast.copy_location(branches, statement)]
    return block


def _taken_from_branches(block: f.Lines, fresh: Callable[[str], str]) -> tuple[f.Lines, list[str]]:
    """Takes each `yield` from the end of a block, or of a branch there. Returns these, and variables that say which to run."""
    last = block[-1] if block else None
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Yield):
        return [_taken_out(block, fresh)], []
    taken: f.Lines = []
    flags: list[str] = []
    for branch in (last.body, last.orelse) if isinstance(last, ast.If) else ():
        yielded, inner = _taken_from_branches(branch, fresh)
        if yielded:
            is_taken = fresh("is_taken")
            branch.append(_set(is_taken, ast.Constant(value=True)))
            taken.append(ast.If(f.name(is_taken), yielded, []))
            flags += [is_taken, *inner]
    return taken, flags


def _ends_with_yield(block: f.Lines) -> bool:
    """Whether nothing but a `return`, which cannot fail, follows a `yield` at the end of a block."""
    last = block[-2:] if _is_harmless(block[-1:]) else block[-1:]
    return isinstance(last[0], ast.Expr) and isinstance(last[0].value, ast.Yield)


def _taken_out(block: f.Lines, fresh: Callable[[str], str], error: str | None = None) -> ast.stmt:
    """Takes the `yield` from the end of a block, which computes the value. The variable `error` ends with the block."""
    statement = block.pop()
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Yield)

    def held(value: ast.expr) -> ast.expr:
        if isinstance(value, ast.Constant) or (isinstance(value, ast.Name) and value.id != error):
            return value
        variable = fresh("yielded")
        block.append(_set(variable, value))
        return f.name(variable)

    value = statement.value.value
    if isinstance(value, ast.Tuple) and not any(isinstance(n, ast.Starred) for n in value.elts):
        value.elts = list(
            map(held, value.elts)
        )  # a pair may be recognized as that of a side output
    elif value is not None:
        statement.value.value = held(value)
    return statement


def _set(variable: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([f.target(variable)], value, lineno=0)


def is_none(value: ast.expr | None) -> bool:
    """Whether a returned value is None."""
    return value is None or (isinstance(value, ast.Constant) and value.value is None)
