"""Finds the source of a user's function, and the objects that its names refer to.

The definition is looked up in the file that defines the function. It is only used if it compiles to exactly the
bytecode of the function. Otherwise `Refused` says why the function is not inlined.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import linecache
import math
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from keyword import iskeyword
from operator import attrgetter, itemgetter, methodcaller
from types import CodeType, FunctionType, MethodType
from typing import Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.matches import without_matches
from opchain.compiler.codegen.source_text import text_of
from opchain.runtime.records.record_copy import IMMUTABLE
from opchain.runtime.task.generated_code import code_key
from opchain.runtime.types.output_tag import OutputTag

BUILTINS = frozenset(
    {
        *("abs", "all", "any", "bool", "bytes", "chr", "dict", "divmod", "enumerate", "float"),
        *("frozenset", "int", "isinstance", "len", "list", "max", "min", "ord", "pow", "range"),
        *("repr", "reversed", "round", "set", "sorted", "str", "sum", "tuple", "zip"),
    }
)
"""Builtins without side effects, which return an immutable or a new object."""

_JSON: dict[Any, tuple[str, ast.expr]] = {
    json.loads: ("s", ast.parse("loads(s)", mode="eval").body),
    json.dumps: ("obj", ast.parse("dumps(obj)", mode="eval").body),
}
"""The parameter and the call of functions of the json module, as a user would write the call."""

LONGEST_INT_BITS = 480
"""An upper limit for literals in generated code, for readability."""


class Refused(Exception):  # noqa: N818 - not an error: the function is called instead
    """Why a function is not inlined."""


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """The statements of a function, without its docstring. A lambda is one `return`."""

    function: FunctionType
    parameters: tuple[str, ...]
    body: f.Lines
    rebound: frozenset[str]

    @property
    def name(self) -> str:
        """The name and place of the function, for remarks."""
        code = self.function.__code__
        file = code.co_filename.replace("\\", "/").rpartition("/")[2]
        return f"'{self.function.__name__}' ({file}:{code.co_firstlineno})"

    @property
    def is_generator(self) -> bool:
        """Whether it is a generator function."""
        return bool(self.function.__code__.co_flags & inspect.CO_GENERATOR)

    @property
    def defaults(self) -> dict[str, ast.expr]:
        """The defaults of parameters."""
        values = self.function.__defaults__ or ()
        names = self.positional[len(self.positional) - len(values) :]
        found = dict(zip(names, values, strict=True)) | (self.function.__kwdefaults__ or {})
        return {name: literal(value) for name, value in found.items() if name in self.parameters}

    @property
    def positional(self) -> tuple[str, ...]:
        """The parameters that a call may give by position."""
        return self.parameters[: self.function.__code__.co_argcount]

    def returned(self) -> ast.expr | None:
        """The returned expression, if the function has no other statement."""
        (statement,) = self.body if len(self.body) == 1 else (None,)
        return statement.value if isinstance(statement, ast.Return) else None


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a free name of a function refers to.

    `kind` is "constant" (written as a literal), "tag" (of a side output, sent with the code), "builtin", "global" or
    "free" (of the enclosing function). The last two are looked up on the executor.
    """

    kind: str
    value: Any = None


def plain_function(function: Any, method: str) -> tuple[Any, Any]:
    """The Python function that implements a Function's method or a callable, and its object or None."""
    called = getattr(function, method, function)
    if isinstance(called, MethodType):
        return called.__func__, called.__self__
    return called, None


def literal_arguments(function: Any) -> tuple[list[ast.expr], list[ast.keyword]] | None:
    """The arguments that a `functools.partial` passes on, if all of them are constants. None for other callables."""
    if type(function) is not partial or not all(
        map(_is_fixed, (*function.args, *function.keywords.values()))
    ):
        return None
    keywords = [ast.keyword(name, literal(value)) for name, value in function.keywords.items()]
    return list(map(literal, function.args)), keywords


def calls_builtin(node: ast.AST) -> bool:
    """Whether an expression calls one of these builtins. It does not if the builtin calls a function of the program."""
    if not isinstance(node, ast.Call) or f.called(node) not in BUILTINS:
        return False
    return all(each.arg not in (None, "key") or _only_looks(each.value) for each in node.keywords)


def _only_looks(key: ast.expr) -> bool:
    """Whether the key function of `max` or `sorted` is a builtin, or a lambda that calls nothing else."""
    if not isinstance(key, ast.Lambda):
        return isinstance(key, ast.Name) and key.id in BUILTINS
    return only_calls_builtins(key.body)


def only_calls_builtins(node: ast.AST) -> bool:
    """Whether no other function runs while an expression is evaluated, and no variable is set."""
    acts = (ast.Call, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    return all(calls_builtin(each) for each in ast.walk(node) if isinstance(each, acts))


def _kind_of(function: Any) -> str:
    if isinstance(function, type):
        return "a class"
    return "written in C" if inspect.isroutine(function) else "an object that is called"


def definition_of(function: Any) -> Definition:
    """The definition of a function.

    Raises:
        Refused: The source is not found, or the function takes any number of arguments, or has defaults that are not constants.
    """
    if isinstance(function, (attrgetter, itemgetter, methodcaller)):
        return _definition_of_getter(function)
    if not isinstance(function, FunctionType):
        name = getattr(function, "__qualname__", type(function).__qualname__)
        raise Refused(f"'{name}' has no Python source: it is {_kind_of(function)}")
    if function in _JSON:  # the rules `read_json` and `write_json` handle these calls
        parameter, call = _JSON[function]
        return Definition(function, (parameter,), [ast.Return(call)], frozenset())
    return _definition_in_file(function)


def _definition_in_file(function: FunctionType) -> Definition:
    name = function.__name__
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    if not all(map(_is_fixed, defaults)):
        raise Refused(f"'{name}' has a default that is not a constant; pass the argument")
    code = function.__code__
    if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        raise Refused(f"'{name}' takes any number of arguments; name them")
    source = _parsed(code.co_filename)
    found = None if source is None else _definition_in(source, code)
    if source is None or found is None:
        raise Refused(
            f"the source of '{name}' was not found, or has changed; define it in a file, undecorated"
        )
    if isinstance(found, ast.Lambda):
        body: f.Lines = [ast.Return(found.body)]
    else:
        body = found.body[1:] if len(found.body) > 1 and _is_text(found.body[0]) else found.body
        body = without_matches(body, (*code.co_varnames, *code.co_names, *code.co_freevars))
    file = code.co_filename.replace("\\", "/").rpartition("/")[2]
    for statement in body:
        for node in ast.walk(statement):
            if hasattr(node, "lineno"):
                notes.user_line.set(node, f"{file}:{node.lineno}")
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return Definition(function, parameters, body, source.rebound)


def _definition_of_getter(getter: Any) -> Definition:
    """The definition of an object from the module operator, as if it were written as a lambda."""
    kind, name = type(getter), type(getter).__name__
    made, given = getter.__reduce__()[:2]
    if made is not kind or not all(map(_is_fixed, given)):
        raise Refused(f"'{name}' has an argument that is not a constant; write a lambda")
    if kind is itemgetter:
        parts = [f"value[{item!r}]" for item in given]
    else:
        names = given if kind is attrgetter else given[:1]
        if any(
            iskeyword(part) or not part.isidentifier() for each in names for part in each.split(".")
        ):
            raise Refused(f"'{name}' has an argument that is not a name; write a lambda")
        parts = [f"value.{each}" for each in names]
    if kind is methodcaller:
        parts = [f"{parts[0]}({', '.join(map(repr, given[1:]))})"]
    text = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
    code = compile(f"lambda value: {text}", "operator", "eval")
    function = eval(code, {})  # noqa: S307 - made of names and constants
    function.__name__ = name
    return Definition(function, ("value",), [ast.Return(f.expression(text))], frozenset())


def meaning_of(name: str, definition: Definition) -> Meaning:
    """What a free name of a function refers to.

    Raises:
        Refused: The value may change at any time, or is not defined yet.
    """
    function = definition.function
    if name in definition.rebound:
        raise Refused(
            f"'{name}' is declared global or nonlocal somewhere, so it may change; keep it in an "
            "attribute of a function class"
        )
    if name in function.__code__.co_freevars:
        value = value_of(name, function, Refused)
        if value is Refused:
            raise Refused(f"'{name}' has no value yet")
        if is_written_exactly(value):
            return Meaning("constant", value)
        if isinstance(value, OutputTag):
            return Meaning("tag", value)
        return Meaning("free", value)
    if name in function.__globals__:
        value = function.__globals__[name]
        is_sent_by_value = function.__name__ == "<lambda>" or function.__module__ == "__main__"
        is_constant = is_sent_by_value and is_written_exactly(value)
        return Meaning("constant" if is_constant else "global", value)
    if name in BUILTINS and hasattr(builtins, name):
        return Meaning("builtin", getattr(builtins, name))
    raise Refused(f"'{name}' is not known here")


def _is_fixed(value: Any) -> bool:
    return is_written_exactly(value) and value.__class__ in IMMUTABLE


def literal(value: Any) -> ast.expr:
    """The expression for such a value: `-2` is an operation, so that `n ** 2` becomes `(-2) ** 2`."""
    return ast.parse(repr(value), mode="eval").body


def is_literal(node: ast.expr) -> bool:
    """Whether an expression is a constant, a negative number, or a tuple of these."""
    if isinstance(node, ast.Tuple):
        return all(map(is_literal, node.elts))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant)


def is_written_exactly(value: Any) -> bool:
    """Whether the repr of a value is an expression for the same value."""
    if type(value) is tuple:
        return bool(value) and all(map(is_written_exactly, value))
    if type(value) is float:
        return math.isfinite(value)
    if type(value) is int:
        return value.bit_length() <= LONGEST_INT_BITS
    return value is None or type(value) in (str, bool, bytes)


@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    definitions: dict[int, list[ast.Lambda | ast.FunctionDef]]
    rebound: frozenset[str]
    imported: tuple[str, ...]


@lru_cache(maxsize=64)
def tree_of(path: str) -> ast.Module | None:
    """The syntax tree of a file; None if there is no such file, or it is not Python."""
    text = "".join(linecache.getlines(path))
    try:
        return ast.parse(text) if text else None
    except SyntaxError:
        return None


@lru_cache(maxsize=64)
def _parsed(path: str) -> _Source | None:
    tree = tree_of(path)
    if tree is None:
        return None
    definitions: dict[int, list[ast.Lambda | ast.FunctionDef]] = {}
    declared: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Lambda, ast.FunctionDef)):
            decorators = () if isinstance(node, ast.Lambda) else node.decorator_list
            first_line = min([node.lineno, *(item.lineno for item in decorators)])
            definitions.setdefault(first_line, []).append(node)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            declared.update(node.names)
    return _Source(definitions, frozenset(declared), tuple(sorted(_imported(tree))))


def _imported(scope: ast.AST) -> set[str]:
    """The imported names of a module. A call of an attribute of such a name compiles to different bytecode."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif not isinstance(
            node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
        ):
            found |= _imported(node)
    return found - {"*"}


@lru_cache(maxsize=256)  # notebooks and tests often compile the same program again
def _definition_in(source: _Source, code: CodeType) -> ast.Lambda | ast.FunctionDef | None:
    for definition in source.definitions.get(code.co_firstlineno, []):
        decorators = () if isinstance(definition, ast.Lambda) else definition.decorator_list
        is_plain = all(
            text_of(item) in ("classmethod", "staticmethod", "property") for item in decorators
        )
        if is_plain and _same_code(definition, code, source.imported):
            return definition
    return None


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _same_code(
    definition: ast.Lambda | ast.FunctionDef, code: CodeType, imported: tuple[str, ...]
) -> bool:
    """Whether the definition, compiled in a function with the same free names, gives the same bytecode."""
    statement: ast.stmt = ast.Expr(definition) if isinstance(definition, ast.Lambda) else definition
    imports = "".join(f"import {name}\n" for name in imported)
    around = ast.parse(f"{imports}def around({', '.join(code.co_freevars)}): pass")
    function = around.body[-1]
    assert isinstance(function, ast.FunctionDef)
    function.body = [statement]
    compiled = compile(
        ast.fix_missing_locations(around), code.co_filename, "exec", dont_inherit=True
    )
    (enclosing,) = (item for item in compiled.co_consts if isinstance(item, CodeType))
    found = [constant for constant in enclosing.co_consts if isinstance(constant, CodeType)]
    return any(code_key(candidate) == code_key(code) for candidate in found)


_GIVE_TEXT = frozenset(
    {
        *("capitalize", "casefold", "center", "expandtabs", "format", "join", "ljust", "lower"),
        *("lstrip", "replace", "rjust", "rstrip", "strip", "swapcase", "title", "upper", "zfill"),
    }
)
"""Methods of str that return a str."""


def returns_text(function: Any) -> bool:
    """Whether a function of `flat_map` returns a str, by its annotation, or by the only expression that it returns."""
    called, _ = plain_function(function, "flat_map")
    if getattr(called, "__annotations__", {}).get("return") in (str, "str"):
        return True
    if called is str or getattr(called, "__objclass__", None) is str:
        return called is str or called.__name__ in _GIVE_TEXT
    return _gives_text(_returned(called), called)


def returns_generator(function: Any) -> bool:
    """Whether the only expression that a function of `map` returns is a generator: `(f(x) for x in xs)`."""
    return isinstance(_returned(plain_function(function, "map")[0]), ast.GeneratorExp)


def _returned(function: Any) -> ast.expr | None:
    try:
        return definition_of(function).returned()
    except Refused:
        return None


def _gives_text(node: ast.expr | None, function: Any) -> bool:  # noqa: PLR0911 - one for each kind of expression
    match node:
        case ast.Constant(value=value):
            return isinstance(value, str)
        case ast.JoinedStr():
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _GIVE_TEXT
        case ast.Call(func=ast.Name(id=name)):
            called = value_of(name, function)
            return name == "str" or getattr(called, "__annotations__", {}).get("return") in (
                str,
                "str",
            )
        case ast.Subscript(value=ast.Name(id=name)):
            table = value_of(name, function)
            values = table.values() if isinstance(table, dict) else table
            is_table = isinstance(table, (dict, list, tuple)) and len(table) > 0
            return is_table and all(isinstance(value, str) for value in islice(values, _LOOKED_AT))
        case ast.IfExp(body=one, orelse=other):
            return _gives_text(one, function) and _gives_text(other, function)
        case ast.BinOp(left=left, op=ast.Add() | ast.Mod() as op, right=right):
            is_sum = isinstance(op, ast.Add)
            return _gives_text(left, function) or (is_sum and _gives_text(right, function))
    return False


_LOOKED_AT = 100
"""The number of values of a dict to check for being texts."""


def value_of(name: str, function: Any, otherwise: Any = None) -> Any:
    """The current object of a free name of a function; `otherwise` if it has none."""
    free = function.__code__.co_freevars
    if name not in free:
        return function.__globals__.get(name, otherwise)
    try:
        return function.__closure__[free.index(name)].cell_contents
    except ValueError:  # an empty cell
        return otherwise
