"""Checks whether the body of a function can replace a call in a loop over records. `Refused` says why it cannot."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.function_source import Refused
from opchain.compiler.codegen.source_text import text_of

if TYPE_CHECKING:
    from opchain.compiler.codegen.function_source import Definition

    Lines = list[ast.stmt]

LONGEST = 400
"""Characters of an expression; a longer one stays a call, so that the loop remains readable."""

MOST_STATEMENTS = 60

_SIMPLE = (
    *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.Pass, ast.Raise),
    *(ast.Continue, ast.Break, ast.Assert, ast.If, ast.For, ast.While, ast.Try),
)
_OUTLIVES = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_REFUSED = (ast.Await, ast.AsyncFor, ast.AsyncWith)
_USED_UP = frozenset(
    {"sum", "min", "max", "any", "all", "list", "tuple", "set", "sorted", "dict", "frozenset"}
)


def check_body(body: Lines, definition: Definition) -> None:  # noqa: C901 - one branch a refusal
    """Refuses statements and expressions that can't stand in a loop."""
    count = 0
    consumed: set[int] = set()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.stmt):
                count += 1
                if not isinstance(node, _SIMPLE) or (
                    getattr(node, "orelse", None) and isinstance(node, (ast.For, ast.While))
                ):
                    what = type(node).__name__.lower()
                    raise Refused(
                        f"{definition.name} has a statement '{what}' (line {node.lineno}); move it to another function"
                    )
            if isinstance(node, _OUTLIVES):
                raise Refused(f"{definition.name} defines a nested function; define it outside")
            if isinstance(node, _REFUSED):
                raise Refused(f"{definition.name} is asynchronous")
            if isinstance(node, ast.Call):
                is_known = isinstance(node.func, ast.Name) and node.func.id in _USED_UP
                is_join = isinstance(node.func, ast.Attribute) and node.func.attr == "join"
                if (is_known or is_join) and len(node.args) >= 1:
                    consumed.add(id(node.args[0]))
            if isinstance(node, (ast.For, ast.YieldFrom)):
                consumed.add(id(node.iter if isinstance(node, ast.For) else node.value))
            if isinstance(node, ast.Return) and not definition.is_generator:
                consumed.add(id(node.value) if _is_iterated(definition) else 0)
            if isinstance(node, ast.GeneratorExp) and id(node) not in consumed:
                raise Refused(
                    f"{definition.name} creates a generator that outlives the call; create a list"
                )
    if count > MOST_STATEMENTS:
        raise Refused(
            f"{definition.name} has more than {MOST_STATEMENTS} statements; move some into other functions"
        )


def _is_iterated(definition: Definition) -> bool:
    return definition.function.__name__ == "<lambda>"


def check_line(node: ast.expr, definition: Definition) -> None:
    """Refuses expressions that cannot be written as one line of equivalent text, or whose text is very long."""
    try:
        text = text_of(node)
        ast.parse(text, mode="eval")
    except (ValueError, SyntaxError):
        # An int with thousands of digits.
        raise Refused(
            f"{definition.name} has an expression that Python cannot write as text; move it to another function"
        ) from None
    if len(text) > LONGEST or "\n" in text:
        raise Refused(
            f"{definition.name} has an expression of {len(text)} characters; assign parts of it to variables"
        )


def comprehended(body: Lines) -> set[str]:
    """The variables of comprehensions."""
    return {
        name.id
        for node in f.nodes(body)
        if isinstance(node, ast.comprehension)
        for name in ast.walk(node.target)
        if isinstance(name, ast.Name)
    }


def check_set_before_read(  # noqa: C901, PLR0912 - one branch a statement
    body: Lines, known: set[str], local: set[str], definition: Definition
) -> set[str] | None:
    """The variables that are certainly set after a block; None if its end is never reached.

    In a loop over records, a variable that a function may read before it sets it would have the last record's value.
    """

    def look(node: ast.AST) -> None:
        for item in ast.walk(node):
            if (
                isinstance(item, ast.Name)
                and isinstance(item.ctx, ast.Load)
                and item.id in local
                and item.id not in known
            ):
                raise Refused(
                    f"{definition.name} may read '{item.id}' before it is set; set it first"
                )

    for statement in body:
        if isinstance(statement, ast.If):
            look(statement.test)
            branches = [
                check_set_before_read(block, set(known), local, definition)
                for block in (statement.body, statement.orelse)
            ]
            reached = [branch for branch in branches if branch is not None]
            if not reached:
                return None
            known = set.intersection(*reached)
        elif isinstance(statement, (ast.For, ast.While)):
            look(statement.iter if isinstance(statement, ast.For) else statement.test)
            inner = set(known)
            if isinstance(statement, ast.For):
                inner |= set(f.stores([ast.Expr(statement.target)]))
            check_set_before_read(statement.body, inner, local, definition)
        elif isinstance(statement, ast.Try):
            ends = [check_set_before_read(statement.body, set(known), local, definition)]
            if ends[0] is not None:
                ends[0] = check_set_before_read(statement.orelse, ends[0], local, definition)
            for handler in statement.handlers:
                if handler.type is not None:
                    look(handler.type)
                named = {handler.name} if handler.name else set()
                end = check_set_before_read(handler.body, known | named, local, definition)
                ends.append(None if end is None else end - named)
            last = check_set_before_read(statement.finalbody, set(known), local, definition)
            reached = [end for end in ends if end is not None]
            if not reached or last is None:
                return None
            known = set.intersection(*reached) | last
        elif isinstance(statement, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
            look(statement)
            return None
        elif isinstance(statement, ast.AugAssign):
            look(statement.value)
            if isinstance(statement.target, ast.Name):
                look(f.name(statement.target.id))
            else:
                look(statement.target)
        elif isinstance(statement, ast.Assign):
            look(statement.value)
            for target in statement.targets:
                look(target)
            known |= set(f.stores([ast.Expr(target) for target in statement.targets]))
        else:
            look(statement)
            known |= set(f.stores([statement]))
    return known
