"""Calls over a record whose class is known, without the look-up of a method.

    value_1.with_tax(0.2)            order_with_tax_1(value_1, 0.2)         its source is inlined like a function's
    value_1.total                    order_total_1(value_1)                 if it is a property
    replace(value_1, price=0)        Order(value_1.user, 0)
    value_1._replace(price=0)        Order(value_1.user, 0)
    asdict(value_1)                  {"user": plain_value(value_1.user), ...}
    value_1._asdict()                {"user": value_1.user, ...}

The last four are for named tuples and dataclasses. The class of a variable is known if it is set once, to a new object of this
class, or if it has a record that was sent by field.
"""

from __future__ import annotations

import ast
import dataclasses
from types import FunctionType
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.changing_attributes import is_of_library, replaced_attributes
from opchain.compiler.codegen.displays import class_name, is_named_tuple, parameters_of
from opchain.compiler.codegen.function_source import only_calls_builtins
from opchain.compiler.codegen.static_types import ColumnsOf

if TYPE_CHECKING:
    from collections.abc import Callable


class RecordCalls(ast.NodeTransformer):
    """Replaces such calls in a function.

    Args:
        function: The function.
        name_of: Returns the name in generated code of a method or property of a class.
    """

    def __init__(
        self, form: f.Form, function: f.Function, name_of: Callable[[type, str, FunctionType], str]
    ) -> None:
        self.found = False
        self._form = form
        self._name_of = name_of
        self._kinds: dict[str, Any] = {}
        columns = function.types.get("values")
        is_set_once = f.stores(function.body).get("value") == 1
        if isinstance(columns, ColumnsOf) and columns.shape is not None and is_set_once:
            self._kinds["value"] = columns.shape.kind
        for name, value in f.values_set_once(function.body).items():
            is_alias = isinstance(value, ast.Name) and value.id in self._kinds
            made = form.constants.get(f.called(value))
            self._kinds[name] = self._kinds[value.id] if is_alias else made  # type: ignore[attr-defined]

    def visit(self, node: ast.AST) -> Any:
        """The node, or its replacement, which has the same line of the user's."""
        found = super().visit(node)
        return found if found is node else f.placed(found, node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """A call of a method, or of a function of the dataclasses module."""
        self.generic_visit(node)
        called = node.func
        if not isinstance(called, ast.Attribute):
            known = self._form.constants.get(f.called(node))
            what = next((name for name, item in _OF_DATACLASSES.items() if item is known), "")
            return self._made(node, node.args[0], what) if what and len(node.args) == 1 else node
        name = self._member(called, FunctionType)
        if name is None:
            is_plain = called.attr in _OF_DATACLASSES and not node.args
            return self._made(node, called.value, called.attr) if is_plain else node
        node.func, node.args = f.name(name), [called.value, *node.args]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """A read of a property."""
        self.generic_visit(node)
        name = self._member(node, property)
        return node if name is None else ast.Call(f.name(name), [node.value], [])

    def _kind(self, node: ast.expr) -> Any:
        """The class of the record that an expression reads, or None."""
        kind = self._kinds.get(node.id) if isinstance(node, ast.Name) else None
        return kind if _has_plain_objects(kind) or parameters_of(kind) else None

    def _member(self, node: ast.Attribute, wanted: type) -> str | None:
        """The name of generated code for a method or property of the user's, which the program never replaces."""
        kind = self._kind(node.value) if isinstance(node.ctx, ast.Load) else None
        if kind is None or node.attr in getattr(kind, "__dataclass_fields__", ()):
            return None
        member = vars(kind).get(node.attr)
        function = member.fget if isinstance(member, property) else member
        if not (isinstance(member, wanted) and isinstance(function, FunctionType)):
            return None
        replaced = replaced_attributes(kind, of_class=True)
        if replaced is None or node.attr in replaced or is_of_library(function):
            return None
        self.found = True
        return self._name_of(kind, node.attr, function)

    def _made(self, node: ast.Call, record: ast.expr, what: str) -> ast.expr:
        """The record or dictionary that a call makes of a record, from its fields."""
        kind = self._kind(record)
        names, _ = parameters_of(kind) or ((), ())
        is_tuple = is_named_tuple(kind)
        if not names or is_tuple is not isinstance(node.func, ast.Attribute):
            return node
        if is_tuple and not is_of_library(getattr(kind, what)):
            return node
        changed = {item.arg: item.value for item in node.keywords}
        allowed = names if what == "_replace" else ()
        if not changed.keys() <= {*allowed} or not all(map(only_calls_builtins, changed.values())):
            return node
        self.found = True
        values: list[ast.expr] = [
            changed.get(name, ast.Attribute(f.copied(record), name, ast.Load())) for name in names
        ]
        if what == "_replace":
            return ast.Call(f.name(class_name(kind, self._form)), values, [])
        if not is_tuple:
            plain = self._form.names.bind("plain_value", "shared")
            values = [ast.Call(f.name(plain), [value], []) for value in values]
        return ast.Dict([*map(ast.Constant, names)], values)


_OF_DATACLASSES: dict[str, Any] = {"_asdict": dataclasses.asdict, "_replace": dataclasses.replace}
"""The methods of named tuples, and the functions that do the same for dataclasses."""


def _has_plain_objects(kind: Any) -> bool:
    """Whether a class has the default `__new__` and attribute lookup."""
    usual = ("__new__", "__getattribute__")
    return type(kind) is type and all(
        getattr(kind, name) is getattr(object, name) for name in usual
    )
