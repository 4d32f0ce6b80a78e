"""The lines that run a process function on one record.

    key_2 = value_1[0]
    set_key_2(key_2)
    context_2._timestamp = timestamp
    found_2 = count_2(value_1, context_2)  # 2 KeyedProcess (job.py:14)
    for value_2 in () if found_2 is None else found_2:
        if value_2.__class__ is tuple and is_tagged(value_2):
            emit_side_2(value_2, timestamp)
            continue
        emit_2(value_2, timestamp)

Downstream operators follow in the loop, unless the function has an `on_timer`: then results come at any time,
and `emit_2` is the one place for all of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from opchain.compiler.codegen.private_records import keep_private
from opchain.compiler.codegen.record_code import comment, key_code, method_name
from opchain.runtime.functions.process_functions import has_on_timer
from opchain.runtime.program import operator_specs as specs

if TYPE_CHECKING:
    from opchain.compiler.codegen.place import Place
    from opchain.compiler.codegen.source_text import SourceText
    from opchain.compiler.codegen.vertex import VertexGenerator
    from opchain.runtime.program.vertex_program import OperatorProgram


def emit_process(
    generator: VertexGenerator,
    body: SourceText,
    operator: OperatorProgram,
    place: Place,
    number: int,
) -> Place:
    """A loop over what a process function yields; tagged results leave by the side."""
    counter, counted = generator.counter(operator, place)
    result, depth = _loop(generator, body, operator, place, number)
    keep_private(generator, body, depth, result, operator.index)
    if counter is not None:
        body.add(depth, f"{counter} += 1")
    return replace(place, value=result, depth=depth, skip="continue", counted=counted)


def emit_keyed_process(
    generator: VertexGenerator,
    body: SourceText,
    operator: OperatorProgram,
    place: Place,
    number: int,
) -> Place | None:
    """The same with the record's key set."""
    index = operator.index
    key, set_key = f"key_{index}", generator.names.bind(f"set_key_{index}", "set_key", index)
    body.add(place.depth, f"{key} = {key_code(generator, operator, place, number)}", index)
    body.add(place.depth, f"{set_key}({key})", index)
    if not has_on_timer(operator.spec.function):  # type: ignore[attr-defined]
        return emit_process(generator, body, operator, place, number)
    result, depth = _loop(generator, body, operator, place, number)
    body.add(depth, f"emit_{index}({result}, {place.timestamp})", index)
    if number == 0:
        generator.emit_by_itself(operator)
    return None


def _loop(
    generator: VertexGenerator,
    body: SourceText,
    operator: OperatorProgram,
    place: Place,
    number: int,
) -> tuple[str, int]:
    """Opens the loop over results and passes the tagged ones on; the result's name, and the depth."""
    index, depth, result = operator.index, place.depth, f"value_{operator.index}"
    has_two_inputs = isinstance(operator.spec, (specs.CoProcessSpec, specs.KeyedCoProcessSpec))
    method = f"process_element{number + 1}" if has_two_inputs else "process_element"
    name = method_name(generator, operator, method)
    context = generator.names.bind(f"context_{index}", "context", index)
    if place.timestamp is not None:
        body.add(depth, f"{context}._timestamp = {place.timestamp}", index)
    found = f"found_{index}"
    body.add(depth, f"{found} = {name}({place.value}, {context}){comment(operator)}", index)
    body.add(depth, f"for {result} in () if {found} is None else {found}:", index)
    depth += 1
    generator.names.bind("is_tagged", "shared")
    body.add(depth, f"if {result}.__class__ is tuple and is_tagged({result}):", index)
    if number == 0 and generator.emit_sides(operator):
        generator.names.bind(f"emit_side_{index}", "collect_tagged", index)
    if f"emit_side_{index}" in generator.names.bindings:
        body.add(depth + 1, f"emit_side_{index}({result}, {place.timestamp})", index)
    body.add(depth + 1, "continue")
    return result, depth
