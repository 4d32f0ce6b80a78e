"""Records get the form of their declared type where they leave a chain of Python functions, if they do not have it.

>>> from opchain.common import Types
>>> change("convert_declared_types", lambda numbers: numbers.map(lambda x: x**0.5, output_type=Types.DOUBLE()))
-   row_1 = as_declared_1(value_1)
-   if row_1.__class__ not in IMMUTABLE:
-     row_1 = own_copy(row_1)
+   row_1 = value_1 if value_1.__class__ is float else as_declared_1(value_1)

Nothing is done for records that are known to have it. Of a tuple, a Row or a dictionary that is not made, the fields are
looked at.
"""

from __future__ import annotations

import ast
import keyword
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen.analysis import types_of
from opchain.compiler.codegen.displays import Display, FieldReads, display_of
from opchain.compiler.codegen.static_types import StaticType, TupleOf, plain_type, type_of
from opchain.runtime.records.columns import Shape
from opchain.runtime.types.coders import class_of, form_test, may_be_none
from opchain.runtime.types.record_types import RowTypeInfo, TupleTypeInfo
from opchain.runtime.types.row import Row
from opchain.runtime.types.type_information import BasicTypeInfo, TypeInformation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opchain.compiler.codegen.form import Form, Function

_BUILTINS: dict[str, type] = {"int": int, "float": float, "str": str, "bool": bool}


def convert_declared_types(form: Form) -> None:
    """Writes out all conversions."""
    for function in form.functions:
        while (statement := _next_of(function)) is not None:
            types = types_of(function, form)  # of records converted so far, too
            lines = _converted(form, function, statement, types)
            f.with_comment(lines, f.comment_of(statement))
            function.body = f.rewritten(
                function.body,
                lambda item, lines=lines, done=statement: lines if item is done else None,  # type: ignore[misc]
            )
            _forward(function, statement, lines)


def _next_of(function: Function) -> f.Convert | None:
    """The first conversion that is not written out. Statements that are rewritten are other objects."""
    found = f.all_statements(function.body)
    return next((item for item in found if isinstance(item, f.Convert)), None)


def _forward(function: Function, statement: f.Convert, lines: list[ast.stmt]) -> None:
    """Removes the variable of a record that needs no conversion, and uses the variable before it."""
    value = statement.value
    (made,) = lines if len(lines) == 1 else (None,)
    if isinstance(value, ast.Name) and isinstance(made, ast.Assign) and made.value is value:
        body = f.rewritten(function.body, lambda item: [] if item is made else None)
        same: dict[str, ast.expr] = {statement.target.id: value}
        function.body = [f.replaced(item, same) for item in body]


def nothing_is_left_to_convert(form: Form) -> None:
    """No `Convert` is left."""
    for function in form.functions:
        for item in f.all_statements(function.body):
            assert not isinstance(item, f.Convert), function.name


def _converted(
    form: Form, function: Function, statement: f.Convert, types: dict[str, StaticType | None]
) -> list[ast.stmt]:
    operator, row, value = f.operator_of(statement), statement.target.id, statement.value
    of_operator = form.program.operators[operator]
    declared = of_operator.record_type
    if statement.tag is not None:
        declared = dict(of_operator.side_types)[statement.tag]
    assert declared is not None
    if isinstance(declared, RowTypeInfo):
        lines = _row_by_fields(form, function, statement, declared, types)
        if lines is not None:
            return lines
    known = type_of(value, types)
    test = form_test(declared, "value", plain_type(known))
    if test == "":
        return [f.let(row, value, operator)]
    function.types[row] = None if may_be_none(declared) else _form_of(declared)
    call = ast.Call(f.name(statement.convert), [value], [])
    if test is None:
        return [f.let(row, call, operator)]
    display = display_of(value, form.constants)
    if display is not None and display.shape is None:
        made = function.types[row]
        items = made.items if isinstance(made, TupleOf) else [None] * len(display.elements)
        return _by_fields(form, function, statement, display, test, items)
    condition = f.replaced(ast.parse(test, mode="eval").body, {"value": value})
    return [f.let(row, ast.IfExp(condition, value, call), operator)]


def _row_by_fields(
    form: Form,
    function: Function,
    statement: f.Convert,
    declared: RowTypeInfo,
    types: dict[str, StaticType | None],
) -> list[ast.stmt] | None:
    """A Row with the declared names, from the fields of a record that is not built."""
    display = display_of(statement.value, form.constants)
    names = tuple(declared.get_field_names())
    if display is None or len(display.elements) != len(names) or not _are_keywords(names):
        return None
    lines: list[ast.stmt] = []
    shape = display.shape
    if shape is not None and shape.kind in (Row, dict) and shape.names:
        if set(shape.names) != set(names):
            return None
        lines, display = _in_order(statement, display, shape.names, names)
    elif shape is not None and (shape.kind is dict or display.names is not None):
        return None
    known = [type_of(element, types) for element in display.elements]
    tests = [
        form_test(field_type, f"value[{position}]", plain_type(known[position]))
        for position, field_type in enumerate(declared.field_types)
    ]
    if None in tests:
        return None
    # A field that may need a conversion may be None after it.
    items = [None if test else kind for test, kind in zip(tests, known, strict=True)]
    condition = " and ".join(filter(None, tests))
    made = _by_fields(form, function, statement, display, condition, items, Shape(Row, names))
    return [*lines, *made]


def _in_order(
    statement: f.Convert, display: Display, names: tuple[str, ...], declared: tuple[str, ...]
) -> tuple[list[ast.stmt], Display]:
    """The same fields as a Row in the order of the declared names, after lines that compute them in their own order."""
    if names == declared:
        return [], replace(display, shape=Shape(Row))
    lines: list[ast.stmt] = []
    elements = dict(zip(names, display.elements, strict=True))
    for name, element in elements.items():
        if not isinstance(element, (ast.Name, ast.Constant)):
            place = statement.target.id.removeprefix("row_")
            variable = f"field_of_{place}_{declared.index(name)}"
            lines.append(f.let(variable, element, f.operator_of(statement)))
            elements[name] = f.name(variable)
    return lines, Display([elements[name] for name in declared], Shape(Row))


def _by_fields(
    form: Form,
    function: Function,
    statement: f.Convert,
    display: Display,
    test: str,
    items: Sequence[StaticType | None],
    shape: Shape | None = None,
) -> list[ast.stmt]:
    """Checks the fields of a record that is not built.

    Args:
        form: The vertex.
        function: The function that the statement is in.
        statement: What is written out.
        display: The record.
        test: What is true if the fields need no conversion, over items of `value`; empty if they never need one.
        items: The types of the fields behind the conversion.
        shape: What the record is behind the conversion.
    """
    operator = f.operator_of(statement)
    place = statement.target.id.removeprefix("row_")
    condition = ast.parse(test or "True", mode="eval").body
    converted = {f.constant_item(node, "value") for node in ast.walk(condition)}  # type: ignore[arg-type]
    lines: list[ast.stmt] = []
    elements, targets = list(display.elements), [f.target("_") for _ in display.elements]
    for position, element in enumerate(display.elements):
        if position in converted or not isinstance(element, (ast.Name, ast.Constant)):
            name = f"field_of_{place}_{position}"
            function.types[name] = items[position]
            lines.append(f.let(name, element, operator))
            elements[position], targets[position] = f.name(name), f.target(name)
    fields = replace(display, elements=elements)
    if test:
        is_right = FieldReads(Display(elements), "value", elements).visit(condition)
        call = ast.Call(f.name(statement.convert), [fields.expression(form)], [])
        convert = ast.Assign([ast.Tuple(list(targets), ast.Store())], call, lineno=0)
        lines.append(ast.If(ast.UnaryOp(ast.Not(), is_right), [convert], []))
    made = replace(fields, shape=shape).expression(form)
    lines.append(f.let(statement.target.id, made, operator))
    return f.marked(lines, operator)


def _are_keywords(names: tuple[str, ...]) -> bool:
    """Whether a call can pass arguments by these names."""
    is_plain = all(name.isidentifier() and not keyword.iskeyword(name) for name in names)
    return is_plain and len(set(names)) == len(names) > 0


def _form_of(declared: TypeInformation[Any]) -> StaticType | None:
    """The known type of a value after its conversion to a declared type."""
    if isinstance(declared, TupleTypeInfo):
        return TupleOf(tuple(map(_form_of, declared.field_types)))
    if isinstance(declared, BasicTypeInfo):
        return _BUILTINS.get(class_of(declared) or "")
    return None
