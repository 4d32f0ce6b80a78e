"""What a stage is called wherever it is shown: in Spark's UI, in errors, on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opchain.runtime.legible import legible

if TYPE_CHECKING:
    from opchain.runtime.task.vertex_program import JobProgram, StageProgram, VertexProgram


_LONGEST = 1_000
"""Of a vertex's own name, in characters."""


def stage_name(job: JobProgram, stage: StageProgram) -> str:
    """The stage's vertices, each with its parallelism."""
    return ", ".join(vertex_name(job.vertices[number]) for number in stage.vertices)


def vertex_name(vertex: VertexProgram) -> str:
    """The vertex with its parallelism."""
    return f"{legible(vertex.name, _LONGEST)} x{vertex.parallelism}"
