"""Records get the form of their declared type where they leave a chain of Python functions, if they do not have it.

>>> from opchain.common import Types
>>> change("convert_declared_types", lambda numbers: numbers.map(lambda x: x**0.5, output_type=Types.DOUBLE()))
-   row_1 = as_declared_1(value_1)
-   if row_1.__class__ not in IMMUTABLE:
-     row_1 = own_copy(row_1)
+   row_1 = value_1 if value_1.__class__ is float else as_declared_1(value_1)

Records that are known to have the type are not converted. If a tuple, a Row or a dictionary is never built, its fields
are checked instead.
"""

from __future__ import annotations

import ast
import keyword
from dataclasses import is_dataclass, replace
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen import form as f
from opchain.compiler.codegen import notes
from opchain.compiler.codegen.analysis import escaping_of, types_of
from opchain.compiler.codegen.displays import Display, display_of, field_reads
from opchain.compiler.codegen.fields_read import MOST_COLUMNS
from opchain.compiler.codegen.static_types import StaticType, TupleOf, Types, plain_type, type_of
from opchain.runtime.records.columns import Shape
from opchain.runtime.types.coders import class_of, form_test, may_be_none
from opchain.runtime.types.record_types import RowTypeInfo, TupleTypeInfo
from opchain.runtime.types.row import Row
from opchain.runtime.types.time_types import DateTypeInfo, TimestampTypeInfo, TimeTypeInfo
from opchain.runtime.types.type_information import BasicTypeInfo, TypeInformation

if TYPE_CHECKING:
    from collections.abc import Sequence


_BUILTINS: dict[str, type] = {"int": int, "float": float, "str": str, "bool": bool}
_WITHOUT_PARTS = (BasicTypeInfo, DateTypeInfo, TimeTypeInfo, TimestampTypeInfo)
"""Types whose converted values never change."""


def convert_declared_types(form: f.Form) -> None:
    """Writes out all conversions."""
    for function in form.functions:
        converted: dict[str, TypeInformation[Any]] = {}
        while (statement := _next_of(function)) is not None:
            types = types_of(function, form)  # of records converted so far, too
            declared = _declared(form, statement)
            if _is_converted(function, statement.value, declared, converted):
                lines = [f.let(statement.target.id, statement.value, notes.operator(statement))]
            else:
                lines = _converted(form, function, statement, declared, types)
            converted[statement.target.id] = declared
            f.with_comment(lines, notes.comment(statement))
            function.body = f.replaced_by(function.body, statement, lines)
            _forward(function, statement, lines)


def _next_of(function: f.Function) -> f.Convert | None:
    """The first conversion that is not written out. Statements that are rewritten are other objects."""
    found = f.all_statements(function.body)
    return next((item for item in found if isinstance(item, f.Convert)), None)


def _forward(function: f.Function, statement: f.Convert, lines: f.Lines) -> None:
    """Removes the variable of a record that needs no conversion, and uses the variable before it."""
    value = statement.value
    (made,) = lines if len(lines) == 1 else (None,)
    if isinstance(value, ast.Name) and isinstance(made, ast.Assign) and made.value is value:
        body = f.replaced_by(function.body, made, [])
        same: dict[str, ast.expr] = {statement.target.id: value}
        function.body = [f.replaced(item, same) for item in body]


def _declared(form: f.Form, statement: f.Convert) -> TypeInformation[Any]:
    operator = form.program.operators[notes.operator(statement)]
    declared = operator.record_type
    if statement.tag is not None:
        declared = dict(operator.side_types)[statement.tag]
    assert declared is not None
    return declared


def _is_converted(
    function: f.Function,
    value: ast.expr,
    declared: TypeInformation[Any],
    converted: dict[str, TypeInformation[Any]],
) -> bool:
    """Whether a record has been converted to the same type, and nothing can have changed it since."""
    if not isinstance(value, ast.Name) or converted.get(value.id) != declared:
        return False
    is_changed = any(
        value.id in f.names_in([node.value])
        for node in f.nodes(function.body)
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load)
    )
    has_another_name = any(
        f.is_load_of(assigned, value.id)
        for _, assigned in f.assignments(f.all_statements(function.body))
    )
    return not (is_changed or has_another_name) and value.id not in escaping_of(function)


def nothing_is_left_to_convert(form: f.Form) -> None:
    """No `Convert` is left."""
    for function in form.functions:
        for item in f.all_statements(function.body):
            assert not isinstance(item, f.Convert), function.name


def _converted(
    form: f.Form,
    function: f.Function,
    statement: f.Convert,
    declared: TypeInformation[Any],
    types: Types,
) -> f.Lines:
    operator, row, value = notes.operator(statement), statement.target.id, statement.value
    display = display_of(value, form.constants)
    if display is not None and isinstance(declared, (RowTypeInfo, TupleTypeInfo)):
        lines = _by_fields(form, function, statement, display, declared, types)
        if lines is not None:
            return lines
    test = form_test(declared, "value", plain_type(type_of(value, types)))
    if test == "":
        return [f.let(row, value, operator)]
    function.types[row] = None if may_be_none(declared) else _form_of(declared)
    call = ast.Call(f.name(statement.convert), [value], [])
    if test is None or display is not None:
        return [f.let(row, call, operator)]
    condition = f.replaced(ast.parse(test, mode="eval").body, {"value": value})
    converted = ast.IfExp(condition, value, call)
    if not (isinstance(declared, TupleTypeInfo) and _is_sent_by_fields(function, row, declared)):
        return [f.let(row, converted, operator)]
    names = [
        f"field_of_{row.removeprefix('row_')}_{place}" for place in range(len(declared.field_types))
    ]
    function.types |= zip(names, map(_form_of, declared.field_types), strict=True)
    function.fresh |= set(names)
    taken = ast.Assign([ast.Tuple([*map(f.target, names)], ast.Store())], converted, lineno=0)
    made = f.let(row, ast.Tuple([*map(f.name, names)], ast.Load()), operator)
    return f.marked([taken, made], operator)


def _is_sent_by_fields(function: f.Function, row: str, declared: TupleTypeInfo) -> bool:
    """Whether a record is a short tuple of simple values that is only sent."""
    is_simple = all(isinstance(item, _WITHOUT_PARTS) for item in declared.field_types)
    sends = [item for item in f.all_statements(function.body) if isinstance(item, f.Send)]
    is_only_sent = f.reads(sends, row) == f.reads(function.body, row) > 0
    is_sent_whole_once = sum(f.is_load_of(item.value, row) for item in sends) == 1
    is_short = 0 < len(declared.field_types) <= MOST_COLUMNS
    return is_simple and is_short and is_only_sent and is_sent_whole_once


def _by_fields(
    form: f.Form,
    function: f.Function,
    statement: f.Convert,
    display: Display,
    declared: RowTypeInfo | TupleTypeInfo,
    types: Types,
) -> f.Lines | None:
    """A tuple, or a Row with the declared names, from the fields of a record that is not built."""
    is_row = isinstance(declared, RowTypeInfo)
    names = tuple(declared.get_field_names()) if isinstance(declared, RowTypeInfo) else ()
    if len(display.elements) != len(declared.field_types) or (is_row and not _are_keywords(names)):
        return None
    arranged = _arranged(statement, display, names)
    if arranged is None:
        return None
    lines, display = arranged
    place, operator = statement.target.id.removeprefix("row_"), notes.operator(statement)
    tests = [
        _test_of(field_type, position, element, types)
        for position, (field_type, element) in enumerate(
            zip(declared.field_types, display.elements, strict=True)
        )
    ]
    if None in tests and statement.tag is not None:
        return None
    elements, targets = list(display.elements), [f.target("_") for _ in display.elements]
    for position, element in enumerate(display.elements):
        if tests[position] == "" and isinstance(element, (ast.Name, ast.Constant)):
            continue
        name = f"field_of_{place}_{position}"
        if tests[position] == "":
            function.types[name] = type_of(element, types)
        else:
            field_type = declared.field_types[position]
            # A field of a Row may be None.
            function.types[name] = None if is_row else _form_of(field_type)
            if isinstance(field_type, _WITHOUT_PARTS):
                function.fresh.add(name)
            targets[position] = f.target(name)
        if not f.is_load_of(element, name):
            lines.append(f.let(name, element, operator))
        elements[position] = f.name(name)
    fields = replace(display, elements=elements)
    alone = [position for position, test in enumerate(tests) if test is None]
    test = " and ".join(filter(None, tests))
    lines += _conversion(form, statement, fields, targets, test, alone, may_hold_none=is_row)
    if not is_row:
        function.types[statement.target.id] = _form_of(declared)
    made = replace(fields, shape=Shape(Row, names) if is_row else None).expression(form)
    return f.marked([*lines, f.let(statement.target.id, made, operator)], operator)


def _test_of(
    declared: TypeInformation[Any], position: int, element: ast.expr, types: Types
) -> str | None:
    """What is true of an item of `value` that needs no conversion; empty if it never needs one, None if that is long."""
    test = form_test(declared, f"value[{position}]", plain_type(type_of(element, types)))
    if test and isinstance(element, ast.Constant):
        is_right = eval(test, {"value": {position: element.value}})  # noqa: S307 - our own text
        return "" if is_right else test
    return test


def _conversion(
    form: f.Form,
    statement: f.Convert,
    fields: Display,
    targets: Sequence[ast.expr],
    test: str,
    alone: Sequence[int],
    *,
    may_hold_none: bool,
) -> f.Lines:
    """Converts the fields of a record that is not built.

    Args:
        form: The vertex.
        statement: The conversion to replace.
        fields: The variables of the fields.
        targets: The variables that are set, of all fields.
        test: The condition, over items of `value`, under which no field needs a conversion; empty if none ever does.
        alone: The fields that have no test, and are converted one by one if all others have their form.
        may_hold_none: Whether such a field may be None, and stays so.
    """
    operator = notes.operator(statement)
    by_field: f.Lines = []
    for position in alone:
        convert = form.names.bind(
            f"{statement.convert}_{position}", "field_converter", operator, position
        )
        field = fields.elements[position]
        call: ast.expr = ast.Call(f.name(convert), [field], [])
        if may_hold_none:
            call = f.expression("field if field is None else call", field=field, call=call)
        by_field.append(ast.Assign([targets[position]], call, lineno=0))
    if not test:
        return by_field
    condition = ast.parse(test, mode="eval").body
    by_place = field_reads(Display(fields.elements), "value", fields.elements)
    is_right = f.changed(condition, by_place)
    whole = ast.Call(f.name(statement.convert), [fields.expression(form)], [])
    convert_all = ast.Assign([ast.Tuple([*targets], ast.Store())], whole, lineno=0)
    return [ast.If(ast.UnaryOp(ast.Not(), is_right), [convert_all], by_field)]


def _arranged(
    statement: f.Convert, display: Display, declared: tuple[str, ...]
) -> tuple[f.Lines, Display] | None:
    """The fields in the order of a Row's declared names, after lines that compute them in their own order.

    A tuple has no declared names. The result is None for a record that only the converter knows how to read.
    """
    shape = display.shape
    if shape is None:
        return [], display
    if is_dataclass(shape.kind) or not declared or display.names is not None:
        return None
    names = shape.names
    if shape.kind not in (Row, dict) or not names:
        return None if shape.kind is dict else ([], display)
    if set(names) != set(declared):
        return None
    if names == declared:
        return [], replace(display, shape=Shape(Row))
    lines: f.Lines = []
    elements = dict(zip(names, display.elements, strict=True))
    for name, element in elements.items():
        if not isinstance(element, (ast.Name, ast.Constant)):
            place = statement.target.id.removeprefix("row_")
            variable = f"field_of_{place}_{declared.index(name)}"
            lines.append(f.let(variable, element, notes.operator(statement)))
            elements[name] = f.name(variable)
    return lines, Display([elements[name] for name in declared], Shape(Row))


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
