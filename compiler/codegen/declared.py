"""Generated code that gives records the form of their declared type, where they leave a chain of Python functions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen.static_types import TupleOf
from opchain.runtime.types.crossing import class_of, form_test
from opchain.runtime.types.record_types import TupleTypeInfo
from opchain.runtime.types.type_information import BasicTypeInfo

_BUILTINS: dict[str, type] = {"int": int, "float": float, "str": str, "bool": bool}

if TYPE_CHECKING:
    from opchain.compiler.codegen.place import Place
    from opchain.compiler.codegen.source_text import SourceText
    from opchain.compiler.codegen.static_types import StaticType
    from opchain.compiler.codegen.vertex import VertexGenerator
    from opchain.runtime.program.vertex_program import OperatorProgram
    from opchain.runtime.types.type_information import TypeInformation


def keeps_form(operator: OperatorProgram, known: StaticType | None) -> bool:
    """Whether every record of an operator has its declared form already."""
    declared = operator.record_type
    return declared is None or form_test(declared, "value", _plain(known)) == ""


def emit_declared_form(
    generator: VertexGenerator, body: SourceText, operator: OperatorProgram, place: Place
) -> Place:
    """`row_2 = value_2 if value_2.__class__ is str else as_declared_2(value_2)`, or nothing."""
    assert operator.record_type is not None
    index = operator.index
    test = form_test(operator.record_type, place.value, _plain(generator.types.get(place.value)))
    if test == "":
        return place
    convert = generator.names.bind(f"as_declared_{index}", "attribute", index, "as_declared")
    declared = f"row_{index}"
    converted = f"{convert}({place.value})"
    text = converted if test is None else f"{place.value} if {test} else {converted}"
    body.add(place.depth, f"{declared} = {text}", index)
    generator.types[declared] = _form_of(operator.record_type)
    return replace(place, value=declared)


def _form_of(declared: TypeInformation[Any]) -> StaticType | None:
    """What is known of a value of a declared type behind its conversion."""
    if isinstance(declared, TupleTypeInfo):
        return TupleOf(tuple(map(_form_of, declared.field_types)))
    if isinstance(declared, BasicTypeInfo):
        return _BUILTINS.get(class_of(declared) or "")
    return None


def _plain(known: StaticType | None) -> Any:
    """What is known of a value, as `form_test` takes it."""
    if isinstance(known, TupleOf):
        return tuple(map(_plain, known.items))
    return known if isinstance(known, type) else None
