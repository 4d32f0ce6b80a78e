"""Pieces of code that several emitters write: a record's key, a function's method, a line's origin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.errors import one_line_name
from opchain.runtime.state.keys.key_identity import key_identity

if TYPE_CHECKING:
    from opchain.compiler.codegen.place import Place
    from opchain.compiler.codegen.vertex import VertexGenerator
    from opchain.runtime.program.vertex_program import KeyProgram, OperatorProgram


def key_code(
    generator: VertexGenerator, operator: OperatorProgram, place: Place, number: int
) -> str:
    """The expression for the key of a record of input `number`."""
    key = operator.keys[number]
    assert key is not None
    expression = generator.expression(key.selector)
    if expression is not None:
        return expression.applied_to(place.value)
    name = generator.names.function(key.selector, "key", f"of_{operator.index}")
    name = f"{name}_{number + 1}" if number else name
    return f"{generator.names.bind(name, 'key', operator.index, number)}({place.value})"


def method_name(generator: VertexGenerator, operator: OperatorProgram, method: str) -> str:
    """The name that a method of the operator's function is bound to."""
    function = operator.spec.function  # type: ignore[attr-defined]
    number = method[-1] if method[-1].isdigit() else ""
    name = generator.names.function(function, f"{operator.spec.kind}{number}", operator.index)
    name = f"{name}_{number}" if number else name
    return generator.names.bind(name, "method", operator.index, method)


def comment(operator: OperatorProgram) -> str:
    """The comment at the first line of an operator."""
    return (
        f"  # {operator.index} {one_line_name(operator.name)} ({one_line_name(operator.call_site)})"
    )


def is_plain_key(generator: VertexGenerator, key: KeyProgram, place: Place) -> bool:
    """Whether keys are known to stand for themselves in tables."""
    expression = generator.expression(key.selector)
    if expression is None:
        return False
    known = generator.type_of(expression, generator.types.get(place.value))
    return known in key_identity(key.hasher).plain
