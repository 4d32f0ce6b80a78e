"""Lines of generated source, each with the operator that it runs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from opchain.runtime.program.vertex_program import NO_OPERATOR

INDENT = "    "
_APPEND = re.compile(r" +(?P<list>\w+)\.append\((?P<value>\w+)\)(?P<comment>  # .*)?")


class _Loop(NamedTuple):
    line: int
    depth: int
    variable: str
    iterable: str
    comment: str


@dataclass(slots=True)
class SourceText:
    """Source under construction.

    `operators[i]` is the operator that line i+1 runs, or the output that it readies a record for (see
    VertexProgram): with it an exception's line number names the place, at no cost until something fails.
    """

    lines: list[str] = field(default_factory=list)
    operators: list[int] = field(default_factory=list)
    _loops: list[_Loop] = field(default_factory=list)

    def add(self, depth: int, text: str, operator: int = NO_OPERATOR) -> None:
        """Adds a line at a depth of indentation."""
        self.lines.append(INDENT * depth + text if text else "")
        self.operators.append(operator)

    def add_loop(
        self,
        depth: int,
        variable: str,
        iterable: str,
        *,
        operator: int = NO_OPERATOR,
        comment: str = "",
    ) -> None:
        """Adds the head of a loop over a value of a builtin type, which `join_loops` may do without."""
        self._loops.append(_Loop(len(self.lines), depth, variable, iterable, comment))
        self.add(depth, f"for {variable} in {iterable}:{comment}", operator)

    def join_loops(self) -> None:
        """Makes one `extend` of each loop that does nothing but append.

        for value_1 in value.split():  # 1 Flat Map (job.py:12)
            values_0.append(value_1)  # -> Map (rebalance)

        values_0.extend(value.split())  # 1 Flat Map (job.py:12) -> Map (rebalance)
        """
        for loop in reversed(self._loops):
            behind = self.lines[loop.line + 2 :][:1]
            if any(line.startswith(INDENT * (loop.depth + 1)) for line in behind):
                continue
            append = _APPEND.fullmatch(self.lines[loop.line + 1])
            if append is None or append["value"] != loop.variable:
                continue
            joined = f"{append['list']}.extend({loop.iterable})"
            comments = [item.strip(" #") for item in (loop.comment, append["comment"]) if item]
            comment = ", ".join(comments).replace(", ->", " ->")
            joined += f"  # {comment}" if comment else ""
            self.lines[loop.line : loop.line + 2] = [INDENT * loop.depth + joined]
            del self.operators[loop.line + 1]
        self._loops.clear()

    def extend(self, other: SourceText) -> None:
        """Adds all lines of another text."""
        self._loops += [loop._replace(line=loop.line + len(self.lines)) for loop in other._loops]
        self.lines += other.lines
        self.operators += other.operators

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"
