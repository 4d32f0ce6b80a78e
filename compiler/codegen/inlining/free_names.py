"""What the names and attributes in the body of a function stand for, and how the inlined body refers to it."""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.changing_attributes import (
    changing_attributes,
    is_of_library,
    replaced_attributes,
)
from opchain.compiler.codegen.function_source import (
    Definition,
    Meaning,
    Refused,
    is_written_exactly,
    literal,
    meaning_of,
)
from opchain.compiler.codegen.inlining.checks import comprehended
from opchain.compiler.codegen.inlining.returns import is_none
from opchain.compiler.codegen.inlining.scope import WRITTEN
from opchain.runtime.task.generated_code import ABSENT
from opchain.runtime.types.output_tag import OutputTag

if TYPE_CHECKING:
    from opchain.compiler.codegen.inlining.scope import Scope


_IS = (ast.Is, ast.IsNot)
_SEE_THEIR_CALLER = frozenset(
    {"locals", "globals", "vars", "dir", "eval", "exec", "super", "__import__", "breakpoint"}
)


def bind_free_names(
    scope: Scope,
    body: f.Lines,
    definition: Definition,
    callee: f.Callee,
    parts: dict[str, ast.expr],
) -> None:
    """Finds the object of each free name, and binds it."""
    _bind_calls(scope, body, definition, callee)
    found: dict[str, None] = {}
    written = f.names_in(definition.body)
    for node in f.nodes(body):
        if isinstance(node, ast.Name) and node.id not in parts:
            if not isinstance(node.ctx, ast.Load):
                raise Refused(f"{definition.name} sets '{node.id}'")
            found[node.id] = None
    for name in found:
        if name in scope.form.names.bindings and name not in written:
            continue  # one that a rule has put there
        meaning = _meaning(name, definition)
        if meaning.kind == "constant":
            parts[name] = literal(meaning.value)
        elif meaning.kind == "tag":
            parts[name] = f.name(
                scope.constant(name, callee, meaning.value, "value", meaning.value)
            )
        elif meaning.kind == "free":
            parts[name] = f.name(scope.free_name(callee, name, meaning.value))
        elif meaning.kind == "global":
            is_compared = any(_is_asked_for(name, node) for node in f.nodes(body))
            parts[name] = scope.value(name, callee, meaning.value, is_compared=is_compared)


def _bind_calls(scope: Scope, body: f.Lines, definition: Definition, callee: f.Callee) -> None:
    """`self.helper(x)` and `module.helper(x)` are calls of functions that may be looked into, too."""
    own = definition.parameters[0] if callee.owner and definition.parameters else None
    of_comprehensions = comprehended(body)
    for node in f.nodes(body):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        value, attribute = node.func.value, node.func.attr
        if not isinstance(value, ast.Name) or value.id in of_comprehensions:
            continue
        if isinstance(callee.instance, type) and value.id == own:
            continue
        if value.id == own and callee.instance is not None:
            kind: Any = type(callee.instance)
            method = inspect.getattr_static(kind, attribute, None)
            changing = changing_attributes(kind)
            is_fixed = changing is not None and attribute not in changing
            is_method = isinstance(method, (FunctionType, staticmethod))
            if is_method and is_fixed and attribute not in vars_of(callee.instance):
                node.func = f.name(scope.method(callee, attribute, method))
        elif value.id not in definition.function.__code__.co_varnames:
            _bind_attribute(scope, node, value.id, attribute, definition, callee)


def _bind_attribute(
    scope: Scope,
    node: ast.Call,
    name: str,
    attribute: str,
    definition: Definition,
    callee: f.Callee,
) -> None:
    """The call of a function of a module, or of a static method or class method of a class."""
    try:
        meaning = meaning_of(name, definition)
    except Refused:
        return
    if meaning.kind == "free":
        return
    space = meaning.value
    function = vars_of(space).get(attribute)
    is_known = isinstance(space, ModuleType) and callable(function)
    if not is_known:
        is_method = type(space) is type and isinstance(function, (staticmethod, classmethod))
        changing = replaced_attributes(space, of_class=True) if is_method else None
        if changing is None or attribute in changing:
            return
    names = name, attribute
    node.func = f.name(
        scope.class_method(callee, names, space)
        if isinstance(function, classmethod)
        else scope.global_name(callee, names, function)
    )


def _is_asked_for(name: str, node: ast.AST) -> bool:
    """Whether a node is `x is name`, or compares with it in another way by identity."""
    return (
        isinstance(node, ast.Compare)
        and any(isinstance(op, _IS) for op in node.ops)
        and any(f.is_load_of(side, name) for side in (node.left, *node.comparators))
    )


def _meaning(name: str, definition: Definition) -> Meaning:
    is_hidden = (
        name in definition.function.__globals__
        or name in definition.function.__code__.co_freevars
        or name in definition.rebound
    )
    if not is_hidden and hasattr(builtins, name) and name not in _SEE_THEIR_CALLER:
        return Meaning("builtin")
    meaning = meaning_of(name, definition)
    function = definition.function
    is_read = is_of_library(function) or name in _read_globals(function.__code__)
    if meaning.kind == "global" and not is_read:  # a pickled function lacks the name
        raise Refused(f"{definition.name} has a part that never runs; delete that part")
    return meaning


@lru_cache(maxsize=1000)
def _read_globals(code: CodeType) -> frozenset[str]:
    """The global names that a function reads. Its `co_names` also has names of parts that Python leaves out."""
    read = {item.argval for item in dis.get_instructions(code) if item.opname == "LOAD_GLOBAL"}
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return frozenset(read).union(*map(_read_globals, inner))


class Attributes(ast.NodeTransformer):
    """Puts the values of attributes that only `__init__` or the class sets in their place, and has them watched."""

    def __init__(self, scope: Scope, definition: Definition, callee: f.Callee) -> None:
        self._scope = scope
        is_method = scope.can_watch and not isinstance(callee.instance, (type, type(None)))
        self._own = definition.parameters[0] if is_method else None
        self._callee = callee

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """The key of a look-up may be a string: `value[self.field]`."""
        node.slice = self._value(node.slice, (int, str))
        self.generic_visit(node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """A string may be compared with None: `self.prefix is None`."""
        if isinstance(node.ops[0], _IS) and is_none(node.comparators[0]):
            node.left = self._value(node.left, (str,))
        self.generic_visit(node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Numbers, None, tags and classes."""
        self.generic_visit(node)
        return self._value(node, (*WRITTEN, OutputTag, type))

    def _value(self, node: ast.expr, kinds: tuple[type, ...]) -> ast.expr:
        if not (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Load)
            and self._own is not None
            and f.is_load_of(node.value, self._own)
        ):
            return node
        instance = self._callee.instance
        kind: Any = type(instance)
        changing = changing_attributes(kind)
        is_own = node.attr in vars_of(instance)
        value = (
            vars_of(instance)[node.attr]
            if is_own
            else inspect.getattr_static(kind, node.attr, self)
        )
        if changing is None or node.attr in changing or type(value) not in kinds:
            return node
        if not (isinstance(value, (OutputTag, type)) or is_written_exactly(value)):
            return node
        path: tuple[Any, ...] = ("owner_of", self._callee.path)
        if self._callee.owner is not None:
            path = self._scope.form.names.bindings[self._callee.owner]
        if not is_own:
            self._scope.watch(path, node.attr, ABSENT, is_attribute=True)
            path = ("class_with", path, node.attr)
        self._scope.watch(path, node.attr, value, is_attribute=True, is_sent=is_own)
        if isinstance(value, type):
            what: tuple[Any, ...] = ("attribute_of", path, node.attr)
        elif isinstance(value, OutputTag):
            what = ("value", value)
        else:
            return literal(value)
        return f.name(self._scope.constant(node.attr, self._callee, value, *what))


def vars_of(instance: Any) -> Any:
    """The attributes of an object itself."""
    return getattr(instance, "__dict__", {})
