"""Tells whether a key selector may be called again for the same record.

The receiver of a keyed exchange needs the keys too. If a second call certainly gives the same key and changes nothing,
the receiver calls the selector again, which is cheaper than to send keys. Otherwise each record is sent with its key, so
that the selector is called once, as in PyFlink. Examples are selectors that use random numbers or count their calls.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import inspect
import sys
from enum import EnumMeta
from operator import attrgetter, itemgetter, methodcaller
from types import FunctionType, ModuleType
from typing import Any

from opchain.compiler.codegen.function_source import (
    BUILTINS,
    Definition,
    Refused,
    definition_of,
    plain_function,
)
from opchain.runtime.functions.callables import CallableFunction
from opchain.runtime.functions.co_grouping import UnionKeySelector
from opchain.runtime.functions.key_selectors import NullByteKeySelector
from opchain.runtime.types.row import Row

_MODULES = frozenset(
    {
        *("_hashlib", "_json", "_operator", "_struct", "base64", "binascii", "datetime", "decimal"),
        *("hashlib", "ipaddress", "json", "math", "mmh3", "operator", "re", "string"),
        *("unicodedata", "urllib.parse", "zlib", "zoneinfo"),
    }
)
"""Modules whose functions and classes give the same for the same arguments, apart from the methods below."""

_READING_METHODS = frozenset(
    {
        *("_asdict", "as_dict", "astimezone", "bit_length", "capitalize", "casefold", "count"),
        *("date", "decode"),
        *("digest", "encode", "endswith", "find", "format", "fromisoformat", "fromordinal"),
        *("fromtimestamp", "get", "get_fields_by_names", "group", "groupdict", "groups", "hex"),
        *("hexdigest", "index", "isalnum", "isalpha", "isdecimal", "isdigit", "isidentifier"),
        *("islower", "isnumeric", "isocalendar", "isoformat", "isoweekday", "isspace", "isupper"),
        *("items", "join", "keys", "ljust", "lower", "lstrip", "partition", "removeprefix"),
        *("removesuffix", "replace", "rfind", "rindex", "rjust", "rpartition", "rsplit", "rstrip"),
        *("split", "splitlines", "startswith", "strftime", "strip", "strptime", "swapcase", "time"),
        *("timestamp", "timetuple", "title", "toordinal", "total_seconds", "translate", "tuple"),
        *("upper", "utcfromtimestamp", "utctimetuple", "values", "weekday", "zfill"),
    }
)
"""Methods of texts, dictionaries, records and times that change nothing, and give the same again."""

_CHANGING_FUNCTIONS = frozenset(
    {
        *("delitem", "pack_into", "setcontext", "setitem"),
        *("iadd", "iand", "iconcat", "ifloordiv", "ilshift", "imatmul", "imod", "imul", "ior"),
        *("ipow", "irshift", "isub", "itruediv", "ixor"),
    }
)
"""Functions of these modules that change an object or a setting."""

_CHANGING = (
    *(ast.Global, ast.Nonlocal, ast.Delete, ast.Import, ast.ImportFrom, ast.With, ast.AsyncWith),
    *(ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.FunctionDef, ast.ClassDef),
)

_DEEPEST = 8
"""Functions that call each other, after which a selector is not examined further."""


def is_repeatable(selector: Any) -> bool:
    """Whether a second call of a key selector certainly gives the same key, and changes nothing.

    >>> is_repeatable(lambda record: record["user"].lower()), is_repeatable(lambda record: next(record))
    (True, False)
    """
    if isinstance(selector, CallableFunction):
        return is_repeatable(selector.function)
    if isinstance(selector, UnionKeySelector):
        return is_repeatable(selector.first) and is_repeatable(selector.second)
    if isinstance(selector, (itemgetter, attrgetter, NullByteKeySelector)):
        return True
    function, owner = plain_function(selector, "get_key")
    return _may_be_called(function, owner, 0)


def _may_be_called(function: Any, owner: Any, depth: int) -> bool:  # noqa: PLR0911 - one for each kind
    if isinstance(function, FunctionType):
        module = function.__module__ or ""
        return module in _MODULES or (depth < _DEEPEST and _is_reading(function, owner, depth))
    if isinstance(function, type):
        return _is_class_of_records(function)
    if isinstance(function, methodcaller):
        reduced: Any = function.__reduce__()
        return reduced[0] is methodcaller and reduced[1][0] in _READING_METHODS  # without keywords
    if inspect.ismethod(function):
        return _may_be_called(function.__func__, function.__self__, depth)
    name = getattr(function, "__name__", "")
    if getattr(function, "__objclass__", None) in (str, bytes, dict, int, float, tuple):
        return name in _READING_METHODS
    if getattr(builtins, name, None) is function:
        return name in BUILTINS
    if name in _CHANGING_FUNCTIONS:
        return False
    owner = getattr(function, "__self__", None)
    return getattr(owner if isinstance(owner, type) else function, "__module__", "") in _MODULES


def _is_class_of_records(kind: type) -> bool:
    if kind.__module__ == "builtins":
        return kind.__name__ in BUILTINS
    if kind.__module__ in _MODULES or kind is Row or isinstance(kind, EnumMeta):
        return True
    if issubclass(kind, tuple):
        is_made_by_library = getattr(kind.__new__, "__module__", "").startswith("namedtuple_")
        return is_made_by_library and kind.__init__ is object.__init__
    return (
        dataclasses.is_dataclass(kind)
        and getattr(getattr(kind.__init__, "__code__", None), "co_filename", "") == "<string>"
        and not hasattr(kind, "__post_init__")
        and kind.__new__ is object.__new__
        and all(
            item.default_factory in (dataclasses.MISSING, dict, list, set)
            for item in dataclasses.fields(kind)
        )
    )


def _is_reading(function: FunctionType, owner: Any, depth: int) -> bool:  # noqa: PLR0911 - one for each condition
    try:
        definition = definition_of(function)
    except Refused:
        return False
    for statement in definition.body:
        for node in ast.walk(statement):
            if isinstance(node, _CHANGING):
                return False
            if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(
                node.ctx, ast.Load
            ):
                return False
            if isinstance(node, ast.AugAssign) and not _adds_to_constant(node, definition):
                return False
            if isinstance(node, ast.Attribute) and _runs_code(node.attr, definition, depth):
                return False
            if isinstance(node, ast.Call) and not _is_reading_call(node, definition, owner, depth):
                return False
    return True


def _adds_to_constant(node: ast.AugAssign, definition: Definition) -> bool:
    """Whether the variable of `x += y` was set to a constant before, so it is not a list of the record."""
    set_to = [
        each.value
        for statement in definition.body
        for each in ast.walk(statement)
        if isinstance(each, ast.Assign)
        and any(ast.dump(target) == ast.dump(node.target) for target in each.targets)
    ]
    return bool(set_to) and all(isinstance(value, ast.Constant) for value in set_to)


def _is_reading_call(node: ast.Call, definition: Definition, owner: Any, depth: int) -> bool:
    called = node.func
    known, value = _value_of(called, definition, owner)
    if known:
        if getattr(value, "__name__", "") in _CLOCKS:
            return False
        return _may_be_called(value, None, depth + 1)
    return isinstance(called, ast.Attribute) and (
        called.attr in _READING_METHODS or _reads_record(called.attr, definition, depth)
    )


def _runs_code(attribute: str, definition: Definition, depth: int) -> bool:
    """Whether a class of the selector's module has a property of this name that does more than to read."""
    module = sys.modules.get(definition.function.__module__)
    classes = [each for each in vars(module).values() if isinstance(each, type)] if module else []
    found = [vars(each).get(attribute) for each in classes]
    return any(
        isinstance(each, property) and not _may_be_called(each.fget, None, depth + 1)
        for each in found
    )


def _reads_record(method: str, definition: Definition, depth: int) -> bool:
    """Whether classes of the selector's module define a method, and all of them only read. The class of a record is unknown."""
    module = sys.modules.get(definition.function.__module__)
    classes = [each for each in vars(module).values() if isinstance(each, type)] if module else []
    found = [vars(each)[method] for each in classes if method in vars(each)]
    return bool(found) and all(
        isinstance(each, FunctionType) and _may_be_called(each, None, depth + 1) for each in found
    )


_CLOCKS = frozenset({"now", "utcnow", "today"})


def _value_of(node: ast.expr, definition: Definition, owner: Any) -> tuple[bool, Any]:
    """The object that an expression stands for, if it is known now: a global, a function of a module or of `self`."""
    function = definition.function
    if isinstance(node, ast.Name):
        if node.id in function.__code__.co_varnames:
            is_self = owner is not None and definition.parameters[:1] == (node.id,)
            return is_self, owner
        try:
            found = inspect.getclosurevars(function)
        except ValueError:  # a name of an enclosing function that is not set yet
            return False, None
        for names in (found.nonlocals, found.globals, found.builtins):
            if node.id in names:
                return True, names[node.id]
        return False, None
    if isinstance(node, ast.Attribute):
        known, value = _value_of(node.value, definition, owner)
        is_place = isinstance(value, (ModuleType, type)) or value is owner
        if known and is_place and value is not None and hasattr(value, node.attr):
            return True, getattr(value, node.attr)
    return False, None
