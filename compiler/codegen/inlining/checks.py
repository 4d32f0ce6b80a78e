"""Checks whether the body of a function can replace a call in a loop over records. `Refused` says why it cannot."""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.function_source import Refused
from opchain.compiler.codegen.source_text import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opchain.compiler.codegen.function_source import Definition


LONGEST = 1000
"""Characters of an expression; a longer one stays a call, so that the loop remains readable."""

MOST_STATEMENTS = 60

_SIMPLE = (
    *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.Pass, ast.Raise),
    *(ast.Continue, ast.Break, ast.Assert, ast.If, ast.For, ast.While, ast.Try, ast.With),
    *(ast.Delete, ast.Import, ast.ImportFrom),
)
_OUTLIVES = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_REFUSED = (ast.Await, ast.AsyncFor, ast.AsyncWith)
_USED_UP = frozenset(
    {"sum", "min", "max", "any", "all", "list", "tuple", "set", "sorted", "dict", "frozenset"}
)


def check_body(  # noqa: C901 - one branch a refusal
    body: f.Lines, definition: Definition, *, is_iterated: bool
) -> None:
    """Refuses statements and expressions that can't stand in a loop. `is_iterated` says that the result is used up."""
    count = 0
    consumed: set[int] = set()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.stmt):
                count += 1
                if not isinstance(node, _SIMPLE) or _is_unusual(node):
                    what = type(node).__name__.lower()
                    raise Refused(
                        f"{definition.name} has a statement '{what}' (line {node.lineno}); move it to another function"
                    )
            if isinstance(node, _OUTLIVES):
                raise Refused(f"{definition.name} defines a nested function; define it outside")
            if isinstance(node, _REFUSED):
                raise Refused(f"{definition.name} is asynchronous")
            if isinstance(node, ast.Call) and node.args and _uses_up(node, definition):
                consumed.add(id(node.args[0]))
            if isinstance(node, (ast.For, ast.YieldFrom)):
                consumed.add(id(node.iter if isinstance(node, ast.For) else node.value))
            if isinstance(node, ast.Return) and not definition.is_generator:
                is_lambda = definition.function.__name__ == "<lambda>"
                consumed.add(id(node.value) if is_iterated and is_lambda else 0)
            if isinstance(node, ast.GeneratorExp) and id(node) not in consumed:
                raise Refused(
                    f"{definition.name} creates a generator that outlives the call; create a list"
                )
    if count > MOST_STATEMENTS:
        raise Refused(
            f"{definition.name} has more than {MOST_STATEMENTS} statements; move some into other functions"
        )


def _is_unusual(statement: ast.stmt) -> bool:
    """Whether a statement is a `with` that is left early, or an import that depends on the module or sets another name."""
    match statement:
        case ast.With():
            leaves = (ast.Return, ast.Yield, ast.YieldFrom)
            return any(isinstance(node, leaves) for node in ast.walk(statement))
        case ast.Import(names=names):
            return any("." in alias.name and alias.asname is None for alias in names)
        case ast.ImportFrom(level=level):
            return bool(level)
    return False


def _uses_up(call: ast.Call, definition: Definition) -> bool:
    """Whether a call reads its first argument to the end, and does not keep it: `sum(...)` or `", ".join(...)`."""
    called, function = call.func, definition.function
    if isinstance(called, ast.Attribute):
        is_text = isinstance(called.value, ast.Constant) and type(called.value.value) is str
        return called.attr == "join" and is_text
    if not isinstance(called, ast.Name) or called.id in function.__globals__:
        return False
    own = (*function.__code__.co_varnames, *function.__code__.co_freevars)
    return called.id in _USED_UP and called.id not in own


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


def comprehended(body: f.Lines) -> Counter[str]:
    """How often comprehensions set each of their variables."""
    parts = (node for node in f.nodes(body) if isinstance(node, ast.comprehension))
    return Counter(name for part in parts for name in _names_in(part.target))


def check_set_before_read(
    body: f.Lines, known: set[str], local: set[str], definition: Definition
) -> None:
    """Refuses a body that may read a local variable before it is set. `known` are set before the body.

    In a loop over records, such a variable would have the last record's value. `del` ends a variable.
    """
    _SetBeforeRead(local, definition).after(body, known)


class _SetBeforeRead:
    """Follows the paths through a body. For each block it finds the variables that are certainly set after it."""

    def __init__(self, local: set[str], definition: Definition) -> None:
        self._local = local
        self._definition = definition
        self._breaks: list[set[str]] = []

    def after(self, block: f.Lines, before: set[str]) -> set[str] | None:
        """The variables that are set after a block; None if its end is never reached."""
        known = before
        for statement in block:
            end = self._statement(statement, known)
            if end is None:
                return None
            known = end
        return known

    def _statement(self, statement: ast.stmt, known: set[str]) -> set[str] | None:
        match statement:
            case ast.If(test=test, body=body, orelse=orelse):
                self._look(test, known)
                return _on_all_paths(self.after(body, known), self.after(orelse, known))
            case ast.For() | ast.While():
                return self._loop(statement, known)
            case ast.Try():
                return self._try(statement, known)
            case ast.With(items=items, body=body):
                return self._with(items, body, known)
            case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
                self._look(statement, known)
                self._breaks += [known] if isinstance(statement, ast.Break) else []
                return None
        return self._assignment(statement, known)

    def _look(self, node: ast.AST, known: set[str]) -> None:
        for item in _names_outside(node, frozenset()):
            is_set = isinstance(item.ctx, ast.Store) or item.id in known
            if item.id in self._local and not is_set:
                raise Refused(
                    f"{self._definition.name} may read '{item.id}' before it is set; set it first"
                )

    def _loop(self, statement: ast.For | ast.While, known: set[str]) -> set[str] | None:
        """The body may not run at all, and may run again after it deletes a variable. Only its `break` skips the `else`."""
        known = known - _deleted(statement.body)
        others, self._breaks = self._breaks, []
        if isinstance(statement, ast.While):
            self._look(statement.test, known)
            self.after(statement.body, known)
        else:
            self._look(statement.iter, known)
            self.after(statement.body, known | f.stores([ast.Expr(statement.target)]).keys())
        breaks, self._breaks = self._breaks, others
        return _on_all_paths(*breaks, self.after(statement.orelse, known))

    def _with(self, items: list[ast.withitem], body: f.Lines, known: set[str]) -> set[str]:
        """The manager may catch an exception that comes before anything is set, or after a `del`."""
        within = known
        for item in items:
            self._look(item.context_expr, within)
            if item.optional_vars is not None:
                self._look(item.optional_vars, within)
                within = within | f.stores([ast.Expr(item.optional_vars)]).keys()
        self.after(body, within)
        return known - _deleted(body)

    def _try(self, statement: ast.Try, known: set[str]) -> set[str] | None:
        """An exception may come before anything is set, or after a `del`, so a handler knows less."""
        end = self.after(statement.body, known)
        ends = [None if end is None else self.after(statement.orelse, end)]
        kept = known - _deleted([statement])
        for handler in statement.handlers:
            if handler.type is not None:
                self._look(handler.type, kept)
            named = {handler.name} if handler.name else set()
            if named & known:
                raise Refused(
                    f"{self._definition.name} uses '{handler.name}' for an exception and another value; rename one"
                )
            end = self.after(handler.body, kept | named)
            ends.append(None if end is None else end - named)
        reached, last = _on_all_paths(*ends), self.after(statement.finalbody, kept)
        if reached is None or last is None:
            return None
        return (reached | last) - _deleted(statement.finalbody)

    def _assignment(self, statement: ast.stmt, known: set[str]) -> set[str]:
        if isinstance(statement, ast.AugAssign):
            target = statement.target
            self._look(statement.value, known)
            self._look(f.name(target.id) if isinstance(target, ast.Name) else target, known)
            return known
        if isinstance(statement, ast.Assign):
            self._look(statement.value, known)
            for each in statement.targets:
                self._look(each, known)
            return known | f.stores([ast.Expr(each) for each in statement.targets]).keys()
        self._look(statement, known)
        if isinstance(statement, ast.Delete):
            return known - _deleted([statement])
        return known.union(f.imported(statement))  # not all of its `:=` need run


def _names_outside(node: ast.AST, inner: frozenset[str]) -> Iterator[ast.Name]:
    """The names in a statement or expression, without the variables of comprehensions and `inner` ones."""
    if isinstance(node, ast.Name):
        if node.id not in inner:
            yield node
        return
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        yield from _names_outside(node.generators[0].iter, inner)
        inner = inner.union(*(_names_in(part.target) for part in node.generators))
    for child in ast.iter_child_nodes(node):
        yield from _names_outside(child, inner)


def _names_in(target: ast.expr) -> list[str]:
    return [node.id for node in ast.walk(target) if isinstance(node, ast.Name)]


def _deleted(block: f.Lines) -> set[str]:
    """The variables that `del` may end."""
    names = (node for node in f.nodes(block) if isinstance(node, ast.Name))
    return {node.id for node in names if isinstance(node.ctx, ast.Del)}


def _on_all_paths(*ends: set[str] | None) -> set[str] | None:
    """The variables that are set at all ends that are reached."""
    reached = [end for end in ends if end is not None]
    return set.intersection(*reached) if reached else None
