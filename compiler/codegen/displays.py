"""Records that are made in one expression of all their fields: tuples, Rows, named tuples, dictionaries of constant keys.

    (x % 7, x)      Row(x % 7, x)      Row(key=x % 7, x=x)      Click(x % 7, x)      {"key": x % 7, "x": x}

Rules treat them alike: a record that is only read field by field is not made, and one that is sent is sent by fields.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.runtime.records.columns import Shape
from opchain.runtime.types.row import Row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opchain.compiler.codegen.form import Form


@dataclass(frozen=True, slots=True)
class Display:
    """The expressions of the fields, and what the record is: None for a tuple."""

    elements: list[ast.expr]
    shape: Shape | None = None

    def with_elements(self, elements: Sequence[ast.expr], form: Form) -> ast.expr:
        """A display of the same shape."""
        return displayed(elements, self.shape, form)


def is_mutable(shape: Shape | None) -> bool:
    """Whether records of a shape can be changed in place."""
    return shape is not None and shape.kind in (Row, dict)


def display_of(node: ast.expr | None, constants: Mapping[str, Any]) -> Display | None:
    """The display that an expression is. `constants` has the values of global names."""
    if isinstance(node, ast.Tuple):
        is_plain = not any(isinstance(item, ast.Starred) for item in node.elts)
        return Display(node.elts) if is_plain else None
    if isinstance(node, ast.Dict):
        keys = [getattr(key, "value", None) for key in node.keys]
        names = tuple(key for key in keys if isinstance(key, str))
        if not len(keys) == len(names) == len(set(names)) > 0:
            return None
        return Display(node.values, Shape(dict, names))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == _NEW_TUPLE:
            kind, fields = node.args
            assert isinstance(kind, ast.Name)
            assert isinstance(fields, ast.Tuple)
            named = constants[kind.id]
            return Display(fields.elts, Shape(named, named._fields))
        return _of_call(node, constants.get(node.func.id))
    return None


def _of_call(node: ast.Call, kind: Any) -> Display | None:
    names = tuple(keyword.arg for keyword in node.keywords if keyword.arg is not None)
    values = [*node.args, *(keyword.value for keyword in node.keywords)]
    if any(isinstance(item, ast.Starred) for item in values) or len(names) != len(node.keywords):
        return None
    if kind is Row and values and not (node.args and names):
        return Display(values, Shape(Row, names))
    if is_named_tuple(kind) and len(values) == len(kind._fields):
        fields = kind._fields
        return Display(values, Shape(kind, fields)) if names == fields[len(node.args) :] else None
    return None


def is_named_tuple(kind: Any) -> bool:
    """Whether a class is one of named tuples, as `NamedTuple` and `namedtuple` make it, with its own ways of access."""
    if not (isinstance(kind, type) and kind.__bases__ == (tuple,) and hasattr(kind, "_fields")):
        return False
    own = vars(kind)
    if own.get("__slots__") != () or not _ACCESS.isdisjoint(own):
        return False
    return getattr(kind.__new__, "__module__", "").startswith("namedtuple_")


_NEW_TUPLE = "new_tuple"
"""`tuple.__new__`, which makes a named tuple in half the time that its class takes."""

_ACCESS = frozenset(
    {
        *("__getitem__", "__getattribute__", "__getattr__", "__iter__", "__len__", "__init__"),
        *("__reduce__", "__reduce_ex__", "__init_subclass__", "__del__"),
    }
)


def displayed(elements: Sequence[ast.expr], shape: Shape | None, form: Form) -> ast.expr:
    """An expression that makes a record."""
    if shape is None:
        return ast.Tuple(list(elements), ast.Load())
    if shape.kind is dict:
        keys: list[ast.expr | None] = [ast.Constant(name) for name in shape.names]
        return ast.Dict(keys, list(elements))
    maker = f.name(_maker(shape.kind, form))
    if shape.kind is Row and shape.names:
        pairs = zip(shape.names, elements, strict=True)
        call = ast.Call(maker, [], [ast.keyword(name, value) for name, value in pairs])
    elif shape.kind is Row:
        call = ast.Call(maker, list(elements), [])
    else:
        form.names.bind(_NEW_TUPLE, "shared")
        call = ast.Call(f.name(_NEW_TUPLE), [maker, ast.Tuple(list(elements), ast.Load())], [])
    call.is_fresh = True  # type: ignore[attr-defined]
    return call


def _maker(kind: type, form: Form) -> str:
    for name, value in form.constants.items():
        if value is kind:
            return name
    name = form.names.bind(f"{kind.__name__.lower()}_of_fields", "value", kind)
    form.constants[name] = kind
    return name


def note_fresh(body: Sequence[ast.stmt], constants: Mapping[str, Any]) -> None:
    """Marks the calls that make records: nobody else holds what they give."""
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and display_of(node, constants) is not None:
                node.is_fresh = True  # type: ignore[attr-defined]


def field_read(node: ast.AST, variable: str, shape: Shape | None, count: int) -> int | None:
    """Which of its `count` fields an expression reads of a record, if that is all that it does."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        item = f.constant_item(node, variable)
        if type(item) is int and 0 <= item < count and (shape is None or shape.kind is not dict):
            return item
        return _position(item, shape) if shape is not None and is_mutable(shape) else None
    if shape is None or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return None
    if isinstance(node, ast.Attribute) and _is(node.value, variable):
        is_field = shape.kind is not dict and not (shape.kind is Row and hasattr(Row, node.attr))
        return _position(node.attr, shape) if is_field else None
    if (
        shape.kind is dict
        and isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "get"
        and _is(node.func.value, variable)
        and len(node.args) == 1
        and isinstance(node.args[0], ast.Constant)
    ):
        return _position(node.args[0].value, shape)
    return None


def reading(variable: ast.expr, position: int, shape: Shape | None) -> ast.expr:
    """An expression that reads a field of a record."""
    is_named = shape is not None and shape.kind is dict
    key = shape.names[position] if is_named and shape is not None else position
    return ast.Subscript(variable, ast.Constant(key), ast.Load())


def _position(name: Any, shape: Shape) -> int | None:
    if not isinstance(name, str) or (name.startswith("_") and shape.kind is not dict):
        return None
    return shape.names.index(name) if name in shape.names else None


def _is(node: ast.expr, variable: str) -> bool:
    return isinstance(node, ast.Name) and node.id == variable
