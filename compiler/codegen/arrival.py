"""How records come into the loop over a batch: whole or by fields, with timestamps beside or inside them, or none.

    for value in values:
    for value, timestamp in zip(values, timestamps):
    for field_0, field_2 in values.rows():

A timestamp inside is taken from its record by the first lines of the loop.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opchain.compiler.codegen.place import Place
from opchain.compiler.codegen.private_items import with_items
from opchain.compiler.codegen.reduce import reads_fields
from opchain.compiler.codegen.source_text import SourceText
from opchain.compiler.codegen.static_types import ColumnsOf, records_of

if TYPE_CHECKING:
    from opchain.compiler.codegen.static_types import StaticType, Traveling
    from opchain.compiler.codegen.vertex import VertexGenerator
    from opchain.runtime.program.vertex_program import OperatorProgram


@dataclass(frozen=True, slots=True)
class Arrival:
    """Where a record is when the loop begins, what is known of it, and the lines that brought it there."""

    place: Place
    known: StaticType | None
    loop: SourceText


def arrival(generator: VertexGenerator, head: OperatorProgram, traveling: Traveling) -> Arrival:
    """How the head's records come in, of which `traveling` is known."""
    place = Place("value", "timestamp" if head.timestamps else None, 2, "continue", "len(values)")
    known, variables = records_of(head.spec) or traveling.type, ["value"]
    if isinstance(known, ColumnsOf):
        by_fields = _by_fields(place, known)
        if reads_fields(generator, head, by_fields):
            place, variables = by_fields, list(known.variables)
        known = known.record
    loop = loop_over(variables, has_timestamps=head.timestamps and traveling.time is None)
    if traveling.time is not None:
        generator.names.bind("index", "shared")
        loop.add(2, f"timestamp = {with_items(traveling.time, place.items)}")
        loop.add(2, "if timestamp.__class__ is not int:")
        loop.add(3, "timestamp = index(timestamp)")
    return Arrival(place, known, loop)


def loop_over(variables: list[str], *, has_timestamps: bool) -> SourceText:
    """The head of a loop over `values`, as a depth of 1: over whole records, or over fields of them."""
    loop = SourceText()
    if variables != ["value"]:
        beside = "timestamps" if has_timestamps else ""
        variables = [*variables, "timestamp"] if has_timestamps else variables
        loop.add(1, f"for {', '.join(variables)} in values.rows({beside}):")
    elif has_timestamps:
        loop.add(1, "for value, timestamp in zip(values, timestamps):")
    else:
        loop.add_loop(1, "value", "values")
    return loop


def _by_fields(place: Place, columns: ColumnsOf) -> Place:
    """The place of a record of which the fields arrive, and the tuple is not made."""
    items = tuple((f"{place.value}[{n}]", field) for n, field in enumerate(columns.fields))
    return replace(place, fields=columns.fields, items=items)
