"""Lines of generated source, each with the operator that it runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from opchain.runtime.task.vertex_program import NO_OPERATOR

INDENT = "    "


@dataclass(slots=True)
class SourceText:
    """Source under construction.

    `operators[i]` is the operator that line i+1 runs, or the output that it readies a record for (see
    VertexProgram): with it an exception's line number names the place, at no cost until something fails.
    """

    lines: list[str] = field(default_factory=list)
    operators: list[int] = field(default_factory=list)

    def add(self, depth: int, text: str, operator: int = NO_OPERATOR) -> None:
        """Adds a line at a depth of indentation."""
        self.lines.append(INDENT * depth + text if text else "")
        self.operators.append(operator)

    def extend(self, other: SourceText) -> None:
        """Adds all lines of another text."""
        self.lines += other.lines
        self.operators += other.operators

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"
