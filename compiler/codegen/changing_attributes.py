"""Finds the attributes of a function object that may change while a batch is processed.

Generated code reads the other attributes once per batch. An attribute changes if code that runs with the records sets it:

- a method other than `__init__`, on any object;
- other code of the same file, or of a module that can name the class, on anything but a method's own first parameter;
- code that gets the object itself. If a method hands on `self`, all attributes may change.

`x.count += 1` and `x.count = x.count + 1` cannot set an attribute that holds a state, because states have no operators.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import dis
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Generic

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.function_source import tree_of
from opchain.compiler.codegen.source_text import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet


_INIT, _OPENING = frozenset({"__init__"}), frozenset({"__init__", "open"})
"""The methods that only run before the records: for attributes in general, and for attributes that hold states."""


def changing_attributes(kind: Any, *, of_states: bool = False) -> AbstractSet[str] | None:
    """The attributes of a class of function objects that may change in mid-batch; None if all of them may.

    `of_states` asks for those that hold states.
    """
    if kind.__setattr__ is not object.__setattr__ or kind.__getattribute__ is not (
        object.__getattribute__
    ):
        return None
    return replaced_attributes(kind, of_states=of_states)


@lru_cache(maxsize=256)
def replaced_attributes(
    kind: Any, *, of_states: bool = False, of_class: bool = False
) -> AbstractSet[str] | None:
    """The attributes of a class or its objects that the program sets in mid-batch; None if they are not known.

    `of_class` asks for methods and properties of the class. Code that gets an object does not replace these.
    """
    opening = frozenset() if of_class else _OPENING if of_states else _INIT
    bases = [base for base in kind.__mro__ if not _is_ours(base)]
    stores = [_stores_in(file) for file in _files_of(bases)]
    classes = {base.__name__ for base in bases}
    values = [(name, value) for base in bases for name, value in _members(base)]
    is_handed_on = any(found.handing_on & classes for found in stores) or any(
        hasattr(getattr(value, "__func__", value), "__wrapped__") for _, value in values
    )  # a decorator's function gets the object
    if any(found.sets_any for found in stores) or (is_handed_on and not of_class):
        return None
    methods = [(name, code) for base in bases for name, code in _codes(base)]
    if any(not _SETS_ANY.isdisjoint(code.co_names) for _, code in methods):
        return None
    called = {used for name, code in methods if name not in opening for used in code.co_names}
    runs_later = [code for name, code in methods if name not in opening or name in called]
    properties = {name for name, value in values if hasattr(type(value), "__set__")}
    names = [found.names for found in stores]
    added = [] if of_states else [found.added for found in stores]
    return frozenset(() if of_class else properties).union(
        *names, *added, *map(_set_by, runs_later)
    )


def called_by_syntax(node: ast.AST) -> list[ast.expr]:
    """Objects whose methods a node calls: the MapState in `state[key]`, `key in state`, `list(state)` or `for key in state`."""
    match node:
        case ast.Call(args=arguments) if f.is_call_of(node, ITERATING):
            return arguments
        case ast.Subscript(value=value) | ast.Starred(value=value):
            return [value]
        case ast.Assign(targets=[ast.Tuple() | ast.List()], value=value):
            return [value]
        case ast.For(iter=iterated) | ast.comprehension(iter=iterated):
            return [iterated]
        case ast.Compare(ops=ops, comparators=comparators):
            tests = zip(ops, comparators, strict=True)
            return [item for test, item in tests if isinstance(test, (ast.In, ast.NotIn))]
    return []


@lru_cache(maxsize=256)
def attributes_handed_on(kind: Any) -> AbstractSet[str]:
    """The attributes of `self` that methods of a class read for more than a call, or that functions within methods read.

    Such an attribute may reach other objects: `Shown(self.state)`, or `Shown(lambda: self.state.value())`. A loop or an
    operator over an attribute calls its methods, too: `for item in self.state`.
    """
    bases = [base for base in kind.__mro__ if not _is_ours(base)]
    classes = {base.__name__ for base in bases}
    stores = [_stores_in(file) for file in _files_of(bases)]
    return {name for found in stores for owner, name in found.read if owner in classes}


_SETS_ANY = frozenset({"__dict__", "__setattr__", "__delattr__", "setattr", "delattr", "vars"})
_CHANGES_DICT = frozenset({"update", "setdefault", "pop", "popitem", "clear", "__setitem__"})
ITERATING = {
    *("all", "any", "enumerate", "frozenset", "list", "max", "min", "set", "sorted", "sum"),
    "tuple",
}
"""Builtins that iterate over their only argument."""

_LOOKS = frozenset({"super", "isinstance", "id", "getattr", "hasattr"})
"""Builtins that do not change the object that they get."""


def _is_ours(base: type) -> bool:
    return base is Generic or base.__module__.partition(".")[0] in ("builtins", "opchain")


def is_of_library(function: FunctionType) -> bool:
    """Whether a function is part of Python's standard library. Such functions are not inlined."""
    return function.__module__.partition(".")[0] in sys.stdlib_module_names


def _members(base: type) -> list[tuple[str, Any]]:
    """The attributes of a class, without the methods that the library wrote for a dataclass or named tuple."""
    members = vars(base).items()
    if not vars(base).keys() & {"__dataclass_params__", "_fields"}:
        return list(members)
    return [(name, value) for name, value in members if not _is_generated(value)]


_LIBRARY_FILES = ("<string>", collections.__file__, dataclasses.__file__)
"""Where the library's methods of dataclasses and named tuples are: generated ones, `_replace` and `__replace__`."""


def _is_generated(value: Any) -> bool:
    code = getattr(getattr(value, "__wrapped__", value), "__code__", None)
    return getattr(code, "co_filename", "") in _LIBRARY_FILES


def _codes(base: type) -> Iterator[tuple[str, CodeType]]:
    """The code of a class with the name of its method, and the code of functions within."""
    for name, value in _members(base):
        found = [getattr(value, part, None) for part in ("__func__", "fget", "fset", "fdel")]
        codes = [item.__code__ for item in (value, *found) if isinstance(item, FunctionType)]
        own = [*codes]
        while codes:
            code = codes.pop()
            codes += [item for item in code.co_consts if isinstance(item, CodeType)]
            yield name if code in own else f"{name}.<locals>", code  # it may run later


def _set_by(code: CodeType) -> set[str]:
    return {
        item.argval
        for item in dis.get_instructions(code)
        if item.opname in ("STORE_ATTR", "DELETE_ATTR")
    }


def _files_of(bases: list[type]) -> set[str]:
    """The files with the methods of classes, and the files of modules that can name one of the classes."""
    files = {code.co_filename for base in bases for _, code in _codes(base)}
    homes = {base.__module__ for base in bases}
    classes = {id(base) for base in bases}
    for name, module in list(sys.modules.items()):
        if not _is_users(name, module):
            continue
        if name in homes or any(
            id(value) in classes or (isinstance(value, ModuleType) and value.__name__ in homes)
            for value in vars(module).values()
        ):
            files |= _files_of_module(module)
    return files


def _is_users(name: str, module: Any) -> bool:
    """Whether a module is part of the user's program, rather than of a library."""
    root = name.partition(".")[0]
    if not isinstance(module, ModuleType) or root in (sys.stdlib_module_names - {"__main__"}):
        return False
    file = getattr(module, "__file__", None) or ""
    return root != "opchain" and "site-packages" not in file


def _files_of_module(module: ModuleType) -> set[str]:
    file = getattr(module, "__file__", None)
    if file:
        return {file}
    own = [value for value in vars(module).values() if isinstance(value, (type, FunctionType))]
    own = [value for value in own if value.__module__ == module.__name__]  # cells of a notebook
    codes = [value.__code__ for value in own if isinstance(value, FunctionType)]
    codes += [code for value in own if isinstance(value, type) for _, code in _codes(value)]
    return {code.co_filename for code in codes}


@dataclass(slots=True)
class _Stores:
    """The attributes that a file sets on anything but a method's own first parameter.

    `added` has those of `x.count += 1`. `sets_any` says that their names are computed. `handing_on` has the classes whose
    methods hand on that parameter, and `read` the attributes of `attributes_handed_on`, each with its class.
    """

    names: set[str] = field(default_factory=set)
    added: set[str] = field(default_factory=set)
    handing_on: set[str] = field(default_factory=set)
    read: set[tuple[str, str]] = field(default_factory=set)
    sets_any: bool = False


@lru_cache(maxsize=64)
def _stores_in(path: str) -> _Stores:
    tree = tree_of(path)
    found = _Stores()
    if tree is not None:
        _Search(found).visit(tree)
    return found


class _Search(ast.NodeVisitor):
    def __init__(self, found: _Stores) -> None:
        self._found = found
        self._class = ""
        self._own = ""
        """The first parameter of the method around, which is the object or its class."""
        self._is_decorated = False
        self._called: set[int] = set()
        """The ids of nodes whose methods a loop or an operator calls."""
        self._is_within = False
        """Whether the visited code belongs to a function within a method."""

    def visit(self, node: ast.AST) -> None:
        if not self._is_within:
            self._called.update(map(id, called_by_syntax(node)))
        super().visit(node)

    # Classes and functions

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        before = self._class, self._own, self._is_within
        self._class, self._own, self._is_within = node.name, "", False
        self.generic_visit(node)
        self._class, self._own, self._is_within = before

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        before = self._class, self._own, self._is_decorated, self._is_within
        self._is_within = bool(self._own)
        parameters = [item.arg for item in (*node.args.posonlyargs, *node.args.args)]
        others = (*node.args.kwonlyargs, node.args.vararg, node.args.kwarg)
        decorators = [*map(text_of, getattr(node, "decorator_list", ()))]
        if self._class and not self._own:
            self._own = parameters[0] if parameters and "staticmethod" not in decorators else ""
            self._is_decorated = bool(set(decorators) - {"classmethod"})
            self._class = self._class if self._own else ""
        elif self._own in {*parameters, *(item.arg for item in others if item)}:
            self._class, self._own = "", ""  # a function within has a parameter of the same name
        self.generic_visit(node)
        self._class, self._own, self._is_decorated, self._is_within = before

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef  # noqa: N815 - names of ast

    # Uses of the first parameter

    def _is_own(self, node: ast.AST) -> bool:
        return bool(self._own) and isinstance(node, ast.Name) and node.id == self._own

    def visit_Name(self, node: ast.Name) -> None:
        if self._is_own(node):
            self._found.handing_on.add(self._class)
        elif node.id in ("setattr", "delattr"):
            self._found.sets_any = True  # it is not called directly

    def visit_Attribute(self, node: ast.Attribute) -> None:
        is_own = self._is_own(node.value)
        if not isinstance(node.ctx, ast.Load) and (not is_own or self._is_decorated):
            self._found.names.add(node.attr)
        elif node.attr in ("__setattr__", "__delattr__"):
            self._found.sets_any = True
        elif is_own and node.attr == "__class__":
            self._found.handing_on.add(self._class)
        if is_own:
            if isinstance(node.ctx, ast.Load) and id(node) not in self._called:
                self._found.read.add((self._class, node.attr))
            return
        if not self._is_class_of_own(node.value):
            self.visit(node.value)

    def _is_method_of_own(self, called: ast.AST) -> bool:
        """Whether a call is `self.method()`, or `self.attribute.method()`."""
        if not isinstance(called, ast.Attribute) or called.attr.startswith("__"):
            return False
        owner = called.value
        return self._is_own(owner) or (
            isinstance(owner, ast.Attribute) and self._is_own(owner.value)
        )

    def _is_class_of_own(self, node: ast.AST) -> bool:
        """Whether a node is `self.__class__` or `type(self)`."""
        if isinstance(node, ast.Attribute):
            return self._is_own(node.value) and node.attr == "__class__"
        is_type = isinstance(node, ast.Call) and text_of(node.func) == "type"
        return is_type and len(node.args) == 1 and self._is_own(node.args[0])  # type: ignore[attr-defined]

    def visit_Compare(self, node: ast.Compare) -> None:
        is_identity = all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)
        for item in (node.left, *node.comparators):
            if not (is_identity and (self._is_own(item) or self._is_class_of_own(item))):
                self.visit(item)

    # Calls that set attributes

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func
        arguments: list[ast.expr] = [*node.args, *(item.value for item in node.keywords)]
        if isinstance(called, ast.Name) and called.id in ("setattr", "delattr"):
            self._sets(arguments)
        elif isinstance(called, ast.Attribute) and called.attr in ("__setattr__", "__delattr__"):
            is_plain = text_of(called.value) in ("object", "type")
            self._sets(arguments if is_plain else [called.value, *arguments])
        elif isinstance(called, ast.Name) and called.id in _LOOKS:
            arguments = [item for item in arguments if not self._is_own(item)]
        else:
            if isinstance(called, ast.Attribute) and called.attr in _CHANGES_DICT:
                self._changes(called.value)
            if self._is_within or not self._is_method_of_own(called):
                self.visit(called)
        for item in arguments:
            self.visit(item)

    def _sets(self, arguments: list[ast.expr]) -> None:
        target, name = (*arguments, None, None)[:2]
        is_super = isinstance(target, ast.Call) and text_of(target.func) == "super"
        if target is not None and (self._is_own(target) or (is_super and self._class)):
            return  # `changing_attributes` finds it in the method
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            self._found.names.add(name.value)
        else:
            self._found.sets_any = True

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._changes(node.value)
        self.generic_visit(node)

    def _changes(self, node: ast.AST) -> None:
        """Notes that a dictionary is changed: it may be that of an object."""
        if isinstance(node, ast.Attribute) and node.attr == "__dict__":
            self._found.sets_any |= not self._is_own(node.value)
        elif isinstance(node, ast.Call) and text_of(node.func) == "vars" and node.args:
            self._found.sets_any |= not self._is_own(node.args[0])

    def visit_Assign(self, node: ast.Assign | ast.NamedExpr) -> None:
        self._changes(node.value)  # under another name, or by `|=`
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        is_sum = isinstance(node.value, ast.BinOp) and text_of(target) in map(
            text_of, (node.value.left, node.value.right)
        )
        if is_sum and not (isinstance(node, ast.Assign) and node.targets[1:]):
            self._adds(target, node.value)
        else:
            self.generic_visit(node)

    visit_NamedExpr = visit_Assign  # noqa: N815 - a name of ast

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._changes(node.target)
        self._adds(node.target, node.value)

    def _adds(self, target: ast.expr, value: ast.expr) -> None:
        """Notes that an operator is applied to a target, whose result is stored there."""
        if isinstance(target, ast.Attribute) and not self._is_own(target.value):
            self._found.added.add(target.attr)
            self.visit(target.value)
        else:
            self.visit(target)
        self.visit(value)
