"""The lines that gather records for a function of batches, and call it once for all of them.

    for value in values:
        values_of_1.append(value)  # 1 Map Batches 'score' (job.py:12)
    flush_1()

The operator hands what the function gives to `batch_1`, where the chain continues in a loop of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.compiler.codegen.record_code import comment

if TYPE_CHECKING:
    from opchain.compiler.codegen.place import Place
    from opchain.compiler.codegen.source_text import SourceText
    from opchain.compiler.codegen.vertex import VertexGenerator
    from opchain.runtime.program.vertex_program import OperatorProgram


def emit_map_batches(
    generator: VertexGenerator,
    body: SourceText,
    operator: OperatorProgram,
    place: Place,
    _number: int,
) -> None:
    """`values_of_1.append(value)`; what comes one by one, or in batches, is flushed at the end of the turn."""
    index, names = operator.index, generator.names
    values = names.bind(f"values_of_{index}", "sink_values", index)
    body.add(place.depth, f"{values}.append({place.value}){comment(operator)}", index)
    if operator.timestamps:
        timestamps = names.bind(f"timestamps_of_{index}", "sink_timestamps", index)
        body.add(place.depth, f"{timestamps}.append({place.timestamp})", index)
    if place.counted is not None:
        generator.flush_at_end(operator)
    generator.emit_batches(operator)
