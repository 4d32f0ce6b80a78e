"""Simple functions written into the loop, where that is provably the same.

A lambda, or a `def` that only returns an expression, costs a call per record; its expression does not.
It takes the call's place when all of this holds:

- the expression, found in the file that the function was made in, compiles to the very code that the
  function has: so the text is that function's, whatever else stands on the line;
- it reads its parameters and nothing else: no closure, no defaults, no global but a few builtins, and
  these neither hidden by a global nor ever declared `global` in that file;
- nothing in it outlives it and looks at a parameter later (a lambda, a generator), or awaits or yields.

For flat maps `yield from X`, `for y in X: yield y` and a generator expression are the iterable X.
Everything else stays a call. `opchain.codegen.inline` turns it off.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import re
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

LONGEST = 120
"""Expressions of more characters stay calls: the loop must remain readable."""

BUILTINS = frozenset(
    {
        *("abs", "all", "any", "bool", "bytes", "chr", "dict", "divmod", "enumerate", "float"),
        *("frozenset", "int", "isinstance", "len", "list", "max", "min", "ord", "pow", "range"),
        *("repr", "reversed", "round", "set", "sorted", "str", "sum", "tuple", "zip"),
    }
)
"""Builtins without effects, which give nothing that somebody else holds."""

_OUTLIVES = (ast.Lambda, ast.GeneratorExp)
_REFUSED = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Starred)
_OUR_VARIABLE = re.compile(r"[a-z_]+_\d+|value|values|timestamp|timestamps")


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression over parameters, in place of a call.

    `is_fresh` says that nobody but the record at hand can hold its value.
    """

    parameters: tuple[str, ...]
    text: str
    is_fresh: bool

    def applied_to(self, *arguments: str) -> str:
        """The expression with variables in place of its parameters."""
        names = dict(zip(self.parameters, arguments, strict=True))
        tree = _Renamed(names).visit(ast.parse(self.text, mode="eval"))
        return ast.unparse(tree)


def expression_of(function: Any, *, is_iterated: bool = False) -> Expression | None:
    """The expression that stands for calling a function, or None where it stays a call.

    Args:
        function: A function or lambda; anything else is None.
        is_iterated: The result is looped over at once, as a flat map's is.
    """
    if not isinstance(function, FunctionType) or function.__closure__:
        return None
    if function.__defaults__ or function.__kwdefaults__:
        return None
    code = function.__code__
    parameters = code.co_varnames[: code.co_argcount]
    if code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return None
    source = _parsed(code.co_filename)
    if source is None:
        return None
    for definition in source.definitions.get(code.co_firstlineno, []):
        body = _body_of(definition, is_iterated=is_iterated)
        if body is not None and _same_code(definition, code):
            return _checked(body, parameters, function, source, is_iterated=is_iterated)
    return None


@dataclass(frozen=True, slots=True)
class _Source:
    definitions: dict[int, list[ast.Lambda | ast.FunctionDef]]
    declared_global: frozenset[str]


@lru_cache(maxsize=64)
def _parsed(path: str) -> _Source | None:
    text = "".join(linecache.getlines(path))
    try:
        tree = ast.parse(text) if text else None
    except SyntaxError:
        return None
    if tree is None:
        return None
    definitions: dict[int, list[ast.Lambda | ast.FunctionDef]] = {}
    declared: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Lambda, ast.FunctionDef)):
            definitions.setdefault(node.lineno, []).append(node)
        elif isinstance(node, ast.Global):
            declared.update(node.names)
    return _Source(definitions, frozenset(declared))


def _body_of(definition: ast.Lambda | ast.FunctionDef, *, is_iterated: bool) -> ast.expr | None:
    if isinstance(definition, ast.Lambda):
        return definition.body
    statements = definition.body
    if len(statements) > 1 and _is_docstring(statements[0]):
        statements = statements[1:]
    if len(statements) != 1 or definition.decorator_list:
        return None
    statement = statements[0]
    if isinstance(statement, ast.Return):
        return statement.value
    return _iterable_of(statement) if is_iterated else None


def _iterable_of(statement: ast.stmt) -> ast.expr | None:
    """X of `yield from X` and of `for y in X: yield y`."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.YieldFrom):
        return statement.value.value
    if (
        isinstance(statement, ast.For)
        and not statement.orelse
        and isinstance(statement.target, ast.Name)
        and len(statement.body) == 1
        and isinstance(statement.body[0], ast.Expr)
        and isinstance(statement.body[0].value, ast.Yield)
        and isinstance(statement.body[0].value.value, ast.Name)
        and statement.body[0].value.value.id == statement.target.id
    ):
        return statement.iter
    return None


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _same_code(definition: ast.Lambda | ast.FunctionDef, code: CodeType) -> bool:
    """Whether the definition, compiled by itself, is the function's code."""
    module = ast.Module(
        body=[ast.Expr(definition) if isinstance(definition, ast.Lambda) else definition],
        type_ignores=[],
    )
    compiled = compile(ast.fix_missing_locations(module), code.co_filename, "exec")
    found = [constant for constant in compiled.co_consts if isinstance(constant, CodeType)]
    return any(_key(candidate) == _key(code) for candidate in found)


def _key(code: CodeType) -> tuple[Any, ...]:
    constants = tuple(
        _key(item) if isinstance(item, CodeType) else (type(item), repr(item))
        for item in code.co_consts
    )
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    flags = code.co_flags & (
        inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    )
    return (code.co_code, constants, names, code.co_argcount, flags)


def _checked(
    body: ast.expr,
    parameters: tuple[str, ...],
    function: FunctionType,
    source: _Source,
    *,
    is_iterated: bool,
) -> Expression | None:
    text = ast.unparse(body)
    if len(text) > LONGEST or ast.dump(ast.parse(text, mode="eval").body) != ast.dump(body):
        return None
    bound = {node.id for node in ast.walk(body) if _is_bound(node)}
    if bound & set(parameters) or any(_OUR_VARIABLE.fullmatch(name) for name in bound):
        return None
    for node in ast.walk(body):
        if isinstance(node, _REFUSED) or (
            isinstance(node, _OUTLIVES) and not (is_iterated and node is body)
        ):
            return None
        if (
            isinstance(node, ast.Name)
            and node.id not in bound
            and node.id not in parameters
            and (not _is_builtin(node.id, function) or node.id in source.declared_global)
        ):
            return None
    return Expression(parameters, text, _is_fresh(body))


def _is_bound(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _is_builtin(name: str, function: FunctionType) -> bool:
    return name in BUILTINS and name not in function.__globals__ and hasattr(builtins, name)


def _is_fresh(body: ast.expr) -> bool:
    """No attribute is read: a class may hand out the same object again and again."""
    return not any(isinstance(node, ast.Attribute) for node in ast.walk(body))


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._names.get(node.id, node.id), node.ctx)
