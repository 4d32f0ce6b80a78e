"""Who takes what an operator of a chain emits: chained operators, and the exchanges that leave the vertex."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opchain.runtime.program.vertex_program import OperatorProgram, OutputProgram, VertexProgram


class ChainTree:
    """The operators of a vertex by parent, and its outputs, with their numbers, by operator."""

    def __init__(self, program: VertexProgram) -> None:
        self._children: dict[tuple[int, str | None], list[OperatorProgram]] = {}
        for operator in program.operators:
            self._children.setdefault((operator.parent, operator.tag), []).append(operator)
        self._outputs: dict[tuple[int, str | None], list[tuple[int, OutputProgram]]] = {}
        for number, output in enumerate(program.outputs):
            self._outputs.setdefault((output.operator, output.tag), []).append((number, output))

    def children(self, operator: OperatorProgram, tag: str | None = None) -> list[OperatorProgram]:
        """The chained operators that take an operator's main output, or a side output."""
        return self._children.get((operator.index, tag), [])

    def outputs(
        self, operator: OperatorProgram, tag: str | None = None
    ) -> list[tuple[int, OutputProgram]]:
        """The exchanges that take it."""
        return self._outputs.get((operator.index, tag), [])

    def times_are_read(self, operator: OperatorProgram) -> bool:
        """Whether something takes timestamps together with an operator's main output."""
        return any(child.timestamps for child in self.children(operator)) or any(
            output.carries_timestamps for _, output in self.outputs(operator)
        )
