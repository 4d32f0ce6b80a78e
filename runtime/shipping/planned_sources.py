"""Sources look at the outside once, on the driver, before their vertex is shipped."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from opchain.runtime.errors import add_note
from opchain.runtime.program.operator_specs import InputFormatSourceSpec, SourceSpec

if TYPE_CHECKING:
    from opchain.runtime.program.vertex_program import OperatorProgram, VertexProgram


def with_planned_sources(vertex: VertexProgram) -> VertexProgram:
    """The vertex whose sources know what there is to read. Flink: the start of a `SplitEnumerator`.

    Raises:
        Exception: What a source says of the outside, such as a file that is not there.
    """
    parallelism = vertex.parallelism
    return replace(
        vertex,
        operators=tuple(_planned(operator, parallelism) for operator in vertex.operators),
        chained_sources=tuple(
            replace(source, operator=_planned(source.operator, parallelism))
            for source in vertex.chained_sources
        ),
    )


def _planned(program: OperatorProgram, parallelism: int) -> OperatorProgram:
    spec = program.spec
    try:
        if isinstance(spec, SourceSpec):
            return replace(program, spec=replace(spec, source=spec.source.planned(parallelism)))
        if isinstance(spec, InputFormatSourceSpec):
            planned = spec.function.planned(parallelism)
            return replace(program, spec=replace(spec, function=planned))
    except Exception as error:
        add_note(error, f"while planning '{program.name}' ({program.call_site})")
        raise
    return program
