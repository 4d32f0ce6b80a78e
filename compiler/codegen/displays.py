"""Expressions that create a record from all its fields.

    (x % 7, x)      Row(x % 7, x)      Row(key=x % 7, x=x)      Click(x % 7, x)      {"key": x % 7, "x": x}

These are tuples, Rows, named tuples, dataclasses, and dictionaries with constant keys.

Rules treat them alike. A record is not created if only its fields are read. A record for an exchange is sent by field.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.function_source import is_written_exactly, literal
from opchain.runtime.records.columns import Shape
from opchain.runtime.records.record_copy import is_plain_class
from opchain.runtime.types.row import Row


@dataclass(frozen=True, slots=True)
class Display:
    """The expressions of the fields, and the class of the record; None for a tuple.

    `names` is a variable with the field names of a Row. None if they are not known at compile time.
    """

    elements: Sequence[ast.expr]
    shape: Shape | None = None
    names: ast.Name | None = None

    @property
    def is_mutable(self) -> bool:
        """Whether such a record can be changed in place."""
        return self.shape is not None and not issubclass(self.shape.kind, tuple)

    def expression(self, form: f.Form) -> ast.expr:
        """The expression that creates the record."""
        elements, shape = list(self.elements), self.shape
        if shape is None:
            return ast.Tuple(elements, ast.Load())
        if shape.kind is dict:
            return ast.Dict([ast.Constant(name) for name in shape.names], elements)
        if is_dataclass(shape.kind):
            made = ast.Call(f.name(class_name(shape.kind, form)), elements, [])
            notes.is_fresh.set(made, True)
            return made
        maker, arguments = _NEW_TUPLE, [f.name(""), ast.Tuple(elements, ast.Load())]
        if shape.kind is Row:
            maker, arguments = _NEW_ROW, [ast.List(elements, ast.Load())]
            if self.names is not None:
                arguments.append(self.names)
            elif shape.names:
                arguments.append(ast.List([*map(ast.Constant, shape.names)], ast.Load()))
        else:
            arguments[0] = f.name(class_name(shape.kind, form))
        call = ast.Call(f.name(form.names.bind(maker, "shared")), arguments, [])
        notes.is_fresh.set(call, True)
        return call

    def field_read(self, node: ast.AST, variable: str) -> int | None:
        """The field of a record in a variable that an expression reads. None if the expression does anything else."""
        kind = tuple if self.shape is None else self.shape.kind
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            item = f.constant_item(node, variable)
            is_sequence = kind is Row or issubclass(kind, tuple)
            if type(item) is int and 0 <= item < len(self.elements) and is_sequence:
                return item
            return self._position(item) if kind in (Row, dict) else None
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            is_field = kind is not dict and not (kind is Row and hasattr(Row, node.attr))
            return (
                self._position(node.attr)
                if is_field and f.is_load_of(node.value, variable)
                else None
            )
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="get"),
                args=[ast.Constant(value=key)] | [ast.Constant(value=key), ast.Constant()],
                keywords=[],
            ) if kind is dict and name == variable:
                return self._position(key)  # a default is not used
        return None

    def read(self, record: ast.expr, position: int) -> ast.expr:
        """An expression that reads a field of such a record."""
        shape = self.shape
        item: ast.expr
        if shape is not None and is_dataclass(shape.kind):
            item = ast.Attribute(record, shape.names[position], ast.Load())
        else:
            key = shape.names[position] if shape is not None and shape.kind is dict else position
            item = ast.Subscript(record, ast.Constant(key), ast.Load())
        notes.is_field.set(item, True)
        return item

    def _position(self, name: Any) -> int | None:
        shape = self.shape
        if shape is None or not isinstance(name, str) or name not in shape.names:
            return None
        return None if name.startswith("_") and shape.kind is not dict else shape.names.index(name)


def field_reads(
    display: Display,
    variable: str,
    fields: Sequence[ast.expr] | Mapping[int, ast.expr],
    whole: ast.expr | None = None,
) -> f.Change:
    """For `form.changed`: replaces reads of a record's fields by expressions, and the record itself by `whole`, if given.

    Args:
        display: The record.
        variable: The variable that refers to the record.
        fields: The expressions, by field.
        whole: The replacement for the record itself.
    """
    known = fields if isinstance(fields, Mapping) else dict(enumerate(fields))

    def change(node: ast.AST) -> ast.expr | None:
        position = display.field_read(node, variable)
        if position is not None and position in known:
            return f.copied(known[position])
        return f.copied(whole) if whole is not None and f.is_load_of(node, variable) else None

    return change


def display_of(node: ast.expr | None, constants: Mapping[str, Any]) -> Display | None:
    """The display for an expression; None for other expressions. `constants` has the values of global names."""
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
        is_row = node.func.id == _NEW_ROW
        return _of_row(node) if is_row else _of_call(node, constants.get(node.func.id))
    return None


def _of_row(node: ast.Call) -> Display:
    fields, names = (*node.args, None)[:2]
    assert isinstance(fields, ast.List)
    if isinstance(names, ast.Name):
        return Display(fields.elts, Shape(Row), names)
    known = [name.value for name in getattr(names, "elts", ())]
    return Display(fields.elts, Shape(Row, tuple(known)))


def _of_call(node: ast.Call, kind: Any) -> Display | None:
    names = tuple(keyword.arg for keyword in node.keywords if keyword.arg is not None)
    values = [*node.args, *(keyword.value for keyword in node.keywords)]
    if any(isinstance(item, ast.Starred) for item in values) or len(names) != len(node.keywords):
        return None
    if kind is Row and values and not (node.args and names):
        return Display(values, Shape(Row, names))
    parameters = parameters_of(kind)
    if parameters is None:
        return None
    fields, defaults = parameters
    left = len(fields) - len(values)
    filled = defaults[-left:] * (left > 0)
    is_known = len(values) + len(filled) == len(fields) and all(map(is_written_exactly, filled))
    values += map(literal, filled if is_known else ())
    return (
        Display(values, Shape(kind, fields))
        if is_known and names == fields[len(node.args) : len(fields) - left]
        else None
    )


def parameters_of(kind: Any) -> tuple[tuple[str, ...], tuple[Any, ...]] | None:
    """The fields of a class of named tuples or a plain dataclass, and the defaults of the last ones. None for other classes."""
    if is_named_tuple(kind):
        return kind._fields, tuple(kind._field_defaults.values())
    if is_plain_dataclass(kind):
        return _parameters(kind), kind.__init__.__defaults__ or ()
    return None


def is_named_tuple(kind: Any) -> bool:
    """Whether a class was created by `NamedTuple` or `namedtuple`, and does not override how fields are read."""
    if not (isinstance(kind, type) and kind.__bases__ == (tuple,) and hasattr(kind, "_fields")):
        return False
    own = vars(kind)
    if own.get("__slots__") != () or not _ACCESS.isdisjoint(own):
        return False
    return getattr(kind.__new__, "__module__", "").startswith("namedtuple_")


_NEW_TUPLE, _NEW_ROW = MAKERS = ("new_tuple", "row_of")
"""`tuple.__new__` and `row_of`, which are faster than the classes.

With two fields: a named tuple takes 150 ns instead of 250, a Row 170 instead of 260, with names 210 instead of 650.
"""

_ACCESS = frozenset(
    {
        *("__getitem__", "__getattribute__", "__getattr__", "__iter__", "__len__", "__init__"),
        *("__reduce__", "__reduce_ex__", "__init_subclass__", "__del__"),
    }
)


def class_name(kind: type, form: f.Form) -> str:
    """The name of a class in generated code."""
    for name, value in form.constants.items():
        if value is kind:
            return name
    name = form.names.bind(f"{kind.__name__.lower()}_of_fields", "value", kind)
    form.constants[name] = kind
    return name


def is_plain_dataclass(kind: Any) -> bool:
    """Whether a class is a dataclass whose instances only store the arguments, and have nothing else."""
    if not (type(kind) is type and is_dataclass(kind) and is_plain_class(kind)):
        return False
    is_frozen = kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    has_descriptors = any(
        hasattr(type(vars(base).get(item.name)), "__set__")
        for base in kind.__mro__
        for item in fields(kind)
    )
    return (
        _parameters(kind) == tuple(item.name for item in fields(kind)) != ()
        and not (hasattr(kind, "__post_init__") or hasattr(kind, "__del__") or has_descriptors)
        and (is_frozen or kind.__setattr__ is object.__setattr__)
    )


def _parameters(kind: Any) -> tuple[str, ...]:
    """The positional parameters of the `__init__` that the dataclasses module generated, or none."""
    code: Any = getattr(kind.__init__, "__code__", None)
    is_generated = getattr(code, "co_filename", "") == "<string>" and not code.co_kwonlyargcount
    return code.co_varnames[1 : code.co_argcount] if is_generated else ()


def with_makers(form: f.Form, block: f.Lines) -> f.Lines:
    """A block with faster constructors in place of calls of Row, named tuples and dataclasses. Their results are new objects."""

    def change(node: ast.AST) -> ast.expr | None:
        display = display_of(node, form.constants) if isinstance(node, ast.Call) else None
        if display is None or f.called(node) in MAKERS:
            return None
        return f.placed(display.expression(form), node)

    return f.changed(block, change, inner_first=True)  # type: ignore[no-any-return]
