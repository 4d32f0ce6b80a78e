"""The lines that keep records private: what is copied, and what need not be.

    value_1 = parse_1(value)
    if value_1.__class__ not in FROZEN:
        value_1 = private(value_1)

See runtime/records/record_copy.py for why.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opchain.compiler.codegen.static_types import is_frozen

if TYPE_CHECKING:
    from opchain.compiler.codegen.place import Place
    from opchain.compiler.codegen.source_text import SourceText
    from opchain.compiler.codegen.vertex import VertexGenerator
    from opchain.runtime.program.vertex_program import OperatorProgram


def keep_private(
    generator: VertexGenerator, body: SourceText, depth: int, name: str, operator: int
) -> None:
    """Copies what a function returned if it could be changed later."""
    if generator.copies and not is_frozen(generator.types.get(name)):
        generator.names.bind("FROZEN", "shared")
        generator.names.bind("private", "shared")
        body.add(depth, f"if {name}.__class__ not in FROZEN:", operator)
        body.add(depth + 1, f"{name} = private({name})", operator)


def copied(
    generator: VertexGenerator, body: SourceText, operator: OperatorProgram, place: Place
) -> Place:
    """A copy of a record that others get too, where it could be changed."""
    if is_frozen(generator.types.get(place.value)):
        return replace(place, is_copied=False)
    name = f"{place.value}_for_{operator.index}"
    body.add(place.depth, f"{name} = {place.value}", operator.index)
    keep_private(generator, body, place.depth, name, operator.index)
    return replace(place, value=name, is_copied=False)


def is_harmless(generator: VertexGenerator, operator: OperatorProgram) -> bool:
    """Whether nothing behind an operator's main output can change its records.

    Exchanges copy by pickling, unless they reduce first; inlined expressions only read; and some sinks say so.
    """
    work = [operator]
    while work:
        operator = work.pop()
        for _, output in generator.tree.outputs(operator):
            if output.combine is not None and not _only_reads(generator, output.combine):
                return False
        for child in generator.tree.children(operator):
            if child.spec.takes_batches:
                if child.spec.changes_records():
                    return False
                continue
            function = getattr(child.spec, "function", None)
            if not _only_reads(generator, function, is_iterated=child.spec.kind == "flat_map"):
                return False
            work.append(child)
    return True


def _only_reads(generator: VertexGenerator, function: Any, *, is_iterated: bool = False) -> bool:
    expression = generator.expression(function, is_iterated=is_iterated)
    return expression is not None and expression.only_reads
