"""The position of a record's code, and the readers of each operator of a chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opchain.compiler.codegen import form as f

if TYPE_CHECKING:
    import ast

    from opchain.runtime.program.vertex_program import OperatorProgram, OutputProgram, VertexProgram


@dataclass(frozen=True, slots=True)
class Place:
    """The variables of a record, and the position of its code in the function.

    `timestamp` is None where records carry none. `is_shared` says that the function that made the record may
    hold it, too. `in_batch` says that the function loops over a batch.
    """

    value: str
    timestamp: str | None
    in_batch: bool
    is_shared: bool = False
    loops: int = 1
    operators: int = 0

    @property
    def record(self) -> ast.Name:
        """The record."""
        return f.name(self.value)

    @property
    def time(self) -> ast.expr | None:
        """The timestamp."""
        return None if self.timestamp is None else f.name(self.timestamp)


class ChainTree:
    """The readers of each operator: chained operators, and exchanges with their numbers."""

    def __init__(self, program: VertexProgram) -> None:
        self._children: dict[tuple[int, str | None], list[OperatorProgram]] = {}
        for operator in program.operators:
            self._children.setdefault((operator.parent, operator.tag), []).append(operator)
        self._outputs: dict[tuple[int, str | None], list[tuple[int, OutputProgram]]] = {}
        for number, output in enumerate(program.outputs):
            self._outputs.setdefault((output.operator, output.tag), []).append((number, output))

    def children(self, operator: OperatorProgram, tag: str | None = None) -> list[OperatorProgram]:
        """The chained operators that read an operator's main output, or a side output."""
        return self._children.get((operator.index, tag), [])

    def outputs(
        self, operator: OperatorProgram, tag: str | None = None
    ) -> list[tuple[int, OutputProgram]]:
        """The exchanges that read an operator's main output, or a side output."""
        return self._outputs.get((operator.index, tag), [])

    def times_are_read(self, operator: OperatorProgram) -> bool:
        """Whether a reader of an operator's main output needs timestamps."""
        return any(child.timestamps for child in self.children(operator)) or any(
            output.carries_timestamps for _, output in self.outputs(operator)
        )
