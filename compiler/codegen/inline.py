"""Simple functions written into the loop, where that is provably the same.

A lambda, or a `def` that only returns an expression, costs a call per record; its expression does not.
It takes the call's place when all of this holds:

- the expression, found in the file that the function was made in, compiles to the very code that the
  function has: so the text is that function's, whatever else stands on the line;
- beyond its parameters it reads a few builtins, not hidden by a global, and names that stand for a
  number, a text or a tuple of these, which are written in as they are; none of these names is ever
  declared `global` or `nonlocal` in that file, so nobody rebinds them later. Globals count only where
  the function is sent by value, with them: in lambdas, and in the main program;
- nothing in it outlives it and looks at a parameter later (a lambda, a generator), or awaits or yields.

For flat maps `yield from X`, `for y in X: yield y` and a generator expression are the iterable X.
Everything else stays a call. `opchain.codegen.inline` turns it off.
"""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import linecache
import math
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
_OUR_VARIABLE = re.compile(r"[a-z_]+(_\d+)+|value|values|timestamp|timestamps")


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression over parameters, in place of a call.

    `only_reads` says that it changes nothing, `is_fresh` that nobody but the record at hand can hold its value. What
    is looped over is not fresh: it may give one object again and again.
    """

    parameters: tuple[str, ...]
    text: str
    only_reads: bool
    is_fresh: bool

    def applied_to(self, *arguments: str) -> str:
        """The expression with variables in place of its parameters."""
        names = dict(zip(self.parameters, arguments, strict=True))
        tree = _Renamed(names).visit(ast.parse(self.text, mode="eval"))
        return ast.unparse(tree)

    def reads(self, name: str) -> bool:
        """Whether a name occurs in it."""
        return reads(self.text, name)

    def position_given(self) -> int | None:
        """The n where it is `parameter[n]`, an item of its only parameter."""
        (parameter,) = self.parameters
        return position_of(ast.parse(self.text, mode="eval").body, parameter)


def reads(text: str, name: str) -> bool:
    """Whether a name occurs in an expression."""
    tree = ast.parse(text, mode="eval")
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))


def item_of(node: ast.expr, name: str) -> ast.Constant | None:
    """The constant of an expression that is an item of a variable by one: `value[2]`, `row['time']`."""
    if (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        and isinstance(node.slice, ast.Constant)
    ):
        return node.slice
    return None


def position_of(node: ast.expr, name: str) -> int | None:
    """The n of an expression that is `name[n]`, counted from the front."""
    item = item_of(node, name)
    return item.value if item is not None and type(item.value) is int and item.value >= 0 else None


def expression_of(function: Any, *, is_iterated: bool = False) -> Expression | None:
    """The expression that stands for calling a function, or None where it stays a call.

    Args:
        function: A function or lambda; anything else is None.
        is_iterated: The result is looped over at once, as a flat map's is.
    """
    if not isinstance(function, FunctionType):
        return None
    if function.__defaults__ or function.__kwdefaults__:
        return None
    code = function.__code__
    parameters = code.co_varnames[: code.co_argcount]
    if code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return None
    source = _parsed(code.co_filename)
    body = None if source is None else _body_in(source, code, is_iterated)
    if source is None or body is None:
        return None
    return _checked(body, parameters, function, source, is_iterated=is_iterated)


@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    definitions: dict[int, list[ast.Lambda | ast.FunctionDef]]
    rebound: frozenset[str]


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
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            declared.update(node.names)
    return _Source(definitions, frozenset(declared))


@lru_cache(maxsize=256)  # one program is often compiled again: in notebooks, in tests
def _body_in(source: _Source, code: CodeType, is_iterated: bool) -> ast.expr | None:
    """The expression that a function with this code returns."""
    for definition in source.definitions.get(code.co_firstlineno, []):
        body = _body_of(definition, is_iterated=is_iterated)
        if body is not None and _same_code(definition, code):
            return body
    return None


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
    """Whether the definition, compiled inside a function with the same free names, is the code."""
    statement: ast.stmt = ast.Expr(definition) if isinstance(definition, ast.Lambda) else definition
    around = ast.parse(f"def around({', '.join(code.co_freevars)}): pass")
    function = around.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = [statement]
    compiled = compile(
        ast.fix_missing_locations(around), code.co_filename, "exec", dont_inherit=True
    )
    (enclosing,) = (item for item in compiled.co_consts if isinstance(item, CodeType))
    found = [constant for constant in enclosing.co_consts if isinstance(constant, CodeType)]
    return any(_key(candidate) == _key(code) for candidate in found)


def _key(code: CodeType) -> tuple[Any, ...]:
    constants = []
    within: CodeType | None = None
    for item in code.co_consts:
        # Python 3.10 keeps the qualified name of an inner function behind its code: it says where the
        # function around it stands, which is no matter.
        if within is None or item != _qualified_name(item, within):
            constants.append(_key(item) if isinstance(item, CodeType) else (type(item), repr(item)))
        within = item if isinstance(item, CodeType) else None
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    flags = code.co_flags & (
        inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    )
    return (code.co_code, tuple(constants), names, code.co_argcount, flags)


def _qualified_name(item: Any, within: CodeType) -> str | None:
    is_name = isinstance(item, str) and item.endswith(f".<locals>.{within.co_name}")
    return item if is_name else None


def _checked(
    body: ast.expr,
    parameters: tuple[str, ...],
    function: FunctionType,
    source: _Source,
    *,
    is_iterated: bool,
) -> Expression | None:
    bound = {
        node.id
        for node in ast.walk(body)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    # Which of two variables one of these means depends on where it stands.
    ambiguous = bound & {*parameters, *_free_names(function.__code__)}
    if ambiguous or any(_OUR_VARIABLE.fullmatch(name) for name in bound):
        return None
    constants: dict[str, Any] = {}
    for node in ast.walk(body):
        if isinstance(node, _REFUSED) or (
            isinstance(node, _OUTLIVES) and not (is_iterated and node is body)
        ):
            return None
        if isinstance(node, ast.Name) and node.id not in bound and node.id not in parameters:
            if node.id in source.rebound:
                return None
            known, value = _constant(node.id, function)
            if known:
                constants[node.id] = value
            elif not _is_builtin(node.id, function):
                return None
    body = _WithConstants(constants).visit(copy.deepcopy(body))
    text = _line_of(body)
    if text is None:
        return None
    only_reads = _only_reads(body)
    return Expression(parameters, text, only_reads, is_fresh=only_reads and not is_iterated)


def _line_of(body: ast.expr) -> str | None:
    """An expression as one line of text, where there is a line that says the same and is not too long."""
    try:
        text = ast.unparse(body)
        same = ast.parse(text, mode="eval").body
    except (ValueError, SyntaxError):
        # A backslash in an f-string before Python 3.12; an endless number.
        return None
    is_readable = len(text) <= LONGEST and "\n" not in text
    return text if is_readable and ast.dump(same) == ast.dump(body) else None


def _free_names(code: CodeType) -> set[str]:
    """The names that a function does not bind itself, and those of attributes."""
    names = {*code.co_freevars, *code.co_names}
    for item in code.co_consts:
        if isinstance(item, CodeType):
            # What is free in it may be bound by a comprehension around it.
            names |= _free_names(item) - {*item.co_freevars}
    return names


def _constant(name: str, function: FunctionType) -> tuple[bool, Any]:
    """Whether a free name stands for a constant that is sent with the function, and which."""
    free = function.__code__.co_freevars
    if name in free:
        assert function.__closure__ is not None
        try:
            value = function.__closure__[free.index(name)].cell_contents
        except ValueError:  # an empty cell: the name is not bound yet
            return False, None
    elif name in function.__globals__ and (
        function.__name__ == "<lambda>" or function.__module__ == "__main__"
    ):
        value = function.__globals__[name]
    else:
        return False, None
    return _is_written_exactly(value), value


def _is_written_exactly(value: Any) -> bool:
    """Whether a value's repr is an expression for the same value."""
    if type(value) is tuple:
        return bool(value) and all(map(_is_written_exactly, value))
    if type(value) is float:
        return math.isfinite(value)
    if type(value) is int:
        return value.bit_length() <= LONGEST * 4  # more digits than Python writes are an error
    return value is None or type(value) in (str, bool, bytes)


def _is_builtin(name: str, function: FunctionType) -> bool:
    is_hidden = name in function.__globals__ or name in function.__code__.co_freevars
    return name in BUILTINS and not is_hidden and hasattr(builtins, name)


def _only_reads(body: ast.expr) -> bool:
    """No attribute is read: a class may do anything then, and hand out the same object again and again."""
    return not any(isinstance(node, ast.Attribute) for node in ast.walk(body))


class _WithConstants(ast.NodeTransformer):
    def __init__(self, constants: dict[str, Any]) -> None:
        self._constants = constants

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._constants:
            return node
        return ast.parse(repr(self._constants[node.id]), mode="eval").body


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._names.get(node.id, node.id), node.ctx)
